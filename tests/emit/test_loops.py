"""The bodies of Loop and Scan and the branches of If, and what counts by them."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.loops import LoopValue, branch, loop, scan_body, turn_into_loop_body
from onnxreduce_cli.emit.sizes import arange, size_of
from onnxreduce_cli.executor import run
from tests.emit.test_context import context, nodes


def test_what_is_collected_is_no_input_of_the_body() -> None:
    here = context()
    count = here.array([3], "count")
    carried = [LoopValue("w", TensorProto.FLOAT, ())]

    def write(body):
        return body.values, [LoopValue(body.round, TensorProto.INT64, ())]

    _, graph = loop(here, count, carried, write, "that counts")
    given = {value.name for value in graph.input}
    assert given.isdisjoint(value.name for value in graph.output)
    assert [node.op_type for node in graph.node] == ["Identity"] * 3


def test_a_count_of_rank_0_is_taken_as_it_is() -> None:
    here = context()
    inputs, _ = loop(here, "w", [], lambda body: ([], []), "of nothing")
    assert inputs[0] == "w"
    assert nodes(here) == []


def test_a_branch_has_no_inputs_and_gives_what_is_written() -> None:
    here = context()
    graph = branch(here, lambda body: body.Neg(body.Abs("x")))
    assert [node.op_type for node in graph.node] == ["Abs", "Neg"]
    assert not graph.input
    assert [value.name for value in graph.output] == [graph.node[1].output[0]]


def test_a_branch_states_a_dtype_only_where_it_is_told_one() -> None:
    here = context()
    untold = branch(here, lambda body: body.Neg("x"))
    told = branch(here, lambda body: body.Neg("x"), TensorProto.FLOAT)
    assert not untold.output[0].HasField("type")
    assert told.output[0].type.tensor_type.elem_type == TensorProto.FLOAT
    assert not told.output[0].type.tensor_type.HasField("shape")


@pytest.mark.parametrize(("count", "expected"), [(0, [1.0, -2.0]), (1, [-1.0, 2.0])])
def test_a_loop_of_one_round_or_none_does_what_a_branch_does(count, expected) -> None:
    here = context()
    body = branch(here, lambda nodes: nodes.Neg("carried"), TensorProto.FLOAT)
    turn_into_loop_body(here, body, [LoopValue("", TensorProto.FLOAT, None).info("carried")])
    node = helper.make_node("Loop", ["n", "", "v"], ["out"], body=body)
    value = np.array([1.0, -2.0], np.float32)
    (out,) = given_by(node, n=np.array(count), v=value)
    assert out.tolist() == expected


def test_nodes_may_read_the_round_that_a_loop_body_counts() -> None:
    here = context()
    body = branch(here, lambda nodes: nodes.Add("carried", "number"), TensorProto.INT64)
    carried = [LoopValue("", TensorProto.INT64, ()).info("carried")]
    turn_into_loop_body(here, body, carried, "number")
    node = helper.make_node("Loop", ["n", "", "v"], ["out"], body=body)
    (out,) = given_by(node, n=np.array(4), v=np.array(10))
    assert out == 10 + 0 + 1 + 2 + 3


def test_a_scan_may_give_its_state_and_its_slices_as_they_are() -> None:
    here = context()
    scalar = LoopValue("", TensorProto.FLOAT, ())

    def write(body, values):
        total = body.Add(*values)
        return [LoopValue(name, TensorProto.FLOAT, ()) for name in (total, values[0], total)]

    graph = scan_body(here, [scalar, scalar], write)
    assert [node.op_type for node in graph.node] == ["Add", "Identity", "Identity"]
    names = [value.name for value in (*graph.input, *graph.output)]
    assert len(set(names)) == len(names) == 5
    node = helper.make_node("Scan", ["s", "v"], ["t", "a", "b"], body=graph, num_scan_inputs=1)
    start, value = np.array(1.0, np.float32), np.array([2.0, 3.0, 4.0], np.float32)
    total, before, after = given_by(node, s=start, v=value)
    assert total == 10.0
    assert before.tolist() == [1.0, 3.0, 6.0]
    assert after.tolist() == [3.0, 6.0, 10.0]


def test_a_scan_states_no_type_that_is_not_known() -> None:
    graph = scan_body(
        context(), [LoopValue("", 0, None)], lambda body, values: [LoopValue(values[0], 0, None)]
    )
    assert not graph.input[0].HasField("type")
    assert not graph.output[0].HasField("type")


def given_by(node: onnx.NodeProto, **inputs: np.ndarray) -> list[np.ndarray]:
    """What a model of one node gives for its inputs, at opset 11."""
    types = [
        helper.make_tensor_value_info(
            name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape
        )
        for name, value in inputs.items()
    ]
    outputs = [onnx.ValueInfoProto(name=name) for name in node.output]
    graph = helper.make_graph([node], "g", types, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=6)
    return list(run(model, inputs).values())


def test_up_to_a_size_at_run_time_a_loop_counts_before_opset_9() -> None:
    here = context(8, target=8)
    here.may_loop = True
    arange(here, size_of(here, "x", 1))
    assert [op for op, _ in nodes(here)] == ["Shape", "Gather", "Squeeze", "Loop"]
    here = context(10, target=10)
    arange(here, size_of(here, "x", 1))
    assert [op for op, _ in nodes(here)][2:] == ["ConstantOfShape", "NonZero", "Squeeze"]
    here = context()
    arange(here, size_of(here, "x", 1))
    assert [op for op, _ in nodes(here)][2:] == ["Squeeze", "Range"]


@pytest.mark.parametrize(
    ("opset", "may_loop", "since"), [(8, False, 9), (6, False, 9), (6, True, 7)]
)
def test_where_no_loop_may_be_written(opset: int, may_loop: bool, since: int) -> None:
    here = context(opset, target=opset)
    here.may_loop = may_loop
    with pytest.raises(Blocked, match="before opset 9 only a Loop counts up to it") as caught:
        arange(here, size_of(here, "x", 1))
    assert caught.value.advice.startswith(f"choose opset {since} or later, or state the shapes")
    assert nodes(here)[2:] == []
