"""Attention below 23, which introduced it: as exporters write it, with no more than it needs.

    Mul(q, √scale), Transpose(k), Mul(kᵀ, √scale), MatMul, Softmax, MatMul

Inputs of rank 3, several queries to one key, a past, a cap, a mask and causality add a few nodes
each. What is computed in which dtype is as in the operator's function body, which stands for it
where ranks or numbers of heads are not known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT, as_name
from onnxreduce_cli.emit.sizes import known_size, size_of
from onnxreduce_cli.model.graph.values import numpy_dtype, tensor_type
from onnxreduce_cli.steps.function_operators import (
    BLOCKS,
    check_causal,
    check_definition,
    replace_by_function_body,
)
from onnxreduce_cli.steps.neural.attention_bias import Causal, attention_bias
from onnxreduce_cli.steps.registry import introduced

_QUERY, _KEY, _VALUE, _MASK, _PAST_KEY, _PAST_VALUE = range(6)
#: Outputs after the first.
_PRESENT_KEY, _PRESENT_VALUE, _SCORES = 1, 2, 3
#: What the output of scores holds, by `qk_matmul_output_mode`.
_RAW, _CAPPED, _BIASED, _WEIGHTS = range(4)


@dataclass(frozen=True, slots=True)
class _AttentionFacts:
    """The facts of an Attention that are known at conversion.

    Attributes:
        elem_type: the dtype of queries, keys and values.
        rank: theirs, 3 or 4.
        heads: how many heads of queries there are.
        kv_heads: how many of keys and values; of rank 4 both are 1 where they are the same, and
            not known.
    """

    elem_type: int
    rank: int
    heads: int
    kv_heads: int


@introduced("Attention", 23, "two products around a Softmax", blocks=BLOCKS)
def attention(context: Context) -> None:
    """``Attention(q, k, v)`` becomes
    ``MatMul(Softmax(MatMul(Mul(q, s), Mul(Transpose(k), s))), v)``, ``s`` the root of the scale.
    """
    form = _attention_facts(context)
    if context.input(_MASK):
        check_causal(context)
    if form is None:
        replace_by_function_body(context)
        return
    check_definition(context, grouped=form.heads != form.kv_heads)
    op = context.op
    queries = _by_heads(context, _QUERY, form.heads) if form.rank == 3 else context.input(_QUERY)
    keys = _transposed_keys(context, form)
    values = _repeated_for_heads(context, form, _with_past(context, form, _VALUE))
    weights = _attention_weights(context, form, queries, keys)
    y = context.node.output[:1]
    if form.rank == 4:
        context.replace("MatMul", [weights, values], y, keep=())
        return
    together = op.Transpose(op.MatMul(weights, values), perm=[0, 2, 1, 3])
    size = known_size(context, context.input(_VALUE), 2)
    width = -1 if size is None else size // form.kv_heads * form.heads
    context.replace("Reshape", [together, context.array([0, 0, width], "shape")], y, keep=())


def _attention_facts(context: Context) -> _AttentionFacts | None:
    """Return what is known of the node; None where that is too little."""
    given = [context.input(index) for index in (_QUERY, _KEY, _VALUE)]
    elem_types = {context.need_elem_type(name, "its mask and scale have it") for name in given}
    ranks = {name.rank for name in given}
    if len(elem_types) > 1 or ranks not in ({3}, {4}):
        return None
    if ranks == {3}:
        heads, kv_heads = (context.value(f"{name}_num_heads", 0) for name in ("q", "kv"))
    else:
        queries, keys = ((name.dims or ())[1] for name in given[:2])
        if queries is not None and queries == keys:
            return _AttentionFacts(elem_types.pop(), 4, 1, 1)
        heads, kv_heads = (dim if isinstance(dim, int) else 0 for dim in (queries, keys))
    if not (1 <= heads <= LARGEST_CONSTANT) or kv_heads < 1 or heads % kv_heads:
        return None
    return _AttentionFacts(elem_types.pop(), 3 if ranks == {3} else 4, heads, kv_heads)


def _output_name(context: Context, index: int) -> str:
    """Return the name of an output; empty where it is absent."""
    outputs = context.node.output
    return outputs[index] if index < len(outputs) else ""


def _split(context: Context, index: int, heads: int) -> Value:
    """Return an input of rank 3 in the shape [batch, length, heads, size]."""
    data = context.input(index)
    width = known_size(context, data, 2)
    size = -1 if width is None else width // heads
    return context.op.Reshape(data, context.array([0, 0, heads, size], "shape"))


def _by_heads(
    context: Context, index: int, heads: int, outputs: Sequence[str] | None = None
) -> Value:
    """Return an input of rank 3 in the shape [batch, heads, length, size]."""
    split = _split(context, index, heads)
    return context.op.Transpose(split, perm=[0, 2, 1, 3], outputs=outputs)


def _with_past(context: Context, form: _AttentionFacts, index: int) -> Value:
    """Return keys or values, those of the past before them, [batch, heads, length, size].

    They are an output too, if the node has that.
    """
    op = context.op
    past = context.input(index - _KEY + _PAST_KEY)
    present = _output_name(context, index - _KEY + _PRESENT_KEY)
    outputs = [present] if present else None
    if present and context.rank(present) is None:
        context.state_type(present, tensor_type(form.elem_type, (None,) * 4))
    if form.rank == 3:
        own = _by_heads(context, index, form.kv_heads, None if past else outputs)
    else:
        own = context.input(index)
        if present and not past:
            op.Identity(own, outputs=outputs)
    return op.Concat(past, own, axis=2, outputs=outputs) if past else own


def _repeated_for_heads(
    context: Context, form: _AttentionFacts, name: Value, axis: int = 1
) -> Value:
    """Return keys or values once for each head of queries."""
    if form.heads == form.kv_heads:
        return name
    which = np.repeat(np.arange(form.kv_heads), form.heads // form.kv_heads)
    return context.op.Gather(name, context.array(which, "heads"), axis=axis)


def _transposed_keys(context: Context, form: _AttentionFacts) -> Value:
    """Return the keys, once for each head of queries, as [batch, heads, size, length]."""
    if form.rank == 3 and not context.input(_PAST_KEY) and not _output_name(context, _PRESENT_KEY):
        keys = _repeated_for_heads(context, form, _split(context, _KEY, form.kv_heads), 2)
        return context.op.Transpose(keys, perm=[0, 2, 3, 1])
    keys = _repeated_for_heads(context, form, _with_past(context, form, _KEY))
    return context.op.Transpose(keys, perm=[0, 1, 3, 2])


def _root_of_scale(context: Context, queries: Value, elem_type: int) -> Value:
    """Return what queries and keys are multiplied by; it is computed in float."""
    op = context.op
    given, size = context.value("scale"), known_size(context, queries, 3)
    if given is None and size is None:
        length = cast(context, as_name(context, size_of(context, queries, 3)), TensorProto.FLOAT)
        one = context.array(np.ones(1, np.float32), "one")
        root = op.Sqrt(op.Div(one, op.Sqrt(length)))
        return root if elem_type == TensorProto.FLOAT else cast(context, root, elem_type)
    with np.errstate(all="ignore"):
        scale = np.float32(1) / np.sqrt(np.float32(size)) if given is None else np.float32(given)
        return context.array(np.sqrt(scale).astype(numpy_dtype(elem_type)), "scale")


def _attention_weights(
    context: Context, form: _AttentionFacts, queries: Value, keys: Value
) -> Value:
    """Return what each query makes of the values, [batch, heads, queries, keys]."""
    op, elem_type = context.op, form.elem_type
    mask, cap = context.input(_MASK), context.value("softcap", 0.0)
    output = _output_name(context, _SCORES)
    stage = _stage_of_output(context, cap) if output else None

    def outputs(of: int) -> list[str] | None:
        return [output] if stage == of else None

    if output:
        # onnx infers a wrong length where that of the keys is not known.
        context.state_type(output, tensor_type(elem_type, (None,) * 4))
    scale = _root_of_scale(context, queries, elem_type)
    scores = op.MatMul(op.Mul(queries, scale), op.Mul(keys, scale), outputs=outputs(_RAW))
    if cap:
        limit = context.scalar(cap, "cap", elem_type)
        scores = op.Mul(op.Tanh(op.Div(scores, limit)), limit, outputs=outputs(_CAPPED))
    causal = None
    if context.value("is_causal", 0) == 1:
        lengths = (known_size(context, context.input(index), -2) for index in (_QUERY, _KEY))
        causal = Causal(scores, context.input(_PAST_KEY), *lengths)
    bias = attention_bias(context, mask, elem_type, causal)
    if bias is not None:
        scores = op.Add(scores, bias.name, outputs=outputs(_BIASED))
    wide = context.value("softmax_precision", 0) or elem_type
    if wide != elem_type:
        scores = cast(context, scores, wide)
    unseeing = "" if bias is None else bias.unseeing
    last = None if unseeing else outputs(_WEIGHTS)
    weights = op.Softmax(scores, axis=-1, outputs=last if wide == elem_type else None)
    if wide != elem_type:
        weights = cast(context, weights, elem_type, last)
    if not unseeing:
        return weights
    zero = context.scalar(0.0, "zero", elem_type)
    return op.Where(unseeing, zero, weights, outputs=outputs(_WEIGHTS))


def _stage_of_output(context: Context, cap: float) -> int:
    """Return the stage after which the scores are an output."""
    stage: int = context.value("qk_matmul_output_mode", _RAW)
    if stage not in (_RAW, _CAPPED, _BIASED, _WEIGHTS):
        raise Blocked(
            f"its qk_matmul_output_mode={stage} does not exist",
            "mend the model: set it to 0, 1, 2 or 3",
        )
    if stage == _BIASED and not (context.input(_MASK) or context.value("is_causal", 0) == 1):
        stage = _CAPPED
    return _RAW if stage == _CAPPED and not cap else stage
