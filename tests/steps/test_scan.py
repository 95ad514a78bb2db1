"""Scan across its boundaries."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import GraphProto, ModelProto

from tests.support import blockers, converts, model, one_node, op_types

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def scan(opset: int, attributes: str, state: str, out: str, rank: int = 3) -> ModelProto:
    """A Scan that sums slices of `x` and gives each sum."""
    shape = "float[2, 3, 4]" if rank == 3 else "float[batch, 2, 3, 4]"
    sequence_lens = '"", ' if opset < 9 else ""
    return model(
        f"""<ir_version: 5, opset_import: ["": {opset}]>
        g ({shape} x, {state} s) => ({state} t, {out} y) {{
          t, y = Scan<num_scan_inputs = 1, {attributes} body = b (float[r, c] before, float[r, c] e)
            => (float[r, c] after, float[r, c] part) {{
              after = Add(before, e)
              part = Identity(after)
            }}>({sequence_lens}s, x)
        }}"""
    )


@pytest.mark.parametrize(
    ("attributes", "state", "out"),
    [
        ("", (3, 4), (2, 3, 4)),
        ("scan_input_directions = [1],", (3, 4), (2, 3, 4)),
        ("scan_input_axes = [1],", (2, 4), (3, 2, 4)),
        ("scan_input_axes = [-1],", (2, 3), (4, 2, 3)),
        ("scan_input_axes = [2], scan_output_axes = [-2],", (2, 3), (2, 4, 3)),
        ("scan_output_axes = [2],", (3, 4), (3, 4, 2)),
    ],
)
def test_down(attributes: str, state: tuple[int, ...], out: tuple[int, ...]) -> None:
    source = scan(11, attributes, f"float{list(state)}", f"float{list(out)}")
    feeds = {"x": X, "s": np.ones(state, np.float32)}
    for opset in (10, 9, 8):
        converts(source, opset, feeds, exact=True)


@pytest.mark.parametrize(
    ("attributes", "state", "out"),
    [
        ("", (3, 4), (2, 3, 4)),
        ("scan_input_directions = [1],", (3, 4), (2, 3, 4)),
        ("scan_output_directions = [1],", (3, 4), (2, 3, 4)),
        ("scan_input_axes = [-1],", (2, 3), (4, 2, 3)),
        ("scan_input_axes = [2], scan_output_axes = [-2],", (2, 3), (2, 4, 3)),
        ("scan_output_axes = [2], scan_output_directions = [1],", (3, 4), (3, 4, 2)),
    ],
)
def test_a_loop_below_opset_8(
    attributes: str, state: tuple[int, ...], out: tuple[int, ...]
) -> None:
    source = scan(11, attributes, f"float{list(state)}", f"float{list(out)}")
    found = converts(source, 7, {"x": X, "s": np.ones(state, np.float32)}, exact=True)
    assert "Loop" in op_types(found)


@pytest.mark.newest
def test_a_loop_whose_body_changes() -> None:
    source = model(
        """<ir_version: 7, opset_import: ["": 14]>
        g (float[2, 3, 4] x, float[3, 4] s) => (float[3, 4] t, float[2, 3] y) {
          t, y = Scan<num_scan_inputs = 1, body = b (float[3, 4] before, float[3, 4] e)
            => (float[3, 4] after, float[3] part) {
              axes = Constant<value_ints = [-1]>()
              half = HardSwish(before)
              after = Add(half, e)
              part = ReduceSum<keepdims = 0>(after, axes)
            }>(s, x)
        }"""
    )
    feeds = {"x": X, "s": np.ones((3, 4), np.float32)}
    for opset in (9, 8, 7):
        converts(source, opset, feeds)


def test_sums_below_opset_8() -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    inputs = {"x": x, "a": np.array(1)}
    for attributes in ({}, {"reverse": 1}, {"exclusive": 1, "reverse": 1}):
        source = one_node("CumSum", 11, inputs, initializers=("a",), **attributes)
        converts(source, 7, inputs, exact=True)


def test_backwards_output() -> None:
    source = scan(9, "scan_output_directions = [1],", "float[3, 4]", "float[2, 3, 4]")
    (blocker,) = blockers(source, 8)
    assert "scan_output_directions" in blocker.reason


@pytest.mark.parametrize("attributes", ["", "directions = [1],"])
def test_up(attributes: str) -> None:
    source = scan(8, attributes, "float[1, 3, 4]", "float[1, 2, 3, 4]", rank=4)
    feeds = {"x": X[None], "s": np.ones((1, 3, 4), np.float32)}
    for opset in (9, 11, 21):
        converts(source, opset, feeds, exact=True)


def test_up_needs_a_batch_of_one() -> None:
    source = scan(8, "", "float[batch, 3, 4]", "float[batch, 2, 3, 4]", rank=4)
    (blocker,) = blockers(source, 9)
    assert "batch" in blocker.reason
    source.graph.node[0].input[0] = "lengths"
    source.graph.input.add(name="lengths").type.tensor_type.elem_type = 7
    (blocker,) = blockers(source, 9)
    assert "sequence_lens" in blocker.reason


def test_unknown_rank() -> None:
    source = scan(11, "scan_input_axes = [-1],", "float[2, 3]", "float[4, 2, 3]")
    source.graph.input[0].type.tensor_type.ClearField("shape")
    (blocker,) = blockers(source, 10)
    assert "rank" in blocker.reason


def test_what_it_reads_has_its_rank_stated() -> None:
    """ONNX Runtime needs it; before opset 14 inference has none for a computed shape."""
    source = model(
        """<ir_version: 8, opset_import: ["": 14]>
        g (float[2, 12] x, float[3, 4] s) => (float[3, 4] t, float[2, 3, 4] y)
        <int64[1] first = {0}, int64[2] rest = {3, 4}> {
          whole = Shape(x)
          number = Gather(whole, first)
          dims = Concat<axis = 0>(number, rest)
          rows = Reshape(x, dims)
          t, y = Scan<num_scan_inputs = 1, body = b (before, e) => (after, part) {
              after = Add(before, e)
              part = Identity(after)
            }>(s, rows)
        }"""
    )
    feeds = {"x": X.reshape(2, 12), "s": np.ones((3, 4), np.float32)}
    low = converts(source, 13, feeds, exact=True)
    assert [info.name for info in low.graph.value_info] == ["rows"]
    converts(source, 11, feeds, exact=True)


def test_what_its_body_reshapes_has_its_rank_stated() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["": 14]>
        g (float[2, 3, 4] x, float[12] s) => (float[12] t, float[2, 12] y)
        <int64[1] zero = {0}, int64[1] all = {12}> {
          same = Add(zero, all)
          t, y = Scan<num_scan_inputs = 1, body = b (before, e) => (after, part) {
              row = Reshape(e, same)
              after = Add(before, row)
              part = Identity(row)
            }>(s, x)
        }"""
    )
    feeds = {"x": X, "s": np.ones(12, np.float32)}
    low = converts(source, 13, feeds, exact=True)
    assert [info.name for info in body_of(low).value_info] == ["row"]
    converts(source, 11, feeds, exact=True)


def body_of(found: ModelProto) -> GraphProto:
    (scan,) = (node for node in found.graph.node if node.op_type == "Scan")
    return next(attribute.g for attribute in scan.attribute if attribute.name == "body")
