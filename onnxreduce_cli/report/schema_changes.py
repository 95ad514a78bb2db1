"""The differences between two definitions of an operator in the installed onnx's schemas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from onnx.defs import OpSchema
from onnx.helper import get_attribute_value

from onnxreduce_cli import schemas
from onnxreduce_cli.model.graph.domains import domain_of

_OPTION = OpSchema.FormalParameterOption


def schema_changes(op_type: str, boundary: int) -> list[str]:
    """Describe the differences of an operator's definition at an opset from the one before.

    Signatures and types are compared. Of texts it is only said that they differ: whether the
    meaning changed takes a reader.

    Args:
        op_type: an operator of the default domain, or of ai.onnx.ml.
        boundary: an opset at which it changed, later than the one it came with.
    """
    domain = domain_of(op_type)
    old, new = (schemas.schema(op_type, opset, domain) for opset in (boundary - 1, boundary))
    found = [
        *_deprecation(old, new),
        *_attributes(old, new),
        *_formals("input", old.inputs, new.inputs),
        *_formals("output", old.outputs, new.outputs),
        *_ties(old, new),
    ]
    if _texts(old) != _texts(new):
        names = " and ".join(
            f"get_schema({op_type!r}, {side.since_version})" for side in (old, new)
        )
        found.append(f"the text differs: read onnx.defs.{names}")
    return found


def _deprecation(old: OpSchema, new: OpSchema) -> Iterator[str]:
    if old.deprecated != new.deprecated:
        yield "it is deprecated" if new.deprecated else "it is no longer deprecated"


def _attributes(old: OpSchema, new: OpSchema) -> Iterator[str]:
    for name in sorted(old.attributes.keys() | new.attributes.keys()):
        before, after = old.attributes.get(name), new.attributes.get(name)
        if before is None or after is None:
            yield f"attribute {name} {'went away' if after is None else 'was added'}"
            continue
        if before.type != after.type:
            yield f"attribute {name} is {_kind(after)}, not {_kind(before)}"
        if before.required != after.required:
            yield f"attribute {name} is {'now' if after.required else 'no longer'} required"
        if _default(before) != _default(after):
            yield f"attribute {name} defaults to {_default(after)!r}, not {_default(before)!r}"


def _kind(attribute: OpSchema.Attribute) -> str:
    """Return the name of an attribute's type, such as ``INTS``."""
    return str(attribute.type).rpartition(".")[2]


def _default(attribute: OpSchema.Attribute) -> object:
    """Return an attribute's default value; None if it has none."""
    value = attribute.default_value
    return get_attribute_value(value) if value.type else None


def _formals(
    side: str, old: Sequence[OpSchema.FormalParameter], new: Sequence[OpSchema.FormalParameter]
) -> Iterator[str]:
    """Describe the changes of formal inputs, or outputs, which are matched by their names."""
    before = {formal.name: formal for formal in old}
    after = {formal.name: formal for formal in new}
    yield from (f"{side} {name} went away" for name in before if name not in after)
    for name, formal in after.items():
        if name not in before:
            yield f"{side} {name} was added"
            continue
        was = before[name]
        if formal.option != was.option:
            yield f"{side} {name} is {_option(formal)}, where it was {_option(was)}"
        for kinds, verb in (
            (formal.types - was.types, "more"),
            (was.types - formal.types, "fewer"),
        ):
            if kinds:
                yield f"{side} {name} takes {verb} types: {', '.join(sorted(kinds))}"


def _option(formal: OpSchema.FormalParameter) -> str:
    return {_OPTION.Single: "required", _OPTION.Optional: "optional"}.get(formal.option, "variadic")


def _ties(old: OpSchema, new: OpSchema) -> Iterator[str]:
    """Describe pairs of inputs and outputs that share a type in one definition only."""
    before, after = (
        {formal.name: formal.type_str for formal in [*schema.inputs, *schema.outputs]}
        for schema in (old, new)
    )
    for one, other in combinations([name for name in after if name in before], 2):
        was, is_now = before[one] == before[other], after[one] == after[other]
        if was != is_now:
            yield f"{one} and {other} {'must' if is_now else 'no longer must'} have one type"


def _texts(schema: OpSchema) -> list[str]:
    """Return all texts of a definition, without white space."""
    formals = [*schema.inputs, *schema.outputs]
    return " ".join(
        [
            schema.doc or "",
            *(formal.description for formal in formals),
            *(schema.attributes[name].description for name in sorted(schema.attributes)),
        ]
    ).split()
