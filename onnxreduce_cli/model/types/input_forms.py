"""Which inputs of operators are lists, and which are single numbers.

Steps read them as such. Inference says nothing of some that are not, nor where a rank is unknown.
"""

from __future__ import annotations

from functools import cache

from onnxreduce_cli import schemas

#: Inputs of rank 1, by the names that definitions give them.
_LISTS = frozenset({
    "axes", "block_shape", "ends", "image_shape", "output_shape", "pads", "repeats", "roi",
    "scales", "shape", "sizes", "starts", "steps",
})  # fmt: skip
#: Inputs of rank 1 whose names other operators give to something else.
_OTHER_LISTS = frozenset({("AffineGrid", "size"), ("ConstantOfShape", "input"), ("Split", "split")})
#: Runtimes read one number as a list of one for these.
_OR_NUMBERS = frozenset({"Squeeze", "Unsqueeze"})
#: Inputs of one element.
_NUMBERS: dict[str, frozenset[str]] = {
    "Clip": frozenset({"min", "max"}),
    "CumProd": frozenset({"axis"}),
    "CumSum": frozenset({"axis"}),
    "DFT": frozenset({"axis", "dft_length"}),
    "NonMaxSuppression": frozenset(
        {"iou_threshold", "max_output_boxes_per_class", "score_threshold"}
    ),
    "OneHot": frozenset({"depth"}),
    "Pad": frozenset({"constant_value"}),
    "Range": frozenset({"start", "limit", "delta"}),
    "TopK": frozenset({"K"}),
    "Trilu": frozenset({"k"}),
}


@cache
def input_forms(op_type: str, opset: int) -> dict[int, str]:
    """Return which inputs of an operator of the default domain are lists or numbers.

    Args:
        op_type: the operator.
        opset: the opset that it is read by.

    Returns:
        what they must be, by their index: ``one number``, ``a list``, ``a list or one number``.
    """
    if not schemas.exists(op_type, opset):
        return {}
    found = {}
    for index, formal in enumerate(schemas.schema(op_type, opset).inputs):
        if formal.name in _NUMBERS.get(op_type, ()):
            found[index] = "one number"
        elif formal.name in _LISTS or (op_type, formal.name) in _OTHER_LISTS:
            found[index] = "a list or one number" if op_type in _OR_NUMBERS else "a list"
    return found


def has_form(form: str, shape: tuple[int, ...]) -> bool:
    """Return whether a value of a shape is of a form of `input_forms`."""
    if form == "one number":
        return shape in ((), (1,))
    return len(shape) == 1 or (not shape and form != "a list")
