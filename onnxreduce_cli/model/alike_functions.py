"""Functions that are alike: the same but for their names, and called in the same ways.

Exporters write a function for each module of a network, so a model has many of a few kinds. What
holds for the body of one holds for the bodies of all that are equal, byte for byte; what follows
from the values that it is given, such as types, where these are alike as well.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from onnx import FunctionProto

from onnxreduce_cli.model import attributes

if TYPE_CHECKING:
    from onnxreduce_cli.model.calls import Call
    from onnxreduce_cli.model.constants import Array
    from onnxreduce_cli.model.facts import Facts
    from onnxreduce_cli.model.scope import Scope

#: The first byte of each field of a serialised function, and of sizes that take one byte.
_NAME, _OVERLOAD, _SHORT = 1 << 3 | 2, 13 << 3 | 2, 128


def body_key(function: FunctionProto, overload: str) -> bytes:
    """A key that is equal for functions that differ in name and overload alone.

    Args:
        function: the function.
        overload: its overload.
    """
    content: bytes = function.SerializeToString()
    if content and content[0] == _NAME and content[1] < _SHORT:
        content = content[2 + content[1] :]
    if overload and overload.isascii() and len(overload) < _SHORT:
        # Nothing but metadata comes after it.
        content = content.removesuffix(bytes((_OVERLOAD, len(overload))) + bytes(overload, "ascii"))
    return content


def alike(facts: Facts) -> dict[int, Scope]:
    """Find functions of which all the same is known as of one before, but for their names.

    Returns:
        by the identity of the scope of each, the scope of the first that is like it.
    """
    equal = [scope for scope in facts.scopes if scope.like is not None]
    if not equal or facts.stated.overridable:
        return {}
    calls = facts.calls.all
    first: dict[Hashable, Scope] = {}
    #: By the scope and the names that a call reads, what `call_key` tells of it, numbered.
    ways: dict[Hashable, int] = {}
    numbers: dict[Hashable, int] = {}
    found: dict[int, Scope] = {}
    for scope in (*{id(item.like): item.like for item in equal}.values(), *equal):
        assert scope is not None
        assert scope.function is not None
        body, own = id(scope.like or scope), set()
        for caller, node in calls.get(id(scope.function), ()):
            given = [item.SerializeToString() for item in node.attribute] if node.attribute else ()
            key = (id(caller), body, *node.input[:], *given)
            way = ways.get(key)
            if way is None:
                told = call_key(facts, scope.function, (caller, node))
                way = ways[key] = numbers.setdefault(told, len(numbers))
            own.add(way)
        known = first.setdefault((body, *(sorted(own) if len(own) > 1 else own)), scope)
        if known is not scope:
            found[id(scope)] = known
    return found


def call_key(facts: Facts, function: FunctionProto, call: Call) -> Hashable:
    """Return a key of a call: types and constants of its inputs, values of its attributes."""
    scope, node = call
    inputs = []
    for position, _ in enumerate(function.input):
        name = node.input[position] if position < len(node.input) else ""
        array = facts.constant(scope, name)
        inputs.append((bool(name), facts.type(scope, name), None if array is None else _key(array)))
    defaults = {item.name: item for item in function.attribute_proto}
    values = []
    for name in (*function.attribute, *defaults):
        given = attributes.find(node, name) or defaults.get(name)
        value = None if given is None else facts.calls.resolve_attribute(scope, given)
        values.append(None if given is None else _frozen(value))
    return tuple(inputs), tuple(values)


def _key(array: Array) -> Hashable:
    content = repr(array.tolist()) if array.dtype == object else array.tobytes()
    return array.dtype.str, array.shape, content


def _frozen(value: Any) -> Hashable:
    """An attribute's value in a form that can be compared: messages as bytes, others as text."""
    if isinstance(value, tuple):
        return tuple(_frozen(item) for item in value)
    if hasattr(value, "SerializeToString"):
        return bytes(value.SerializeToString(deterministic=True))
    return repr(value)
