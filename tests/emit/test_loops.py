"""The bodies of Loop and the branches of If, and what counts by them."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.loops import Carried, branch, loop
from onnxreduce_cli.emit.sizes import arange, size_of
from tests.emit.test_context import context, nodes


def test_what_is_collected_is_no_input_of_the_body() -> None:
    here = context()
    count = here.array([3], "count")
    carried = [Carried("w", TensorProto.FLOAT, ())]

    def write(body):
        return body.values, [Carried(body.round, TensorProto.INT64, ())]

    _, graph = loop(here, count, carried, write)
    given = {value.name for value in graph.input}
    assert given.isdisjoint(value.name for value in graph.output)
    assert [node.op_type for node in graph.node] == ["Identity"] * 3


def test_a_count_of_rank_0_is_taken_as_it_is() -> None:
    here = context()
    inputs, _ = loop(here, "w", [], lambda body: ([], []))
    assert inputs[0] == "w"
    assert nodes(here) == []


def test_a_branch_has_no_inputs_and_gives_what_is_written() -> None:
    here = context()
    graph = branch(here, lambda body: body.Neg(body.Abs("x")))
    assert [node.op_type for node in graph.node] == ["Abs", "Neg"]
    assert not graph.input
    assert [value.name for value in graph.output] == [graph.node[1].output[0]]


def test_up_to_a_size_at_run_time_a_loop_counts_before_opset_9() -> None:
    here = context().at(8)
    here.target_opset = 8
    arange(here, size_of(here, "x", 1))
    assert [op for op, _ in nodes(here)] == ["Shape", "Gather", "Squeeze", "Loop"]
    here = context()
    arange(here, size_of(here, "x", 1))
    assert [op for op, _ in nodes(here)][2:] == ["ConstantOfShape", "NonZero", "Squeeze"]


def test_below_opset_7_no_loop_is_written() -> None:
    here = context().at(6)
    here.target_opset = 6
    with pytest.raises(Blocked, match="below opset 7 none is written"):
        arange(here, size_of(here, "x", 1))
