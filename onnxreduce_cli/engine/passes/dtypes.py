"""Change of a model's dtypes, in values, weights and attributes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.engine.changes import Change
from onnxreduce_cli.engine.conversion_request import ConversionInput
from onnxreduce_cli.engine.options import INTEGERS, dtype_pairs
from onnxreduce_cli.engine.passes.interface import cast_interface, cast_values
from onnxreduce_cli.engine.passes.kept_dtypes import Casts, KeptDtype
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import Blocker, ConversionError
from onnxreduce_cli.model.file.byte_ranges import FileRange, RecodedRange
from onnxreduce_cli.model.file.document import Document
from onnxreduce_cli.model.file.weights import data_of, recode, stored_files
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.dtype_change import DtypeChange, keep_option, recoding
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import dtype_name, numpy_dtype
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.safe_inference import type_error
from onnxreduce_cli.model.types.skeleton import model_skeleton
from onnxreduce_cli.text import count, listed

if TYPE_CHECKING:
    from onnxreduce_cli.engine.passes.int32 import Int32Proof

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
        effective: whether anything in the model changed.
    """

    lines: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    moved: bool = False
    casts: tuple[str, ...] = ()
    effective: bool = False


def change_dtypes(
    document: Document,
    dtypes: Mapping[str, str],
    *,
    keep_interface: bool,
    kept: Collection[str] = (),
    ranges: Mapping[str, tuple[int, int]] | None = None,
) -> ChangedDtypes:
    """Change dtypes of a model, in place.

    Requires: a model that passed the gate.

    Guarantees: nothing in the model is of the old dtypes, except inputs and outputs that keep their
    dtypes, what operators take in no other, and what nodes in `kept` read and make. Large weights
    are converted when they are written. int32 holds all integers that were int64.

    Args:
        document: the model.
        dtypes: the new dtypes, by the old ones.
        keep_interface: whether inputs and outputs keep theirs.
        kept: operators, and names of nodes, that keep the old ones.
        ranges: the ranges that integers are taken to lie in, by the names of values.

    Raises:
        UsageError: there is no such dtype, or nothing of a name in `kept` or `ranges`.
        ConversionError: an operator does not take the new dtype, a weight is beyond its range, or
            it is not proven that int32 holds a value.
        InvalidModelError: external data is missing.
        OSError: external data cannot be read.
    """
    was_sound = not type_error(model_skeleton(document.model))
    done = [
        _change(document, before, after, keep_interface, kept, ranges or {})
        for before, after in dtype_pairs(dtypes)
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
        any(item.effective for item in done),
    )


def _change(
    document: Document,
    before: int,
    after: int,
    keep_interface: bool,
    asked: Collection[str],
    ranges: Mapping[str, tuple[int, int]],
) -> ChangedDtypes:
    model = document.model
    model_input = ConversionInput.of(model, document.base_dir)
    old, new = dtype_name(before), dtype_name(after)
    interface = _values_of_dtype(model.graph, before)
    names = [name for _, name in interface]
    outer = names if keep_interface else []
    keeping = KeptDtype(model_input, before, after, asked, outer)
    keeping.keep_casts()
    cast = cast_values(model) if keep_interface else frozenset[str]()
    proven: tuple[str, ...] = ()
    if (before, after) == INTEGERS:
        from onnxreduce_cli.engine.passes.int32 import Int32Proof

        untouched = cast.intersection(outer)
        proof = Int32Proof(document, model_input, keeping, ranges, outer, untouched)
        proven = _proven(proof, ranges)
    change = DtypeChange(
        model,
        before,
        after,
        outer,
        cast,
        {key: item.inputs for key, item in keeping.nodes.items()},
        [key for key, item in keeping.nodes.items() if item.entirely],
        keeping.scopes,
        keeping.inside(),
    )
    lost = _count_underflows(document, change.tensors, before, after, keeping.scopes)
    widths = numpy_dtype(before).itemsize, numpy_dtype(after).itemsize
    moved = recode(document, change.tensors, widths, recoding(before, after))
    for tensor in change.tensors:
        tensor.data_type = after
    weights = f"{count(len(change.tensors), 'weight')}, all values and attributes"
    lines = [f"{old} → {new}: {weights if change.tensors or change.types else 'nothing changes'}"]
    if lost:
        held = listed(list(lost))
        lines.append(
            f"too small for {new}, zero now: {count(sum(lost.values()), 'element')} of {held}"
        )
    if keeping.line:
        lines.append(keeping.line)
    lines += proven
    fixed = change.fixed[id(keeping.scopes[0])]
    inner = keeping.cast({**change.fixed, id(keeping.scopes[0]): fixed | cast.intersection(names)})
    changes = (*_changes(keeping.scopes, change), *inner.changes)
    casts: tuple[str, ...] = ()
    names_text = listed([f"{what} {name}" for what, name in interface])
    if keep_interface and interface:
        wanted = [name for name in names if name not in cast and name not in fixed]
        found = cast_interface(model, dict.fromkeys(wanted), before, after)
        changes, casts = (*changes, *found.changes), found.casts
        _read_from_outside(model, inner, wanted)
        lines.append(f"{old} still, by Cast: {names_text}")
    elif interface:
        lines.append(f"{new} instead of {old}: {names_text}")
    effective = bool(change.tensors or change.types or changes)
    return ChangedDtypes(tuple(lines), changes, moved, casts, effective)


