"""RotaryEmbedding as models write it, with the angles of one half repeated for the other."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from onnx import NodeProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.idioms.idiom import Idiom
from onnxreduce_cli.idioms.matching import IdiomMatch, NoMatchError
from onnxreduce_cli.idioms.sizes import DimensionOrigins, number
from onnxreduce_cli.idioms.tracing import Tracer


def _slice(to: Tracer, data: str, name: str, *, steps: bool) -> Value:
    parts = ["start", "end", "axis", *(["step"] if steps else [])]
    return to.op.Slice(data, *(to.aside(f"{part} of {name}") for part in parts))


def rotary_embedding(to: Tracer, data: str, *, steps: bool) -> Value:
    """``x * cos + Concat(-x[..., half:], x[..., :half]) * sin``."""
    op = to.op
    second, first = (_slice(to, data, name, steps=steps) for name in ("second", "first"))
    turned = op.Concat(op.Neg(second), first, axis=to.attribute("axis"))
    return op.Add(op.Mul(data, to.aside("cos")), op.Mul(turned, to.aside("sin")))


def _halves(facts: NodeFacts, found: IdiomMatch) -> Mapping[str, Any]:
    """Return the attributes of a RotaryEmbedding: none, as it rotates halves by default.

    Raises:
        NoMatchError: other elements are rotated, or the angles of both halves may differ.
    """
    data, sizes = found["data"], DimensionOrigins(facts)
    size = sizes.of(data, 3)
    if facts.rank(data) != 4 or not isinstance(size, int) or size % 2:
        raise NoMatchError("its data is not of [batch, heads, length, size] of an even size")
    if found.numbers["axis"] not in (-1, 3):
        raise NoMatchError("it joins halves along another axis")
    middle = size // 2
    for name, start, end in (("first", 0, middle), ("second", middle, size)):
        begun, ended = (number(facts, found[f"{part} of {name}"]) for part in ("start", "end"))
        steps = found.match.names.get(f"step of {name}")
        if (
            begun != start
            or ended is None
            or min(ended, size) != end
            or number(facts, found[f"axis of {name}"]) not in (-1, 3)
            or (steps is not None and number(facts, steps) != 1)
        ):
            raise NoMatchError("it does not turn its two halves")
    angles = {_angles(facts, found[name], op) for name, op in (("cos", "Cos"), ("sin", "Sin"))}
    if len(angles) > 1:
        raise NoMatchError("its cosines and sines are of different angles")
    (half,) = angles
    wanted = (sizes.of(data, 0), sizes.of(data, 2), middle)
    if facts.rank(half) != 3 or tuple(sizes.of(half, axis) for axis in range(3)) != wanted:
        raise NoMatchError("its angles may not be of [batch, length, half of the size]")
    return {}


def _angles(facts: NodeFacts, name: str, op_type: str) -> str:
    """Return the angles of one half, whose cosines or sines a value holds for both halves.

    Raises:
        NoMatchError: the angles of the second half may be others.
    """
    spread = _made_by(facts, name, "Unsqueeze")
    given = facts.constant(spread.input[1]) if len(spread.input) > 1 else None
    axes = facts.about(spread).known_value("axes") if given is None else tuple(given.tolist())
    joined = _made_by(facts, _made_by(facts, spread.input[0], op_type).input[0], "Concat")
    along = facts.about(joined).known_value("axis")
    first = joined.input[0]
    if axes != (1,) or along not in (-1, 2) or [*joined.input] != [first] * 2:
        raise NoMatchError("its angles may be others for the second half")
    return str(first)


def _made_by(facts: NodeFacts, name: str, op_type: str) -> NodeProto:
    node = facts.producer(name)
    if node is None or node.op_type != op_type:
        raise NoMatchError(f"{name!r} is made by no {op_type}")
    return node


def _caches(context: Context, found: IdiomMatch) -> list[str]:
    """Return the data, and cosines and sines of [batch, length, half]."""
    angles = _angles(context, found["cos"], "Cos")
    return [found["data"], context.op.Cos(angles), context.op.Sin(angles)]


IDIOMS = (
    Idiom(
        "RotaryEmbedding",
        tuple(partial(rotary_embedding, steps=steps) for steps in (True, False)),
        _halves,
        make_inputs=_caches,
        by_sizes=True,
    ),
)
