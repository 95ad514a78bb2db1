"""ONNX Runtime's own normalizations as LayerNormalization and RMSNormalization.

Its kernels compute halves in float: the sum that SkipLayerNormalization normalises is not rounded.
Source: docs/ContribOperators.md of ONNX Runtime, and its kernels.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast, in_dtype, working_dtypes
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import as_name
from onnxreduce_cli.emit.sizes import size_of, sliced
from onnxreduce_cli.idioms.expansion import replace_by_last
from onnxreduce_cli.model.graph.names import without_absent_last
from onnxreduce_cli.steps.normalization.moments import root_mean, stash_type
from onnxreduce_cli.steps.registry import instead

#: The opsets that introduced LayerNormalization and RMSNormalization.
_LAYER, _RMS = 17, 23

#: The default epsilon of operators that add something first, and of SimplifiedLayerNormalization.
_SKIP_EPSILON, _EPSILON = 1e-12, 1e-5


@instead("com.microsoft.SkipLayerNormalization", {"any"}, "LayerNormalization of a sum")
def skip_layer_normalization(context: Context) -> None:
    """``SkipLayerNormalization(x, skip, gamma, beta, bias)`` becomes
    ``LayerNormalization(x + skip + bias, gamma, beta)``.
    """
    outputs = [*context.node.output, "", ""][:3]
    if outputs[1] and not context.reaches(_LAYER):
        raise Blocked(
            "its output 'mean' is read: of an infinity it is NaN, older operators give infinity",
            f"choose opset {_LAYER} or later, or leave that output out",
        )
    context = context.at(max(context.op.opset, _LAYER))
    elem_type, working = working_dtypes(context)
    epsilon = context.value("epsilon", _SKIP_EPSILON)
    inputs = [_sum(context, elem_type, working, bias=4)]
    inputs += [in_dtype(context, context.input(index), working) for index in (2, 3)]
    if elem_type != working:
        result, outputs[0] = outputs[0], context.fresh_name("normal")
        context.op.LayerNormalization(
            *inputs, axis=-1, epsilon=epsilon, outputs=without_absent_last(outputs)
        )
        context.replace("Cast", outputs[:1], [result], keep=(), to=elem_type)
    else:
        left = without_absent_last(outputs)
        context.replace("LayerNormalization", inputs, left, keep=(), axis=-1, epsilon=epsilon)


@instead("com.microsoft.SkipSimplifiedLayerNormalization", {"any"}, "RMSNormalization of a sum")
def skip_simplified_layer_normalization(context: Context) -> None:
    """``SkipSimplifiedLayerNormalization(x, skip, gamma, bias)`` becomes
    ``RMSNormalization(x + skip + bias, gamma)``.
    """
    if len(context.node.output) > 1 and context.node.output[1]:
        raise Blocked(
            "its output 'mean' is read, and nothing computes that", "leave that output out"
        )
    context = context.at(max(context.op.opset, _RMS))
    elem_type, working = working_dtypes(context)
    epsilon = context.value("epsilon", _SKIP_EPSILON)
    total = _sum(context, elem_type, working, bias=3)
    scale = in_dtype(context, context.input(2), working)
    inverse = context.node.output[2] if len(context.node.output) > 2 else ""
    if inverse:
        _write_with_inverse(context, total, scale, epsilon, inverse)
    else:
        context.op.RMSNormalization(total, scale, axis=-1, epsilon=epsilon)
    replace_by_last(context, context.emitted[-1].node.output[0], elem_type, working)


@instead("SimplifiedLayerNormalization", {"any"}, "RMSNormalization")
def simplified_layer_normalization(context: Context) -> None:
    """``SimplifiedLayerNormalization(x, scale)`` becomes ``RMSNormalization(x, scale)``."""
    context = context.at(max(context.op.opset, _RMS))
    inverse = context.node.output[1] if len(context.node.output) > 1 else ""
    elem_type, working = working_dtypes(context)
    to = context.need_elem_type(context.input(1), "the output has it")
    if not inverse and elem_type == to:
        context.replace("RMSNormalization", keep=("axis", "epsilon", "stash_type"))
        return
    # The operator's body is not valid for two dtypes.
    data, scale = (in_dtype(context, context.input(index), working) for index in (0, 1))
    if not inverse:
        axis, epsilon = (context.attribute(name) for name in ("axis", "epsilon"))
        context.op.RMSNormalization(data, scale, axis=axis, epsilon=epsilon)
    elif elem_type == TensorProto.DOUBLE or stash_type(context) != TensorProto.FLOAT:
        raise Blocked("its output 'inv_std_var' may be a double", "leave that output out")
    elif context.value("axis", -1) != -1:
        raise Blocked(
            "its output 'inv_std_var' is read, and it normalises more than the last axis",
            "leave that output out",
        )
    else:
        _write_with_inverse(context, data, scale, context.value("epsilon", _EPSILON), inverse)
    replace_by_last(context, context.emitted[-1].node.output[0], to, working)


@instead(
    "com.microsoft.EmbedLayerNormalization", {"any"}, "LayerNormalization of what Gather finds"
)
def embed_layer_normalization(context: Context) -> None:
    """``EmbedLayerNormalization(ids, segments, words, places, kinds, gamma, beta)`` becomes
    ``LayerNormalization(Gather(words, ids) + places[:length] + Gather(kinds, segments))``.
    """
    context = context.at(max(context.op.opset, _LAYER))
    op, (elem_type, working) = context.op, working_dtypes(context, 2)
    ids, segments, words, places, kinds = (context.input(index) for index in range(5))
    chosen = context.input(8)
    own = (
        op.Gather(places, chosen, axis=0)
        if chosen
        else sliced(context, places, 0, size_of(context, ids, 1))
    )
    # In the order of the kernels, as each sum is rounded.
    total = op.Add(
        in_dtype(context, op.Gather(words, ids, axis=0), working), in_dtype(context, own, working)
    )
    if segments:
        kind = in_dtype(context, op.Gather(kinds, segments, axis=0), working)
        total = op.Add(total, kind)
    outputs = [*context.node.output, "", ""][:3]
    if outputs[2]:
        if elem_type == working:
            op.Identity(total, outputs=outputs[2:])
        else:
            cast(context, total, elem_type, outputs[2:])
    if outputs[1]:
        _count_ones(context, outputs[1])
    epsilon = context.value("epsilon", _SKIP_EPSILON)
    parameters = (in_dtype(context, context.input(index), working) for index in (5, 6))
    normal = op.LayerNormalization(total, *parameters, axis=-1, epsilon=epsilon)
    replace_by_last(context, normal, elem_type, working)


def _count_ones(context: Context, output: str) -> None:
    """Give how many ones the mask of each sequence has, int32 of [batch]; 0 without a mask."""
    op, mask = context.op, context.input(7)
    if mask:
        ones = op.Equal(mask, context.scalar(1, "one", TensorProto.INT32))
        counted, axes = cast(context, ones, TensorProto.INT32), context.array([1], "axes")
        op.ReduceSum(counted, axes, keepdims=0, outputs=[output])
    else:
        zero = context.scalar(0, "zero", TensorProto.INT32)
        batch = as_name(context, size_of(context, context.input(0), 0))
        op.Expand(zero, batch, outputs=[output])


def _sum(context: Context, elem_type: int, working: int, bias: int) -> str:
    """Return the first two inputs plus the one at index `bias`; the fourth output is that, too."""
    parts = [in_dtype(context, context.input(index), working) for index in (0, 1, bias)]
    output = context.node.output[3] if len(context.node.output) > 3 else ""
    name = [output] if output and elem_type == working else None
    if parts[2]:
        total = context.op.Add(context.op.Add(*parts[:2]), parts[2], outputs=name)
    else:
        total = context.op.Add(*parts[:2], outputs=name)
    if output and name is None:
        cast(context, total, elem_type, [output])
    return total


def _write_with_inverse(
    context: Context, data: str, scale: str, epsilon: float, inverse: str
) -> Value:
    """Return data divided by its root mean square, times scale; `inverse` names one by that."""
    op = context.op
    working = context.elem_type(data) or TensorProto.FLOAT
    root = root_mean(context, op.Mul(data, data), [-1], epsilon, working)
    op.Reciprocal(root, outputs=[inverse])
    return op.Mul(op.Div(data, root), scale)
