"""A model with its sequences and optional values written out as tensors."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from onnxreduce_cli.containers.emitter import Emitter
from onnxreduce_cli.containers.mapping import as_loop
from onnxreduce_cli.containers.sequences import Sequences
from onnxreduce_cli.containers.values import (
    Container,
    Given,
    Listed,
    Maybe,
    Packed,
    Stacked,
    Tensor,
    TensorType,
    UnwritableError,
    Value,
    made_of,
    parts,
    types,
)
from onnxreduce_cli.model import attributes
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.edit import Edits, apply_edits
from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.names import Names
from onnxreduce_cli.model.scope import Scope, scopes, subgraphs
from onnxreduce_cli.model.values import elem_type_of, from_proto

#: The containers of a graph by name, those of the graphs around it included.
Environment = dict[str, Container]

#: Operators that only containers go into or come out of.
OPERATORS = frozenset(
    {
        "ConcatFromSequence",
        "Optional",
        "OptionalGetElement",
        "OptionalHasElement",
        "SequenceAt",
        "SequenceConstruct",
        "SequenceEmpty",
        "SequenceErase",
        "SequenceInsert",
        "SequenceLength",
        "SequenceMap",
        "SplitToSequence",
    }
)

#: Each of a scope's nodes with what takes its place; None where it stays.
_Results = list[tuple[NodeProto, list[NodeProto] | None]]

#: A sequence is split into its parts by name if these are known and no more.
_MOST_PARTS = 64


@dataclass(frozen=True)
class Written:
    """A node that was written out.

    Attributes:
        node: the node's name, or a description by its first output where it has none.
        op_type: its operator.
        scope: where it is.
        result: the operators of the nodes that take its place.
    """

    node: str
    op_type: str
    scope: str
    result: tuple[str, ...]


class CannotWriteError(Exception):
    """A model's containers cannot be written out.

    Attributes:
        place: the number of the scope in `scopes(model)`, and of the node in it.
        cause: why.
    """

    def __init__(self, place: tuple[int, int], cause: UnwritableError) -> None:
        super().__init__(cause.reason)
        self.place = place
        self.cause = cause


def write_out(model: ModelProto, target: int, base_dir: str = "") -> list[Written]:
    """Write a model's containers out as tensors, in place, at its own opset.

    What the model is given and gives stays what it is, where the target has it. A SequenceMap
    becomes a Loop first, and nothing else is done then.

    Args:
        model: the model.
        target: the opset that it is to be converted to.
        base_dir: the folder that external data is relative to.

    Raises:
        CannotWriteError: a node's cannot be; nothing was edited.
    """
    found = scopes(model)
    facts = Facts(model, found, base_dir)
    graphs = [scope for scope in found if scope.root is found[0]]
    names = Names(graphs)
    mapped = [
        (scope, node)
        for scope in graphs
        for node in scope.nodes
        if node.op_type == "SequenceMap" and is_default(node.domain)
    ]
    if mapped and target < 17:
        edits: dict[int, Edits] = {}
        written = []
        for scope, node in mapped:
            new = as_loop(node, scope, facts, names)
            edits.setdefault(id(scope), Edits()).replace(node, new, [], {}, [])
            written.append(_written(scope, node, new))
        for scope in reversed(graphs):
            if id(scope) in edits:
                apply_edits(scope, edits[id(scope)])
        return written
    return _Rewriting(found, facts, names, target).run()


def _written(scope: Scope, node: NodeProto, new: Iterable[NodeProto]) -> Written:
    operators = tuple(item.op_type for item in new)
    return Written(scope.describe(node), node.op_type, scope.label, operators)


class _Rewriting:
    def __init__(self, found: list[Scope], facts: Facts, names: Names, target: int) -> None:
        self._found = found
        self._main = found[0]
        self._facts = facts
        self._target = target
        self._opset = found[0].opset or 0
        self._emitter = Emitter(self._opset, target, names)
        self._scope = self._main
        self._sequences = Sequences(self._emitter)
        self._written: list[Written] = []

    def run(self) -> list[Written]:
        graph = self._main.container
        assert isinstance(graph, GraphProto)
        environment: Environment = {}
        for value in graph.input:
            given = _given(value.name, value.type)
            if given is not None:
                environment[value.name] = given
        edits = Edits()
        for node, new in self._nodes(self._main, environment):
            if new is not None:
                edits.replace(node, new, [], {}, [])
        edits.first += self._emitter.constants
        edits.removed_values |= {
            info.name
            for info in graph.value_info
            if info.name in environment and info.type.WhichOneof("value") != "tensor_type"
        }
        # Before the first edit, which moves nodes.
        written = self._written
        apply_edits(self._main, edits)
        return written

    # Facts

    def _tensor(self, name: str) -> TensorType:
        """What is known of a tensor; its dtype is 0 where that is not."""
        if name in self._emitter.types:
            return self._emitter.types[name]
        known = self._facts.type(self._scope, name)
        return (0, None) if known is None else (known.elem_type, known.dims)

    def _elem_type(self, name: str) -> int:
        elem_type = self._tensor(name)[0]
        if not elem_type:
            raise UnwritableError(
                f"the dtype of {name!r} is not known", "state its type in the model's value_info"
            )
        return elem_type

    def _number(self, name: str) -> int | str:
        """A position: a number if it is known, else the name."""
        array = self._facts.constant(self._scope, name)
        return name if array is None or array.size != 1 else int(array.reshape(-1)[0])

    def _value(self, environment: Environment, name: str) -> Container | str:
        """What stands for a value; its own name if it is a tensor.

        Raises:
            UnwritableError: the model is given it, in a form that the target does not have.
        """
        value = environment.get(name, name)
        if isinstance(value, Given) and self._target < (15 if value.optional else 11):
            what = "a value that may be absent" if value.optional else "a sequence of tensors"
            raise UnwritableError(
                f"the model is given {value.name!r}, {what}, which nothing before opset "
                f"{15 if value.optional else 11} can hold",
                "choose a later opset, or let the model take tensors",
            )
        return value

    def _sequence(self, environment: Environment, name: str) -> Listed | Stacked | Packed | Given:
        value = self._value(environment, name)
        if isinstance(value, str | Maybe):
            raise UnwritableError(f"how {name!r} is made is not known", "choose a later opset")
        return value

    # Graphs

    def _nodes(self, scope: Scope, environment: Environment) -> _Results:
        """Write what takes the place of a scope's nodes."""
        around, self._scope = self._scope, scope
        found: _Results = []
        for place, node in enumerate(scope.nodes):
            try:
                with self._emitter.graph() as new:
                    changed = self._node(scope, node, environment)
                    if scope is self._main:
                        self._give_out(node, environment)
            except UnwritableError as error:
                number = next(n for n, item in enumerate(self._found) if item is scope)
                raise CannotWriteError((number, place), error) from error
            found.append((node, new if changed else None))
            if changed and node.op_type in OPERATORS:
                self._note(scope, node, new)
        self._scope = around
        return found

    def _note(self, scope: Scope, node: NodeProto, new: list[NodeProto]) -> None:
        written = _written(scope, node, new)
        # A Loop's body may be written more than once, until it is known what it carries.
        key = (written.node, written.scope)
        self._written = [item for item in self._written if (item.node, item.scope) != key]
        self._written.append(written)

    def _node(self, scope: Scope, node: NodeProto, environment: Environment) -> bool:
        """Write what takes a node's place; whether anything does."""
        if is_default(node.domain) and self._facts.function_of(node) is None:
            writer = _WRITERS.get(node.op_type)
            if writer is not None:
                return writer(self, node, environment)
        held = [name for name in node.input if name in environment]
        if held:
            raise UnwritableError(
                f"it reads {held[0]!r}, which is no tensor, and what it does with it is not known",
                "choose a later opset",
            )
        return self._others(node, environment)

    def _others(self, node: NodeProto, environment: Environment) -> bool:
        """A node without containers, whose graphs may read some from around them."""
        graphs = {name: self._graph(graph, environment) for name, graph in subgraphs(node)}
        if all(written is None for written in graphs.values()):
            return False
        copy = self._copy(node)
        for attribute in copy.attribute:
            written = graphs.get(attribute.name)
            if written is not None:
                attribute.g.CopyFrom(written)
        self._emitter.nodes.append(copy)
        return True

    def _copy(self, node: NodeProto) -> NodeProto:
        copy = NodeProto()
        copy.CopyFrom(node)
        return copy

    def _graph(self, graph: GraphProto, environment: Environment) -> GraphProto | None:
        """A graph that takes and gives tensors only, written out; None where nothing is."""
        inner = dict(environment)
        results = self._nodes(self._inner(graph), inner)
        if all(new is None for _, new in results):
            return None
        return _rebuilt(graph, _flat(results), inner)

    def _inner(self, graph: GraphProto) -> Scope:
        scope = self._facts.inner(graph)
        assert scope is not None
        return scope

    def _give_out(self, node: NodeProto, environment: Environment) -> None:
        """Make what the model gives of what stands for it."""
        for name in node.output:
            if name not in self._main.outputs or name not in environment:
                continue
            value = environment[name]
            if isinstance(value, Maybe):
                self._give_optional(name, value)
                continue
            if self._target < 11:
                raise UnwritableError(
                    f"the model gives {name!r}, a sequence of tensors, which nothing before opset "
                    "11 can hold",
                    "choose a later opset, or let the model give tensors",
                )
            if not isinstance(value, Given) or value.name != name:
                self._give_sequence(name, value)

    def _give_sequence(self, name: str, value: Listed | Stacked | Packed | Given) -> None:
        if isinstance(value, Given) and value.optional:
            raise UnwritableError(
                f"the model gives {name!r}, the optional value that it is given, and no operator "
                "before opset 16 passes that on",
                "choose a later opset",
            )
        self._sequences.as_given(value, name)

    def _give_optional(self, name: str, value: Maybe) -> None:
        if self._target < 15:
            raise UnwritableError(
                f"the model gives {name!r}, a value that may be absent, which nothing before opset "
                "15 can hold",
                "choose a later opset, or let the model give tensors",
            )
        if isinstance(value.has, str):
            raise UnwritableError(
                f"whether {name!r} is there is only known at run time, and no If before opset 16 "
                "gives a value that may be absent",
                "choose a later opset",
            )
        if not value.has:
            graph = self._main.container
            assert isinstance(graph, GraphProto)
            info = next(item for item in graph.output if item.name == name)
            proto = TypeProto()
            proto.CopyFrom(info.type.optional_type.elem_type)
            self._emitter.emit("Optional", [], "", output=name, type=proto)
            return
        held = value.value
        assert held is not None
        made = held.name if isinstance(held, Tensor) else self._emitter.fresh("sequence")
        if not isinstance(held, Tensor):
            self._sequences.as_given(held, made)
        self._emitter.emit("Optional", [made], "", output=name)

    # Values of any kind

    def _alone(self, value: Value) -> Value:
        """The kind of a value, or the one that stands for it where it cannot stay as given."""
        match value:
            case Maybe(has, held) if held is not None:
                return _maybe(has, self._alone(held))
            case Given(optional=True):
                raise UnwritableError(
                    f"{value.name!r}, an optional value that the model is given, goes into or out "
                    "of a graph within a graph, which nothing before opset 16 lets in",
                    "choose a later opset",
                )
            case Tensor() | Maybe():
                return value
        return self._sequences.alone(value)

    def _joined(self, first: Value, second: Value) -> Value:
        """The kind that either value can be brought to."""
        first, second = self._alone(first), self._alone(second)
        if isinstance(first, Tensor) and isinstance(second, Tensor):
            return first
        if isinstance(first, Maybe) and isinstance(second, Maybe):
            has = first.has if isinstance(first.has, bool) and first.has is second.has else ""
            if first.value is None or second.value is None:
                return Maybe(has, first.value or second.value)
            return _maybe(has, self._joined(first.value, second.value))
        if isinstance(first, Tensor | Maybe) or isinstance(second, Tensor | Maybe):
            raise UnwritableError("it gives values of different kinds as one", "mend the model")
        return self._sequences.joined(first, second)

    def _brought_to(self, value: Value | None, kind: Value) -> Value:
        """A value as one of a kind that it was joined to; any of that kind where there is none."""
        if isinstance(kind, Maybe):
            assert isinstance(value, Maybe)
            has = value.has
            if isinstance(kind.has, str) and isinstance(has, bool):
                has = self._emitter.constant(np.array(has), "has")
            if kind.value is None:
                return Maybe(has, None)
            return _maybe(has, self._brought_to(value.value, kind.value))
        if isinstance(kind, Tensor):
            return value or Tensor(self._emitter.filled((), kind.elem_type), kind.elem_type)
        if value is None and isinstance(kind, Listed):
            zero = self._emitter.filled((), kind.elem_type)
            return Listed((zero,) * len(kind.items), kind.elem_type, kind.dims)
        value = value or Listed((), kind.elem_type, ())
        assert not isinstance(value, Tensor | Maybe)
        return self._sequences.brought_to(value, kind)

    def _given_by_graph(self, value: Value, kind: Value) -> list[ValueInfoProto]:
        """What a graph gives for a value, as one of a kind."""
        names = parts(self._brought_to(value, kind))
        copies = [self._emitter.emit("Identity", [name], "given") for name in names]
        return list(map(self._emitter.info, copies, types(kind)))

    def _entering(self, name: str, kind: Value) -> Container:
        """A value of a kind made of new tensors, of which no more is known than of the kind."""
        names = [self._emitter.fresh(name or "unused", known) for known in types(kind)]
        value = made_of(kind, names)
        assert not isinstance(value, Tensor)
        return value

    # Operators on sequences

    def _construct(self, node: NodeProto, environment: Environment) -> bool:
        elem_type = self._elem_type(node.input[0])
        dims = tuple(self._tensor(name)[1] for name in node.input)
        environment[node.output[0]] = Listed(tuple(node.input), elem_type, dims)
        return True

    def _empty(self, node: NodeProto, environment: Environment) -> bool:
        dtype = attributes.find(node, "dtype")
        elem_type = TensorProto.FLOAT if dtype is None else dtype.i
        environment[node.output[0]] = Listed((), elem_type, ())
        return True

    def _change(self, node: NodeProto, environment: Environment) -> bool:
        """SequenceInsert and SequenceErase."""
        sequence = self._sequence(environment, node.input[0])
        insert = node.op_type == "SequenceInsert"
        at = node.input[2 if insert else 1] if len(node.input) > (2 if insert else 1) else ""
        place = self._number(at) if at else None
        if isinstance(sequence, Listed) and isinstance(place, str):
            sequence = self._sequences.counted(sequence)
        environment[node.output[0]] = (
            self._sequences.inserted(sequence, node.input[1], self._tensor(node.input[1])[1], place)
            if insert
            else self._sequences.erased(sequence, place)
        )
        return True

    def _length(self, node: NodeProto, environment: Environment) -> bool:
        sequence = self._sequence(environment, node.input[0])
        if isinstance(sequence, Given):
            return self._of_given(node, sequence)
        if isinstance(sequence, Listed):
            length = self._emitter.constant(np.array(len(sequence.items)), "length")
            self._stand_in(node, "Identity", length)
        else:
            self._sequences.length(sequence, node.output[0], node)
        return True

    def _of_given(self, node: NodeProto, sequence: Given) -> bool:
        """A node that reads a sequence that stays one."""
        if node.input[0] == sequence.name:
            return False
        copy = self._copy(node)
        copy.input[0] = sequence.name
        self._emitter.nodes.append(copy)
        return True

    def _stand_in(self, node: NodeProto, op_type: str, name: str) -> None:
        self._emitter.emit(op_type, [name], "", output=node.output[0], like=node)

    def _at(self, node: NodeProto, environment: Environment) -> bool:
        sequence = self._sequence(environment, node.input[0])
        if isinstance(sequence, Given):
            return self._of_given(node, sequence)
        place = self._number(node.input[1])
        if isinstance(sequence, Listed) and isinstance(place, int):
            if not -len(sequence.items) <= place < len(sequence.items):
                raise UnwritableError(
                    f"it takes element {place} of {len(sequence.items)}", "mend the model"
                )
            self._stand_in(node, "Identity", sequence.items[place])
            return True
        counted = self._sequences.counted(sequence)
        at = self._sequences.place(counted, place)
        self._sequences.element(counted, at, node.output[0], node)
        return True

    def _concat(self, node: NodeProto, environment: Environment) -> bool:
        sequence = self._sequence(environment, node.input[0])
        if isinstance(sequence, Given):
            return self._of_given(node, sequence)
        axis, new_axis = attributes.find(node, "axis"), attributes.find(node, "new_axis")
        assert axis is not None
        new = new_axis is not None and bool(new_axis.i)
        self._sequences.put_together(sequence, axis.i, new, node.output[0], node)
        return True

    def _split(self, node: NodeProto, environment: Environment) -> bool:
        data, output = node.input[0], node.output[0]
        sizes = node.input[1] if len(node.input) > 1 else ""
        found = {item.name: item.i for item in node.attribute}
        elem_type, dims = self._elem_type(data), self._tensor(data)[1]
        if dims is None:
            raise UnwritableError(
                f"the rank of {data!r} is not known", "state its shape in the model's value_info"
            )
        axis = found.get("axis", 0) % max(len(dims), 1)
        keepdims = bool(sizes) or bool(found.get("keepdims", 1))
        known = self._facts.constant(self._scope, sizes) if sizes else np.array(1)
        ends = _ends(known, dims[axis])
        if ends is not None and len(ends) <= _MOST_PARTS and (keepdims or len(ends) <= 8):
            names = [
                self._part(data, axis, start, end, keepdims)
                for start, end in zip([0, *ends], ends, strict=False)
            ]
            known_dims = tuple(self._tensor(name)[1] for name in names)
            environment[output] = Listed(tuple(names), elem_type, known_dims)
        elif known is not None and not known.ndim and int(known) == 1:
            environment[output] = self._stack(data, elem_type, axis, keepdims)
        else:
            environment[output] = self._split_at_run_time(data, elem_type, axis, sizes)
        return True

    def _part(self, data: str, axis: int, start: int, end: int, keepdims: bool) -> str:
        emitter = self._emitter
        elem_type, dims = self._tensor(data)
        assert dims is not None
        others = (dims[:axis], dims[axis + 1 :])
        if not keepdims:
            place = emitter.constant(np.array(start), "place")
            name = emitter.emit("Gather", [data, place], "part", axis=axis)
            emitter.types[name] = (elem_type, (*others[0], *others[1]))
            return name
        name = emitter.part(data, emitter.ints(start), emitter.ints(end), axis)
        emitter.types[name] = (elem_type, (*others[0], end - start, *others[1]))
        return name

    def _stack(self, data: str, elem_type: int, axis: int, keepdims: bool) -> Stacked:
        dims = self._tensor(data)[1]
        assert dims is not None
        perm = [axis, *(index for index in range(len(dims)) if index != axis)]
        stack = self._emitter.emit("Transpose", [data], "stack", perm=perm) if axis else data
        rest: list[int | str | None] = [dims[index] for index in perm[1:]]
        if keepdims:
            stack = self._emitter.unsqueezed(stack, axis + 1)
            rest.insert(axis, 1)
        return Stacked(stack, elem_type, tuple(rest))

    def _split_at_run_time(self, data: str, elem_type: int, axis: int, sizes: str) -> Packed:
        emitter = self._emitter
        dims = self._tensor(sizes)[1]
        if dims is None:
            raise UnwritableError(
                f"the rank of {sizes!r} is not known", "state its shape in the model's value_info"
            )
        length = emitter.emit("Cast", [sizes], "length", to=TensorProto.INT64)
        count = ""
        if not dims:
            length = emitter.shaped(length, emitter.ints(1))
            whole = emitter.at(emitter.shape(data), emitter.ints(axis), "whole")
            less = emitter.difference(length, emitter.ints(1))
            count = emitter.emit("Div", [emitter.sum(whole, less), length], "count")
        rank = len(self._tensor(data)[1] or ())
        kind = Packed("", "", "", elem_type, rank)
        return self._sequences.split(data, kind, axis, length, count)

    # Operators on optional values, and those that pass on anything

    def _optional(self, node: NodeProto, environment: Environment) -> bool:
        name = node.input[0] if node.input else ""
        value = self._value(environment, name) if name else None
        if isinstance(value, Maybe) or (isinstance(value, Given) and value.optional):
            raise UnwritableError("there is no optional value of an optional one", "mend the model")
        if isinstance(value, str):
            environment[node.output[0]] = Maybe(True, Tensor(value, self._elem_type(value)))
        else:
            environment[node.output[0]] = Maybe(value is not None, value)
        return True

    def _has_element(self, node: NodeProto, environment: Environment) -> bool:
        value = self._value(environment, node.input[0]) if node.input and node.input[0] else None
        if isinstance(value, Given) and value.optional:
            return self._of_given(node, value)
        has: bool | str = value is not None
        if isinstance(value, Maybe):
            has = value.has
        name = has if isinstance(has, str) else self._emitter.constant(np.array(has), "has")
        self._stand_in(node, "Identity", name)
        return True

    def _get_element(self, node: NodeProto, environment: Environment) -> bool:
        value = self._value(environment, node.input[0])
        if isinstance(value, Given) and value.optional:
            return self._of_given(node, value)
        held = value.value if isinstance(value, Maybe) else value
        if held is None:
            raise UnwritableError("it takes the element of a value that has none", "mend the model")
        if isinstance(held, str | Tensor):
            self._stand_in(node, "Identity", held if isinstance(held, str) else held.name)
        else:
            environment[node.output[0]] = held
        return True

    def _identity(self, node: NodeProto, environment: Environment) -> bool:
        value = self._value(environment, node.input[0])
        if isinstance(value, str):
            return False
        environment[node.output[0]] = value
        return True

    # If and Loop

    def _if(self, node: NodeProto, environment: Environment) -> bool:
        graphs = dict(subgraphs(node))
        branches = []
        for name in ("then_branch", "else_branch"):
            graph, inner = graphs[name], dict(environment)
            results = self._nodes(self._inner(graph), inner)
            branches.append((name, results, inner, self._outputs(graph.output, inner)))
        kinds: list[Value | None] = []
        for first, second in zip(branches[0][3], branches[1][3], strict=True):
            if first is None and second is None:
                kinds.append(None)
            elif first is None or second is None:
                raise UnwritableError("its branches give values of two kinds", "mend the model")
            else:
                kinds.append(self._joined(first, second))
        unchanged = all(new is None for _, results, _, _ in branches for _, new in results)
        if unchanged and not any(kinds):
            return False
        copy = self._copy(node)
        for name, results, inner, values in branches:
            attribute = attributes.find(copy, name)
            assert attribute is not None
            written = self._written_graph(graphs[name], results, inner, values, kinds)
            attribute.g.CopyFrom(written)
        self._take_outputs(copy, kinds, environment)
        self._emitter.nodes.append(copy)
        return True

    def _outputs(
        self, infos: Iterable[ValueInfoProto], environment: Environment
    ) -> list[Container | None]:
        """What stands for what a graph gives; None for tensors."""
        values = [self._value(environment, info.name) for info in infos]
        return [None if isinstance(value, str) else value for value in values]

    def _written_graph(
        self,
        graph: GraphProto,
        results: _Results,
        inner: Environment,
        values: list[Container | None],
        kinds: list[Value | None],
    ) -> GraphProto:
        """A graph with the tensors among its outputs that stand for values, of some kinds."""
        outputs: list[ValueInfoProto] = []
        with self._emitter.graph() as more:
            for value, kind, info in zip(values, kinds, graph.output, strict=True):
                if kind is None or value is None:
                    outputs.append(info)
                else:
                    outputs += self._given_by_graph(value, kind)
        written = _rebuilt(graph, [*_flat(results), *more], inner)
        del written.output[:]
        written.output.extend(outputs)
        return written

    def _take_outputs(
        self, copy: NodeProto, kinds: list[Value | None], environment: Environment
    ) -> None:
        """Let a node give the tensors that stand for what it gave."""
        outputs: list[str] = []
        for name, kind in zip(list(copy.output), kinds, strict=False):
            if kind is None:
                outputs.append(name)
                continue
            value = self._entering(name, kind)
            outputs += parts(value)
            if name:
                environment[name] = value
        copy.output[:] = outputs

    def _loop(self, node: NodeProto, environment: Environment) -> bool:
        (graph,) = (item for _, item in subgraphs(node))
        names = list(node.input)[2:]
        given = [self._value(environment, name) for name in names]
        kinds = [None if isinstance(value, str) else self._alone(value) for value in given]
        while True:
            inner = dict(environment)
            for info, kind in zip(list(graph.input)[2:], kinds, strict=True):
                if kind is not None:
                    inner[info.name] = self._entering(info.name, kind)
            results = self._nodes(self._inner(graph), inner)
            after = self._outputs(graph.output, inner)
            joined = [
                None if kind is None or value is None else self._joined(kind, value)
                for kind, value in zip(kinds, after[1:], strict=False)
            ]
            if list(map(_signature, joined)) == list(map(_signature, kinds)):
                break
            kinds = joined
        if not any(kinds) and all(new is None for _, new in results):
            return False
        copy = self._copy(node)
        copy.input[:] = [*list(node.input)[:2], "", ""][:2]
        for value, kind, name in zip(given, kinds, names, strict=True):
            if kind is None or isinstance(value, str):
                copy.input.append(name)
            else:
                copy.input.extend(parts(self._brought_to(value, kind)))
        collected: list[Value | None] = [None] * (len(graph.output) - 1 - len(kinds))
        written = self._written_graph(graph, results, inner, after, [None, *kinds, *collected])
        infos = list(graph.input)[:2]
        for info, kind in zip(list(graph.input)[2:], kinds, strict=True):
            if kind is None:
                infos.append(info)
            else:
                infos += map(self._emitter.info, parts(inner[info.name]), types(kind))
        del written.input[:]
        written.input.extend(infos)
        body = attributes.find(copy, "body")
        assert body is not None
        body.g.CopyFrom(written)
        self._take_outputs(copy, [*kinds, *collected], environment)
        self._emitter.nodes.append(copy)
        return True


