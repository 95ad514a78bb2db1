"""A validator of JSON Schemas as far as ours go: a keyword that it does not know is an error."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_TYPES = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "null": lambda value: value is None,
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
}

_KNOWN = {
    *("$schema", "$id", "$defs", "$ref", "title", "description", "type", "const", "enum", "anyOf"),
    *("properties", "required", "additionalProperties", "if", "then"),
    *("items", "prefixItems", "minItems"),
}


def errors(value: Any, schema: Any, root: Any = None, path: str = "$") -> Iterator[str]:
    """Yield what is wrong with a value by a schema."""
    root = schema if root is None else root
    if isinstance(schema, bool):
        if not schema:
            yield f"{path}: nothing may be here"
        return
    assert schema.keys() <= _KNOWN, schema.keys() - _KNOWN
    if "$ref" in schema:
        yield from errors(value, root["$defs"][schema["$ref"].removeprefix("#/$defs/")], root, path)
    if "const" in schema and value != schema["const"]:
        yield f"{path}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    if "type" in schema and not _TYPES[schema["type"]](value):
        yield f"{path}: {value!r} is no {schema['type']}"
        return
    if "anyOf" in schema:
        found = [list(errors(value, part, root, path)) for part in schema["anyOf"]]
        if all(found):
            yield from min(found, key=len)
    if "if" in schema and not list(errors(value, schema["if"], root, path)):
        yield from errors(value, schema["then"], root, path)
    if isinstance(value, dict):
        yield from _object(value, schema, root, path)
    if isinstance(value, list):
        yield from _array(value, schema, root, path)


def closed(schema: Any) -> Any:
    """Return a schema that allows no field that it does not describe."""
    if isinstance(schema, list):
        return [closed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(item) for key, item in schema.items()}
    if isinstance(schema.get("properties"), dict) and "type" in schema:
        found.setdefault("additionalProperties", False)
    return found


def _object(value: dict[str, Any], schema: Any, root: Any, path: str) -> Iterator[str]:
    own = schema.get("properties", {})
    yield from (
        f"{path}: {key} is missing" for key in schema.get("required", ()) if key not in value
    )
    for key, item in value.items():
        of = own.get(key, schema.get("additionalProperties", True))
        yield from errors(item, of, root, f"{path}.{key}")


def _array(value: list[Any], schema: Any, root: Any, path: str) -> Iterator[str]:
    first = schema.get("prefixItems", [])
    if len(value) < schema.get("minItems", 0):
        yield f"{path}: it has {len(value)} elements"
    for index, item in enumerate(value):
        of = first[index] if index < len(first) else schema.get("items", True)
        yield from errors(item, of, root, f"{path}[{index}]")
