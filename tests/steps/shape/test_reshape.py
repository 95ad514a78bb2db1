"""Reshape: 5, 14 and 19."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import blockers, converts, model, one_node, op_types

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def computed(text, outputs="float[p, q] y", opset=14, shape="a, b, 4"):
    return model(
        f"""<ir_version: 7, opset_import: ["" : {opset}]> g (float[{shape}] x) => ({outputs})
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] four = {{4}},
         int64[1] minus = {{-1}}>
        {{
            s = Shape (x)
            a1 = Gather (s, zero)
            b1 = Gather (s, one)
            c1 = Gather (s, two)
            {"ab = Mul (a1, b1) bc = Mul (b1, c1)" if opset > 6 else ""}
            {text}
        }}"""
    )


def op_count(found):
    """How many operators stand behind those that compute the shape."""
    return len(found.graph.node) - 6


EMPTY = [X[:0], X[:, :0], X[:0, :0]]


def reshapes(source, target, *arrays, left=None):
    result = converts(source, target, *[{"x": array} for array in (X, *arrays)], exact=True)
    assert not any(a.name == "allowzero" for node in result.graph.node for a in node.attribute)
    if left is not None:
        assert op_count(result) == left
    return result


def test_without_allowzero_inferred():
    source = computed("t = Concat<axis=0> (a1, minus) y = Reshape<allowzero=1> (x, t)")
    reshapes(source, 13, left=2)


def test_without_allowzero_copied():
    source = computed(
        "t = Concat<axis=0> (a1, b1, two, two) y = Reshape<allowzero=1> (x, t)",
        "float[a, b, 2, 2] y",
    )
    reshapes(source, 13, *EMPTY, left=2)


def test_without_allowzero_one_unknown():
    source = computed("t = Concat<axis=0> (ab, four) y = Reshape<allowzero=1> (x, t)")
    result = reshapes(source, 13, *EMPTY)
    assert op_types(result)[-1] == "Reshape"
    assert "Expand" not in op_types(result)
    reshapes(source, 9, *EMPTY)


GENERAL = ["Cast", "Cast", "Expand", "Reshape"]

#: What a shape consists of, how many operators stand behind those that compute it, and which.
PROVEN = {
    "a multiple in place": ("a1, bc", "a, b, 4", []),
    "a multiple of a size in place": ("a1, b4, one", "a, b, 4", []),
    "a dimension put in before": ("one, a1, b1, four", "a, b, 4", ["Unsqueeze"]),
    "one put in between": ("a1, two, b1, two", "a, b, 4", ["Unsqueeze"]),
    "two put in": ("a1, one, b1, two, two, c1", "a, b, c, 4", ["Unsqueeze"]),
    "what follows is in place": ("two, a1, b1, c1, two", "a, b, c, 4", ["Unsqueeze"]),
    "a product of two sizes in place of one": ("a1, bc", "a, b, c", GENERAL),
    "another order": ("one, bc, a1", "a, b, 4", GENERAL),
    "another order of three": ("one, bc, a1", "a, b, c", GENERAL),
}


@pytest.mark.parametrize("case", PROVEN)
def test_without_allowzero_at_run_time(case):
    parts, shape, added = PROVEN[case]
    rank = parts.count(",") + 1
    text = f"b4 = Mul (b1, four) t = Concat<axis=0> ({parts}) y = Reshape<allowzero=1> (x, t)"
    source = computed(text, f"float[{', '.join('pqrstu'[:rank])}] y", shape=shape)
    dims = {"a": 2, "b": 3, "c": 4, "4": 4}
    sizes = [dims[dim] for dim in shape.split(", ")]
    x = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
    feeds = [{"x": x}, {"x": x[:0]}, {"x": x[:, :0]}, {"x": x[:0, :0]}]
    feeds += [{"x": x[:, :, :0]}] if "c" in shape else []
    for target in (13, 9):
        result = converts(source, target, *feeds, exact=True)
        assert sorted(op_types(result)[8:]) == sorted([*added, "Reshape"])


def chained(first, second, parts):
    """A Reshape behind another, and a Transpose: what its sizes are follows from their nodes."""
    return model(
        f"""<ir_version: 7, opset_import: ["" : 14]> g (float[a, b, 8] x) => ({second} y)
        <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] four = {{4}}>
        {{
            s = Shape (x)
            a1 = Gather (s, zero)
            b1 = Gather (s, one)
            b4 = Mul (b1, four)
            t = Concat<axis=0> ({first})
            u = Reshape<allowzero=1> (x, t)
            v = Transpose<perm=[1, 0, 2]> (u)
            w = Concat<axis=0> ({parts})
            y = Reshape<allowzero=1> (v, w)
        }}"""
    )


def test_heads_put_into_the_batch_and_out_again():
    """As PyTorch's exporter writes attention: [a, b, 8] to [a, 4 b, 2] to [b, 4, a, 2]."""
    source = chained("a1, b4, two", "float[b, p, a, q]", "b1, four, a1, two")
    x = np.arange(48, dtype=np.float32).reshape(2, 3, 8)
    feeds = [{"x": x}, {"x": x[:0]}, {"x": x[:, :0]}, {"x": x[:0, :0]}]
    for target in (13, 9):
        result = converts(source, target, *feeds, exact=True)
        assert op_types(result)[5:] == ["Reshape", "Transpose", "Concat", "Unsqueeze", "Reshape"]


