"""Values that are the same for every run of a model, in whole or in part: this side of its facts.

They come from initializers, every form of Constant, outer scopes, Identity, and small computations
on constants and known shapes. Each value is computed once, and without recursion: a chain may be as
long as the model, and the result does not depend on the order of look-ups.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Generator, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
from onnx import FunctionProto, NodeProto, SparseTensorProto, TensorProto, numpy_helper

from onnxreduce_cli.model.file.tensors import MOST_ELEMENTS
from onnxreduce_cli.model.graph import folding
from onnxreduce_cli.model.graph.calls import Calls, Unknown
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.folding import Folded
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import (
    CONSTANT_DTYPES,
    MOST_DIMS,
    Dims,
    ValueType,
    numpy_dtype,
)
from onnxreduce_cli.model.types.generated import GeneratedValues
from onnxreduce_cli.model.types.questions import UNNOTED, Questions, answer_key, question

Array = npt.NDArray[Any]

#: Computes one value: yields scope and name of each value that it needs, and is sent that value.
Work = Generator[tuple[Scope, str], Folded | None, Folded | None]

#: Operators whose results may be known before the run.
_FOLDED = folding.OPERATORS | {"CastLike", "Constant", "Shape", "Size"}


class KnownConstants(ABC):
    """The values of a model that are known before the run, as `facts.Facts` answers for them.

    Attributes:
        calls: the calls of the model's functions, and the values that they give attributes.
        base_dir: the folder that external data is relative to.
        generated: the values that a conversion has added.
    """

    def __init__(self, calls: Calls, base_dir: str, generated: GeneratedValues) -> None:
        """Prepare; nothing is computed yet."""
        self.calls = calls
        self.base_dir = base_dir
        self.generated = generated
        #: Where the questions about the model's values are noted; None while nobody wants them.
        self.questions: Questions | None = None
        #: The inferred types of outputs, by what they follow from; see `node_inference`.
        self.inferred: dict[Hashable, tuple[ValueType | None, ...]] = {}
        #: The facts of the model as given, where these extend them.
        self._given: KnownConstants | None = None
        self._folded: dict[tuple[int, str], Folded | None] = {}
        #: A negative number for each unknown dimension of the model, by scope, value and axis.
        self._marks: dict[tuple[int, str, int], int] = {}
        #: Scopes of generated graphs, kept as values are identified by them.
        self._added: dict[int, Scope] = {}

    @abstractmethod
    def type(self, scope: Scope, name: str) -> ValueType | None:
        """Return the type of the value that `scope` reads by a name; None if it is not known."""

    @abstractmethod
    def owns(self, scope: Scope) -> bool:
        """Return whether a scope belongs to the model, and not to a generated graph."""

    def forget(self) -> None:
        """Drop the results computed before shape inference found more types."""
        self._folded.clear()

    @question
    def constant(self, scope: Scope, name: str) -> Array | None:
        """Return a value that is the same in every run; None where there is none or it is unknown.

        An initializer that is also a graph input is no constant: the caller may override it. An
        input of a function is a constant if every call gives the same one.
        """
        folded = self._fold(scope, name)
        return None if folded is None else folded.constant

    @question
    def elements(self, scope: Scope, name: str) -> tuple[int | None, ...] | None:
        """Return a list of integers with None for unknown ones; None if its length is unknown."""
        folded = self._fold(scope, name)
        if folded is not None and folded.values.ndim == 1:
            pairs = zip(folded.values.tolist(), folded.known.tolist(), strict=True)
            return tuple(int(value) if known else None for value, known in pairs)
        known_type = self.type(scope, name)
        dims = None if known_type is None else known_type.dims
        length = dims[0] if dims is not None and len(dims) == 1 else None
        # No list of axes or sizes is longer, whatever the model states.
        if not isinstance(length, int) or length > MOST_ELEMENTS:
            return None
        return (None,) * length

    @question
    def kept_dims(self, scope: Scope, sizes: str, data: str) -> tuple[bool, ...]:
        """Return for each of a list of sizes whether it is that unknown dimension of `data`.

        False for sizes known before the run; empty where nothing is known of the list.
        """
        folded, owner = self._fold(scope, sizes), scope.resolve(data)
        if folded is None or folded.values.ndim != 1 or owner is None:
            return ()
        pairs = zip(folded.values.tolist(), folded.known.tolist(), strict=True)
        return tuple(
            not known and value == self._marks.get((id(owner), data, axis))
            for axis, (value, known) in enumerate(pairs)
        )

    def _fold(self, scope: Scope, name: str) -> Folded | None:
        """Return what is known of the value that `scope` reads by a name; None if nothing is."""
        owner = self._owner(scope, name)
        if owner is None:
            return self._fold_given(scope, name)
        # A `Value` is a string that refers to these facts, and would keep them in memory.
        name = str(name)
        key = (id(owner), name)
        if key in self._folded:
            return self._folded[key]
        under_way = {key: self._work(owner, name)}
        answer: Folded | None = None
        while under_way:
            key = next(reversed(under_way))
            try:
                scope, name = under_way[key].send(answer)
            except StopIteration as done:
                del under_way[key]
                answer = self._folded[key] = done.value
                continue
            owner = self._owner(scope, name)
            if owner is None:
                answer = self.folded(scope, name)
                continue
            wanted = (id(owner), name)
            answer = self._folded.get(wanted)
            # A value that depends on itself is invalid, and unknown.
            if wanted not in self._folded and wanted not in under_way:
                under_way[wanted] = self._work(owner, name)
        return answer

    def _owner(self, scope: Scope, name: str) -> Scope | None:
        """Return the scope that defines a value, the outermost one for a generated value.

        None where nothing does, or the facts that these extend are asked.
        """
        if self.generated.key(scope, name) is not None:
            return scope.root
        owner = scope.resolve(name) if name else None
        if owner is None:
            return None
        if self.owns(owner):
            return owner if self._given is None else None
        return self._added.setdefault(id(owner), owner)

    @question
    def folded(self, scope: Scope, name: str) -> Folded | None:
        """Return what is known of a value of the model that a generated one depends on."""
        return self._fold_given(scope, name)

    def answer_key(self, scope: Scope, method: str, names: Sequence[str]) -> Hashable:
        """Return the key of the answer to a question about the model's values."""
        key = answer_key(scope, names[0], UNNOTED[method](self, scope, *names))
        if self.questions is not None:
            self.questions.note(scope, method, (*names,), key)
        return key

    @contextmanager
    def noting(self, questions: Questions) -> Iterator[None]:
        """Note what is asked meanwhile, with the answers; also where that is done already."""
        around, self.questions = self.questions, questions
        try:
            yield
        finally:
            self.questions = around
            if around is not None:
                around.add(questions)

    def _fold_given(self, scope: Scope, name: str) -> Folded | None:
        return None if self._given is None else self._given._fold(scope, name)

    def _work(self, owner: Scope, name: str) -> Work:
        """Compute a value from the values that it depends on."""
        key = self.generated.key(owner, name)
        if key is None:
            return (yield from self._fold_in_container(owner, name))
        if key in self.generated.arrays:
            return Folded.whole(self.generated.arrays[key])
        made = self.generated.nodes.get(key)
        if made is None:
            return None  # An initializer, which is not read.
        return (yield from self._fold_node(made.scope, made.node, made.opset))

    def _shape(self, scope: Scope, name: str, dims: Dims) -> Folded:
        """Return the output of ``Shape`` for a value of the dimensions `dims`: int64 of [rank].

        Each unknown dimension of the model has a unique negative number.
        """
        shape = folding.shape_of(dims)
        new = self.generated.key(scope, name) is not None
        owner = None if new else scope.resolve(name)
        if owner is None or not self.owns(owner):
            return shape
        for axis in np.flatnonzero(~shape.known).tolist():
            key = (id(owner), name, axis)
            shape.values[axis] = self._marks.setdefault(key, -1 - len(self._marks))
        return shape

    def _fold_node(self, scope: Scope, node: NodeProto, opset: int) -> Work:
        """Fold the first output of a node of `scope`, read by the definitions of `opset`."""
        if node.op_type not in _FOLDED or not is_default(node.domain):
            return None
        if self.calls.function_of(node) is not None:
            return None
        # Checked first: in most chains of nodes the first input is unknown if any is.
        given = node.input[:]
        if given and node.op_type in folding.STRICT and (yield scope, given[0]) is None:
            return None
        values = {a.name: self.calls.resolve_attribute(scope, a) for a in node.attribute[:]}
        if any(isinstance(item, Unknown) for item in values.values()):
            return None
        if node.op_type == "Constant":
            array = self._constant_node(values)
            return None if array is None else Folded.whole(array)
        if node.op_type in ("Shape", "Size"):
            return self._measured(scope, node, values)
        if node.op_type == "CastLike":
            return (yield from self._cast_like(scope, node, opset, values))
        if isinstance(values.get("value"), TensorProto):
            values["value"] = self._array(values["value"])
            if values["value"] is None:
                return None
        inputs = []
        for name in given:
            inputs.append((yield scope, name))
        if node.op_type == "Concat" and any(item is not None for item in inputs):
            pairs = zip(inputs, given, strict=True)
            inputs = [item or self._list_of_unknown(scope, name) for item, name in pairs]
        return folding.fold(node.op_type, opset, values, inputs)

    def _cast_like(self, scope: Scope, node: NodeProto, opset: int, values: dict[str, Any]) -> Work:
        """Fold a CastLike of one number, as function bodies have them."""
        like = self.type(scope, node.input[1])
        if like is None or not like.elem_type:
            return None
        data = yield scope, node.input[0]
        # A larger one would only make the model larger.
        if data is None or data.values.size != 1:
            return None
        return folding.fold("Cast", opset, {**values, "to": like.elem_type}, [data])

    def _measured(self, scope: Scope, node: NodeProto, values: dict[str, Any]) -> Folded | None:
        """Fold a Shape (int64 of [rank]) or a Size (an int64 scalar) of known dimensions."""
        known = self.type(scope, node.input[0]) if node.input else None
        if known is None or known.dims is None:
            return None
        if node.op_type == "Shape":
            shape = self._shape(scope, node.input[0], known.dims)
            part = slice(values.get("start", 0), values.get("end"))
            return Folded(shape.values[part], shape.known[part])
        sizes = folding.shape_of(known.dims).constant
        return None if sizes is None else Folded.whole(np.array(sizes.prod(), np.int64))

    def _list_of_unknown(self, scope: Scope, name: str) -> Folded | None:
        """Return a list of unknown integers of known length; None if the length is unknown."""
        known = self.type(scope, name)
        if known is None or known.elem_type != TensorProto.INT64 or known.rank != 1:
            return None
        length = known.dims[0] if known.dims else None
        if not isinstance(length, int) or length > MOST_ELEMENTS:
            return None
        return Folded(np.zeros(length, np.int64), np.zeros(length, bool))

    def _constant_node(self, values: dict[str, Any]) -> Array | None:
        for name, value in values.items():
            if name == "value":
                return self._array(value)
            if name == "sparse_value":
                return self._dense(value)
            if name in CONSTANT_DTYPES:
                return np.array(value, CONSTANT_DTYPES[name])
        return None

    def _array(self, tensor: TensorProto) -> Array | None:
        dims = tensor.dims[:]
        if len(dims) > MOST_DIMS or math.prod(dims) > MOST_ELEMENTS:
            return None
        if tensor.data_location != TensorProto.EXTERNAL:
            return numpy_helper.to_array(tensor)
        try:
            return numpy_helper.to_array(tensor, self.base_dir)
        except (OSError, ValueError, TypeError, onnx.checker.ValidationError):
            return None  # It cannot be read; running the model reports why.

    def _dense(self, sparse: SparseTensorProto) -> Array | None:
        values, indices = self._array(sparse.values), self._array(sparse.indices)
        dims = tuple(sparse.dims)
        if values is None or indices is None or math.prod(dims) > MOST_ELEMENTS:
            return None
        dense = np.zeros(dims, numpy_dtype(sparse.values.data_type))
        where = np.unravel_index(indices, dims) if indices.ndim == 1 else tuple(indices.T)
        dense[where] = values
        return dense

    def _fold_in_container(self, owner: Scope, name: str) -> Work:
        """Fold a value that a scope defines: an input, an initializer, or a node's output."""
        if name in owner.inputs:
            return (yield from self._fold_argument(owner, name))
        tensor = owner.initializers.get(name)
        if tensor is not None:
            array = self._array(tensor)
            return None if array is None else Folded.whole(array)
        return (yield from self._fold_node(owner, owner.producers[name], owner.opset or 0))

    def _fold_argument(self, owner: Scope, name: str) -> Work:
        """Compute a function's input: the constant that all calls give."""
        function = owner.container
        if not isinstance(function, FunctionProto):
            return None
        position = list(function.input).index(name)
        found: list[Array] = []
        for caller, call in self.calls.of(function):
            folded = yield caller, call.input[position] if position < len(call.input) else ""
            if folded is None or folded.constant is None:
                return None
            found.append(folded.constant)
        same = found and all(_identical(item, found[0]) for item in found)
        return Folded.whole(found[0]) if same else None


def _identical(first: Array, second: Array) -> bool:
    return first.dtype == second.dtype and np.array_equal(first, second)
