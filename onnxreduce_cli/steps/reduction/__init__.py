"""Reduce*, Softmax, LogSoftmax and Hardmax."""

#: The operators whose axes became an input with opset 18, five opsets after those of ReduceSum.
REDUCE_BUT_SUM = (
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSum",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceProd",
    "ReduceSumSquare",
)
REDUCE = (*REDUCE_BUT_SUM, "ReduceSum")

SOFTMAX = ("Softmax", "LogSoftmax", "Hardmax")
