"""Control flow: If, Loop, Scan, SequenceMap, and names of outer scopes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxreduce_cli.executor import ExecutionError, UnsupportedError, run
from tests.executor.models import LATEST, graph, model, value

LOOPS = [v for v in (1, 11, 13, 16, 19, 21, 23, 24, 25) if v <= LATEST]
SCANS = [v for v in LOOPS if v >= 9]
X = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.float32)


def node(op: str, inputs: list[str], outputs: list[str], **attrs: Any) -> Any:
    return helper.make_node(op, inputs, outputs, **attrs)


def scalar(name: str, number: Any, dtype: Any) -> Any:
    return numpy_helper.from_array(np.array(number, dtype=dtype), name)


@pytest.mark.parametrize("opset", LOOPS)
@pytest.mark.parametrize("taken", [True, False])
def test_if_runs_one_branch_with_names_of_the_outer_scope(opset: int, taken: bool) -> None:
    then = graph([node("Neg", ["h"], ["t"])], [], ["t"])
    other = graph([node("Identity", ["x"], ["e"])], [], ["e"])
    built = model(
        [
            node("Abs", ["x"], ["h"]),
            node("If", ["c"], ["y"], then_branch=then, else_branch=other),
        ],
        [value("x"), value("c", np.bool_)],
        ["y"],
        opset,
    )
    got = run(built, {"x": -X, "c": np.array(taken)})["y"]
    np.testing.assert_array_equal(got, -X)
    assert got.dtype == np.float32


def loop_body(*, scans: bool = True) -> Any:
    nodes = [
        node("Add", ["sum", "step"], ["next"]),
        node("Less", ["next", "limit"], ["go"]),
        node("Identity", ["next"], ["seen"]),
    ]
    return graph(
        nodes,
        [value("i", np.int64, []), value("c", np.bool_, []), value("sum", np.float32, [])],
        ["go", "next", *(["seen"] if scans else [])],
    )


@pytest.mark.parametrize("opset", [v for v in LOOPS if v >= 11])
@pytest.mark.parametrize(
    ("trips", "condition", "seen"),
    [(4, None, [1, 2, 3, 4]), (None, True, [1, 2, 3]), (2, True, [1, 2]), (9, True, [1, 2, 3])],
)
def test_loop_ends_by_count_or_condition(
    opset: int, trips: int | None, condition: bool | None, seen: list[float]
) -> None:
    initializers = [scalar("start", 0, np.float32), scalar("step", 1, np.float32)]
    initializers.append(scalar("limit", 3, np.float32))
    if trips is not None:
        initializers.append(scalar("m", trips, np.int64))
    if condition is not None:
        initializers.append(scalar("c", condition, np.bool_))
    inputs = ["m" if trips is not None else "", "c" if condition is not None else "", "start"]
    built = model(
        [node("Loop", inputs, ["last", "all"], body=loop_body())],
        [],
        ["last", "all"],
        opset,
        initializers,
    )
    got = run(built, {})
    np.testing.assert_array_equal(got["all"], np.array(seen, dtype=np.float32))
    assert got["last"] == seen[-1]


def test_a_loop_numbers_its_iterations_in_the_shape_that_its_body_states() -> None:
    # tf2onnx writes it, and ONNX Runtime keeps to it; the definition knows scalars only.
    steps = [node("Identity", ["c"], ["d"]), node("Slice", ["X", "i", "e"], ["s"])]
    steps.insert(0, node("Add", ["i", "one"], ["e"]))
    inputs = [value("i", np.int64, [1]), value("c", np.bool_, [1])]
    body = graph(steps, inputs, ["d", "s"], [numpy_helper.from_array(np.ones(1, np.int64), "one")])
    given = [scalar("m", 2, np.int64), scalar("t", True, np.bool_)]
    built = model(
        [node("Loop", ["m", "t"], ["y"], body=body)],
        [value("X", np.float32, [3, 2])],
        ["y"],
        13,
        given,
    )
    np.testing.assert_array_equal(run(built, {"X": X})["y"], X[:2, None])


def test_a_loop_without_an_end_is_refused() -> None:
    initializers = [scalar(n, 0, np.float32) for n in ("start", "step", "limit")]
    built = model(
        [node("Loop", ["", "", "start"], ["last", "all"], body=loop_body())],
        [],
        ["last"],
        13,
        initializers,
    )
    with pytest.raises(UnsupportedError, match="no end"):
        run(built, {})


def test_a_loop_that_never_runs_gives_its_declared_empty_outputs() -> None:
    body = loop_body()
    body.output[2].type.tensor_type.elem_type = TensorProto.FLOAT
    body.output[2].type.tensor_type.shape.SetInParent()
    initializers = [scalar(n, 0, np.float32) for n in ("start", "step", "limit")]
    built = model(
        [node("Loop", ["m", "", "start"], ["last", "all"], body=body)],
        [],
        ["last", "all"],
        13,
        [*initializers, scalar("m", 0, np.int64)],
    )
    got = run(built, {})
    assert got["all"].shape == (0,)
    assert got["all"].dtype == np.float32
    del built.graph.node[0].attribute[0].g.output[2].type.tensor_type.shape.dim[:]
    built.graph.node[0].attribute[0].g.output[2].type.Clear()
    with pytest.raises(UnsupportedError, match="never ran"):
        run(built, {})


def scan_body() -> Any:
    return graph(
        [node("Add", ["s", "x"], ["t"]), node("Mul", ["t", "k"], ["o"])],
        [value("s"), value("x")],
        ["t", "o"],
    )


@pytest.mark.parametrize("opset", SCANS)
def test_scan_carries_state_and_stacks_outputs(opset: int) -> None:
    built = model(
        [
            node(
                "Scan",
                ["s0", "x"],
                ["s", "o"],
                body=scan_body(),
                num_scan_inputs=1,
                scan_input_axes=[1],
                scan_input_directions=[1],
                scan_output_axes=[1],
            )
        ],
        [value("x")],
        ["s", "o"],
        opset,
        [scalar("k", 2, np.float32), scalar("s0", [0, 0, 0], np.float32)],
    )
    got = run(built, {"x": X})
    np.testing.assert_array_equal(got["s"], X.sum(axis=1))
    np.testing.assert_array_equal(got["o"], 2 * np.stack([X[:, 1], X.sum(axis=1)], axis=1))


@pytest.mark.parametrize("opset", SCANS)
def test_a_scan_over_nothing_gives_empty_outputs(opset: int) -> None:
    built = model(
        [node("Scan", ["s0", "x"], ["s", "o"], body=scan_body(), num_scan_inputs=1)],
        [value("x")],
        ["s", "o"],
        opset,
        [scalar("k", 2, np.float32), scalar("s0", [1, 2, 3], np.float32)],
    )
    got = run(built, {"x": np.zeros((0, 3), np.float32)})
    np.testing.assert_array_equal(got["s"], [1, 2, 3])
    assert got["o"].shape == (0, 3)
    assert got["o"].dtype == np.float32


def test_scan_8_has_batches_and_lengths() -> None:
    built = model(
        [node("Scan", ["lens", "s0", "x"], ["s", "o"], body=scan_body(), num_scan_inputs=1)],
        [value("x"), value("lens", np.int64)],
        ["s", "o"],
        8,
        [scalar("k", 1, np.float32), scalar("s0", [[0.0], [10.0]], np.float32)],
    )
    x = np.array([[[1], [2], [3]], [[4], [5], [6]]], dtype=np.float32)
    got = run(built, {"x": x, "lens": np.array([3, 2])})
    np.testing.assert_array_equal(got["s"], np.array([[6.0], [19.0]], dtype=np.float32))
    want = np.array([[[1], [3], [6]], [[14], [19], [0]]], dtype=np.float32)
    np.testing.assert_array_equal(got["o"], want)


def test_scan_8_takes_batches_of_one_size() -> None:
    built = model(
        [node("Scan", ["", "s0", "x"], ["s", "o"], body=scan_body(), num_scan_inputs=1)],
        [value("x")],
        ["s", "o"],
        8,
        [scalar("k", 1, np.float32), scalar("s0", [[0.0], [10.0]], np.float32)],
    )
    with pytest.raises(ExecutionError, match="differ in the size of their batches"):
        run(built, {"x": np.zeros((1, 3, 1), np.float32)})


def test_names_are_found_through_two_scopes_and_inner_ones_go_first() -> None:
    inner = graph([node("Add", ["x", "shadow"], ["z"])], [], ["z"])
    then = graph(
        [
            node("Neg", ["x"], ["shadow"]),
            node("If", ["c"], ["w"], then_branch=inner, else_branch=inner),
        ],
        [],
        ["w"],
    )
    built = model(
        [node("If", ["c"], ["y"], then_branch=then, else_branch=then)],
        [value("x"), value("c", np.bool_)],
        ["y"],
        13,
    )
    got = run(built, {"x": X, "c": np.array(True)})["y"]
    np.testing.assert_array_equal(got, np.zeros_like(X))


def test_a_branch_may_give_an_outer_value_or_its_own_initializer() -> None:
    then = graph([], [], ["x"])
    other = graph([], [], ["own"], [scalar("own", [7], np.float32)])
    built = model(
        [node("If", ["c"], ["y"], then_branch=then, else_branch=other)],
        [value("x"), value("c", np.bool_)],
        ["y"],
        13,
    )
    np.testing.assert_array_equal(run(built, {"x": X, "c": np.array(True)})["y"], X)
    np.testing.assert_array_equal(run(built, {"x": X, "c": np.array(False)})["y"], [7])


def test_a_name_that_no_scope_defines_is_an_error_that_names_the_node() -> None:
    then = graph([helper.make_node("Neg", ["nowhere"], ["t"], name="lost")], [], ["t"])
    built = model(
        [node("If", ["c"], ["y"], then_branch=then, else_branch=then)],
        [value("c", np.bool_)],
        ["y"],
        13,
    )
    with pytest.raises(ExecutionError, match=r"'lost' \(Neg, opset 13\).*'nowhere'"):
        run(built, {"c": np.array(True)})


def test_a_body_that_fits_no_loop_is_an_error() -> None:
    body = graph([node("Identity", ["c"], ["d"])], [value("i", np.int64)], ["d"])
    body.input.append(value("c", np.bool_))
    built = model(
        [node("Loop", ["m", "", "x"], ["y"], body=body)],
        [value("x")],
        ["y"],
        13,
        [scalar("m", 1, np.int64)],
    )
    with pytest.raises(ExecutionError, match="body has 2 inputs"):
        run(built, {"x": X})
