"""ScatterElements: introduced with 11, which let the indices of Scatter count from the back.

Its reductions are in scatter_reductions.py.
"""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.indexing.gather import non_negative_indices
from onnxreduce_cli.steps.registry import down


@down(
    "ScatterElements", 11, "its predecessor Scatter", blocks="the dtype of the indices is not known"
)
def scatter_elements_to_scatter(context: Context) -> None:
    """``ScatterElements(x, [[-1]], y)`` becomes ``Scatter(x, [[2]], y)``, x of shape [3, 1]."""
    context.replace("Scatter", [context.input(0), non_negative_indices(context), context.input(2)])
