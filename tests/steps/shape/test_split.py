"""Split: 2, 13 and 18."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import onnxreduce_cli
from onnxreduce_cli.errors import InvalidModelError
from tests.support import blockers, converts, converts_or_counts, model, one_node, op_types

X = np.arange(30, dtype=np.float32).reshape(5, 6)


def test_sizes_without_input_and_axis_written_out():
    inputs = {"x": X}
    low = converts(one_node("Split", 2, inputs, outputs=2, split=[1, 4]), 1, inputs)
    assert {a.name for a in low.graph.node[0].attribute} == {"axis", "split"}
    converts(low, 2, inputs)
    source = model(
        """<ir_version: 4, opset_import: ["" : 1]> g (float[5, 6] x) => (float[1,6] y, float[4,6] z)
        <float[2] s = {1.0, 4.0}> { y, z = Split <axis=0> (x, s) }"""
    )
    high = converts(source, 2, inputs)
    assert high.graph.node[0].input == ["x"]


@pytest.mark.parametrize("axis", [0, 1])
def test_sizes_without_input_known_at_run_time(axis):
    text = f"""<ir_version: 4, opset_import: ["" : 1]> g (float[5, 6] x, float[3] s)
        => (float[p, q] u, float[r, t] v, float[k, l] w)
        {{ u, v, w = Split <axis={axis}> (x, s) }}"""
    inputs = {"x": X, "s": np.array([2, 0, 3 + axis], np.float32)}
    high = converts(model(text), 18, inputs)
    assert op_types(high) == ["Cast", "Split"]
    for target in (2, 12):
        (blocker,) = blockers(model(text), target)
        assert "from opset 2 to 12 Split has them as an attribute" in blocker.reason
        assert blocker.advice == "choose opset 13 or later"


def test_sizes_to_attribute_is_checked_where_its_bounds_are_known_in_part():
    inputs = {"x": X[0], "s": np.array([2, 4])}
    source = one_node("Split", 13, inputs, outputs=2, output_shapes=(["a"], ["b"]))
    converts_or_counts(source, 7, inputs, check=True)


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, np.int64, bool])
def test_integers_without_split_concat_and_reshape(dtype):
    values = np.array([[-1, 2**62, 3], [4, -(2**63), 6]]).astype(dtype)
    x = np.concatenate([values, values[:, :2]], 1)
    pair, shaped = {"a": values, "b": x}, {"x": x, "s": np.array([5, 2])}
    reshape = one_node("Reshape", 5, shaped, initializers=("s",))
    for source, target, inputs in (
        (one_node("Split", 2, {"x": x}, outputs=2, axis=1, split=[3, 2]), 1, {"x": x}),
        (one_node("Concat", 4, pair, axis=1), 3, pair),
        (one_node("Concat", 4, pair, axis=1, initializers=("a",)), 3, pair),
        (reshape, 4, shaped),
        (reshape, 3, shaped),
    ):
        if x.itemsize < 8:  # No float holds what has 64 bits.
            converts(source, target, inputs, in_numpy=True)
        else:
            (blocker,) = blockers(source, target)
            assert "nor a dtype in which the results are the same" in blocker.reason


def test_axis_written_out():
    low = converts(one_node("Split", 2, {"x": X}, outputs=5), 1, {"x": X})
    assert low.graph.node[0].attribute[0].name == "axis"


def test_sizes_to_input_and_sizes_to_attribute():
    inputs = {"x": X, "s": np.array([1, 0, 5])}
    source = one_node("Split", 13, inputs, initializers=("s",), outputs=3, axis=-1)
    low = converts(source, 11, inputs)
    assert op_types(low) == ["Split"]
    high = converts(low, 13, inputs)
    assert len(high.graph.node[0].input) == 2
    equal = one_node("Split", 13, {"x": X}, outputs=3, axis=1)
    converts(converts(equal, 2, {"x": X}), 18, {"x": X})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_sizes_to_attribute_at_run_time(axis):
    sizes = [[1, 4], [5, 0]] if axis == 0 else [[2, 4], [0, 6]]
    feeds = [{"x": X, "s": np.array(size)} for size in sizes]
    source = one_node("Split", 13, feeds[0], outputs=2, axis=axis, output_shapes=[[None] * 2] * 2)
    assert "Split" not in op_types(converts(source, 10, *feeds, exact=True))


def test_number_written_out():
    high = converts(one_node("Split", 13, {"x": X}, outputs=3, axis=1), 18, {"x": X})
    assert high.graph.node[0].attribute[1].name == "num_outputs"
    inputs = {"x": X, "s": np.array([1, 4])}
    high = converts(one_node("Split", 13, inputs, initializers=("s",), outputs=2), 18, inputs)
    assert not high.graph.node[0].attribute


@pytest.mark.parametrize(
    # A sixth part of 2 in all would be left over where 5 are made of 6.
    ("number", "axis"),
    [(n, axis) for n in (1, 2, 3, 5) for axis in (0, 1, -1) if n < 5 or not axis],
)
@pytest.mark.parametrize("shape", [[5, 6], ["a", "b"]])
@pytest.mark.parametrize("target", [17, 12])
def test_number_to_sizes(number, axis, shape, target):
    source = one_node(
        "Split", 18, {"x": X}, outputs=number, axis=axis, num_outputs=number, shapes={"x": shape}
    )
    others = [] if shape == [5, 6] else [{"x": np.concatenate([X, X], axis)}]
    converts(source, target, {"x": X}, *others, exact=True)


def test_number_to_sizes_of_a_branch_that_is_never_taken():
    """Four parts of five elements cannot be made; a model that never tries must load and run."""
    source = model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (bool c, float[4, 6] s, float[5, 6] x) => (float[2, 6] y) {
          y = If (c) <
            then_branch = t () => (float[2, 6] a) { a, b = Split <num_outputs=2> (s) },
            else_branch = e () => (float[2, 6] d) { d, f, g, h = Split <num_outputs=4> (x) }>
        }"""
    )
    inputs = {"c": np.array(True), "s": X[:4], "x": X}
    for target in (17, 13, 12, 11):
        converts(source, target, inputs, exact=True)


def test_a_number_that_is_not_that_of_the_outputs_is_refused():
    # Neither onnx's checker nor ONNX Runtime survives such a node.
    source = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]> g (float[6] x)
        => (float[a] y, float[b] q, float[c] r) {
            p, q, r = Split <num_outputs = 2> (x)
            y = Identity (p)
        }"""
    )
    with pytest.raises(InvalidModelError, match="'num_outputs' is 2, and it has 3 outputs"):
        onnxreduce_cli.plan(source, 12)
