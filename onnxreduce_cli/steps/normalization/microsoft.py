"""ONNX Runtime's own normalizations as LayerNormalization and RMSNormalization.

Its kernels compute halves in float: the sum that SkipLayerNormalization normalises is not rounded.
Source: docs/ContribOperators.md of ONNX Runtime, and its kernels.
"""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import HALVES
from onnxreduce_cli.idioms.expansion import replace_by_last
from onnxreduce_cli.model.graph.names import without_absent_last
from onnxreduce_cli.steps.normalization.moments import in_dtype, root_mean, stash_type
from onnxreduce_cli.steps.registry import instead

#: The opsets that introduced LayerNormalization and RMSNormalization.
_LAYER, _RMS = 17, 23

#: The default epsilon of the operators that add a skip, and of SimplifiedLayerNormalization.
_SKIP_EPSILON, _EPSILON = 1e-12, 1e-5


@instead("com.microsoft.SkipLayerNormalization", {"any"}, "LayerNormalization of a sum")
def skip_layer_normalization(context: Context) -> None:
    """``SkipLayerNormalization(x, skip, gamma, beta, bias)`` becomes
    ``LayerNormalization(x + skip + bias, gamma, beta)``.
    """
    outputs = [*context.node.output, "", ""][:3]
    if outputs[1] and context.target_opset < _LAYER:
        raise Blocked(
            "its output 'mean' is read: of an infinity it is NaN, older operators give infinity",
            f"choose opset {_LAYER} or later, or leave that output out",
        )
    context = context.at(max(context.op.opset, _LAYER))
    elem_type, working = _dtypes(context)
    epsilon = context.value("epsilon", _SKIP_EPSILON)
    inputs = [_sum(context, elem_type, working, bias=4)]
    inputs += [_input(context, index, working) for index in (2, 3)]
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
    elem_type, working = _dtypes(context)
    epsilon = context.value("epsilon", _SKIP_EPSILON)
    total, scale = _sum(context, elem_type, working, bias=3), _input(context, 2, working)
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
    elem_type, working = _dtypes(context)
    to = context.need_elem_type(context.input(1), "the output has it")
    if not inverse and elem_type == to:
        context.replace("RMSNormalization", keep=("axis", "epsilon", "stash_type"))
        return
    # The operator's body is not valid for two dtypes.
    data, scale = (_input(context, index, working) for index in (0, 1))
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


def _dtypes(context: Context) -> tuple[int, int]:
    """Return the dtype of the first input, and the one to compute in."""
    elem_type = context.need_elem_type(context.input(0), "the dtype to compute in depends on it")
    return elem_type, TensorProto.FLOAT if elem_type in HALVES else elem_type


def _input(context: Context, index: int, working: int) -> str:
    """Return an input in the dtype to compute in; empty where it is absent."""
    data = context.input(index)
    return in_dtype(context, data, working) if data else data


def _sum(context: Context, elem_type: int, working: int, bias: int) -> str:
    """Return the first two inputs plus the one at index `bias`; the fourth output is that, too."""
    parts = [_input(context, index, working) for index in (0, 1, bias)]
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
