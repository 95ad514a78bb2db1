"""MeanVarianceNormalization: 9 and 13."""

from __future__ import annotations

from onnxreduce_cli.emit.axes import non_negative_axes, reduced
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import introduced, up


@up("MeanVarianceNormalization", 13, "axes: the default written out")
def mean_variance_axes(context: Context) -> None:
    """``MeanVarianceNormalization(x)`` becomes
    ``MeanVarianceNormalization<axes=[0, 2, 3]>(x)``.

    The function body of opset 13 reads the attribute, and onnx's full check fails without it.
    """
    if context.attribute("axes") is None:
        context.replace(axes=[0, 2, 3])


@introduced(
    "MeanVarianceNormalization",
    9,
    "mean and deviation written out",
)
def mean_variance_normalization(context: Context) -> None:
    """``MeanVarianceNormalization<axes=[0, 2, 3]>(x)`` becomes
    ``d / (Sqrt(ReduceMean(d * d)) + 1e-9)`` with ``d = x - ReduceMean(x)``.
    """
    op = context.op
    axes = tuple(context.value("axes", (0, 2, 3)))
    if any(axis < 0 for axis in axes):
        rank = context.specialised_rank(context.input(0))
        if rank is None:
            context = context.at(11)  # The older ReduceMean has no negative axes; its step goes on.
            op = context.op
        else:
            axes = non_negative_axes(axes, rank)
    data, working = context.input(0), context.need_elem_type(context.input(0), "epsilon has it")
    mean = reduced(context, "ReduceMean", data, list(axes), keep=True)
    centred = op.Sub(data, mean)
    square = op.Mul(centred, centred)
    variance = reduced(context, "ReduceMean", square, list(axes), keep=True)
    root = op.Sqrt(variance)
    small = context.scalar(1e-9, "epsilon", working)
    context.replace("Div", [centred, op.Add(root, small)], keep=())
