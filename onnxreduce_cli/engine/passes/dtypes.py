"""Change of a model's dtypes, in values, weights and attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.engine.changes import Change
from onnxreduce_cli.engine.conversion_request import ConversionInput
from onnxreduce_cli.engine.options import dtype_pairs
from onnxreduce_cli.engine.passes.interface import cast_interface, cast_values
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import Blocker, ConversionError
from onnxreduce_cli.model.file.byte_ranges import FileRange, RecodedRange
from onnxreduce_cli.model.file.document import Document
from onnxreduce_cli.model.file.weights import data_of, recode, stored_files
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.dtype_change import DtypeChange, recoding
from onnxreduce_cli.model.graph.scope import Scope, scopes
from onnxreduce_cli.model.graph.values import dtype_name, numpy_dtype
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.safe_inference import type_error
from onnxreduce_cli.model.types.skeleton import model_skeleton
from onnxreduce_cli.text import count, listed

#: Dtypes by range; each holds the values before it, but for the last digits of float16 in bfloat16.
_RANGES = (TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE)


@dataclass(frozen=True, slots=True)
class ChangedDtypes:
    """The changes of a model whose dtypes were changed.

    Attributes:
        lines: a description of each change, in one line.
        changes: the nodes whose attributes changed.
        moved: whether external data was moved into the model.
        casts: the names of the Casts by which inputs and outputs keep their dtypes.
    """

    lines: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    moved: bool = False
    casts: tuple[str, ...] = ()


def change_dtypes(
    document: Document, dtypes: Mapping[str, str], *, keep_interface: bool
) -> ChangedDtypes:
    """Change dtypes of a model, in place.

    Requires: a model that passed the gate.

    Guarantees: nothing in the model is of the old dtypes, except inputs and outputs that keep their
    dtypes, and constants that operators take in no other. Large weights are converted when they are
    written.

    Raises:
        UsageError: there is no such dtype.
        ConversionError: an operator does not take the new dtype, or a weight is beyond its range.
        InvalidModelError: external data is missing.
        OSError: external data cannot be read.
    """
    was_sound = not type_error(model_skeleton(document.model))
    done = [
        _change(document, before, after, keep_interface) for before, after in dtype_pairs(dtypes)
    ]
    kinds = frozenset(f"tensor({dtype_name(after)})" for _, after in dtype_pairs(dtypes))
    blockers = tuple(_type_blockers(document, kinds))
    said = ", ".join(f"{before} to {after}" for before, after in dtypes.items())
    if blockers:
        raise ConversionError(f"dtypes cannot be changed from {said}", blockers)
    problem = type_error(model_skeleton(document.model)) if was_sound else ""
    if problem:
        raise ConversionError(
            f"dtypes cannot be changed from {said}: onnx says of the result {problem!r}; "
            "leave out --dtype"
        )
    return ChangedDtypes(
        tuple(line for item in done for line in item.lines),
        tuple(change for item in done for change in item.changes),
        any(item.moved for item in done),
        tuple(name for item in done for name in item.casts),
    )


def _change(document: Document, before: int, after: int, keep_interface: bool) -> ChangedDtypes:
    model = document.model
    old, new = dtype_name(before), dtype_name(after)
    interface = _values_of_dtype(model.graph, before)
    names = [name for _, name in interface]
    cast = cast_values(model) if keep_interface else frozenset()
    change = DtypeChange(model, before, after, names if keep_interface else (), cast)
    lost = _count_underflows(document, change.tensors, before, after)
    widths = numpy_dtype(before).itemsize, numpy_dtype(after).itemsize
    moved = recode(document, change.tensors, widths, recoding(before, after))
    for tensor in change.tensors:
        tensor.data_type = after
    line = f"{old} → {new}: {count(len(change.tensors), 'weight')}"
    lines = [f"{line}, all values and attributes"]
    if lost:
        lines.append(f"too small for {new}, zero now: {count(lost, 'element')}")
    changes = tuple(_changes(model, change))
    casts: tuple[str, ...] = ()
    names_text = listed([f"{what} {name}" for what, name in interface])
    if keep_interface and interface:
        wanted = [name for name in names if name not in cast and name not in change.fixed]
        found = cast_interface(model, dict.fromkeys(wanted), before, after)
        changes, casts = (*changes, *found.changes), found.casts
        lines.append(f"{old} still, by Cast: {names_text}")
    elif interface:
        lines.append(f"{new} instead of {old}: {names_text}")
    return ChangedDtypes(tuple(lines), changes, moved, casts)


def _values_of_dtype(graph: GraphProto, dtype: int) -> list[tuple[str, str]]:
    """Return the inputs and outputs of a graph that are dense tensors of a dtype."""
    return [
        (what, info.name)
        for what, infos in (("input", graph.input), ("output", graph.output))
        for info in infos
        if info.type.tensor_type.elem_type == dtype
    ]


def _changes(model: ModelProto, change: DtypeChange) -> Iterator[Change]:
    for scope in scopes(model):
        for node in scope.container.node:
            edits = change.edits.get(id(node))
            if edits:
                name = scope.describe(node)
                yield Change(name, node.op_type, scope.label, tuple(edits), (node.op_type,))


def _count_underflows(
    document: Document, changed: list[TensorProto], before: int, after: int
) -> int:
    """Return how many non-zero elements become zero.

    Raises:
        ConversionError: an element is beyond the range of the new dtype.
    """
    if _RANGES.index(after) >= _RANGES.index(before):
        return 0
    stored, lost = stored_files(document), 0
    source, target = numpy_dtype(before), numpy_dtype(after)
    for tensor in changed:
        beyond = 0
        for part in data_of(document, tensor, stored):
            chunks = part.chunks() if isinstance(part, (FileRange, RecodedRange)) else [bytes(part)]
            for chunk in chunks:
                values = np.frombuffer(chunk, source)
                with np.errstate(all="ignore"):
                    made = values.astype(target)
                beyond += int(np.sum(np.isfinite(values) & ~np.isfinite(made)))
                lost += int(np.sum((values != 0) & (made == 0)))
        if beyond:
            raise ConversionError(
                f"tensor {tensor.name!r} has {count(beyond, 'element')} beyond the range of "
                f"{dtype_name(after)}, which would become infinite"
            )
    return lost


def _type_blockers(document: Document, kinds: frozenset[str]) -> Iterator[Blocker]:
    """Yield a blocker for each node whose operator does not take the new types."""
    model_input = ConversionInput.of(document.model, document.base_dir)
    for scope in model_input.scopes:
        for node in scope.nodes:
            called = (
                not is_default(node.domain) or model_input.facts.calls.function_of(node) is not None
            )
            if called or not scope.opset:
                continue
            problem = _disallowed_type(model_input.facts, scope, node, kinds)
            problem = problem or _mixed_types(model_input.facts, scope, node)
            problem = problem or model_input.facts.contradiction(scope, node)
            if problem is not None:
                site = Site(scope, node, blocked=Blocked(problem, "leave its dtype as it is"))
                yield site.blocker


def _disallowed_type(
    facts: Facts, scope: Scope, node: NodeProto, kinds: frozenset[str]
) -> str | None:
    """Return which input or output has a new type that the operator does not allow, if any."""
    if not schemas.exists(node.op_type, scope.opset or 0):
        return None
    allowed = schemas.allowed_types(node.op_type, scope.opset or 0)
    for what, side, names in (("input", "in", node.input), ("output", "out", node.output)):
        for index, name in enumerate(names):
            kind = facts.kind(scope, name) if name else None
            if kind in kinds and kind not in allowed.get(f"{side}{index}", kinds):
                return f"{node.op_type}-{scope.opset} has no {what} of {kind}, which {name!r} is"
    return None


def _mixed_types(facts: Facts, scope: Scope, node: NodeProto) -> str | None:
    """Return which values of a node must be of one type but are not; None if all are."""
    if not schemas.exists(node.op_type, scope.opset or 0):
        return None
    schema = schemas.schema(node.op_type, scope.opset or 0)
    first: dict[str, tuple[str, str]] = {}
    for names, formals in ((node.input, schema.inputs), (node.output, schema.outputs)):
        for index, name in enumerate(names):
            formal = formals[min(index, len(formals) - 1)]
            kind = facts.kind(scope, name) if name and formal.is_homogeneous else None
            if kind is None:
                continue
            other, expected = first.setdefault(formal.type_str, (name, kind))
            if kind != expected:
                return f"{other!r} is {expected} and {name!r} is {kind}, which must be of one type"
    return None
