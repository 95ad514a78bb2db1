"""Emitting nodes at the source opset of a model, which is 11 or later."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from onnxreduce_cli.containers.values import TensorType, UnwritableError
from onnxreduce_cli.emit.builder import Operators, Value
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.graph.values import Dims, ValueType, tensor_type, zeros

#: The end of a Slice up to the end of its axis.
_TO_END = 1 << 62


class Emitter(Operators):
    """The operators of the model's opset, as nodes that are collected graph by graph.

    Attributes:
        nodes: the nodes of the graph that is being written.
        emitted: all nodes that were emitted, by identity; others are edited copies of the model's.
        constants: Constant nodes for the main graph, which all graphs see.
        types: the dtypes and dimensions of new tensors.
    """

    def __init__(self, opset: int, target: int, names: Names) -> None:
        """Start without nodes.

        Args:
            opset: the opset of the emitted nodes.
            target: the opset that they will be converted to.
            names: the names that are in use.
        """
        self.opset = opset
        self.nodes: list[NodeProto] = []
        self.emitted: dict[int, NodeProto] = {}
        self.constants: list[NodeProto] = []
        self.types: dict[str, TensorType] = {}
        self._target = target
        self._names = names
        self._known: dict[tuple[Any, ...], str] = {}

    def fresh(self, hint: str, known: TensorType | None = None) -> str:
        """Return a new name for a tensor of type `known`."""
        name = self._names.fresh(hint)
        if known is not None:
            self.types[name] = known
        return name

    @contextmanager
    def graph(self) -> Iterator[list[NodeProto]]:
        """Collect the nodes that are emitted in this context as another graph."""
        around, self.nodes = self.nodes, []
        try:
            yield self.nodes
        finally:
            self.nodes = around

    def replace(
        self, node: NodeProto | None, op_type: str, *inputs: str, **attributes: Any
    ) -> Value:
        """Emit a node of one output, with the output, name and metadata of `node` if given."""
        outputs = None if node is None else node.output[:1]
        value = self.emit(op_type, *inputs, outputs=outputs, **attributes)
        if node is not None:
            new = self.nodes[-1]
            new.name = node.name
            if isinstance(node.doc_string, str):  # Else it is not UTF-8.
                new.doc_string = node.doc_string
            new.metadata_props.extend(node.metadata_props)
        return value

    def type(self, name: str) -> ValueType | None:
        """Return a new tensor's type, as far as it is known."""
        known = self.types.get(name)
        return None if known is None else tensor_type(*known)

    def elem_type(self, name: str) -> int | None:
        """Return a new tensor's `TensorProto.DataType`, if known."""
        known = self.types.get(name)
        return None if known is None else known[0] or None

    def rank(self, name: str) -> int | None:
        """Return a new tensor's rank, if known."""
        known = self.type(name)
        return None if known is None else known.rank

    def _fresh(self, op_type: str) -> str:
        return self.fresh(op_type)

    def _new(self) -> NodeProto:
        return NodeProto()

    def _accept(self, node: NodeProto, like: ValueType | None) -> Emitter:
        assert like is None  # Types are recorded in `types`.
        self.nodes.append(node)
        self.emitted[id(node)] = node
        return self

    # Constants

    def constant(self, array: npt.NDArray[Any], hint: str) -> str:
        """Return a constant of the array's dtype and shape; equal ones are shared."""
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
        """Return n numbers as a constant, int64 of shape [n]."""
        return self.constant(np.array(numbers, np.int64), "ints")

    def filled(self, dims: tuple[int, ...], elem_type: int) -> str:
        """Return a constant of zeros, or of empty strings, of shape `dims`."""
        return self.constant(_zeros(elem_type, dims), "zeros")

    def zero(self, elem_type: int) -> TensorProto:
        """Return a tensor of shape [1] that holds a zero, for ConstantOfShape."""
        return numpy_helper.from_array(_zeros(elem_type, (1,)))

    # Tensors

    def unsqueezed(self, name: str, axis: int) -> Value:
        """Return a tensor of any dtype with one more dimension, of size 1, at `axis`."""
        if self.opset < 13:
            return self.Unsqueeze(name, axes=[axis])
        return self.Unsqueeze(name, self.ints(axis))

    def part(self, name: str, start: str, end: str = "", axis: int = 0) -> Value:
        """Return a slice of a tensor along an axis.

        Args:
            name: a tensor of any dtype.
            start: the first index, int64 of shape [1], within the axis.
            end: the index behind the last, int64 of shape [1], within the axis; empty for its end.
            axis: the axis, counted from the front.
        """
        bounds = (start, end or self.ints(_TO_END))
        if self._target >= 10 or set(bounds) <= set(self._known.values()):
            return self.Slice(name, *bounds, self.ints(axis))
        # Fewer nodes than a Slice becomes there, as its bounds may be out of range.
        end = end or self.Gather(self.Shape(name), self.ints(axis), axis=0)
        numbers = self.counted(self.Sub(end, start))
        return self.Gather(name, self.Add(numbers, start), axis=axis)

    def at_most(self, number: str, limit: str) -> Value:
        """Return the smaller of two numbers, each int64 of shape [1]."""
        return self.Where(self.Less(number, limit), number, limit)

    def counted(self, count: str) -> Value:
        """Return the numbers from 0 to before `count`, int64 of shape [n]; `count` is of shape [1].

        They come from a Range from opset 11 on, from a NonZero of as many ones from 9 on, and
        before from a Loop.
        """
        if self._target >= 11:
            zero, one = (self.constant(np.array(n), "limit") for n in (0, 1))
            return self.Range(zero, self.scalar(count), one)
        if self._target >= 9:
            ones = self.ConstantOfShape(count, value=numpy_helper.from_array(np.ones(1, np.int64)))
            return self.flat(self.NonZero(ones))
        (numbers,) = self.loop(
            count, [], lambda place, _: ([], [(place, (TensorProto.INT64, (1,)))])
        )
        return self.flat(numbers)

    def flat(self, name: str) -> Value:
        """Return a tensor's elements with shape [n], in its dtype."""
        return self.Reshape(name, self.ints(-1))

    def scalar(self, name: str) -> Value:
        """Return a tensor of one element as a scalar, in its dtype."""
        return self.Reshape(name, self.constant(np.zeros(0, np.int64), "no_dims"))

    def size(self, name: str) -> Value:
        """Return the number of a tensor's elements: int64 of shape [1]."""
        return self.Reshape(self.Size(name), self.ints(1))

    # Graphs

    def info(self, name: str, known: TensorType) -> ValueInfoProto:
        """Return a tensor's value info."""
        return helper.make_tensor_value_info(name, known[0], known[1])

    def loop(
        self,
        count: str,
        carried: Sequence[tuple[str, TensorType]],
        write: Callable[[str, list[str]], tuple[Sequence[str], Sequence[tuple[str, TensorType]]]],
    ) -> list[str]:
        """Emit a Loop; return the loop-carried values after the last round, and the scan outputs.

        Args:
            count: the number of rounds, an int64 of one element.
            carried: the initial loop-carried values, each with its type in every round.
            write: emits the nodes of the body, given the number of the round, of shape [1], and the
                carried values; returns the next carried values, and the scan outputs of a round
                with their types.
        """
        number, unfinished = self.fresh("round"), self.fresh("unfinished")
        names = [self.fresh("current", known) for _, known in carried]
        with self.graph() as nodes:
            place = self.Reshape(number, self.ints(1))
            following, collected = write(place, names)
            again = self.Identity(unfinished)
            following = [self.Identity(name) for name in following]
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
        inputs = [self.scalar(count), true, *(name for name, _ in carried)]
        self.Loop(*inputs, outputs=outputs, body=body)
        return outputs


def is_static(dims: Dims | None) -> bool:
    """Return whether all dimensions are known."""
    return dims is not None and all(isinstance(dim, int) for dim in dims)


def _zeros(elem_type: int, dims: tuple[int, ...]) -> npt.NDArray[Any]:
    if not elem_type:
        raise UnwritableError(
            "the model does not state the dtype of the tensors in a sequence that it is given",
            "state it in the type of the input",
        )
    return zeros(elem_type, dims)
