"""Cast, and CastLike where it casts to a float8: their boundaries at 6, 19 and 24."""

from __future__ import annotations

from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.casts import cast
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import FLOATS_WITH_BFLOAT16
from onnxreduce_cli.steps.registry import down, up

_FNUZ = frozenset({TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ})
#: The largest number of the wider FNUZ type. To the other it saturates too.
_LARGEST_FNUZ = 57344.0
_CASTS = ("Cast", "CastLike")


@up("Cast", 6, "to: from a dtype's name to its number")
def to_number(context: Context) -> None:
    """``Cast<to="FLOAT">`` becomes ``Cast<to=1>``."""
    name = context.value("to").upper()
    if name not in list(TensorProto.DataType.keys()):
        raise Blocked(
            f"its dtype {name!r} does not exist",
            "mend the model: set its attribute to to a dtype, such as FLOAT",
        )
    context.replace(to=TensorProto.DataType.Value(name))


@up("Cast", 24, "infinities made NaN where it saturates to a FNUZ float8")
@up(
    "CastLike",
    24,
    "infinities made NaN where it saturates to a FNUZ float8",
    blocks="the dtype that it casts to is not known",
)
def infinities_up(context: Context) -> None:
    """``Cast<to=FLOAT8E5M2FNUZ>(x)`` becomes
    ``Cast<to=FLOAT8E5M2FNUZ>(Where(IsInf(x), NaN, x))``, which 24 would make the largest number.

    A Cast to anything but a FNUZ float8 stays as it is.
    """
    op = context.op
    if not _saturates_to_fnuz(context):
        return
    numbers, elem_type = _numbers(context)
    if elem_type not in FLOATS_WITH_BFLOAT16:
        return
    infinite = op.IsInf(numbers)
    nan = context.scalar(float("nan"), "nan", elem_type)
    finite = op.Where(infinite, nan, numbers)
    if _target_type(context) is None:
        raise Blocked(
            f"the dtype of {context.input(1)!r}, to which it casts, is only known at run time, and "
            "from opset 24 on infinities become other numbers if that is a FNUZ float8",
            "state its dtype in the model's value_info, or choose opset 23 or earlier",
            dtype_of=context.input(1),
        )
    context.replace(inputs=[finite, *context.node.input[1:]])


@down(_CASTS, 24, "infinities made the largest number where it saturates to a FNUZ float8")
def infinities_down(context: Context) -> None:
    """``Cast<to=FLOAT8E5M2FNUZ>(x)`` becomes ``Cast<to=FLOAT8E5M2FNUZ>(Where(x is inf, 57344,
    Where(x is -inf, -57344, x)))``, as 23 would make infinities NaN.

    `round_mode` goes, which acts on float8e8m0 only.
    """
    op = context.op
    inputs = list(context.node.input)
    if _saturates_to_fnuz(context):
        numbers, elem_type = _numbers(context)
        if elem_type in FLOATS_WITH_BFLOAT16:
            for positive, number in ((1, _LARGEST_FNUZ), (0, -_LARGEST_FNUZ)):
                infinite = op.IsInf(numbers, detect_positive=positive, detect_negative=1 - positive)
                largest = context.scalar(number, "largest", elem_type)
                numbers = op.Where(infinite, largest, numbers)
            inputs[0] = numbers
    if context.attribute("round_mode") is not None or inputs != list(context.node.input):
        context.replace(inputs=inputs, drop=("round_mode",))


def _target_type(context: Context) -> int | None:
    """Return the dtype that a Cast or CastLike casts to; None where it is not known."""
    if context.node.op_type == "Cast":
        return int(context.value("to"))
    return context.elem_type(context.input(1))


def _saturates_to_fnuz(context: Context) -> bool:
    """Return whether a Cast or CastLike saturates to a FNUZ float8, or may do so."""
    to = _target_type(context)
    return (to is None or to in _FNUZ) and bool(context.value("saturate", 1))


def _numbers(context: Context) -> tuple[str, int]:
    """Return the tensor that is cast in a dtype that Where takes, and that dtype.

    Casting from that dtype gives the same result as casting the tensor itself.
    """
    elem_type = context.elem_type(context.input(0))
    wider_types: dict[int | None, int] = {
        TensorProto.FLOAT8E5M2: TensorProto.FLOAT,
        # Double represents each integer that a float8 does, and a string may be "INF".
        TensorProto.STRING: TensorProto.DOUBLE,
        None: TensorProto.DOUBLE,
    }
    if elem_type not in wider_types:
        assert elem_type is not None
        return context.input(0), elem_type
    return cast(context, context.input(0), wider_types[elem_type]), wider_types[elem_type]


@down(_CASTS, 19, "saturate dropped: it acts on float8 only, which came with it")
def without_saturate(context: Context) -> None:
    """``Cast<saturate=0, to=1>`` becomes ``Cast<to=1>``."""
    if context.attribute("saturate") is not None:
        context.replace(drop=("saturate",))


@down("Cast", 6, "to: from a dtype's number to its name")
def to_name(context: Context) -> None:
    """``Cast<to=1>`` becomes ``Cast<to="FLOAT">``."""
    context.replace(to=TensorProto.DataType.Name(context.value("to")))
