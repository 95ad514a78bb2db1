"""ONNX Runtime's own attention operators written out, and its RotaryEmbedding as onnx's.

    MatMul(q, Transpose(k)), Mul by the scale, Add of masks, Softmax, MatMul

Its kernels compute halves in float, from the inputs to the output.
Source: docs/ContribOperators.md of ONNX Runtime, and its kernels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.axes import unsqueezed
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, in_dtype, working_dtypes
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import Number, as_shape
from onnxreduce_cli.emit.sizes import arange, known_size, size_of, sliced
from onnxreduce_cli.steps.neural.microsoft_masks import Lengths, mask_of_scores, seen_keys
from onnxreduce_cli.steps.registry import instead

#: Newer operators of those that are emitted are the same; RotaryEmbedding came with the latter.
_MODERN, _ROTARY = 13, 23

_PLAIN = "export the model without ONNX Runtime's optimisations"


class _Heads(NamedTuple):
    """What an attention computes with, each of the shape [batch, heads, length, size]."""

    queries: Value
    keys: Value
    values: Value


@instead("com.microsoft.RotaryEmbedding", {"any"}, "RotaryEmbedding of opset 23")
def rotary_embedding(context: Context) -> None:
    """``com.microsoft.RotaryEmbedding(x, positions, cos, sin)`` becomes
    ``RotaryEmbedding(x, cos, sin, positions)``; a single position is that of the first token.
    """
    _refuse_attributes(context, {"scale": 1.0, "is_packed_batching": 0})
    context = context.at(max(context.op.opset, _ROTARY))
    data, positions, cos, sin = (context.input(index) for index in range(4))
    rank = context.need_rank(data, "its heads are a dimension or not")
    heads = context.value("num_heads", 0)
    if rank == 3 and not heads:
        width, half = known_size(context, data, 2), known_size(context, cos, 1)
        if width is None or half is None:
            raise Blocked(
                "it has no num_heads, and its sizes are not known",
                "state the shapes of its inputs in the model's value_info",
            )
        heads = width // (2 * half)
    if context.need_rank(positions, "there is one for each token or one in all") < 2:
        positions = _positions(context, data, rank, positions)
    elem_type, working = working_dtypes(context)
    inputs = [*(in_dtype(context, name, working) for name in (data, cos, sin)), positions]
    attributes = {
        "interleaved": context.value("interleaved", 0),
        "num_heads": heads or None,
        "rotary_embedding_dim": context.value("rotary_embedding_dim", 0) or None,
    }
    if elem_type == working:
        context.replace("RotaryEmbedding", inputs, keep=(), **attributes)
    else:
        _replace_by(context, context.op.RotaryEmbedding(*inputs, **attributes), elem_type)


def _positions(context: Context, data: Value, rank: int, first: str = "") -> Value:
    """Return the positions of tokens, [batch, length], from a first one on; from 0 without it."""
    op = context.op
    batch, length = size_of(context, data, 0), size_of(context, data, rank - 2)
    places = arange(context, length)
    if first:
        places = op.Add(places, first)
    return op.Expand(places, as_shape(context, [batch, length]))


@instead("com.microsoft.MultiHeadAttention", {"any"}, "two products around a Softmax")
def multi_head_attention(context: Context) -> None:
    """``MultiHeadAttention<num_heads=2>(q, k, v)`` becomes
    ``MatMul(Softmax(MatMul(q, Transpose(k)) * scale), v)``, with q, k and v split by heads.
    """
    _refuse_inputs(context, {6: "a past", 7: "a past", 8: "a past", 9: "a cache of beams"})
    context = context.at(max(context.op.opset, _MODERN))
    query, key, value, bias, mask, attention_bias = (context.input(index) for index in range(6))
    if len(context.node.output) > 3:
        raise Blocked("its output 'qk' is read, which differs from runtime to runtime", _PLAIN)
    rank = context.need_rank(query, "queries, keys and values may be packed in it")
    if rank != 3 or not value:
        raise Blocked("its queries, keys and values are packed in one tensor", _PLAIN)
    count, (_, working) = _count(context), working_dtypes(context)
    width, biases = size_of(context, query, 2), [Value("", context)] * 3
    of_heads = context.need_rank(key, "it may have a dimension of heads") == 4
    if bias:
        ends: list[Number] = [width, width + width, width + width + size_of(context, value, 2)]
        starts: list[Number] = [0, *ends[:2]]
        bounds = list(zip(starts, ends, strict=True))[: 1 if of_heads else 3]
        biases[: len(bounds)] = [_part(context, bias, working, *bound) for bound in bounds]
    queries, keys, values = (
        in_dtype(context, name, working)
        if name != query and of_heads
        else _by_heads(context, _biased(context, in_dtype(context, name, working), added), count)
        for name, added in zip((query, key, value), biases, strict=True)
    )
    lengths = Lengths(size_of(context, query, 0), size_of(context, query, 1),
                      size_of(context, key, 2 if of_heads else 1))  # fmt: skip
    heads = _Heads(queries, keys, values)
    _write_present(context, heads, (1, 2))
    added = [in_dtype(context, attention_bias, working), mask_of_scores(context, mask, lengths)]
    size = known_size(context, value, 3 if of_heads else 2)
    if size is not None and of_heads:
        size *= count
    _attend(context, heads, _scale(context, query, count), added, size)


@instead("com.microsoft.Attention", {"any"}, "a MatMul, and two products around a Softmax")
def attention(context: Context) -> None:
    """``Attention<num_heads=2>(x, weights, bias)`` becomes
    ``MatMul(Softmax(MatMul(q, Transpose(k)) * scale), v)`` with
    ``q, k, v = Split(MatMul(x, weights) + bias)``, split by heads.
    """
    _refuse_inputs(context, {4: "a past", 6: "a past"})
    _refuse_attributes(context, {"do_rotary": 0, "past_present_share_buffer": 0})
    context = context.at(max(context.op.opset, _MODERN))
    op, (_, working) = context.op, working_dtypes(context)
    data, weights, bias = (in_dtype(context, context.input(index), working) for index in range(3))
    attention_bias = in_dtype(context, context.input(5), working)
    sizes = list(context.value("qkv_hidden_sizes", []))
    if not sizes:
        width = known_size(context, context.input(1), 1)
        if width is None:
            raise Blocked(
                "the size of its weights is not known",
                "state their shape in the model's value_info",
            )
        sizes = [width // 3] * 3
    count = _count(context)
    projected = _biased(context, op.MatMul(data, weights), bias)
    parts = op.Split(projected, context.array(sizes, "sizes"), axis=2, outputs=3)
    heads = _Heads(
        *(_by_heads(context, part, count, size) for part, size in zip(parts, sizes, strict=True))
    )
    present = context.node.output[1] if len(context.node.output) > 1 else ""
    if present:
        both = [unsqueezed(context, name, [0]) for name in heads[1:]]
        _write(context, op.Concat(*both, axis=0), present)
    length = size_of(context, context.input(0), 1)
    lengths = Lengths(size_of(context, context.input(0), 0), length, length)
    added = [attention_bias, mask_of_scores(context, context.input(3), lengths, starts=True)]
    scale = context.value("scale", 0.0) or _inverse_root(sizes[0] // count)
    _attend(context, heads, scale, added, sizes[2])


@instead("com.microsoft.GroupQueryAttention", {"any"}, "two products around a Softmax")
def group_query_attention(context: Context) -> None:
    """``GroupQueryAttention<num_heads=4, kv_num_heads=2>(q, k, v, , , last_keys, length)`` becomes
    ``MatMul(Softmax(Where(seen, MatMul(q, Transpose(k)) * scale, -inf)), v)``.

    Keys and values are those of each head of queries; ``seen`` is true for keys that are neither
    after a query nor after the last key of their sequence.
    """
    _refuse_inputs(context, _OF_GROUPS)
    _refuse_attributes(context, {
        "k_quant_type": "NONE", "local_window_size": -1, "qk_output": 0, "smooth_softmax": 0,
        "v_quant_type": "NONE",
    })  # fmt: skip
    context = context.at(max(context.op.opset, _MODERN))
    op, (_, working), count = context.op, working_dtypes(context), _count(context)
    shared = _count(context, "kv_num_heads")
    parts, size = _parts_of_groups(context, count, shared)
    queries, keys, values = (
        _by_heads(context, in_dtype(context, name, working), number, number * size)
        for name, number in zip(parts, (count, shared, shared), strict=True)
    )
    if context.value("do_rotary", 0):
        positions = _positions(context, context.input(0), 3)
        queries, keys = (_rotated(context, name, positions, working) for name in (queries, keys))
    _write_present(context, _Heads(queries, keys, values), (1, 2))
    if shared != count:
        which = context.array(np.repeat(np.arange(shared), count // shared), "heads")
        keys, values = (op.Gather(name, which, axis=1) for name in (keys, values))
    scale = context.value("scale", 0.0) or _inverse_root(size)
    scores = _scores(context, queries, keys, scale)
    cap = context.value("softcap", 0.0)
    if cap:
        limit = context.scalar(cap, "cap", working)
        scores = op.Mul(op.Tanh(op.Div(scores, limit)), limit)
    if context.input(10):
        scores = op.Add(scores, in_dtype(context, context.input(10), working))
    length = size_of(context, context.input(0), 1)
    last = op.Reshape(
        cast(context, context.input(5), TensorProto.INT64), context.array([-1, 1, 1, 1], "shape")
    )
    seen = op.LessOrEqual(arange(context, length), last)
    if context.value("causal", 1):
        seen = op.And(seen, seen_keys(context, length, length, to_last=False))
    scores = op.Where(seen, scores, context.scalar(-np.inf, "unseen", working))
    context.warn_of_infinite(
        "NaN and infinity spread to all that is computed from them; in GroupQueryAttention "
        "that differs from one release of ONNX Runtime to the next"
    )
    _combine(context, op.Softmax(scores, axis=-1), values, count * size)


#: Inputs of a GroupQueryAttention that make it another one.
_OF_GROUPS = {
    3: "a past",
    4: "a past",
    9: "positions",
    11: "sinks of heads",
    12: "quantized keys",
    13: "quantized values",
    14: "normalised queries",
    15: "normalised keys",
    16: "packed sequences",
}


def _parts_of_groups(context: Context, count: int, shared: int) -> tuple[Sequence[Value], int]:
    """Return queries, keys and values of [batch, length, heads * size], and the size."""
    query, key, value = (context.input(index) for index in range(3))
    width = known_size(context, query, 2)
    if width is None or count % shared:
        raise Blocked(
            f"its {count} heads of queries, {shared} of keys, and the last dimension of "
            f"{str(query)!r} do not tell the size of a head",
            "state its shape in the model's value_info",
        )
    if key:
        return (query, key, value), width // count
    size = width // (count + 2 * shared)
    sizes = context.array([count * size, shared * size, shared * size], "sizes")
    return context.op.Split(query, sizes, axis=2, outputs=3), size


def _rotated(context: Context, data: Value, positions: Value, working: int) -> Value:
    """Return queries or keys by heads, rotated by the positions of their tokens."""
    cos, sin = (in_dtype(context, context.input(index), working) for index in (7, 8))
    half, count, size = (known_size(context, *item) for item in ((cos, 1), (data, 1), (data, 3)))
    if half is None:
        raise Blocked(
            "the size of its cosines is not known", "state their shape in the model's value_info"
        )
    whole = size == 2 * half
    return context.at(max(context.op.opset, _ROTARY)).op.RotaryEmbedding(
        data, cos, sin, positions,
        interleaved=context.value("rotary_interleaved", 0),
        num_heads=None if whole else count,
        rotary_embedding_dim=None if whole else 2 * half,
    )  # fmt: skip


def _refuse_inputs(context: Context, inputs: Mapping[int, str]) -> None:
    """Raise `Blocked` where the node has one of some inputs, which are named."""
    for index, name in inputs.items():
        if context.input(index):
            raise Blocked(f"it has {name}, and is written out without alone", _PLAIN)


def _refuse_attributes(context: Context, values: Mapping[str, float | str]) -> None:
    """Raise `Blocked` where an attribute has another value than its usual one."""
    for name, usual in values.items():
        found = context.value(name, usual)
        if found != usual:
            raise Blocked(f"its {name}={found!r} is not among what is written out", _PLAIN)


def _count(context: Context, name: str = "num_heads") -> int:
    """Return a number of heads."""
    found: int = context.value(name, 0)
    if found < 1:
        raise Blocked(f"its {name} is {found}", "mend the model: set it to 1 or more")
    return found


def _part(context: Context, name: Value, working: int, start: Number, end: Number) -> Value:
    """Return the elements of a vector from one index to another, in the dtype to compute in."""
    known = context.constant(name)
    if known is None or not isinstance(start, int) or not isinstance(end, int):
        return in_dtype(context, sliced(context, name, start, end), working)
    return in_dtype(context, context.array(known[start:end], "part"), working)


def _biased(context: Context, data: Value, bias: str) -> Value:
    """Return data plus a bias, if there is one."""
    return context.op.Add(data, bias) if bias else data


def _by_heads(context: Context, data: Value, count: int, width: int | None = None) -> Value:
    """Return data of [batch, length, width] as [batch, heads, length, size]."""
    width = known_size(context, data, 2) if width is None else width
    size = -1 if width is None else width // count
    split = context.op.Reshape(data, context.array([0, 0, count, size], "shape"))
    return context.op.Transpose(split, perm=[0, 2, 1, 3])


def _scale(context: Context, query: Value, count: int) -> float:
    """Return what scores are multiplied by: the node's own number, or one over a root."""
    found: float = context.value("scale", 0.0)
    if found:
        return found
    width = known_size(context, query, 2)
    if width is None:
        raise Blocked(
            f"the last dimension of {str(query)!r} is not known, and the scale follows from it",
            "state its shape in the model's value_info",
        )
    return _inverse_root(width // count)


def _inverse_root(size: int) -> float:
    return float(np.float32(1) / np.sqrt(np.float32(size)))


def _attend(
    context: Context, heads: _Heads, scale: float, added: Sequence[str], width: int | None
) -> None:
    """Replace the node by what each query makes of the values, [batch, length, heads * size].

    Args:
        context: the node.
        heads: the queries, keys and values.
        scale: what the scores are multiplied by.
        added: what is added to them then, one after the other; empty for nothing.
        width: the last dimension of the output, if it is known.
    """
    scores = _scores(context, heads.queries, heads.keys, scale)
    for name in added:
        scores = context.op.Add(scores, name) if name else scores
    _combine(context, context.op.Softmax(scores, axis=-1), heads.values, width)


def _scores(context: Context, queries: Value, keys: Value, scale: float) -> Value:
    """Return the scaled products of queries and keys, [batch, heads, queries, keys]."""
    op = context.op
    products = op.MatMul(queries, op.Transpose(keys, perm=[0, 1, 3, 2]))
    return op.Mul(products, context.scalar(scale, "scale", TensorProto.FLOAT))


def _combine(context: Context, weights: Value, values: Value, width: int | None) -> None:
    """Replace the node by weighted sums of the values, [batch, length, heads * size]."""
    op = context.op
    together = op.Transpose(op.MatMul(weights, values), perm=[0, 2, 1, 3])
    shape = context.array([0, 0, -1 if width is None else width], "shape")
    elem_type, working = working_dtypes(context)
    if elem_type == working:
        context.replace("Reshape", [together, shape], context.node.output[:1], keep=())
    else:
        _replace_by(context, op.Reshape(together, shape), elem_type)


def _replace_by(context: Context, result: str, elem_type: int) -> None:
    """Replace the node by a Cast of its result."""
    context.replace("Cast", [result], context.node.output[:1], keep=(), to=elem_type)


def _write(context: Context, value: str, output: str) -> None:
    """Give one of the node's further outputs, in the dtype of its first input."""
    elem_type, working = working_dtypes(context)
    if elem_type == working:
        context.op.Identity(value, outputs=[output])
    else:
        cast(context, value, elem_type, [output])


def _write_present(context: Context, heads: _Heads, outputs: Sequence[int]) -> None:
    """Give the outputs that hold keys and values, where the node has them."""
    for index, value in zip(outputs, heads[1:], strict=True):
        if index < len(context.node.output) and context.node.output[index]:
            _write(context, value, context.node.output[index])
