"""Attention as exporters write it: two products around a Softmax."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.idioms.idiom import Idiom
from onnxreduce_cli.idioms.matching import IdiomMatch, NoMatchError
from onnxreduce_cli.idioms.parameters import require_dims
from onnxreduce_cli.idioms.sizes import DimensionOrigins, number
from onnxreduce_cli.idioms.tracing import Tracer

#: Returns the scores: queries times keys, scaled by a value that the operator does not read.
Scores = Callable[[Tracer, str, Value], Value]

_BY_HEADS, _SWAPPED = (0, 1, 3, 2), (0, 2, 3, 1)


def _divided(to: Tracer, query: str, keys: Value) -> Value:
    return to.op.Div(to.op.MatMul(query, keys), to.aside("divisor"))


def _multiplied(to: Tracer, query: str, keys: Value) -> Value:
    return to.op.Mul(to.op.MatMul(query, keys), to.aside("scale"))


def _query_divided(to: Tracer, query: str, keys: Value) -> Value:
    return to.op.MatMul(to.op.Div(query, to.aside("divisor")), keys)


def _query_multiplied(to: Tracer, query: str, keys: Value) -> Value:
    return to.op.MatMul(to.op.Mul(query, to.aside("scale")), keys)


def _both_multiplied(to: Tracer, query: str, keys: Value) -> Value:
    op = to.op
    return op.MatMul(op.Mul(query, to.aside("scale")), op.Mul(keys, to.aside("other scale")))


def _plain(to: Tracer, query: str, keys: Value) -> Value:
    return to.op.MatMul(query, keys)


def attention(to: Tracer, query: str, key: str, value: str, scores: Scores) -> Value:
    """``MatMul(Softmax(MatMul(q, Transpose(k)) * scale), v)``."""
    keys = to.op.Transpose(key, perm=to.attribute("perm"))
    return to.op.MatMul(to.reduced("Softmax", scores(to, query, keys)), value)


def _masked(to: Tracer, query: str, key: str, value: str, mask: str, scores: Scores) -> Value:
    """``MatMul(Softmax(MatMul(q, Transpose(k)) * scale + mask), v)``."""
    keys = to.op.Transpose(key, perm=to.attribute("perm"))
    biased = to.op.Add(scores(to, query, keys), mask)
    return to.op.MatMul(to.reduced("Softmax", biased), value)


def _by_head(found: IdiomMatch) -> bool:
    """Return whether keys are [batch, heads, length, size], not [batch, length, heads, size].

    Raises:
        NoMatchError: they are neither.
    """
    perm = found.numbers.get("perm")
    if perm not in (_BY_HEADS, _SWAPPED):
        raise NoMatchError("its keys are transposed in another way")
    return bool(perm == _BY_HEADS)


def _attributes(facts: NodeFacts, found: IdiomMatch) -> dict[str, Any]:
    """Return the attributes of an Attention of rank 4.

    Raises:
        NoMatchError: an input may be broadcast, which the operator does not do, or the scale is
            not known.
    """
    query, key, value = (found[name] for name in ("query", "key", "value"))
    if any(len(require_dims(facts, name)) != 4 for name in (query, key, value)):
        raise NoMatchError("queries, keys and values are not of [batch, heads, length, size]")
    if found.axes not in ((-1,), (3,)):
        raise NoMatchError("its Softmax is not over the last axis")
    size = DimensionOrigins(facts)
    heads, length = (1, 2) if _by_head(found) else (2, 1)
    for what, own, axis, of_key in (("batches", 0, 0, 0), ("heads", 1, 1, heads)):
        sizes = {size.of(query, own), size.of(value, axis), size.of(key, of_key)}
        if len(sizes) > 1:
            raise NoMatchError(f"queries, keys and values may have other numbers of {what}")
    if "mask" in found.match.names:
        scores = [*(size.of(query, axis) for axis in range(3)), size.of(key, length)]
        _require_mask(facts, size, found["mask"], scores)
    return {"scale": _scale(facts, found)}


def _require_mask(
    facts: NodeFacts, size: DimensionOrigins, mask: str, scores: list[Hashable]
) -> None:
    """Raise `NoMatchError` for a mask that may enlarge the scores or lacks a column for a key."""
    own = [size.of(mask, axis) for axis in range(len(require_dims(facts, mask)))]
    fits = 2 <= len(own) <= 4 and own[-1] == scores[-1]
    pairs = zip(own[::-1], scores[::-1], strict=False)
    if not fits or any(dim not in (1, wanted) for dim, wanted in pairs):
        raise NoMatchError(f"its mask {mask!r} may not have the shape of the scores")


def _scale(facts: NodeFacts, found: IdiomMatch) -> float:
    scale = 1.0
    for name, name_of in ((n, found[n]) for n in found.match.pattern.asides):
        factor = number(facts, name_of)
        if factor is None or not math.isfinite(factor) or factor <= 0:
            raise NoMatchError(f"{name_of!r}, by which scores are scaled, is not known")
        scale = scale / factor if name == "divisor" else scale * factor
    return scale


def _inputs(context: Context, found: IdiomMatch) -> list[str]:
    """Return queries, keys and values as [batch, heads, length, size], and the mask if any."""
    op = context.op
    given = {name: found[name] for name in found.match.pattern.inputs}
    if not _by_head(found):
        given["key"] = op.Transpose(given["key"], perm=[0, 2, 1, 3])
    if "mask" in given:
        given["mask"] = _with_rows(context, given["mask"], given["query"])
    return list(given.values())


def _with_rows(context: Context, mask: str, query: str) -> str:
    """Return a mask with a row for each query: kernels broadcast its other dimensions only."""
    op, size = context.op, DimensionOrigins(context)
    rows = size.of(query, 2)
    if size.of(mask, -2) == rows:
        return mask
    ones = [1] * (len(require_dims(context, mask)) - 2)
    if isinstance(rows, int):
        shape = context.array([*ones, rows, 1], "shape")
    else:
        before = [context.array(ones, "ones")] if ones else []
        length, after = op.Shape(query, start=2, end=3), context.array([1], "ones")
        shape = op.Concat(*before, length, after, axis=0)
    return op.Expand(mask, shape)


_SCORES = (
    _divided,
    _multiplied,
    _both_multiplied,
    _query_divided,
    _query_multiplied,
    _plain,
)

IDIOMS = (
    Idiom(
        "Attention",
        tuple(partial(_masked, scores=scores) for scores in _SCORES),
        _attributes,
        # For a query whose keys are all masked the nodes give NaN, the operator 0.
        stabler=True,
        make_inputs=_inputs,
        by_sizes=True,
    ),
    Idiom(
        "Attention",
        tuple(partial(attention, scores=scores) for scores in _SCORES),
        _attributes,
        # A tiny query that is scaled to 0 gives NaN with an infinite key.
        stabler=True,
        make_inputs=_inputs,
        by_sizes=True,
    ),
)
