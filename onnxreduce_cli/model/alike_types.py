"""Types of a large graph's values, inferred once for all nodes that are alike.

onnx's shape inference goes through every node. Where a graph repeats a few, it is enough to ask it
once for each operator with the same attributes, types of inputs, and constants that shapes follow
from. That gives what inference of the whole graph gives as long as every size on the way is a
number, or a name that the model states: all else is left to that, such as what follows from
computed sizes, from graphs within nodes and from functions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from itertools import islice
from math import prod
from typing import NamedTuple

import onnx
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper

from onnxreduce_cli import schemas
from onnxreduce_cli.model import attributes, placeholders
from onnxreduce_cli.model.attribute_ranges import may_end
from onnxreduce_cli.model.calls import Calls
from onnxreduce_cli.model.constants import Array
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.ir_version import INITIALIZERS
from onnxreduce_cli.model.node_inference import Input, infer_from
from onnxreduce_cli.model.node_names import EMPTY, UNTOLD
from onnxreduce_cli.model.overridable import DECIDING
from onnxreduce_cli.model.scope import Scope
from onnxreduce_cli.model.shapes_by_values import SHAPED_BY_VALUES
from onnxreduce_cli.model.values import MOST_DIMS, ValueType, from_proto, tensor_type

#: For fewer nodes inference of the whole graph takes less time.
FEW = 2000

#: Of so many nodes one may be unlike all before it, or inference of the whole graph takes less.
_ALIKE = 16

#: Nodes that are gone through before it is asked again whether the wanted one was among them.
_BLOCK = 1024

#: Longer lists may be taken for sizes.
_LONGEST = 1 << 20

#: Constants of at most so many elements are told apart by these.
_READ = 16

#: The number of an input that is not given, and of a value of which nothing is known here.
_ABSENT, _UNKNOWN = 0, -1

#: Operators that inference of the whole graph reads others for, or that it cannot be asked about.
_LEFT = placeholders.REPLACED | {"RegexFullMatch"}


class Alike:
    """Nodes that differ in names alone, and read and make values of the same types, none twice.

    Attributes:
        made: the number of the fact that is known of their output, or those of all their outputs.
    """

    __slots__ = ("made",)

    def __init__(self, made: int | tuple[int, ...]) -> None:
        self.made = made


#: A node, what tells those that are alike, and the numbers of its only output and of its inputs.
_Row = tuple[NodeProto, Hashable, int, int, int, int]


def suits(scope: Scope, calls: Calls, ir_version: int) -> bool:
    """Return whether the types of a main graph's values may be asked for one by one.

    Args:
        scope: the graph; no caller may override what it states.
        calls: those of the model's functions.
        ir_version: the model's.
    """
    graph = scope.container
    return (
        isinstance(graph, GraphProto)
        and scope.parent is None
        and scope.opset is not None
        and 0 < scope.opset <= schemas.newest_opset()
        and len(scope.nodes) >= FEW
        and not calls.functions
        and not graph.sparse_initializer
        and (ir_version >= INITIALIZERS or not graph.initializer)
    )


class _Fact(NamedTuple):
    """What inference is told of a value.

    Attributes:
        known: its type.
        array: what it is, if that is constant and small; None otherwise.
        plain: the number of the same type where nothing is said of the value.
    """

    known: ValueType
    array: Array | None = None
    plain: int = 0


class AlikeTypes:
    """The types of the values of one graph; each fact that is known of some is numbered."""

    def __init__(self, scope: Scope, ir_version: int) -> None:
        """Prepare; nothing is inferred yet.

        Args:
            scope: a graph that `suits`.
            ir_version: the model's.
        """
        self._scope = scope
        self._ir_version = ir_version
        self._facts: list[_Fact | None] = [None]
        self._numbers: dict[Hashable, int] = {}
        #: By a signature and the facts of inputs.
        self._alike: dict[Hashable, Alike] = {}
        #: By a signature and what onnx is told of inputs, the facts of all outputs.
        self._inferred: dict[Hashable, tuple[int, ...]] = {}
        #: For each node that was gone through; None where what it reads or makes is not known.
        self._groups: list[Alike | None] = []
        self._left = _ALIKE
        names = scope.node_names
        #: The facts of values by the numbers of their names, and of others by the names.
        self._values: list[int | None] = [None] * names.count
        self._values[EMPTY] = _ABSENT
        self._others: dict[str, int] = {}
        #: What is stated of the values that nodes make.
        self._stated: dict[str, ValueType | None] = {}
        #: The numbers of outputs that nodes are asked about: of those, and where there are several.
        self._asked = {UNTOLD}
        self._begin()
        numbers = (names.output_numbers, *names.input_numbers)
        self._rows: Iterator[_Row] = zip(scope.nodes, scope.signatures, *numbers, strict=True)

    def of(self, name: str) -> ValueType | None:
        """Return the type of a value; None where inference of the whole graph must tell."""
        number = self._value(name)
        while number is None:
            if not self._go_on():
                return None
            number = self._value(name)
        fact = self._fact(number)
        return None if fact is None else fact.known

    def groups(self) -> Sequence[Alike | None]:
        """For each node of the graph those that it is alike; None where that is not known."""
        while self._go_on():
            pass
        return [*self._groups, *[None] * (len(self._scope.nodes) - len(self._groups))]

    def _value(self, name: str) -> int | None:
        """Return the number of the fact that is known of a value, if there is one by now."""
        number = self._scope.node_names.number(name)
        return self._others.get(name) if number is None else self._values[number]

    def _know(self, name: str, fact: int) -> None:
        """Note the number of the fact that is known of a value."""
        number = self._scope.node_names.number(name)
        if number is None:
            self._others[name] = fact
        else:
            self._values[number] = fact

    def _fact(self, number: int) -> _Fact | None:
        return None if number == _UNKNOWN else self._facts[number]

    def _begin(self) -> None:
        """Take in what is known of values that no node makes, and what is stated of others."""
        scope, graph = self._scope, self._scope.container
        assert isinstance(graph, GraphProto)
        times = Counter(info.name for info in (*graph.input, *graph.output, *graph.value_info))
        for name, known in scope.declared.items():
            tensor = scope.initializers.get(name)
            if tensor is None and name not in scope.inputs:
                self._stated[name] = known if times[name] == 1 else None
                number = scope.node_names.number(name)
                self._asked |= set() if number is None else {number}
            elif times[name] + (tensor is not None) == 1:
                array = None if tensor is None else _small(tensor)
                self._know(name, self._number(known, array))

    def _number(self, known: ValueType, array: Array | None = None) -> int:
        """Return the number of a fact; `_UNKNOWN` for one that onnx is not asked with."""
        if not known.elem_type or _is_too_large(known):
            return _UNKNOWN
        plain = 0 if array is None else self._number(known)
        content = None if array is None else array.tobytes()
        key = (known, content)
        found = self._numbers.get(key)
        if found is None:
            found = self._numbers[key] = len(self._facts)
            self._facts.append(_Fact(known, array, plain or found))
        return found

    def _go_on(self) -> bool:
        """Take in what is known of what some more nodes make; return whether there were any."""
        rows = list(islice(self._rows, _BLOCK)) if self._left >= 0 else []
        self._left += len(rows) // _ALIKE
        values, asked, alike, groups = self._values, self._asked, self._alike, self._groups
        for node, signature, output, one, two, three in rows:
            key: tuple[int | None, ...]
            if one == UNTOLD:
                key = (id(signature), *map(self._value, node.input[:]))
                is_told = False
            else:
                key = (id(signature), values[one], values[two], values[three])
                is_told = not (two or three) or (one != two and one != three and two != three)
            group = alike.get(key)
            if group is None:
                group = Alike(self._infer(node, signature, key[1:]))
                if signature is not None:
                    alike[key] = group
            made = group.made
            if output in asked:
                self._take(node, made)
                is_told = False
            else:
                values[output] = made  # type: ignore[assignment]  # of one output
            is_told = is_told and made != _UNKNOWN and signature is not None
            groups.append(group if is_told else None)
        return bool(rows)

    def _take(self, node: NodeProto, made: int | tuple[int, ...]) -> None:
        """Take in the facts of a node's outputs, as far as what is stated of them lets it."""
        names = node.output[:]
        numbers = (made,) if isinstance(made, int) else made
        for name, number in zip(names, numbers, strict=True):
            if name:
                # Where onnx finds one output to be what is not stated it tells nothing of others.
                alone = len(names) == 1 or self._stated.keys().isdisjoint(names)
                own = number if alone else _UNKNOWN
                self._know(name, self._agreed(name, own) if name in self._stated else own)

    def _agreed(self, name: str, number: int) -> int:
        """Return the fact of a value of which something is stated."""
        stated, fact = self._stated[name], self._fact(number)
        if stated is None:
            return _UNKNOWN
        if stated.dims is not None:
            is_all = all(isinstance(dim, int) for dim in stated.dims)
            return self._number(stated) if is_all else _UNKNOWN
        return number if fact is not None and fact.known.kind == stated.kind else _UNKNOWN

    def _infer(
        self, node: NodeProto, signature: Hashable, given: Sequence[int | None]
    ) -> int | tuple[int, ...]:
        """Return the fact of a node's output, or those of its outputs.

        Args:
            node: the node.
            signature: what tells those that are alike.
            given: the facts of its inputs, and maybe more.
        """
        op_type = node.op_type
        deciding = DECIDING.get(op_type, ()) if self._may_be_asked(node, op_type) else None
        own = given[: len(node.input)]
        numbers = [_UNKNOWN if number is None else number for number in own]
        unknown = (_UNKNOWN,) * len(node.output)
        found = unknown
        if deciding is not None and _UNKNOWN not in numbers:
            # Of other values than those that decide shapes inference reads the types alone.
            facts = [
                fact if fact is None or place in deciding else self._facts[fact.plain]
                for place, fact in enumerate(map(self._fact, numbers))
            ]
            is_open = any(
                fact is not None and fact.array is None
                for place, fact in enumerate(facts)
                if place in deciding
            )
            found = unknown if is_open else self._of_facts(node, op_type, signature, facts)
        return found[0] if len(found) == 1 else found

    def _may_be_asked(self, node: NodeProto, op_type: str) -> bool:
        """Return whether inference of a node alone knows what that of the graph does."""
        return (
            is_default(node.domain)
            and schemas.exists(op_type, self._scope.opset or 0)
            and op_type not in _LEFT
            and not may_end(node)
        )

    def _of_facts(
        self, node: NodeProto, op_type: str, signature: Hashable, facts: Sequence[_Fact | None]
    ) -> tuple[int, ...]:
        """Return the facts of a node's outputs that follow from those of its inputs."""
        if op_type == "Constant":
            tensor = attributes.find(node, "value")
            if tensor is None:
                return (_UNKNOWN,)
            known = tensor_type(tensor.t.data_type, tuple(tensor.t.dims))
            return (self._number(known, _small(tensor.t)),)
        key = (id(signature), tuple(map(id, facts)))
        found = self._inferred.get(key)
        if found is None:
            made = self._ask(node, facts)
            if op_type in SHAPED_BY_VALUES and not all(map(_is_sized, made)):
                made = []
            found = tuple(map(self._checked, made)) or (_UNKNOWN,) * len(node.output)
            if signature is not None:
                self._inferred[key] = found
        return found

    def _checked(self, known: ValueType | None) -> int:
        """Return the number of what inference of a node found, if that of the graph finds it."""
        if known is None or known.dims is None or None in known.dims:
            return _UNKNOWN
        return self._number(known)

    def _ask(self, node: NodeProto, facts: Sequence[_Fact | None]) -> list[ValueType | None]:
        """Ask onnx for the types of a node's outputs; none where it cannot tell."""
        self._left -= 1
        inputs: list[Input] = [
            (name, None, None) if fact is None else (name, fact.known, fact.array)
            for name, fact in zip(node.input, facts, strict=True)
        ]
        try:
            found = infer_from(node, inputs, self._scope.opset or 0, self._ir_version)
        except (
            onnx.shape_inference.InferenceError,
            onnx.defs.SchemaError,
            onnx.checker.ValidationError,
            ValueError,
        ):
            return []
        return [from_proto(found[name]) if name in found else None for name in node.output]


def _small(tensor: TensorProto) -> Array | None:
    """Return the elements of a list or a number that inference may read; None of other tensors."""
    dims = tensor.dims
    if len(dims) > 1 or prod(dims) > _READ or tensor.data_type == TensorProto.STRING:
        return None
    return None if tensor.data_location == TensorProto.EXTERNAL else numpy_helper.to_array(tensor)


def _is_too_large(known: ValueType) -> bool:
    """Return whether inference may take a value for more sizes than it should."""
    dims = known.dims or ()
    if len(dims) > MOST_DIMS:
        return True
    return len(dims) == 1 and isinstance(dims[0], int) and dims[0] > _LONGEST


def _is_sized(known: ValueType | None) -> bool:
    return known is not None and all(isinstance(dim, int) for dim in known.dims or (None,))
