"""Scan across its boundaries."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import GraphProto, ModelProto

from tests.support import blockers, converts, model, op_types

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


def test_from_the_end_below_opset_6() -> None:
    attributes = "scan_input_directions = [1],"
    source = scan(9, attributes, "float[3, 4]", "float[2, 3, 4]")
    converts(source, 6, {"x": X, "s": np.ones((3, 4), np.float32)}, exact=True)
    (blocker,) = blockers(source, 5)
    assert blocker.reason.startswith("it scans an input from its end, and before opset 6 Sub")
    assert blocker.advice == "choose opset 6 or later"


@pytest.mark.parametrize(
    ("attributes", "out"),
    [
        ("scan_output_directions = [1],", "float[2, 3, 4]"),
        ("scan_output_directions = [1], scan_output_axes = [1],", "float[3, 2, 4]"),
    ],
)
@pytest.mark.parametrize("size", ["2", "n"])
def test_backwards_output(attributes: str, out: str, size: str) -> None:
    source = scan(9, attributes, "float[3, 4]", out)
    if size == "n":
        source.graph.input[0].type.tensor_type.shape.dim[0].dim_param = size
    converts(source, 8, {"x": X, "s": np.ones((3, 4), np.float32)}, exact=True)


def batches(lengths: bool, directions: str, batch: str = "b", time: str = "t") -> ModelProto:
    """A Scan-8 of two states, two inputs and two outputs, whose body changes at 13."""
    given = f"int64[{batch}] lengths, " if lengths else ""
    return model(
        f"""<ir_version: 5, opset_import: ["": 8]>
        g ({given} float[{batch}, {time}, 2] x, float[{batch}, {time}, 2] z, float[{batch}, 2] s,
           float[{batch}, 1] r) => (float[b1, 2] s1, float[b1, 1] r1, float[b1, t1, 2] y,
           float[b1, t1] w) {{
          rows = Identity(x)
          s1, r1, y, w = Scan<num_scan_inputs = 2, {directions} body = b (float[2] s_in,
            float[1] r_in, float[2] e, float[2] f)
            => (float[2] s_out, float[1] r_out, float[2] part, float total) {{
              s_out = Add(s_in, e)
              r_out = Add(r_in, r_in)
              part = Sub(s_out, f)
              total = ReduceSum<keepdims = 0>(part)
            }}>({"lengths" if lengths else '""'}, s, r, rows, z)
        }}"""
    )


@pytest.mark.parametrize("directions", ["", "directions = [1, 0],"])
@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("target", [7, 9, 11, 13])
def test_over_batch(lengths: bool, directions: str, target: int) -> None:
    feeds = {
        "lengths": np.array([4, 2, 1]),
        "x": X.reshape(3, 4, 2),
        "z": -X.reshape(3, 4, 2),
        "s": np.ones((3, 2), np.float32),
        "r": np.ones((3, 1), np.float32),
    }
    converts(batches(lengths, directions), target, feeds, exact=True)
    fixed = converts(batches(lengths, directions, "3", "4"), target, feeds, exact=True)
    if target == 9 and lengths:
        (blocker,) = blockers(fixed, 7)
        assert "finds the elements that are not zero" in blocker.reason
    elif target == 9:
        converts(fixed, 7, feeds, exact=True)


def test_over_batch_a_sequence_of_no_length() -> None:
    """ONNX Runtime refuses it."""
    feeds = {
        "lengths": np.array([4, 0]),
        "x": X[:, :, :2].reshape(2, 3, 2)[:, [0, 1, 2, 0]],
        "z": X[:, :, 2:].reshape(2, 3, 2)[:, [0, 1, 2, 0]],
        "s": np.ones((2, 2), np.float32),
        "r": np.ones((2, 1), np.float32),
    }
    converts(batches(True, ""), 9, feeds, exact=True, in_numpy=True)


def test_a_scan_without_states_below_opset_8() -> None:
    source = model(
        """<ir_version: 5, opset_import: ["": 9]>
        g (float[n, 3] x) => (float[n, 3] y) {
          y = Scan<num_scan_inputs = 1, body = b (float[3] e) => (float[3] part) {
              part = Neg(e)
            }>(x)
        }"""
    )
    converts(source, 7, {"x": X[0, :, :3]}, exact=True)


@pytest.mark.parametrize("attributes", ["", "directions = [1],"])
def test_up(attributes: str) -> None:
    source = scan(8, attributes, "float[1, 3, 4]", "float[1, 2, 3, 4]", rank=4)
    feeds = {"x": X[None], "s": np.ones((1, 3, 4), np.float32)}
    for opset in (9, 11, 21):
        converts(source, opset, feeds, exact=True)


UNKNOWN_RANK = """<ir_version: 5, opset_import: ["": 11]>
    g (float[24] x, float[{state}] s, int64[k] shape) => (float[{state}] t, float[a, b, c] y) {{
      rows = Reshape(x, shape)
      t, z = Scan<num_scan_inputs = 1, scan_input_axes = [{axis}], {more} body = b
        (float[r, c] before, e) => (float[r, c] after, {given}) {{
          after = Add(before, e)
          part = ReduceMax<axes = [0], keepdims = 1>({what})
        }}>(s, rows)
      y = Neg(z)
    }}"""


@pytest.mark.parametrize("axis", [-1, -2, -3])
def test_a_negative_axis_of_unknown_rank(axis: int) -> None:
    dims = [2, 3, 4]
    state = [size for index, size in enumerate(dims) if index != axis % 3]
    text = UNKNOWN_RANK.format(
        state=", ".join(map(str, state)), axis=axis, more="", given="float[1, c] part", what="after"
    )
    feeds = {"x": X.reshape(-1), "s": np.ones(state, np.float32), "shape": np.array(dims)}
    for opset in (10, 9, 8, 7):
        converts(model(text), opset, feeds, exact=True)


def test_a_negative_axis_of_an_output_of_unknown_rank() -> None:
    """ONNX Runtime wants to know it."""
    text = UNKNOWN_RANK.format(
        state="3, 4", axis=0, more="scan_output_axes = [-1],", given="part", what="e"
    )
    feeds = {"x": X.reshape(-1), "s": np.ones((3, 4), np.float32), "shape": np.array([2, 3, 4])}
    for opset in (10, 8, 7):
        converts(model(text), opset, feeds, exact=True, in_numpy=True)


def test_unknown_rank() -> None:
    source = model(
        """<ir_version: 5, opset_import: ["": 9]>
        g (float[24] x, float[2, 4] s, int64[k] shape) => (float[2, 4] t, float[3, 2, 4] y) {
          rows = Reshape(x, shape)
          t, y = Scan<num_scan_inputs = 1, scan_input_axes = [1], body = b
            (float[r, c] before, float[r, c] e) => (float[r, c] after, float[r, c] part) {
              after = Add(before, e)
              part = Identity(after)
            }>(s, rows)
        }"""
    )
    feeds = {"x": X.reshape(-1), "s": np.ones((2, 4), np.float32), "shape": np.array([2, 3, 4])}
    result = converts(source, 8, feeds, exact=True)
    assert "Loop" in op_types(result)


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


def test_outputs_of_a_body_get_the_types_that_nothing_infers_below_6() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 11]>
        g (float[N] x, double[M] s) => (float[N] z) {
            y = Scan <num_scan_inputs=1, body = b (double a) => (o) { o = Cast <to=1> (a) }> (s)
            l = ReduceSum <axes=[0]> (y)
            z = Add (x, l)
        }""")
    inputs = {"x": np.ones(2, np.float32), "s": np.arange(3, dtype=np.float64)}
    for target in (10, 7, 6, 5, 3):
        converts(source, target, inputs, in_numpy=True)


def test_what_only_its_loop_reads_is_not_left_over() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["": 18]>
        g (float[2, 3] x, float[1] w) => (float[1, 3] z, int64[n] y) {
          first = Constant<value_ints = [0]>()
          z = ReduceMax(x, first)
          y = Scan<num_scan_inputs = 2, body = b (float e, int64 f) => (int64 part) {
              part = Neg(f)
            }>(w, first)
        }"""
    )
    converts(source, 7, {"x": X[0, :2, :3], "w": X[0, 0, :1]}, exact=True)
