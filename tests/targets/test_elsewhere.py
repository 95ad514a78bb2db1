"""What some runtime computes wrong of a model at its opset."""

from __future__ import annotations

import pytest
from onnx import ModelProto

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.targets.elsewhere import Wrong
from tests.support import model


def wrong_elsewhere(found: ModelProto, opset: int | None = None) -> Wrong | None:
    """What some runtime computes wrong of a model, or of what it becomes at another opset."""
    return Conversion(found, opset or found.opset_import[0].version).wrong_elsewhere


def graph(nodes: str, version: int) -> ModelProto:
    return model(f"""<ir_version: 8, opset_import: ["" : {version}]>
    g (float[2,3,4] x) => (float[a,b,c] y) {{ {nodes} }}""")


@pytest.mark.parametrize(
    ("nodes", "version", "found"),
    [
        ("y = Add(x, x)", 13, None),
        ("y = ReduceL1<axes=[1]>(x)", 11, None),
        ("y = ReduceL1(x)", 13, None),
        ("y = ReduceL1<axes=[1]>(x)", 13, ({"ReduceL1": 1}, {"openvino": "2025.4 to 2026.4"})),
        (
            "a = LogSoftmax<axis=0>(x) y = LogSoftmax<axis=1>(a)",
            11,
            (
                {"LogSoftmax": 2},
                {"opencv", "mnn", "ncnn", "tinygrad", "jaxonnxruntime", "x2paddle"},
            ),
        ),
        ("y = LogSoftmax<axis=2>(x)", 11, None),
        (
            "y = ReduceSum<noop_with_empty_axes=1>(x)",
            13,
            ({"ReduceSum": 1}, {"mnn", "ncnn", "onnxruntime", "opencv"}),
        ),
    ],
)
def test_what_is_wrong(nodes, version, found) -> None:
    wrong = wrong_elsewhere(graph(nodes, version))
    if found is None:
        assert wrong is None
        return
    operators, runtimes = found
    assert (wrong.opset, wrong.nodes) == (version, operators)
    if isinstance(runtimes, dict):
        assert wrong.runtimes == runtimes
    else:
        assert set(wrong.runtimes) == runtimes


def test_nodes_of_functions_are_looked_at() -> None:
    found = model("""<ir_version: 8, opset_import: ["" : 13, "own" : 1]>
        g (float[2,3] x) => (float[2,1] y) { y = own.f(x) }
        <domain: "own", opset_import: ["" : 13]>
        f (v) => (w) { w = ReduceL1<axes=[1]>(v) }""")
    assert wrong_elsewhere(found).nodes == {"ReduceL1": 1}


def test_nodes_that_read_other_axes_by_the_same_name() -> None:
    """Of those with none there is nothing to be said."""
    body = "axes = Constant<value={}>() w = ReduceL1(v, axes)"
    found = model(f"""<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[2,3] x) => (float[a,b] y) {{ s = own.some(x) y = own.none(s) }}
        <domain: "own", opset_import: ["" : 18]>
        none (v) => (w) {{ {body.format("int64[0] {}")} }}
        <domain: "own", opset_import: ["" : 18]>
        some (v) => (w) {{ {body.format("int64[1] {1}")} }}""")
    assert wrong_elsewhere(found).nodes == {"ReduceL1": 1}


def test_nodes_that_change_are_looked_at_as_they_will_be() -> None:
    """Alike ones, a node that becomes others, and nodes of graphs within nodes, each once."""
    found = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2,3,4] x, bool c) => (float[a,b,d] y) {
            p = ReduceL1<axes=[1]>(x)
            q = ReduceL1<axes=[2]>(p)
            r = If(c) <
                then_branch = then () => (float[a,b,d] t) { t = ReduceL1<axes=[0]>(q) },
                else_branch = else () => (float[a,b,d] e) { e = Identity(q) }
            >
            y = ReduceL1<axes=[0]>(r)
        }""")
    assert wrong_elsewhere(found).nodes == {"ReduceL1": 4}
    assert wrong_elsewhere(found, 16).nodes == {"ReduceL1": 4}
    assert wrong_elsewhere(found, 18).nodes == {"ReduceL1": 4}
    assert wrong_elsewhere(found, 12) is None


@pytest.mark.parametrize("opset", [18, 20])
def test_one_of_many_nodes_that_reads_a_constant_of_integers(opset: int) -> None:
    count = 100
    chains = "".join(
        f"{kind}{index + 1} = Add({kind}{index}, {kind}0)"
        for kind in ("x", "i")
        for index in range(count)
    )
    found = model(f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] x0, int64[2,3] i0) => (float[2,3] y, int64[2,3] z)
        <int64[2,3] c = {{1,2,3,4,5,6}}> {{
            {chains}
            y = Add(x{count}, x0)
            z = Add(i{count}, c)
        }}""")
    assert wrong_elsewhere(found, opset).nodes == {"Add": 1}
