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


class Carried(NamedTuple):
    """A value that goes from round to round, or that each round gives.

    Attributes:
        name: what it is at the beginning, or what a round gives.
        elem_type: its `TensorProto.DataType`; 0 if it is not known.
        dims: its dimensions as far as they are known; None if not even the rank is.
    """

    name: str
    elem_type: int
    dims: Dims | None

    def info(self, name: str) -> Any:
        """Its type under another name; without a type where it is for shape inference to tell."""
        if not self.elem_type:
            return ValueInfoProto(name=name)
        return helper.make_tensor_value_info(name, self.elem_type, self.dims)


class Nodes(Operators):
    """The nodes of a graph within a graph while it is written; they may read what is around it.

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
        assert like is None  # Inference tells the types within graphs.
        return self._context


class Body(Nodes):
    """The body of a Loop.

    Attributes:
        round: the number of the round, an int64 of rank 0.
        values: what goes from round to round, as this round gets it: of the dtypes and shapes of
            what is carried.
        again: a bool of rank 0, whether there is another round; empty where the count says it.
    """

    def __init__(self, context: Context, carried: Sequence[Carried]) -> None:
        super().__init__(context)
        self.round = context.fresh("round")
        self.values = [context.fresh("current") for _ in carried]
        self.again = ""

    def this(self, name: str, axis: int) -> Value:
        """Return the slice that is this round's, of size 1 along `axis`, in the tensor's dtype."""
        one = self._context.array([1], "one")
        return self.Gather(name, self.Reshape(self.round, one), axis=axis)


def branch(context: Context, write: Callable[[Nodes], str], elem_type: int = 0) -> GraphProto:
    """A branch of an If: a graph without inputs that gives the one value whose nodes `write` emits.

    Its shape is for shape inference to tell, and its dtype too if `elem_type` is 0.
    """
    nodes = Nodes(context)
    given = write(nodes)
    output = Carried(given, elem_type, None).info(given)
    return GraphProto(name=given, node=nodes.nodes, output=[output])


def turn_into_loop_body(
    context: Context, graph: GraphProto, carried: Sequence[ValueInfoProto], number: str = ""
) -> None:
    """Make a graph of what one round does the body of a Loop of a count, without a condition.

    A Loop of one round or none stands for an If where branches must give one shape: what a Loop
    carries may change its shape.

    Args:
        context: the node's.
        graph: the nodes that give what the round does, and what they give.
        carried: what goes in; without shapes where these may change.
        number: what the nodes call the number of the round, an int64 of rank 0, if they read it.
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
    """Add nodes before and after those that a graph has."""
    nodes = [*before, *graph.node, *after]
    # Copies of all, for to delete the graph's own empties them.
    copies = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
    del graph.node[:]
    graph.node.extend(copies)


#: Emits a round's nodes; gives the values for the next round, and what is collected of each.
Round = Callable[[Body], tuple[Sequence[str], Sequence[Carried]]]


def loop(
    context: Context,
    count: str,
    carried: Sequence[Carried],
    write: Round,
    purpose: str,
) -> tuple[list[str], GraphProto]:
    """Return the inputs and the body of a Loop, and say that there is one; see `need_loops`.

    Args:
        context: the node's.
        count: how many rounds there are, an int64 of one element.
        carried: what goes from round to round, of the dtypes and shapes that it says.
        write: emits the nodes of a round.
        purpose: what its rounds are of or for, as in ``a Loop over its indices``.
    """
    context.description = f"a Loop {purpose}"
    body = Body(context, carried)
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
    inputs: Sequence[Carried],
    write: Callable[[Nodes, list[Value]], Sequence[Carried]],
) -> GraphProto:
    """The body of a Scan.

    Args:
        context: of the step.
        inputs: the types that the body gets: of the states, and of a slice of what is scanned.
        write: emits a round's nodes, of its inputs; gives the states for the next round, and what
            is stacked of each.
    """
    body = Nodes(context)
    names = [context.fresh("current") for _ in inputs]
    given = _outputs(body, names, write(body, names))
    return GraphProto(
        name=context.fresh("scan"),
        node=body.nodes,
        input=[item.info(name) for item, name in zip(inputs, names, strict=True)],
        output=[item.info(item.name) for item in given],
    )


def _outputs(body: Nodes, inputs: Sequence[str], given: Sequence[Carried]) -> list[Carried]:
    """Return a graph's outputs, with an Identity for each that is an input or was given before.

    A graph's outputs must be neither; what they hold, and its dtype and shape, stay the same.
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