_Writer = Callable[[_Rewriting, NodeProto, Environment], bool]

_WRITERS: dict[str, _Writer] = {
    "ConcatFromSequence": _Rewriting._concat,
    "Identity": _Rewriting._identity,
    "If": _Rewriting._if,
    "Loop": _Rewriting._loop,
    "Optional": _Rewriting._optional,
    "OptionalGetElement": _Rewriting._get_element,
    "OptionalHasElement": _Rewriting._has_element,
    "SequenceAt": _Rewriting._at,
    "SequenceConstruct": _Rewriting._construct,
    "SequenceEmpty": _Rewriting._empty,
    "SequenceErase": _Rewriting._change,
    "SequenceInsert": _Rewriting._change,
    "SequenceLength": _Rewriting._length,
    "SplitToSequence": _Rewriting._split,
}


def _given(name: str, proto: TypeProto) -> Given | None:
    """A sequence or optional value that the model is given; None for a tensor."""
    which = proto.WhichOneof("value")
    if which == "optional_type":
        return Given(name, 0, None, optional=True)
    if which != "sequence_type":
        return None
    known = from_proto(proto.sequence_type.elem_type)
    elem_type = None if known is None else elem_type_of(known.kind)
    return Given(name, elem_type or 0, None if known is None else known.dims)


