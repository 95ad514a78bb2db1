"""Operators that nothing before their birth can stand for, with what they alone can do."""

from __future__ import annotations

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import refuse
from onnxreduce_cli.steps.registry import introduced

#: What each group of operators does, as the end of "nothing before opset N ...".
_ALONE: dict[str, tuple[str, ...]] = {
    "makes one string of two": ("StringConcat",),
    "takes strings apart": ("StringSplit",),
    "reads image files, whose format and size are known at run time only": ("ImageDecoder",),
    "computes trigonometric functions": ("Acos", "Asin", "Atan", "Cos", "Sin", "Tan"),
    "draws classes by their probabilities": ("Multinomial",),
}


def _register(what: str, op_type: str) -> None:
    birth = schemas.versions(op_type)[0]

    words = f"nothing before opset {birth} {what}"

    @introduced(op_type, birth, words, blocks="its result is not known at conversion")
    def alone(context: Context) -> None:
        """The node, unless its result is known, blocks the conversion."""
        raise refuse(context, what)


for _what, _operators in _ALONE.items():
    for _op_type in _operators:
        if schemas.versions(_op_type):  # An older onnx knows fewer operators.
            _register(_what, _op_type)
