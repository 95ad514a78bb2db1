"""If and Loop across 11: branches of different shapes, and loops that carry nothing."""

from __future__ import annotations

import numpy as np
import pytest

import onnxreduce_cli
from tests.support import converts, model

X = np.arange(6, dtype=np.float32).reshape(2, 3)
FEEDS = [{"x": X, "c": np.array(flag)} for flag in (True, False)]


def choice(first: str, second: str, shape: str = "a,b") -> str:
    return f"""<ir_version: 8, opset_import: ["" : 11]>
        g (float[2,3] x, bool c) => (float[{shape}] y) {{
            [pick] y = If (c) <
                then_branch = t () => (float[p,q] o) {{ o = {first} }},
                else_branch = e () => (float[r,s] o) {{ o = {second} }}
            >
        }}"""


def test_branches_of_one_shape() -> None:
    source = model(choice("Neg(x)", "Identity(x)"))
    for target in (10, 7):
        result = converts(source, target, *FEEDS, exact=True)
        assert not onnxreduce_cli.plan(source, target).changes[0:0]
        assert result.graph == source.graph


@pytest.mark.parametrize("target", [10, 9, 7])
def test_one_shape_or_loops(target: int) -> None:
    source = model(choice("Neg(x)", "Transpose(x)"))
    result = converts(source, target, *FEEDS, exact=True)
    loops = [node for node in result.graph.node if node.op_type == "Loop"]
    assert loops[-1].name == "pick"
    converts(result, 13, *FEEDS, exact=True)


@pytest.mark.parametrize("target", [10, 7])
def test_loops_for_branches_in_branches(target: int) -> None:
    """With several outputs, of which one is not read, and bodies that change on the way."""
    source = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2,3] x, bool[1] c, bool d) => (float[a,b] y, bool w) {
            outer = Neg(x)
            y, unread, w = If (c) <
                then_branch = t () => (float[p,q] o, float o2, bool o3) <int64[1] top = {0}> {
                    least = ReduceSum<keepdims = 1>(outer, top)
                    o = If (d) <
                        then_branch = t1 () => (float[p1,q1] u) { u = Identity(least) },
                        else_branch = e1 () => (float[r1,s1] u2) { u2 = Transpose(least) }
                    >
                    o2 = ReduceSum<keepdims = 0>(o)
                    o3 = Not(d)
                },
                else_branch = e () => (float[r,s] n, float[k] n2, bool n3) <bool no = {0}> {
                    n = Concat<axis = -1>(outer, x)
                    n2 = ReduceMax<axes = [0], keepdims = 0>(n)
                    n3 = And(no, d)
                }
            >
        }""")
    feeds = [
        {"x": X, "c": np.array([c]), "d": np.array(d)} for c in (True, False) for d in (True, False)
    ]
    result = converts(source, target, *feeds, exact=True)
    assert "If" not in [node.op_type for node in result.graph.node]


REVERSED = """<ir_version: 8, opset_import: ["" : 11]>
    g (float[2,3] x, int64[2] s, bool c) => (float[a,b] y) {{
        [pick] y = If (c) <
            then_branch = t () => (float[p,q] o) {{ o = Reshape(x, s) }},
            else_branch = e () => (float[r,s1] n) {{ {other} }}
        >
    }}"""
FEEDS_OF_SHAPES = [{**feeds, "s": np.array([3, 2])} for feeds in FEEDS]


@pytest.mark.parametrize("target", [10, 7])
@pytest.mark.parametrize("other", ["n = Identity(x)", "back = Neg(x)  n = Reshape(back, s)"])
def test_a_shape_that_is_not_known(target: int, other: str) -> None:
    """Left as it is ONNX Runtime takes the one branch's shape for the other's."""
    source = model(REVERSED.format(other=other))
    result = converts(source, target, *FEEDS_OF_SHAPES, exact=True)
    assert "If" not in [node.op_type for node in result.graph.node]


def test_a_type_that_is_not_known_passes_with_a_warning() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 11, "local" : 1]>
        g (float[2,3] x, bool c) => (float[a,b] y) {
            [pick] z = If (c) <
                then_branch = t () => (o) { o = local.F(x) },
                else_branch = e () => (n) { n = local.F(x) }
            >
            y = local.F(z)
        }""")
    (change,) = onnxreduce_cli.plan(source, 10).changes
    assert "the branches of an If must give the same shape" in change.warnings[0]
    assert onnxreduce_cli.convert(source, 10).graph == source.graph


@pytest.mark.parametrize("target", [10, 9, 7])
def test_a_loop_that_carries_nothing(target: int) -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (int64 n, bool c, float[2,3] x) => (int64[k] y, float[k,3] z) {
            [round] y, z = Loop (n, c) <body = b (int64 i, bool on)
                => (bool off, int64 j, float[3] s) <int64[1] top = {0}> {
                off = Identity(on)
                j = Identity(i)
                [inner] s = ReduceSum<keepdims = 0>(x, top)
            }>
        }""")
    feeds = {"n": np.array(3), "c": np.array(True), "x": X}
    never = {**feeds, "n": np.array(0)}
    result = converts(source, target, feeds, never, exact=True)
    (loop,) = result.graph.node
    assert list(loop.output)[1:] == ["y", "z"]
    body = loop.attribute[0].g
    # What the body's own nodes became is not lost.
    assert [node.op_type for node in body.node] == ["Identity"] * 2 + ["ReduceSum", "Identity"]
    assert [value.name for value in body.output][::2] == ["off", "j"]
    assert not onnxreduce_cli.plan(result, 7).blockers
    converts(source, 18, feeds, never, exact=True)


def test_loops_that_carry_nothing_in_each_other_in_a_function_and_a_branch() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 11, "local" : 1]>
        g (int64 n, bool c) => (int64[k] y) {
            yes = Equal(c, c)
            y = If (c) <
                then_branch = t () => (int64[k1] o) { o = local.F(n, yes) },
                else_branch = e () => (int64[k2] o) {
                    o = Loop (n, yes) <body = b (int64 i, bool on) => (bool off, int64 j) {
                        off = Identity(on)
                        j = Neg(i)
                    }>
                }
            >
        }
        <domain: "local", opset_import: ["" : 11]>
        F (n, yes) => (y) {
            [round] y = Loop (n, yes) <body = b (int64 i, bool on) => (bool off, int64 j) {
                off = Identity(on)
                [inner] all = Loop (i, yes) <body = d (int64 h, bool going)
                    => (bool gone, int64 k) {
                    gone = Identity(going)
                    k = Neg(h)
                }>
                j = Size(all)
            }>
        }""")
    feeds = [{"n": np.array(3), "c": np.array(flag)} for flag in (True, False)]
    result = converts(source, 10, *feeds, exact=True)
    assert result.SerializeToString() == onnxreduce_cli.convert(source, 10).SerializeToString()


def test_a_loop_that_carries_something() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 11]>
        g (int64 n, bool c, float[2,3] x) => (float[2,3] y) {
            y = Loop (n, c, x) <body = b (int64 i, bool on, float[2,3] v)
                => (bool off, float[2,3] w) {
                off = Identity(on)
                w = Add(v, v)
            }>
        }""")
    for target in (10, 7):
        feeds = {"n": np.array(3), "c": np.array(True), "x": X}
        assert converts(source, target, feeds, exact=True).graph == source.graph
