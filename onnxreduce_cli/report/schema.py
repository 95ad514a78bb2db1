"""JSON Schemas of the reports, made from the dataclasses that these consist of.

They allow fields that they do not describe, as later versions may add some.
"""

from __future__ import annotations

import json
import re
from dataclasses import is_dataclass
from inspect import cleandoc
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from onnxreduce_cli.diffing.results import Diff
from onnxreduce_cli.report.data import Conversions, InspectedModel, Problem, WrongUsage
from onnxreduce_cli.report.outputs import RunOutputs
from onnxreduce_cli.report.plain import FORMAT, Invocation
from onnxreduce_cli.report.reference import OperatorList, TargetList
from onnxreduce_cli.serializable import field_names
from onnxreduce_cli.verification.whole.results import VerifyReport

Schema = dict[str, Any]

#: The dataclass that the report of each command consists of.
CONTENTS: dict[str, type] = {
    "convert": Conversions,
    "diff": Diff,
    "inspect": InspectedModel,
    "onnxreduce": WrongUsage,
    "ops": OperatorList,
    "run": RunOutputs,
    "targets": TargetList,
    "verify": VerifyReport,
}

_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n        .*)*)$", re.MULTILINE)

#: NaN and infinities are strings in JSON.
_FLOAT = {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}

_SIMPLE: dict[Any, Schema] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: _FLOAT,
    NoneType: {"type": "null"},
    object: {},
    Any: {},
}


def report_schema(command: str) -> Schema:
    """Return the JSON Schema of a command's report."""
    definitions: dict[str, Schema] = {}
    content = CONTENTS[command]
    own = _object(content, definitions)
    typed = command if content is WrongUsage else f"onnxreduce {command}"
    envelope: Schema = {
        "format": {"const": FORMAT, "description": "The version of this form."},
        "command": {"const": command},
        "exit_code": {"type": "integer", "description": "How the command ends."},
        "onnxreduce": {"type": "string", "description": "The version of onnxreduce."},
        "onnx": {"type": "string", "description": "The version of onnx."},
        "call": _of(Invocation, definitions),
        "problem": {
            **_of(Problem | None, definitions),
            "description": "Why the command failed as a whole, with none of what follows.",
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:onnxreduce:report:{FORMAT}:{command}",
        "title": f"The report of {typed} --json",
        "description": own["description"],
        "type": "object",
        "properties": {**envelope, **own["properties"]},
        "required": list(envelope),
        "if": {"properties": {"problem": {"type": "null"}}},
        "then": {"required": own["required"]},
        "$defs": dict(sorted(definitions.items())),
    }


def _object(owner: type, definitions: dict[str, Schema]) -> Schema:
    """Return the schema of a dataclass, with descriptions from its docstring."""
    doc, hints = cleandoc(owner.__doc__ or ""), get_type_hints(owner)
    texts = {found[1]: " ".join(found[2].split()) for found in _ATTRIBUTE.finditer(doc)}
    kinds = {}
    for key in field_names(owner):
        found = getattr(owner, key, None)
        if isinstance(found, property):
            kinds[key] = get_type_hints(found.fget)["return"]
            texts[key] = (found.__doc__ or "").split("\n")[0]
        else:
            kinds[key] = hints[key]
    properties = {
        key: {**_of(kind, definitions), **({"description": texts[key]} if key in texts else {})}
        for key, kind in kinds.items()
    }
    return {
        "type": "object",
        "description": doc.split("\n\n")[0].replace("\n", " "),
        "properties": properties,
        "required": list(properties),
    }


def _of(kind: Any, definitions: dict[str, Schema]) -> Schema:
    """Return the schema of a type."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind in _SIMPLE:
        return dict(_SIMPLE[kind])
    if is_dataclass(kind):
        assert isinstance(kind, type)
        name = kind.__name__
        if name not in definitions:
            definitions[name] = {}
            definitions[name] = _object(kind, definitions)
        return {"$ref": f"#/$defs/{name}"}
    if origin is Literal:
        return {"enum": list(parts)}
    if origin in (Union, UnionType):
        return {"anyOf": [_of(part, definitions) for part in parts]}
    if len(parts) == 2 and (origin is dict or issubclass(origin, dict)):
        return {"type": "object", "additionalProperties": _of(parts[1], definitions)}
    if origin is tuple and parts[-1] is not ...:
        items = [_of(part, definitions) for part in parts]
        return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
    if issubclass(origin, dict):  # A Counter: numbers by name.
        return {"type": "object", "additionalProperties": {"type": "integer"}}
    return {"type": "array", "items": _of(parts[0], definitions)}


def schema_text(command: str) -> str:
    """Return the text of the JSON Schema of a command's report."""
    return json.dumps(report_schema(command), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    from pathlib import Path

    folder = Path(__file__).with_name("schemas") / str(FORMAT)
    folder.mkdir(parents=True, exist_ok=True)
    for name in CONTENTS:
        (folder / f"{name}.json").write_text(schema_text(name), encoding="utf-8")
