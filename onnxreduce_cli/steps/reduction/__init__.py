"""Reduce*, Softmax, LogSoftmax and Hardmax, boundary by boundary.

- ReduceSum 13 to 12, the nine others 18 to 17, and back: `reduce_sum_13_others_18`.
- Negative axes of all ten, 11 to 10: `reduce_negative_axes_11`.
- dtypes: ReduceMax and ReduceMin 12 and 20, ReduceLogSum and ReduceLogSumExp 28:
  `reduce_dtypes_12_20_28`. The other dtypes need no step; see `steps/audit.json`.
- Softmax, LogSoftmax and Hardmax, 11 and 13: `softmax`.

What needs ``--emulate`` is in `emulated_reduce_rank` and `emulated_softmax`, function bodies for
``--expand`` are in `function_bodies`, and what runtimes need at one opset is in `alternatives`.
"""
