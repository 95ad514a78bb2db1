"""Emitting nodes at the source opset of a model, from opset 11 on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from onnxreduce_cli.containers.values import TensorType
from onnxreduce_cli.model.names import Names
from onnxreduce_cli.model.values import Dims, zeros

#: The end of a Slice that goes to the end of its axis.
_TO_END = 1 << 62


class Emitter:
    """Collects new nodes, graph by graph.

    Attributes:
        nodes: those of the graph that is being written.
        constants: Constant nodes for the main graph, which all graphs see.
        types: the dtypes and dimensions of new tensors.
    """

    def __init__(self, opset: int, target: int, names: Names) -> None:
        """Write at `opset` what is to go to `target`, with names that are not among `names`."""
        self.nodes: list[NodeProto] = []
        self.constants: list[NodeProto] = []
        self.types: dict[str, TensorType] = {}
        self._opset = opset
        self._target = target
        self._names = names
        self._known: dict[tuple[Any, ...], str] = {}

    def fresh(self, hint: str, known: TensorType | None = None) -> str:
        """Return a new name for a tensor, whose type is `known`."""
        name = self._names.fresh(hint)
        if known is not None:
            self.types[name] = known
        return name

    @contextmanager
    def graph(self) -> Iterator[list[NodeProto]]:
        """Write into another graph meanwhile."""
        around, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = around

    def emit(
        self,
        op_type: str,
        inputs: Sequence[str],
        hint: str,
        *,
        output: str = "",
        like: NodeProto | None = None,
        **values: Any,
    ) -> str:
        """Emit a node of one output; return the output's name.

        Args:
            op_type: the operator.
            inputs: its inputs.
            hint: what the output is called by default.
            output: its output, where that has a name.
            like: the node that it replaces, whose name, doc_string and metadata it keeps.
            values: its attributes.
        """
        output = output or self.fresh(hint)
        node = helper.make_node(op_type, list(inputs), [output], name=output, **values)
        if like is not None:
            node.name = like.name
            if isinstance(like.doc_string, str):  # Else it is not UTF-8.
                node.doc_string = like.doc_string
            node.metadata_props.extend(like.metadata_props)
        self.nodes.append(node)
        return output

    # Constants

    def constant(self, array: npt.NDArray[Any], hint: str) -> str:
        """A constant tensor."""
        tensor = numpy_helper.from_array(array)
        key = (tensor.SerializeToString(),)
        if key not in self._known:
            name = self._known[key] = self.fresh(hint)
            dims = tuple(array.shape)
            self.types[name] = (tensor.data_type, dims)
            node = helper.make_node("Constant", [], [name], name=name, value=tensor)
            self.constants.append(node)
        return self._known[key]

    def ints(self, *numbers: int) -> str:
        """A constant list of int64."""
        return self.constant(np.array(numbers, np.int64), "ints")

    def filled(self, dims: tuple[int, ...], elem_type: int) -> str:
        """A constant of zeros, or of empty strings."""
        return self.constant(zeros(elem_type, dims), "zeros")

    def zero(self, elem_type: int) -> TensorProto:
        """A tensor of one zero, for ConstantOfShape."""
        return numpy_helper.from_array(zeros(elem_type, (1,)))

    # Tensors

    def unsqueezed(self, name: str, axis: int) -> str:
        """A tensor with one more dimension of 1."""
        if self._opset < 13:
            return self.emit("Unsqueeze", [name], "unsqueezed", axes=[axis])
        return self.emit("Unsqueeze", [name, self.ints(axis)], "unsqueezed")

    def concat(self, names: Sequence[str], hint: str, axis: int = 0) -> str:
        """Tensors put together."""
        return self.emit("Concat", names, hint, axis=axis)

    def part(self, name: str, start: str, end: str = "", axis: int = 0) -> str:
        """A tensor from one place on, to another or through its end; both are there."""
        if self._target < 10:
            # Shorter than what a Slice becomes there, whose bounds may be anywhere.
            end = end or self.at(self.shape(name), self.ints(axis), "end")
            one = numpy_helper.from_array(np.ones(1, np.int64))
            count = self.difference(end, start)
            ones = self.emit("ConstantOfShape", [count], "ones", value=one)
            numbers = self.flat(self.emit("NonZero", [ones], "numbers"))
            return self.emit("Gather", [name, self.sum(numbers, start)], "part", axis=axis)
        bounds = [start, end or self.ints(_TO_END), self.ints(axis)]
        return self.emit("Slice", [name, *bounds], "part")

    def at(self, name: str, place: str, hint: str) -> str:
        """Return a Gather of a tensor's slices at the given indices of axis 0."""
        return self.emit("Gather", [name, place], hint, axis=0)

    def sum(self, first: str, second: str) -> str:
        """Two tensors added."""
        return self.emit("Add", [first, second], "sum")

    def difference(self, first: str, second: str) -> str:
        """One tensor without another."""
        return self.emit("Sub", [first, second], "difference")

    def shaped(self, name: str, shape: str, hint: str = "shaped") -> str:
        """A tensor reshaped."""
        return self.emit("Reshape", [name, shape], hint)

    def flat(self, name: str) -> str:
        """A tensor in one dimension."""
        return self.shaped(name, self.ints(-1), "flat")

    def scalar(self, name: str, hint: str) -> str:
        """A tensor of one element without dimensions."""
        return self.shaped(name, self.constant(np.zeros(0, np.int64), "no_dims"), hint)

    def shape(self, name: str) -> str:
        """A tensor's shape."""
        return self.emit("Shape", [name], "shape")

    def size(self, name: str) -> str:
        """Return the number of a tensor's elements: int64 of [1]."""
        return self.shaped(self.emit("Size", [name], "size"), self.ints(1), "size")

    # Graphs

    def info(self, name: str, known: TensorType) -> ValueInfoProto:
        """Return the type of a tensor as a graph states it."""
        return helper.make_tensor_value_info(name, known[0], known[1])

    def loop(
        self,
        count: str,
        carried: Sequence[tuple[str, TensorType]],
        write: Callable[[str, list[str]], tuple[Sequence[str], Sequence[tuple[str, TensorType]]]],
    ) -> list[str]:
        """Write a Loop; what it carries, and what it collects, in the end.

        Args:
            count: how many rounds, an int64 of one element.
            carried: what goes from round to round, and its type in every round.
            write: given the number of a round, a list of one, and what it gets, writes the nodes of
                the body; gives what goes on, and what is collected with its type in one round.
        """
        number, unfinished = self.fresh("round"), self.fresh("unfinished")
        names = [self.fresh("current", known) for _, known in carried]
        with self.graph() as nodes:
            place = self.shaped(number, self.ints(1), "place")
            following, collected = write(place, names)
            again = self.emit("Identity", [unfinished], "again")
            following = [self.emit("Identity", [name], "next") for name in following]
        known = [known for _, known in carried]
        body = GraphProto(name=self.fresh("body"), node=nodes)
        body.input.append(self.info(number, (TensorProto.INT64, ())))
        body.input.append(self.info(unfinished, (TensorProto.BOOL, ())))
        body.input.extend(map(self.info, names, known))
        body.output.append(self.info(again, (TensorProto.BOOL, ())))
        body.output.extend(map(self.info, following, known))
        body.output.extend(self.info(name, item) for name, item in collected)
        outputs = [self.fresh("carried", item) for item in known]
        outputs += [
            self.fresh("collected", (elem_type, None if dims is None else (None, *dims)))
            for _, (elem_type, dims) in collected
        ]
        true = self.constant(np.array(True), "true")
        inputs = [self.scalar(count, "rounds"), true, *(name for name, _ in carried)]
        name = self.fresh("loop")
        self.nodes.append(helper.make_node("Loop", inputs, outputs, name=name, body=body))
        return outputs


def is_static(dims: Dims | None) -> bool:
    """Return whether dimensions are all known numbers."""
    return dims is not None and all(isinstance(dim, int) for dim in dims)