def _proven(proof: Int32Proof, ranges: Mapping[str, tuple[int, int]]) -> tuple[str, ...]:
    """Prove that int32 holds all values that become int32, and return what that rests on.

    Raises:
        ConversionError: of a value it is not proven.
    """
    proof.keep_shapes()
    blockers = tuple(proof.blockers())
    if blockers:
        raise ConversionError("int64 cannot become int32", blockers)
    lines, clamped = [], proof.clamped_slices()
    if ranges:
        stated = listed([f"{name} in {low}:{high}" for name, (low, high) in ranges.items()])
        lines.append(f"taken as stated: {stated}")
    if clamped:
        lines.append(
            f"limits beyond int32 at its end: {count(clamped, 'Slice')}, the same for axes of up "
            "to 2147483647 elements"
        )
    return tuple(lines)


def _values_of_dtype(graph: GraphProto, dtype: int) -> list[tuple[str, str]]:
    """Return the inputs and outputs of a graph that are dense tensors of a dtype."""
    return [
        (what, info.name)
        for what, infos in (("input", graph.input), ("output", graph.output))
        for info in infos
        if info.type.tensor_type.elem_type == dtype
    ]


def _read_from_outside(model: ModelProto, casts: Casts, names: Collection[str]) -> None:
    """Let nodes that keep a dtype read inputs and make outputs of the model that keep it.

    Casts to the new dtype and back would lose what the nodes are kept for.

    Args:
        model: the model, in which Casts are around these nodes and at inputs and outputs.
        casts: those around the nodes.
        names: the inputs and outputs that keep the dtype.
    """
    raised = {casts.raised[name]: name for name in names if name in casts.raised}
    lowered = {name: casts.lowered[name] for name in names if name in casts.lowered}
    for node in model.graph.node:
        if node.op_type == "Cast" and node.output[0] in raised:
            node.input[0] = raised[node.output[0]]
        elif node.op_type == "Cast" and node.output[0] in lowered:
            node.input[0] = lowered[node.output[0]]


def _changes(found: Sequence[Scope], change: DtypeChange) -> Iterator[Change]:
    for scope in found:
        for node in scope.nodes:
            edits = change.edits.get(id(node))
            if edits:
                name = scope.describe(node)
                yield Change(name, node.op_type, scope.label, tuple(edits), (node.op_type,))


def _count_underflows(
    document: Document,
    changed: list[TensorProto],
    before: int,
    after: int,
    found: Sequence[Scope],
) -> dict[str, int]:
    """Return how many non-zero elements become zero, by the constants that hold them.

    Raises:
        ConversionError: an element is beyond the range of the new dtype.
    """
    if before not in _RANGES or _RANGES.index(after) >= _RANGES.index(before):
        return {}
    names = {id(tensor): name for tensor, name in _held(found)}
    stored, lost = stored_files(document), dict[str, int]()
    source, target = numpy_dtype(before), numpy_dtype(after)
    for tensor in changed:
        beyond, zeros, name = 0, 0, names.get(id(tensor), tensor.name)
        for part in data_of(document, tensor, stored):
            chunks = part.chunks() if isinstance(part, (FileRange, RecodedRange)) else [bytes(part)]
            for chunk in chunks:
                values = np.frombuffer(chunk, source)
                with np.errstate(all="ignore"):
                    made = values.astype(target)
                beyond += int(np.sum(np.isfinite(values) & ~np.isfinite(made)))
                zeros += int(np.sum((values != 0) & (made == 0)))
        if beyond:
            raise ConversionError(
                f"tensor {name!r} has {count(beyond, 'element')} beyond the range of "
                f"{dtype_name(after)}, which would become infinite{_advice(found, name)}"
            )
        if zeros:
            lost[name] = lost.get(name, 0) + zeros
    return lost


def _held(found: Sequence[Scope]) -> Iterator[tuple[TensorProto, str]]:
    """Yield the tensors in the attributes of Constant nodes, with the names of their values."""
    for scope in found:
        for node in scope.nodes:
            if node.op_type == "Constant":
                for attribute in node.attribute:
                    if attribute.HasField("t"):
                        yield attribute.t, node.output[0]


def _advice(found: Sequence[Scope], name: str) -> str:
    """Return how to keep the dtype of a constant: with the nodes that read it."""
    readers = [
        (node.name, node.op_type) for scope in found for node in scope.nodes if name in node.input
    ]
    return f"; to keep it as it is: {keep_option(readers)}" if readers else ""


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
