"""Draws what stands around the family: nodes of other operators, as each opset writes them."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np
from onnx import GraphProto, TensorProto, helper

from onnxreduce_cli.idioms.registry import IDIOMS
from tests.idioms.written import plain_patterns
from tests.random_graphs.drawing import FLOATS, INTEGERS, Drawing, UnsuitableError

BOOL = np.dtype(bool)
NUMBERS = (*FLOATS, *INTEGERS)


def since(opset: int, drawing: Drawing) -> None:
    """Draw nothing below the opset that an operator was introduced with."""
    if drawing.opset < opset:
        raise UnsuitableError


def unary(drawing: Drawing) -> None:
    """An element-wise operator of one input."""
    op_type, introduced, exact = drawing.choose(
        (
            ("Relu", 1, True), ("Neg", 1, True), ("Abs", 1, True), ("Identity", 1, True),
            ("Sigmoid", 1, False), ("Tanh", 1, False), ("Exp", 1, False), ("Sqrt", 1, False),
            ("LeakyRelu", 1, False), ("Elu", 1, False), ("Selu", 1, False), ("Softplus", 1, False),
            ("HardSigmoid", 1, False), ("Erf", 9, False), ("Celu", 12, False),
            ("HardSwish", 14, False), ("Mish", 18, False), ("Gelu", 20, False),
            ("Swish", 24, False),
        )
    )  # fmt: skip
    since(introduced, drawing)
    drawing.node(op_type, [drawing.value()], exact=exact)


def rounded(drawing: Drawing) -> None:
    """An operator that jumps, on exact values."""
    op_type, introduced = drawing.choose((("Floor", 1), ("Ceil", 1), ("Sign", 9), ("Round", 11)))
    since(introduced, drawing)
    drawing.node(op_type, [drawing.value(exact=True)], exact=True)


def binary(drawing: Drawing) -> None:
    """Arithmetic, broadcast as its opset does."""
    op_type = drawing.choose(("Add", "Mul", "Sub"))
    left = drawing.value(NUMBERS if drawing.opset >= 7 else FLOATS)
    shape = left.array.shape
    if drawing.opset >= 7:
        kept = drawing.number(0, len(shape))
        shape = tuple(1 if drawing.chance() else size for size in shape[kept:])
        drawing.node(op_type, [left, drawing.like(shape, left.array.dtype)], exact=True)
        return
    broadcast = 1 if drawing.chance() and shape else None
    right = drawing.like(shape[1:] if broadcast else shape, left.array.dtype)
    drawing.node(op_type, [left, right], broadcast=broadcast, exact=True)


def variadic(drawing: Drawing) -> None:
    """Max, Min, Sum and Mean of several."""
    op_type = drawing.choose(("Max", "Min", "Sum", "Mean"))
    first = drawing.value(FLOATS[:2])
    more = [drawing.like(first.array.shape, first.array.dtype) for _ in range(drawing.number(0, 2))]
    drawing.node(op_type, [first, *more], exact=op_type != "Mean")


def compare(drawing: Drawing) -> None:
    """A comparison of exact values, and what picks by it."""
    since(9, drawing)
    left = drawing.value(FLOATS, exact=True)
    right = drawing.like(left.array.shape, left.array.dtype)
    (picked,) = drawing.node(drawing.choose(("Greater", "Less")), [left, right], exact=True)
    drawing.node("Where", [picked, left, right], exact=True)


def cast(drawing: Drawing) -> None:
    """A Cast between numbers; before opset 6 onnx cannot infer what it gives."""
    since(6, drawing)
    source = drawing.value(NUMBERS, exact=True)
    targets = [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT32, TensorProto.FLOAT16]
    drawing.node("Cast", [source], to=drawing.choose(targets), exact=True)


def clip(drawing: Drawing) -> None:
    """A Clip with either, both or none of its bounds."""
    data = drawing.value(FLOATS[:2] if drawing.opset >= 11 else FLOATS[:1])
    low, high = drawing.choose(((-1.0, 1.0), (None, 2.0), (0.0, None), (None, None)))
    if drawing.opset < 11:
        drawing.node("Clip", [data], min=low, max=high, exact=True)
        return
    bounds = [
        None if bound is None else drawing.constant(np.array(bound, data.array.dtype))
        for bound in (low, high)
    ]
    drawing.node("Clip", [data, *bounds], exact=True)


def matmul(drawing: Drawing) -> None:
    """A MatMul by a new matrix."""
    data = drawing.value(FLOATS[:2], ranks=(2, 3, 4))
    other = drawing.like((data.array.shape[-1], 3), data.array.dtype)
    drawing.node("MatMul", [data, other])


def gemm(drawing: Drawing) -> None:
    """A Gemm, its bias broadcast."""
    data = drawing.value(FLOATS[:2], ranks=(2,))
    weight = drawing.like((3, data.array.shape[1]), data.array.dtype)
    bias = drawing.like((3,), data.array.dtype)
    broadcast = 1 if drawing.opset < 7 else None
    drawing.node("Gemm", [data, weight, bias], transB=1, alpha=0.5, broadcast=broadcast)


def transpose(drawing: Drawing) -> None:
    """A Transpose."""
    data = drawing.value(NUMBERS, ranks=range(1, 6))
    perm = drawing.choose((None, [*range(1, data.array.ndim), 0]))
    drawing.node("Transpose", [data], perm=perm, exact=True)


def reshape(drawing: Drawing) -> None:
    """A Reshape or Flatten."""
    data = drawing.value(NUMBERS if drawing.opset >= 5 else FLOATS)
    wanted = drawing.choose(([-1], [0, -1], [1, -1, 1]))
    if drawing.chance():
        flat = drawing.value(FLOATS, ranks=(2, 3, 4))
        drawing.node("Flatten", [flat], axis=drawing.number(0, flat.array.ndim - 1), exact=True)
    elif drawing.opset < 5:
        drawing.node("Reshape", [data], shape=wanted, exact=True)
    else:
        drawing.node("Reshape", [data, drawing.ints(*wanted)], exact=True)


def reshape_allowing_zero(drawing: Drawing) -> None:
    """A Reshape whose zeros are sizes."""
    since(14, drawing)
    data = drawing.value(NUMBERS, ranks=range(1, 5))
    shape = drawing.ints(*data.array.shape[::-1])
    drawing.node("Reshape", [data, shape], allowzero=1, exact=True)


def squeeze(drawing: Drawing) -> None:
    """An Unsqueeze and a Squeeze, in any order of the axes."""
    data = drawing.value(NUMBERS if drawing.opset >= 5 else FLOATS, ranks=range(3))
    rank = data.array.ndim + 2
    axes = drawing.choose(([0, rank - 1], [rank - 1, 0], [0, 1]))
    for op_type in ("Unsqueeze", "Squeeze"):
        inputs = [data] if drawing.opset < 13 else [data, drawing.ints(*axes)]
        attribute = axes if drawing.opset < 13 else None
        (data,) = drawing.node(op_type, inputs, axes=attribute, exact=True)


def concat(drawing: Drawing) -> None:
    """A Concat along any axis."""
    data = drawing.value(FLOATS if drawing.opset < 4 else NUMBERS, ranks=range(1, 5))
    axis = drawing.number(0, data.array.ndim - 1)
    other = drawing.like(data.array.shape, data.array.dtype)
    drawing.node("Concat", [data, other], axis=axis, exact=True)


def split(drawing: Drawing) -> None:
    """A Split into two, by sizes or in halves."""
    data = drawing.value(
        FLOATS if drawing.opset < 2 else NUMBERS,
        ranks=range(1, 4),
        where=lambda array: array.shape[0] == 2,
    )
    if drawing.opset < 13:
        drawing.node("Split", [data], outputs=2, axis=0, split=[1, 1], exact=True)
    elif drawing.chance():
        drawing.node("Split", [data, drawing.ints(0, 2)], outputs=2, axis=0, exact=True)
    else:
        halves = 2 if drawing.opset >= 18 else None
        drawing.node("Split", [data], outputs=2, axis=0, num_outputs=halves, exact=True)


def slices(drawing: Drawing) -> None:
    """A Slice, from the back and with steps where its opset has them."""
    data = drawing.value(FLOATS, ranks=range(1, 4))
    if drawing.opset < 10:
        drawing.node("Slice", [data], starts=[0], ends=[-1], axes=[0], exact=True)
        return
    starts, ends, steps = drawing.choose(((0, 100, 2), (-1, -100, -1), (1, 1, 1)))
    parts = [drawing.ints(number) for number in (starts, ends, 0, steps)]
    drawing.node("Slice", [data, *parts], exact=True)


def pad(drawing: Drawing) -> None:
    """A Pad by a constant, reflected, or by the edge."""
    since(2, drawing)
    data = drawing.value(FLOATS[:2], ranks=range(1, 4), where=lambda array: min(array.shape) > 1)
    mode = drawing.choose(("constant", "edge", "reflect"))
    pads = [drawing.number(0, 1) for _ in range(2 * data.array.ndim)]
    if drawing.opset < 11:
        drawing.node("Pad", [data], pads=pads, mode=mode, value=0.5, exact=True)
        return
    value = drawing.constant(np.array(0.5, data.array.dtype)) if mode == "constant" else None
    drawing.node("Pad", [data, drawing.ints(*pads), value], mode=mode, exact=True)


def expand(drawing: Drawing) -> None:
    """An Expand or a Tile."""
    data = drawing.value(FLOATS if drawing.opset < 8 else NUMBERS, ranks=range(1, 4))
    if drawing.opset >= 8 and drawing.chance():
        shape = (2, *data.array.shape)
        drawing.node("Expand", [data, drawing.ints(*shape)], exact=True)
        return
    since(6, drawing)
    repeats = [drawing.number(0, 2) for _ in range(data.array.ndim)]
    drawing.node("Tile", [data, drawing.ints(*repeats)], exact=True)


def gather(drawing: Drawing) -> None:
    """A Gather, or a GatherElements from 11 on."""
    data = drawing.value(NUMBERS, ranks=range(1, 4), where=lambda array: array.shape[0] > 0)
    indices = drawing.given(np.array([[0], [data.array.shape[0] - 1]], np.int64))
    drawing.node("Gather", [data, indices], axis=0, exact=True)


def scatter(drawing: Drawing) -> None:
    """A Scatter, by the name that its opset has for it, and a ScatterND."""
    since(9, drawing)
    data = drawing.value(FLOATS[:2], ranks=(2,), where=lambda array: array.shape[0] > 0)
    rows = drawing.number(0, 2)
    updates = drawing.like((rows, data.array.shape[1]), data.array.dtype)
    if drawing.opset >= 11 and drawing.chance():
        indices = drawing.given(np.zeros((rows, 1), np.int64))
        if rows > 1:
            raise UnsuitableError  # The order of updates of one place is not defined.
        drawing.node("ScatterND", [data, indices, updates], exact=True)
        return
    if rows > data.array.shape[0]:
        raise UnsuitableError
    places = np.broadcast_to(np.arange(rows)[:, None], updates.array.shape).astype(np.int64)
    op_type = "Scatter" if drawing.opset < 11 else "ScatterElements"
    drawing.node(op_type, [data, drawing.given(places), updates], axis=0, exact=True)


def indices(drawing: Drawing) -> None:
    """A TopK, ArgMax or ArgMin of exact values that are all different."""
    data = drawing.value(
        FLOATS[:1],
        ranks=(1, 2, 3),
        exact=True,
        where=lambda array: array.size and len(np.unique(array)) == array.size,
    )
    op_type = drawing.choose(("ArgMax", "ArgMin", "TopK"))
    last = data.array.ndim - 1
    if op_type != "TopK":
        drawing.node(op_type, [data], axis=last, keepdims=drawing.number(0, 1), exact=True)
    elif drawing.opset < 10:
        drawing.node("TopK", [data], outputs=2, k=1, axis=last, exact=True)
    else:
        drawing.node("TopK", [data, drawing.ints(1)], outputs=2, axis=last, exact=True)


def cumulative(drawing: Drawing) -> None:
    """A CumSum, forth or back."""
    since(11, drawing)
    data = drawing.value(FLOATS[:2], ranks=(1, 2, 3))
    axis = drawing.constant(np.array(data.array.ndim - 1, np.int64))
    drawing.node("CumSum", [data, axis], reverse=drawing.number(0, 1), exact=True)


def shape_of(drawing: Drawing) -> None:
    """The shape of a value, and what is made of it."""
    (shape,) = drawing.node("Shape", [drawing.value()], exact=True)
    if drawing.opset >= 9 and drawing.chance():
        drawing.node("ConstantOfShape", [shape], exact=True)


def pool(drawing: Drawing) -> None:
    """A pool over two dimensions."""
    data = drawing.value(FLOATS[:1], ranks=(4,), where=lambda array: min(array.shape[2:]) > 1)
    op_type = drawing.choose(("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"))
    if op_type.startswith("Global"):
        drawing.node(op_type, [data])
        return
    strides = [1, 2] if drawing.chance() else None
    drawing.node(op_type, [data], kernel_shape=[2, 2], strides=strides)


def resize(drawing: Drawing) -> None:
    """An Upsample or a Resize to twice the size, by the nearest or linearly."""
    since(7, drawing)
    data = drawing.value(FLOATS[:1], ranks=(4,))
    mode = drawing.choose(("nearest", "linear"))
    scales = np.array([1, 1, 2, 2], np.float32)
    if drawing.opset < 9:
        drawing.node("Upsample", [data], scales=scales.tolist(), mode=mode)
        return
    given = drawing.given(scales)
    if drawing.opset < 10:
        drawing.node("Upsample", [data, given], mode=mode)
    elif drawing.opset < 11:
        drawing.node("Resize", [data, given], mode=mode)
    else:
        roi = drawing.constant(np.zeros(0, np.float32)) if drawing.opset < 13 else None
        drawing.node("Resize", [data, roi, given], mode=mode)


def batch_normalization(drawing: Drawing) -> None:
    """A BatchNormalization by new statistics."""
    data = drawing.value(FLOATS[:1], ranks=(2, 3, 4))
    channels = data.array.shape[1]
    parts = [drawing.like((channels,), data.array.dtype) for _ in range(3)]
    variance = drawing.given(np.full(channels, 0.5, data.array.dtype))
    # Before opset 7 it trains unless it is told not to.
    is_test = 1 if drawing.opset < 7 else None
    drawing.node("BatchNormalization", [data, *parts, variance], is_test=is_test)


def layer_normalization(drawing: Drawing) -> None:
    """A LayerNormalization over the last axis, with or without bias, or an RMSNormalization."""
    since(17, drawing)
    data = drawing.value(FLOATS[:1], ranks=(2, 3), where=lambda array: array.shape[-1] > 1)
    width = data.array.shape[-1]
    parts = [drawing.like((width,), data.array.dtype) for _ in range(drawing.number(1, 2))]
    if drawing.opset >= 23 and drawing.chance():
        drawing.node("RMSNormalization", [data, parts[0]], axis=-1)
        return
    drawing.node("LayerNormalization", [data, *parts], axis=-1)


#: Of each idiom the forms that are the same whatever the shapes.
_PATTERNS = [found for idiom in IDIOMS if (found := plain_patterns(idiom))]


def written_out(drawing: Drawing) -> None:
    """An idiom as exporters write it: a normalization, an activation, or one of the family."""
    since(13, drawing)
    pattern = drawing.choose(drawing.choose(_PATTERNS))
    data = drawing.value(FLOATS[:2], ranks=(1, 2, 3), where=lambda array: array.shape[-1] > 1)
    dtype, width = data.array.dtype, data.array.shape[-1]
    values = {name: drawing.like((width,), dtype) for name in pattern.inputs[1:]}
    values[pattern.inputs[0]] = data
    for name, number in pattern.numbers.items():
        number = {"epsilon": 1e-3, "alpha": 1.5, "beta": 0.25}.get(str(number), number)
        values[name] = drawing.constant(np.array(number, dtype), fixed=True)
    keepdims = drawing.number(0, 1)
    for output, node in pattern.producers.items():
        options = {item.name: helper.get_attribute_value(item) for item in node.attribute}
        inputs = [values[name] for name in node.input]
        if output in pattern.reductions:
            options["keepdims"] = 1 if pattern.reductions[output] else keepdims
            if node.op_type == "ReduceSum" or drawing.opset >= 18:
                inputs.append(drawing.constant(np.array([-1], np.int64), fixed=True))
            else:
                options["axes"] = [-1]
        (values[output],) = drawing.node(node.op_type, inputs, **options)


def quantized(drawing: Drawing) -> None:
    """A QuantizeLinear and a DequantizeLinear of it."""
    since(10, drawing)
    data = drawing.value(FLOATS[:1], exact=True)
    scale = drawing.constant(np.array(0.25, np.float32))
    zero = drawing.constant(np.array(3, drawing.choose((np.uint8, np.int8))))
    (inner,) = drawing.node("QuantizeLinear", [data, scale, zero], exact=True)
    drawing.node("DequantizeLinear", [inner, scale, zero], exact=True)


def quantized_in_blocks(drawing: Drawing) -> None:
    """A DequantizeLinear of int4 in blocks, a MatMul's weight."""
    since(21, drawing)
    if drawing.ir_version < 10:
        raise UnsuitableError
    rng = np.random.default_rng(drawing.number(0, 999))
    weight = drawing.constant(rng.integers(-8, 8, (4, 3)).astype(ml_dtypes.int4))
    scale = drawing.constant((rng.integers(1, 5, (2, 3)) / 4).astype(np.float32))
    drawing.node("DequantizeLinear", [weight, scale], axis=0, block_size=2, exact=True)


