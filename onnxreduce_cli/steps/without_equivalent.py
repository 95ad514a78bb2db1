"""Operators that no older operators can replace: below their first opset their nodes block.

Some could be written with a Loop or a Scan, which is not done: hardly any model needs it. A node
whose result is known at conversion becomes a Constant all the same.
"""

from __future__ import annotations

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import introduced

#: What each group of operators does, as the end of "nothing before opset N ...".
OPERATORS: dict[str, tuple[str, ...]] = {
    "makes one string of two": ("StringConcat",),
    "takes strings apart": ("StringSplit",),
    "reads image files, whose format and size are known at run time only": ("ImageDecoder",),
    "computes trigonometric functions": ("Acos", "Asin", "Atan", "Cos", "Sin", "Tan"),
    "draws classes by their probabilities": ("Multinomial",),
}

#: What each group of operators does, as the end of "before opset N only a Loop or a Scan ...".
WITH_LOOPS: dict[str, tuple[str, ...]] = {
    "multiplies along an axis step by step": ("CumProd",),
    "finds the elements that are not zero": ("NonZero",),
    "finds the elements that a condition selects": ("Compress",),
    "selects boxes one after the other": ("NonMaxSuppression",),
    "eliminates the columns of a matrix": ("Det",),
    "goes through regions of interest": ("RoiAlign",),
    "updates a state token by token": ("LinearAttention",),
}


def _register(what: str, op_type: str, *, loops: bool) -> None:
    since = schemas.versions(op_type)[0]
    description = f"before opset {since} only a Loop or a Scan {what}"
    if not loops:
        description = f"nothing before opset {since} {what}"

    @introduced(op_type, since, description, blocks="its result is not known at conversion")
    def known_result_only(context: Context) -> None:
        """Raise `Blocked`: `introduced` has replaced the node if its result is known."""
        raise Blocked(description, f"choose opset {since} or later")


for _groups in (OPERATORS, WITH_LOOPS):
    for _what, _op_types in _groups.items():
        for _op_type in _op_types:
            if schemas.versions(_op_type):  # An older onnx knows fewer operators.
                _register(_what, _op_type, loops=_groups is WITH_LOOPS)