@pytest.mark.parametrize("target", [13, 8])
def test_without_allowzero_of_an_input(target):
    source = model(
        '<ir_version: 7, opset_import: ["" : 14]> g (float[a, b] x, int64[3] s)'
        " => (float[p, q, r] y) { y = Reshape<allowzero=1> (x, s) }"
    )
    shapes = [
        ((4, 3), [2, 2, 3]),
        ((4, 3), [2, -1, 1]),
        ((0, 3), [3, 0, 5]),
        ((0, 3), [0, 0, 0]),
        ((2, 0), [0, 7, 1]),
        ((2, 0), [1, 0, 0]),
    ]
    feeds = [{"x": np.ones(a, np.float32), "s": np.array(b)} for a, b in shapes]
    converts(source, target, *feeds, exact=True)


def test_without_allowzero_of_an_input_to_a_scalar():
    x = np.ones((1, 1), np.float32)
    inputs = {"x": x, "s": np.zeros(0, np.int64)}
    source = one_node("Reshape", 14, inputs, allowzero=1, shapes={"x": ["a", "b"]})
    converts(source, 13, inputs, exact=True)


@pytest.mark.parametrize(
    ("shape", "new", "stays"),
    [
        ([2, 3, 4], [4, 6], True),
        (["a", 3, 4], [4, 6], True),
        (["a", 3, 4], [-1, 6], True),
        ([0, 3, 4], [0, 5], True),
        ([0, 3, 4], [5, 0], True),
        ([3, 0], [0, 0, 2], False),
    ],
)
def test_without_allowzero_constant(shape, new, stays):
    x = np.ones([2 if isinstance(dim, str) else dim for dim in shape], np.float32)
    inputs = {"x": x, "s": np.array(new)}
    source = one_node("Reshape", 14, inputs, initializers=("s",), shapes={"x": shape}, allowzero=1)
    result = converts(source, 13, inputs, exact=True)
    assert (op_types(result) == ["Reshape"]) == stays


def test_without_allowzero_zero():
    inputs = {"x": X, "s": np.array([0, -1])}
    source = one_node("Reshape", 14, inputs, output_shapes=[[None, None]], allowzero=0)
    assert not converts(source, 13, inputs).graph.node[0].attribute


def test_shape_to_input_and_shape_to_attribute():
    inputs = {"x": X, "s": np.array([0, -1])}
    source = one_node("Reshape", 5, inputs, initializers=("s",))
    low = converts(source, 4, inputs)
    assert low.graph.node[0].attribute[0].ints == [0, -1]
    high = converts(low, 13, inputs)
    assert len(high.graph.node[0].input) == 2
    scalar = {"x": X[:1, 0, :1], "s": np.zeros(0, np.int64)}
    low = converts(one_node("Reshape", 5, scalar, initializers=("s",)), 1, scalar)
    converts(low, 5, scalar)


def test_shape_to_input_missing():
    source = model(
        '<ir_version: 4, opset_import: ["" : 1]> g (float[2, 3] x) => (float[6] y) '
        "{ y = Reshape <consumed_inputs=[0]> (x) }"
    )
    (blocker,) = blockers(source, 5)
    assert "shape is missing" in str(blocker)


def test_shape_to_attribute_known_in_part():
    tail = "y = Reshape (x, t)"
    at_5 = {"opset": 5}
    source = computed(f"t = Concat<axis=0> (a1, minus) {tail}", "float[a, q] y", **at_5)
    low = converts(source, 4, {"x": X})
    assert low.graph.node[-1].attribute[0].ints == [0, -1]
    source = computed(f"t = Concat<axis=0> (b1, four) {tail}", shape="1, b, 4", **at_5)
    low = converts(source, 4, {"x": X[:1]})
    assert low.graph.node[-1].attribute[0].ints == [-1, 4]
    source = computed(
        f"t = Concat<axis=0> (c1, b1, a1) {tail}", "float[c, b, a] y", shape="a, b, c", **at_5
    )
    (blocker,) = blockers(source, 4)
    assert "is only known at run time, and before opset 5 Reshape has it" in blocker.reason
    assert blocker.advice == "choose opset 5 or later"


def test_shape_to_attribute_known_from_the_result():
    inputs = {"x": X, "s": np.array([3, -1, 4])}
    source = one_node("Reshape", 5, inputs, output_shapes=[[3, 2, 4]])
    assert converts(source, 4, inputs).graph.node[0].attribute[0].ints == [3, 2, 0]


@pytest.mark.parametrize(
    ("shape", "stays"), [([1, 6], False), ([-1, 2], False), ([0, 6], True), (None, True)]
)
def test_idle_allowzero_goes_below_opset_19(shape, stays):
    inputs = {"x": np.zeros((2, 3, 0) if shape == [0, 6] else (2, 3), np.float32)}
    inputs["s"] = np.array(shape or [3, 2], np.int64)
    source = one_node("Reshape", 21, inputs, initializers=("s",) if shape else (), allowzero=1)
    result = converts(source, 18, inputs)
    assert bool(result.graph.node[0].attribute) == stays
    kept = converts(source, 20, inputs)
    assert kept.graph.node[0].attribute, "no boundary was crossed that is about it"
