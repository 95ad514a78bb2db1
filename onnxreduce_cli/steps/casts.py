"""Casts: through a wider dtype and back, and the boundaries of Cast itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import NodeProto, TensorProto

from onnxreduce_cli.model.values import dtype_name, tensor_type
from onnxreduce_cli.steps.context import Blocked, Context
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


def cast(context: Context, name: str, to: int, outputs: Sequence[str] | None = None) -> str:
    """Emit a Cast of a value to a dtype; the name of the result."""
    hint = f"as_{dtype_name(to)}"
    if context.far >= 6:
        return context.emit("Cast", [name], hint, outputs=outputs, to=to)
    # Before opset 6 the dtype is named, and shape inference knows nothing of Cast.
    known = context.type(name)
    like = tensor_type(to, None if known is None else known.dims)
    number = TensorProto.DataType.Name(to)
    return context.emit("Cast", [name], hint, outputs=outputs, like=like, to=number)


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
        context.replace("Cast", [context.emit(op_type, inputs, **values)], keep=(), to=given)


@up("Cast", 6, "to: from a dtype's name to its number")
def to_number(context: Context) -> None:
    """``Cast<to="FLOAT">`` becomes ``Cast<to=1>``."""
    name = context.value("to").upper()
    if name not in list(TensorProto.DataType.keys()):
        raise Blocked(f"its dtype {name!r} does not exist", "mend the model")
    context.replace(to=TensorProto.DataType.Value(name))


_FNUZ = frozenset({TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ})
_CASTS = ("Cast", "CastLike")


def _target_type(context: Context) -> int | None:
    """The dtype that a Cast or CastLike casts to."""
    if context.node.op_type == "Cast":
        return int(context.value("to"))
    return context.elem_type(context.input(1))


@up(_CASTS, 24, "unchanged", blocks="it saturates to a FNUZ float8, where infinities changed")
def infinities_up(context: Context) -> None:
    """A Cast to anything but a FNUZ float8 stays as it is."""
    _check_infinities(context)


@down(_CASTS, 24, "unchanged", blocks="it saturates to a FNUZ float8, where infinities changed")
def infinities_down(context: Context) -> None:
    """``Cast<round_mode=...>`` loses its `round_mode`, which acts on float8e8m0 only."""
    _check_infinities(context)
    if context.attribute("round_mode") is not None:
        context.replace(drop=("round_mode",))


def _check_infinities(context: Context) -> None:
    to = _target_type(context)
    if (to is None or to in _FNUZ) and context.value("saturate", 1):
        raise Blocked(
            "it saturates to a FNUZ float8, and what becomes of an infinity changed at opset 24",
            "set saturate=0 if there are none",
        )


@down(_CASTS, 19, "saturate dropped: it acts on float8 only, which came with it")
def without_saturate(context: Context) -> None:
    """``Cast<saturate=0, to=1>`` becomes ``Cast<to=1>``."""
    if context.attribute("saturate") is not None:
        context.replace(drop=("saturate",))


@down("Cast", 6, "to: from a dtype's number to its name")
def to_name(context: Context) -> None:
    """``Cast<to=1>`` becomes ``Cast<to="FLOAT">``."""
    context.replace(to=TensorProto.DataType.Name(context.value("to")))
