"""Types of values that the user states, which are added to the model's own value_info."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from onnx import GraphProto, ModelProto, TypeProto, ValueInfoProto, helper

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import Dims, ValueType, dtype_name, from_proto, parse_dtype
from onnxreduce_cli.model.types.facts import Facts, admit
from onnxreduce_cli.text import did_you_mean


def parse_type(text: str) -> TypeProto:
    """Return the tensor type that a text spells: ``float``, ``uint8[N,3,224]``, ``int64[]``.

    Dtypes are named as `parse_dtype` reads them. A dimension is a number, a name, or ``?``.

    Raises:
        UsageError: there is no such dtype, or a dimension is none of these.
    """
    found = re.fullmatch(r"\s*(\w+)\s*(?:\[(.*)\])?\s*", text)
    if found is None:
        raise UsageError(f"{text!r} is no type; give one like float or uint8[N,3,224]")
    number = parse_dtype(found[1])
    dims = None if found[2] is None else tuple(_dims(text, found[2]))
    return helper.make_tensor_type_proto(number, dims)


def _dims(text: str, inner: str) -> Iterator[int | str | None]:
    for part in inner.split(",") if inner.strip() else ():
        dim = part.strip()
        if not re.fullmatch(r"\?|\d{1,18}|[^\W\d]\S*", dim):
            raise UsageError(
                f"{dim!r} in {text!r} is no dimension; give a number, a name, or ? for each axis"
            )
        yield None if dim == "?" else int(dim) if dim.isdigit() else dim


@contextmanager
def stating(
    model: ModelProto, types: Mapping[str, str], base_dir: str, *, keep: bool = True
) -> Iterator[None]:
    """Add types to a model; they are removed at the end unless `keep`, and in case of an error.

    Args:
        model: the model.
        types: types by the names of values, as `parse_type` reads them.
        base_dir: the folder that external data is relative to.
        keep: whether the types stay in the model.

    Raises:
        UsageError: there is no such value or dtype, or it contradicts what is known of the value.
        InvalidModelError: the model contradicts itself.
    """
    wanted = {name: parse_type(text) for name, text in types.items()}
    before: list[tuple[ValueInfoProto, bytes]] = []
    added: list[GraphProto] = []
    done = False
    try:
        for name, stated in wanted.items():
            # Each is compared with the facts that follow from the types before it, too.
            for graph, merged in _places(admit(model, base_dir), name, stated):
                infos = [*graph.input, *graph.output, *graph.value_info]
                info = next((info for info in infos if info.name == name), None)
                if info is None:
                    added.append(graph)
                    info = graph.value_info.add(name=name)
                else:
                    before.append((info, info.SerializeToString()))
                info.type.CopyFrom(merged)
        yield
        done = keep
    finally:
        if not done:
            for info, content in before:
                info.ParseFromString(content)
            for graph in added:
                del graph.value_info[-1]


def _places(facts: Facts, name: str, stated: TypeProto) -> list[tuple[GraphProto, TypeProto]]:
    """Return each graph that has a value of a name, with the type to state there."""
    graphs = [scope for scope in facts.scopes if scope.function is None]
    owners = [scope for scope in graphs if name and _has(scope, name)]
    if not owners:
        names = {own for scope in graphs for own in (*scope.inputs, *scope.producers)}
        hint = did_you_mean(name, sorted(names))
        raise UsageError(f"--type {name}: no graph of the model has such a value{hint}")
    for scope in owners:
        _check(facts, scope, name, stated)
    return [
        (scope.container, _merged(facts, scope, name, stated))
        for scope in owners
        if isinstance(scope.container, GraphProto)
    ]


def _has(scope: Scope, name: str) -> bool:
    return name in scope.inputs or name in scope.producers or name in scope.initializers


def _check(facts: Facts, scope: Scope, name: str, stated: TypeProto) -> None:
    """Refuse a type that contradicts the facts of a value.

    Raises:
        UsageError: the type contradicts them.
    """
    given, known = from_proto(stated), facts.type(scope, name)
    assert given is not None
    if known is None:
        allowed = facts.allowed_kinds(scope, name)
        if allowed is not None and given.kind not in allowed:
            raise UsageError(
                f"--type {name}: it cannot be a {given.kind}; what makes and reads it takes "
                f"{', '.join(sorted(allowed))}"
            )
    elif known.kind != given.kind or not _agree(known.dims, given.dims):
        raise UsageError(f"--type {name}: it is known to be {_spelled(known)}")


def _agree(known: Dims | None, given: Dims | None) -> bool:
    if known is None or given is None:
        return True
    return len(known) == len(given) and all(
        mine == other or not (isinstance(mine, int) and isinstance(other, int))
        for mine, other in zip(known, given, strict=True)
    )


def _merged(facts: Facts, scope: Scope, name: str, stated: TypeProto) -> TypeProto:
    """Return a stated type combined with the known dimensions of the value."""
    given, known = from_proto(stated), facts.type(scope, name)
    if given is None or known is None or known.dims is None:
        return stated
    dims = known.dims
    if given.dims is not None:
        pairs = zip(known.dims, given.dims, strict=True)
        dims = tuple(mine if isinstance(mine, int) else other or mine for mine, other in pairs)
    return ValueType(given.kind, given.elem_type, dims).to_proto()


def _spelled(known: ValueType) -> str:
    if not known.elem_type:
        return f"a {known.kind}"
    dims = ",".join("?" if dim is None else str(dim) for dim in known.dims or ())
    return dtype_name(known.elem_type) + ("" if known.dims is None else f"[{dims}]")
