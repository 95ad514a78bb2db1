"""RotaryEmbedding below opset 23, which introduced it."""

from __future__ import annotations

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.function_operators import BLOCKS, replace_by_function_body
from onnxreduce_cli.steps.registry import introduced


@introduced(
    "RotaryEmbedding",
    23,
    "halves times cosines and sines where its sizes are known, else the operator's function body",
    blocks=BLOCKS,
)
def rotary_embedding(context: Context) -> None:
    """``RotaryEmbedding(x, cos, sin)`` becomes
    ``Concat(a * cos - b * sin, a * sin + b * cos, rest)`` with ``a, b, rest = Split(x)``.

    That is for x of [batch, heads, length, size] with halves that lie side by side.
    """
    half, rest = _sizes(context)
    if not half:
        replace_by_function_body(context)
        return
    op, data = context.op, context.input(0)
    sizes = [half, half, rest] if rest else [half, half]
    first, second, *others = op.Split(
        data, context.array(sizes, "sizes"), axis=3, outputs=len(sizes)
    )
    cos, sin = (_factor(context, context.input(index)) for index in (1, 2))
    real = op.Sub(op.Mul(first, cos), op.Mul(second, sin))
    imaginary = op.Add(op.Mul(first, sin), op.Mul(second, cos))
    context.replace("Concat", [real, imaginary, *others], keep=(), axis=3)


def _sizes(context: Context) -> tuple[int, int]:
    """Return the size of one half and of what is not rotated; 0 for both where that is not plain.

    Raises:
        Blocked: an attribute is set by the function's callers, not all in one way.
    """
    dims, cache = context.input(0).dims, context.input(1).dims
    if dims is None or len(dims) != 4 or not isinstance(dims[3], int):
        return 0, 0
    rotated = context.value("rotary_embedding_dim", 0) or dims[3]
    plain = not context.value("interleaved", 0) and rotated % 2 == 0 and rotated <= dims[3]
    if not plain or cache is None or len(cache) != (2 if context.input(3) else 3):
        return 0, 0
    if cache[-1] != rotated // 2 or context.input(2).dims != cache:
        return 0, 0
    return rotated // 2, dims[3] - rotated


def _factor(context: Context, cache: str) -> str:
    """Return cosines or sines of the positions, of [batch, 1, length, half]."""
    positions = context.input(3)
    if positions:
        cache = context.op.Gather(cache, positions, axis=0)
    return unsqueezed(context, cache, [1])