def _signature(kind: Value | None) -> object:
    """What tells kinds apart."""
    if kind is None:
        return None
    has = kind.has if isinstance(kind, Maybe) and isinstance(kind.has, bool) else ""
    return (type(kind), has, types(kind))


def _maybe(has: bool | str, value: Value) -> Maybe:
    assert not isinstance(value, Maybe)
    return Maybe(has, value)


def _ends(known: np.ndarray | None, dim: int | str | None) -> list[int] | None:
    """Where each part of a split ends; None where that is not known."""
    if known is None or (not known.ndim and (not isinstance(dim, int) or int(known) < 1)):
        return None
    if known.ndim:
        return [int(end) for end in np.cumsum(known.astype(np.int64))]
    assert isinstance(dim, int)
    return [min(end, dim) for end in range(int(known), dim + int(known), int(known))]


def _flat(results: _Results) -> list[NodeProto]:
    return [item for node, new in results for item in ([node] if new is None else new)]


def _rebuilt(graph: GraphProto, nodes: list[NodeProto], inner: Environment) -> GraphProto:
    """A copy of a graph with other nodes, without the types of containers that are gone."""
    copy = GraphProto()
    copy.CopyFrom(graph)
    del copy.node[:], copy.value_info[:]
    copy.node.extend(nodes)
    copy.value_info.extend(
        info
        for info in graph.value_info
        if info.name not in inner or info.type.WhichOneof("value") == "tensor_type"
    )
    return copy
