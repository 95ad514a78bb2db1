"""SequenceMap as a Loop."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from onnxreduce_cli.containers.values import UnwritableError
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.scope import Scope, subgraphs
from onnxreduce_cli.model.types.facts import Facts


def as_loop(node: NodeProto, scope: Scope, facts: Facts, names: Names) -> list[NodeProto]:
    """``z = SequenceMap<body>(s, t, x)`` becomes ``z = Loop(SequenceLength(s), true,
    SequenceEmpty())``, whose body begins with ``SequenceAt(s, round)`` and ``SequenceAt(t, round)``
    and ends with ``SequenceInsert``.
    """
    (original,) = (graph for _, graph in subgraphs(node))
    base = node.name or node.output[0]

    def fresh(hint: str) -> str:
        return names.fresh(f"{base}_{hint}")

    length, true = fresh("length"), fresh("true")
    before = [
        helper.make_node("SequenceLength", [node.input[0]], [length], name=length),
        helper.make_node(
            "Constant", [], [true], name=true, value=numpy_helper.from_array(np.array(True))
        ),
    ]
    body = _body(node, original, scope, facts, fresh)
    starts = []
    for value, elem_type in _elements(original, facts):
        empty, current, longer = fresh("empty"), fresh("current"), fresh("longer")
        starts.append(empty)
        before.append(helper.make_node("SequenceEmpty", [], [empty], name=empty, dtype=elem_type))
        body.input.append(_sequence_info(current, elem_type))
        body.output.append(_sequence_info(longer, elem_type))
        inputs = [current, value]
        body.node.append(helper.make_node("SequenceInsert", inputs, [longer], name=longer))
    loop = NodeProto()
    loop.CopyFrom(node)
    loop.op_type = "Loop"
    loop.input[:] = [length, true, *starts]
    del loop.attribute[:]
    loop.attribute.append(helper.make_attribute("body", body))
    return [*before, loop]


def _body(
    node: NodeProto, original: GraphProto, scope: Scope, facts: Facts, fresh: Callable[[str], str]
) -> GraphProto:
    """A Loop's body that does what the SequenceMap's does to the elements of one round.

    What it gives is not collected yet.
    """
    number, going, again = fresh("round"), fresh("unfinished"), fresh("again")
    scalar = helper.make_tensor_value_info
    body = GraphProto(name=original.name)
    body.input.extend([scalar(number, TensorProto.INT64, []), scalar(going, TensorProto.BOOL, [])])
    body.output.append(scalar(again, TensorProto.BOOL, []))
    for name, value in zip(node.input, original.input, strict=True):
        kind = facts.kind(scope, name)
        if kind is None:
            raise UnwritableError(f"the type of {name!r} is not known", "state it in value_info")
        sequence = kind.startswith("seq(")
        op_type, inputs = ("SequenceAt", [name, number]) if sequence else ("Identity", [name])
        body.node.append(helper.make_node(op_type, inputs, [value.name], name=fresh(op_type)))
        body.value_info.append(value)
    body.node.extend(original.node)
    body.node.append(helper.make_node("Identity", [going], [again], name=again))
    body.initializer.extend(original.initializer)
    body.value_info.extend(original.value_info)
    return body


def _elements(original: GraphProto, facts: Facts) -> list[tuple[str, int]]:
    """Return for each output of a SequenceMap's body its name and dtype."""
    inner = facts.inner(original)
    assert inner is not None
    found = []
    for value in original.output:
        known = facts.type(inner, value.name)
        if known is None or not known.elem_type:
            raise UnwritableError(
                f"the type of {value.name!r} is not known", "state it in the body's outputs"
            )
        found.append((value.name, known.elem_type))
    return found


def _sequence_info(name: str, elem_type: int) -> ValueInfoProto:
    return helper.make_tensor_sequence_value_info(name, elem_type, None)
