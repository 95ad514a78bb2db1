"""Operators that no older operators can stand for: below their first opset a node of theirs blocks.

Only a node whose result is known at conversion becomes a Constant.
"""

from __future__ import annotations

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.refusals import refuse
from onnxreduce_cli.steps.registry import introduced

#: What each group of operators does, as the end of "nothing before opset N ...".
OPERATORS: dict[str, tuple[str, ...]] = {
    "makes one string of two": ("StringConcat",),
    "takes strings apart": ("StringSplit",),
    "reads image files, whose format and size are known at run time only": ("ImageDecoder",),
    "computes trigonometric functions": ("Acos", "Asin", "Atan", "Cos", "Sin", "Tan"),
    "draws classes by their probabilities": ("Multinomial",),
}


def _register(what: str, op_type: str) -> None:
    since = schemas.versions(op_type)[0]
    description = f"nothing before opset {since} {what}"

    @introduced(op_type, since, description, blocks="its result is not known at conversion")
    def known_result_only(context: Context) -> None:
        """Raise `Blocked`: `introduced` has replaced the node if its result is known."""
        raise refuse(context, what)


for _what, _op_types in OPERATORS.items():
    for _op_type in _op_types:
        if schemas.versions(_op_type):  # An older onnx knows fewer operators.
            _register(_what, _op_type)
