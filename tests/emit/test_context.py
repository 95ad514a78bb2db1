"""What steps emit nodes with."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import GraphProto, NodeProto, TensorProto, helper, parser

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.loops import LoopValue, loop
from onnxreduce_cli.emit.node_facts import Lookups, Workspace
from onnxreduce_cli.model.graph.edit import Constants
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.types.facts import Facts

NODE = "y = GatherND(x, i)"


def context(opset: int = 11, text: str = NODE, target: int = 11) -> Context:
    """A context for the one node of a model at opset 12."""
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 12]>\n'
        f"g (float[2,N] x, int64[3,1] i, float w) => (float[3,N] y) {{ {text} }}"
    )
    found = scopes(model)
    workspace = Workspace(Facts(model, found).extended(), Names(found), Constants(), GraphProto())
    return Context(model.graph.node[0], found[0], 12, opset, target, "node", workspace, Lookups())


def nodes(given: Context) -> list[tuple[str, int]]:
    return [(node.op_type, opset) for node, opset in given.emitted]


def test_a_node_is_emitted_by_calling_its_operator() -> None:
    here = context()
    found = here.op.Gather(here.input(0), "places", axis=1)
    node, opset = here.emitted[0]
    assert opset == 11
    assert (node.op_type, list(node.input), list(node.output)) == (
        "Gather",
        ["x", "places"],
        [found],
    )
    assert node.name == found == "node_Gather"
    assert node.attribute == [helper.make_attribute("axis", 1)]


def test_inputs_that_are_none_or_empty_are_absent() -> None:
    here = context()
    here.op.Clip("x", None, "high")
    here.op.Clip("x", "", None)
    assert [list(node.input) for node, _ in here.emitted] == [["x", "", "high"], ["x"]]


def test_an_attribute_that_is_none_is_left_out() -> None:
    here = context()
    here.op.Concat("x", "x", axis=0, seed=None)
    assert [item.name for item in here.emitted[0].node.attribute] == ["axis"]


def test_several_outputs_are_a_tuple_and_named_ones_are_as_named() -> None:
    here = context()
    parts = here.op.Split("x", outputs=3, axis=0)
    first = here.op.Split("x", outputs=["one", "two"], axis=0)
    given = [list(node.output) for node, _ in here.emitted]
    assert isinstance(parts, tuple)
    assert given == [list(parts), ["one", "two"]]
    assert len(set(parts)) == 3
    assert first == "one"


def test_values_tell_what_is_known_of_them() -> None:
    here = context()
    data = here.input(0)
    assert (data, data.elem_type, data.rank, data.dims) == ("x", TensorProto.FLOAT, 2, (2, "N"))
    shape = here.op.Shape(data)
    assert isinstance(shape, Value)
    assert (shape.elem_type, shape.dims) == (TensorProto.INT64, (2,))
    absent = here.input(5)
    assert not absent
    assert (absent.type, absent.rank, absent.dims, absent.elem_type) == (None, None, None, None)


def test_an_operator_that_the_opset_lacks_cannot_be_emitted() -> None:
    here = context(8)
    with pytest.raises(AttributeError, match="no step can emit Where at opset 8: it is of opset 9"):
        here.op.Where("c", "x", "y")
    with pytest.raises(AttributeError, match="no step can emit Scatter at opset 11"):
        here.at(11).op.Scatter("x", "i", "u")
    with pytest.raises(
        AttributeError, match=r"no step can emit Gahter .*there is no such operator"
    ):
        here.op.Gahter("x", "i")
    with pytest.raises(AttributeError, match="has no attribute 'gather'"):
        here.op.gather("x", "i")
    with pytest.raises(AttributeError, match="no step can emit Where at opset 8"):
        here.replace("Where", ["c", "x", "y"])
    assert not here.emitted


def test_each_node_keeps_the_opset_that_it_was_emitted_at() -> None:
    here = context(8)
    here.op.Shape("x")
    later = here.at(13)
    later.op.Where("c", "x", "y")
    here.op.Abs("x")
    later.replace("Identity", ["x"])
    here.replace("Neg", ["x"], ["z"])
    expected = [("Shape", 8), ("Where", 13), ("Abs", 8), ("Identity", 13), ("Neg", 8)]
    assert nodes(here) == nodes(later) == expected


def test_what_is_said_of_the_node_is_said_to_all_bindings() -> None:
    here = context()
    later = here.at(13)
    later.description = "done"
    later.warn("look")
    later.elem_type("x")
    later.taken_over["a"] = "b"
    assert (here.description, here.warnings, here._lookups.types, here.taken_over) == (
        "done",
        ["look"],
        later._lookups.types,
        {"a": "b"},
    )
    assert (later.source_opset, later.op.opset, later.target_opset) == (12, 13, 11)
    assert here.op.opset == 11


def test_types_are_told_by_the_opset_of_each_node() -> None:
    # Squeeze takes its axes as an attribute up to 12 and as an input from 13 on.
    here = context()
    old = here.op.Squeeze("i", axes=[1])
    new = here.at(13).op.Squeeze("i", here.array([1], "axes"))
    assert old.dims == new.dims == (3,)


def test_a_loops_body_is_written_like_the_rest() -> None:
    here = context()

    def write(body):
        body.cumulative = body.Add(body.values[0], "w")
        with pytest.raises(AttributeError, match="no step can emit Gelu at opset 11"):
            body.Gelu("x")
        return [body.cumulative], []

    carried = [LoopValue("w", TensorProto.FLOAT, ())]
    inputs, graph = loop(here, here.array(np.array(2), "count"), carried, write, "of two rounds")
    result = here.op.Loop(*inputs, body=graph)
    assert nodes(here) == [("Loop", 11)]
    assert here.description == "a Loop of two rounds"
    assert [node.op_type for node in graph.node] == ["Add", "Identity", "Identity"]
    assert isinstance(here.emitted[0].node, NodeProto)
    assert result.elem_type == TensorProto.FLOAT


def test_numbers_beyond_int64_block() -> None:
    with pytest.raises(Blocked, match="beyond int64"):
        context().array([1 << 63], "stride")
