"""Casts: through a wider dtype and back, and the boundaries of Cast itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import GraphProto, NodeProto, TensorProto, ValueInfoProto

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Blocked, Context
from onnxreduce_cli.emit.numbers import constant
from onnxreduce_cli.model.values import dtype_name, tensor_type
from onnxreduce_cli.steps.registry import down, up

INTEGERS = frozenset(
    {
        TensorProto.INT8,
        TensorProto.INT16,
        TensorProto.INT32,
        TensorProto.INT64,
        TensorProto.UINT8,
        TensorProto.UINT16,
        TensorProto.UINT32,
        TensorProto.UINT64,
    }
)
HALVES = frozenset({TensorProto.FLOAT16, TensorProto.BFLOAT16})


def cast(context: Context, name: str, to: int, outputs: Sequence[str] | None = None) -> Value:
    """Emit a Cast of a value to a dtype; the name of the result."""
    op = context.op
    f"as_{dtype_name(to)}"
    if context.op.opset >= 6:
        return op.Cast(name, outputs=outputs, to=to)
    # Before opset 6 the dtype is named, and shape inference knows nothing of Cast.
    known = context.type(name)
    like = tensor_type(to, None if known is None else known.dims)
    number = TensorProto.DataType.Name(to)
    return op.Cast(name, outputs=outputs, like=like, to=number)


def there_and_back(context: Context, wide: int) -> tuple[NodeProto, int]:
    """``Op(x)`` becomes ``Cast(Op(Cast(x)))``, computing in the dtype `wide`.

    Only the first input and the first output have the narrow dtype.

    Returns:
        the node in the middle, and the dtype that was there before.
    """
    data, output = context.node.input[0], context.node.output[0]
    narrow = context.need_elem_type(data, "it must be cast back to it")
    inputs = [cast(context, data, wide), *context.node.input[1:]]
    middle = context.replace(inputs=inputs, outputs=[context.fresh(dtype_name(wide))])
    cast(context, middle.output[0], narrow, [output])
    return middle, narrow


def widened(context: Context, integers: int) -> tuple[str, int, int]:
    """The node's first input in the dtype to compute in.

    Halves are computed in float, integers in the dtype `integers` (0: their own), everything else
    in its own dtype.

    Returns:
        the name of the value, the dtype that was given, the dtype to compute in.
    """
    data = context.input(0)
    given = context.need_elem_type(data, "the dtype to compute in depends on it")
    working = given
    if given in HALVES:
        working = TensorProto.FLOAT
    elif given in INTEGERS and integers:
        working = integers
    return (data if working == given else cast(context, data, working)), given, working


def finish(
    context: Context, op_type: str, inputs: Sequence[str], given: int, working: int, **values: Any
) -> None:
    """Emit the last node of what replaces a node, and a Cast back to the dtype given."""
    if working == given:
        context.replace(op_type, inputs, keep=(), **values)
    else:
        context.replace("Cast", [context.op.emit(op_type, *inputs, **values)], keep=(), to=given)


@up("Cast", 6, "to: from a dtype's name to its number")
def to_number(context: Context) -> None:
    """``Cast<to="FLOAT">`` becomes ``Cast<to=1>``."""
    name = context.value("to").upper()
    if name not in list(TensorProto.DataType.keys()):
        raise Blocked(f"its dtype {name!r} does not exist", "mend the model")
    context.replace(to=TensorProto.DataType.Value(name))


_FNUZ = frozenset({TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ})
#: Those with infinities that Where takes.
_WITH_INFINITIES = frozenset({*HALVES, TensorProto.FLOAT, TensorProto.DOUBLE})
#: The largest number of the wider FNUZ type. To the other it saturates too.
_LARGEST_FNUZ = 57344.0
_CASTS = ("Cast", "CastLike")


@up(_CASTS, 24, "infinities made NaN where it saturates to a FNUZ float8")
def infinities_up(context: Context) -> None:
    """``Cast<to=FLOAT8E5M2FNUZ>(x)`` becomes
    ``Cast<to=FLOAT8E5M2FNUZ>(Where(IsInf(x), NaN, x))``, which 24 would make the largest number.

    A Cast to anything but a FNUZ float8 stays as it is. Where the dtype that a CastLike casts to
    is only known at run time, an If asks for it.
    """
    op = context.op
    if not _saturates_to_fnuz(context):
        return
    numbers, elem_type = _numbers(context)
    if elem_type not in _WITH_INFINITIES:
        return
    infinite = op.IsInf(numbers)
    nan = constant(context, float("nan"), elem_type, "nan")
    finite = op.Where(infinite, nan, numbers)
    if _target_type(context) is None:
        _where_fnuz(context, finite)
    else:
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
        if elem_type in _WITH_INFINITIES:
            for positive, number in ((1, _LARGEST_FNUZ), (0, -_LARGEST_FNUZ)):
                infinite = op.IsInf(numbers, detect_positive=positive, detect_negative=1 - positive)
                largest = constant(context, number, elem_type, "largest")
                numbers = op.Where(infinite, largest, numbers)
            inputs[0] = numbers
    if context.attribute("round_mode") is not None or inputs != list(context.node.input):
        context.replace(inputs=inputs, drop=("round_mode",))


def _target_type(context: Context) -> int | None:
    """The dtype that a Cast or CastLike casts to."""
    if context.node.op_type == "Cast":
        return int(context.value("to"))
    return context.elem_type(context.input(1))


def _saturates_to_fnuz(context: Context) -> bool:
    """Whether a Cast or CastLike saturates to a FNUZ float8, or may do so."""
    to = _target_type(context)
    return (to is None or to in _FNUZ) and bool(context.value("saturate", 1))


def _numbers(context: Context) -> tuple[str, int]:
    """What is cast, in a dtype that Where takes and that gives the same; and that dtype."""
    given = context.elem_type(context.input(0))
    wide: dict[int | None, int] = {
        TensorProto.FLOAT8E5M2: TensorProto.FLOAT,
        # A float8 holds no integer that a double does not, and a string may say "INF".
        TensorProto.STRING: TensorProto.DOUBLE,
        None: TensorProto.DOUBLE,
    }
    if given not in wide:
        assert given is not None
        return context.input(0), given
    return cast(context, context.input(0), wide[given]), wide[given]


def _where_fnuz(context: Context, finite: str) -> None:
    """Cast `finite` where the dtype to cast to turns out to be a FNUZ float8, else what is given.

    Of all floats these alone have no negative zero; what becomes of the infinities of the others
    depends on it, and integers have no word in it.
    """
    op = context.op
    like = context.input(1)
    zero = op.CastLike(context.scalar(-0.0, "zero"), like)
    number = cast(context, zero, TensorProto.FLOAT)
    one = context.scalar(1.0, "one")
    sign = op.Div(one, number)
    positive = op.Greater(sign, context.scalar(0.0, "none"))
    branches: dict[str, Any] = {}
    for branch, data in (("then_branch", finite), ("else_branch", context.input(0))):
        result = context.fresh("cast")
        node = NodeProto(op_type="CastLike", name=result, input=[data, like], output=[result])
        branches[branch] = GraphProto(
            name=result, node=[node], output=[ValueInfoProto(name=result)]
        )
    context.replace("If", [positive], keep=(), **branches)


@down(_CASTS, 19, "saturate dropped: it acts on float8 only, which came with it")
def without_saturate(context: Context) -> None:
    """``Cast<saturate=0, to=1>`` becomes ``Cast<to=1>``."""
    if context.attribute("saturate") is not None:
        context.replace(drop=("saturate",))


@down("Cast", 6, "to: from a dtype's number to its name")
def to_name(context: Context) -> None:
    """``Cast<to=1>`` becomes ``Cast<to="FLOAT">``."""
    context.replace(to=TensorProto.DataType.Name(context.value("to")))