def if_(drawing: Drawing) -> None:
    """An If whose branches read what is around them."""
    if drawing.depth > 1:
        raise UnsuitableError
    condition = drawing.given(np.array(drawing.chance()))
    branches, shapes = [], set()
    for _ in range(2):
        inner = drawing.within()
        data = inner.value(FLOATS[:1], ranks=(2,))
        _some(inner, drawing.number(0, 2))
        (result,) = inner.node("Neg", [data])
        branches.append(_graph(inner, result.name, result.array.ndim))
        shapes.add(result.array.shape)
    if drawing.opset < 11 and len(shapes) > 1:
        raise UnsuitableError  # Up to 10 both give the same shape.
    drawing.node("If", [condition], then_branch=branches[0], else_branch=branches[1])


def loop(drawing: Drawing) -> None:
    """A Loop of some rounds over a value."""
    since(11, drawing)
    if drawing.depth > 1:
        raise UnsuitableError
    start = drawing.value(FLOATS[:1], ranks=(1, 2))
    rounds = drawing.given(np.array(drawing.number(0, 2), np.int64))
    inner = drawing.within()
    count, goes, state = (inner.name() for _ in range(3))
    _some(inner, drawing.number(0, 2))
    out, on = inner.name(), inner.name()
    inner.nodes.append(helper.make_node("Identity", [goes], [on]))
    inner.nodes.append(helper.make_node("Neg", [state], [out]))
    dims = [None] * start.array.ndim
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        inner.nodes,
        "body",
        [
            info(count, TensorProto.INT64, []),
            info(goes, TensorProto.BOOL, []),
            info(state, TensorProto.FLOAT, dims),
        ],
        [info(on, TensorProto.BOOL, []), info(out, TensorProto.FLOAT, dims)],
        inner.initializers,
    )
    drawing.node("Loop", [rounds, None, start], body=body)


def _some(drawing: Drawing, count: int) -> None:
    """Draw some nodes of a subgraph, which need not be read."""
    from tests.random_graphs.graphs import add_nodes

    add_nodes(drawing, count)


def _graph(drawing: Drawing, output: str, rank: int) -> GraphProto:
    return helper.make_graph(
        drawing.nodes,
        "branch",
        [],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [None] * rank)],
        drawing.initializers,
    )


#: What is drawn, in no order.
ORDINARY: tuple[Callable[[Drawing], None], ...] = (
    unary, rounded, binary, variadic, compare, cast, clip, matmul, gemm, transpose, reshape,
    reshape_allowing_zero, squeeze, concat, split, slices, pad, expand, gather, scatter, indices,
    cumulative, shape_of, pool, resize, batch_normalization, layer_normalization, quantized,
    quantized_in_blocks, if_, loop,
)  # fmt: skip
