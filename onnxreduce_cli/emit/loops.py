"""The bodies of Loop and Scan, and the branches of If."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from onnxreduce_cli.emit.axes import squeezed
from onnxreduce_cli.emit.builder import Operators, Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph.values import Dims, ValueType


class LoopValue(NamedTuple):
    """A loop-carried value, or a scan output.

    Attributes:
        name: the name of the initial value, or of the scan output in a round.
        elem_type: its `TensorProto.DataType`; 0 if it is not known.
        dims: its dimensions as far as they are known; None if not even the rank is.
    """

    name: str
    elem_type: int
    dims: Dims | None

    def info(self, name: str) -> Any:
        """Return its value info under another name, without a type if the dtype is not known."""
        if not self.elem_type:
            return ValueInfoProto(name=name)
        return helper.make_tensor_value_info(name, self.elem_type, self.dims)


class SubgraphBuilder(Operators):
    """The operators of one opset, emitted into a subgraph; its nodes may read outer values.

    Attributes:
        nodes: the nodes so far.
    """

    def __init__(self, context: Context) -> None:
        self.opset = context.op.opset
        self.nodes: list[NodeProto] = []
        self._context = context

    def _fresh(self, op_type: str) -> str:
        return self._context.fresh(op_type)

    def _new(self) -> NodeProto:
        return NodeProto()

    def _accept(self, node: NodeProto, like: ValueType | None) -> Context:
        self.nodes.append(node)
        assert like is None  # Shape inference finds the types in subgraphs.
        return self._context


class LoopBody(SubgraphBuilder):
    """The body of a Loop.

    Attributes:
        round: the number of the round, an int64 scalar.
        values: the loop-carried values at the start of the round.
        again: a bool scalar, whether there is another round; empty where only the count matters.
    """

    def __init__(self, context: Context, carried: Sequence[LoopValue]) -> None:
        super().__init__(context)
        self.round = context.fresh("round")
        self.values = [context.fresh("current") for _ in carried]
        self.again = ""

    def this(self, name: str, axis: int) -> Value:
        """Return the slice of a tensor at the round's number along `axis`, of size 1 there."""
        one = self._context.array([1], "one")
        return self.Gather(name, self.Reshape(self.round, one), axis=axis)


def branch(
    context: Context, write: Callable[[SubgraphBuilder], str], elem_type: int = 0
) -> GraphProto:
    """Return a branch of an If: a graph without inputs whose output `write` emits and returns.

    Shape inference finds the shape of the output, and its dtype if `elem_type` is 0.
    """
    nodes = SubgraphBuilder(context)
    given = write(nodes)
    output = LoopValue(given, elem_type, None).info(given)
    return GraphProto(name=given, node=nodes.nodes, output=[output])


def turn_into_loop_body(
    context: Context, graph: GraphProto, carried: Sequence[ValueInfoProto], number: str = ""
) -> None:
    """Turn a graph, which computes one round, into the body of a Loop with a count only.

    A Loop of one round or none replaces an If where both branches must have one shape, as a
    loop-carried value may change its shape.

    Args:
        context: the node.
        graph: the nodes and outputs of a round.
        carried: the loop-carried values; without shapes where these may change.
        number: the name that the nodes have for the number of the round, an int64 scalar, if any.
    """
    names = (number or context.fresh("round"), context.fresh("unfinished"))
    again = context.fresh("again")
    outputs = [helper.make_tensor_value_info(again, TensorProto.BOOL, []), *graph.output]
    graph.node.add(op_type="Identity", name=again, input=[names[1]], output=[again])
    graph.input.extend(
        [
            helper.make_tensor_value_info(names[0], TensorProto.INT64, []),
            helper.make_tensor_value_info(names[1], TensorProto.BOOL, []),
            *carried,
        ]
    )
    del graph.output[:]
    graph.output.extend(outputs)


def put_nodes_around(
    graph: GraphProto, before: Sequence[NodeProto], after: Sequence[NodeProto]
) -> None:
    """Add nodes before and after the nodes of a graph."""
    nodes = [*before, *graph.node, *after]
    # Copies of all, as deleting the graph's own nodes empties them.
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


#: Emits a round's nodes; returns the loop-carried values for the next round, and the scan outputs.
WriteRound = Callable[[LoopBody], tuple[Sequence[str], Sequence[LoopValue]]]


def loop(
    context: Context,
    count: str,
    carried: Sequence[LoopValue],
    write: WriteRound,
    purpose: str,
) -> tuple[list[str], GraphProto]:
    """Return the inputs and the body of a Loop, and add it to the node's description.

    See `need_loops` for when there may be one.

    Args:
        context: the node.
        count: the number of rounds, an int64 of one element.
        carried: the loop-carried values.
        write: emits the nodes of a round.
        purpose: the end of the description, as in ``a Loop over its indices``.
    """
    context.description = f"a Loop {purpose}"
    body = LoopBody(context, carried)
    following, collected = write(body)
    unfinished = context.fresh("unfinished")
    again = body.Identity(body.again or unfinished)
    given = [body.Identity(name) for name in following]
    collected = _outputs(body, [body.round, *body.values], collected)
    graph = GraphProto(
        name=again,
        node=body.nodes,
        input=[
            helper.make_tensor_value_info(body.round, TensorProto.INT64, []),
            helper.make_tensor_value_info(unfinished, TensorProto.BOOL, []),
            *(item.info(name) for item, name in zip(carried, body.values, strict=True)),
        ],
        output=[
            helper.make_tensor_value_info(again, TensorProto.BOOL, []),
            *(item.info(name) for item, name in zip(carried, given, strict=True)),
            *(item.info(item.name) for item in collected),
        ],
    )
    true = context.array(np.array(True), "true")
    return [_scalar(context, count), true, *(item.name for item in carried)], graph


def scan_body(
    context: Context,
    inputs: Sequence[LoopValue],
    write: Callable[[SubgraphBuilder, list[Value]], Sequence[LoopValue]],
) -> GraphProto:
    """Return the body of a Scan.

    Args:
        context: the node.
        inputs: the types of its inputs: of the states, and of a slice of each scan input.
        write: emits a round's nodes, given its inputs; returns the states for the next round, and
            the scan outputs.
    """
    body = SubgraphBuilder(context)
    names = [context.fresh("current") for _ in inputs]
    given = _outputs(body, names, write(body, names))
    return GraphProto(
        name=context.fresh("scan"),
        node=body.nodes,
        input=[item.info(name) for item, name in zip(inputs, names, strict=True)],
        output=[item.info(item.name) for item in given],
    )


def _outputs(
    body: SubgraphBuilder, inputs: Sequence[str], given: Sequence[LoopValue]
) -> list[LoopValue]:
    """Return a graph's outputs, with an Identity for each that is an input or another output.

    The outputs of a graph must be neither.
    """
    taken, outputs = set(inputs), []
    for item in given:
        output = item._replace(name=body.Identity(item.name)) if item.name in taken else item
        taken.add(output.name)
        outputs.append(output)
    return outputs


def _scalar(context: Context, count: str) -> str:
    """Return an int64 tensor of one element, of any rank, as one of rank 0."""
    known, rank = context.constant(count), context.rank(count)
    if rank == 0:
        return count
    if known is not None:
        return context.array(known.reshape(()), "rounds")
    if rank is not None:
        return squeezed(context, count, list(range(rank)))
    return context.op.Reshape(count, context.array([], "scalar"))
