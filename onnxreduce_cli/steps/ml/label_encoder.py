"""LabelEncoder of ai.onnx.ml: 2 (two lists in place of one), 4 (tensors in place of lists)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper, numpy_helper

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.model.graph.values import ValueType, tensor_type
from onnxreduce_cli.steps.registry import down, up

Array = npt.NDArray[Any]

#: The dtypes of lists, by the endings of their attributes, with the defaults of `default_*`.
_LISTS = {
    "strings": (TensorProto.STRING, "default_string", "_Unused"),
    "int64s": (TensorProto.INT64, "default_int64", -1),
    "floats": (TensorProto.FLOAT, "default_float", -0.0),
}


@up("LabelEncoder", 2, "classes_strings becomes keys and values", blocks="a class is there twice")
def two_lists(context: Context) -> None:
    """``classes_strings=["a", "b"]`` becomes ``keys_int64s=[0, 1]``, ``values_strings=["a", "b"]``.

    The input decides which of them are the keys.
    """
    classes = list(context.value("classes_strings", ()))
    if len(set(classes)) < len(classes):
        raise Blocked(
            "a class is there twice in its classes_strings", "mend the model: remove one of them"
        )
    indices = list(range(len(classes)))
    lists: dict[str, Any] = {"keys_int64s": indices, "values_strings": classes}
    if _input_type(context) == TensorProto.STRING:
        lists = {"keys_strings": classes, "values_int64s": indices}
    context.replace(drop=["classes_strings"], **lists)


@down(
    "LabelEncoder",
    2,
    "keys and values become classes_strings",
    blocks="the integers of the two lists are not 0, 1, 2, ..., or others than strings and int64",
)
def one_list(context: Context) -> None:
    """``keys_int64s=[1, 0]`` with ``values_strings=["b", "a"]`` becomes ``["a", "b"]``."""
    keys, values = _keys_and_values(context)
    if {keys.dtype.kind, values.dtype.kind} != {"O", "i"}:
        raise Blocked(
            "LabelEncoder 1 knows strings and int64 only, one of them for the other",
            ml_opset=2,
        )
    names, indices = (keys, values) if keys.dtype.kind == "O" else (values, keys)
    classes = dict(zip(indices.tolist(), names.tolist(), strict=True))
    if sorted(indices.tolist()) != list(range(len(names))) or len({*names.tolist()}) < len(names):
        raise Blocked(
            "its integers are not 0, 1, 2, ... without a gap, each for one string, as LabelEncoder "
            "1 counts them",
            ml_opset=2,
        )
    ordered = [classes[index] for index in range(len(names))]
    context.replace(keep=["default_string", "default_int64"], classes_strings=ordered)


@up("LabelEncoder", 4, "stays as it is", blocks="a key is there twice with different values")
def same_lists(context: Context) -> None:
    """A node without tensors is the same in both, where each key has one value."""
    _refuse_doubled(*_keys_and_values(context))


@down(
    "LabelEncoder",
    4,
    "tensors become lists, int16 and int32 by way of int64, double by way of float",
    blocks="keys are doubles or NaN, double values are no floats, or a key is there twice with "
    "different values",
)
def tensors_as_lists(context: Context) -> None:
    """``keys_tensor`` and ``values_tensor`` become ``keys_int64s``, ``values_floats``, ..."""
    keys, values = _keys_and_values(context)
    _refuse_doubled(keys, values)
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        raise Blocked(
            "a key is NaN, which runtimes of LabelEncoder 2 do not find",
            ml_opset=4,
        )
    if keys.dtype == np.float64:
        raise Blocked("its keys are doubles", ml_opset=4)
    default = _default(context, values)
    held = values
    if values.dtype == np.float64:
        held = values.astype(np.float32)
        if not (_same(held, values) and _same(np.float32(default), default)):
            raise Blocked("its values are doubles that no float holds", ml_opset=4)
    lists: dict[str, Any] = {**_as_list("keys", keys), **_as_list("values", held)}
    name = next(name for ending, (_, name, _) in _LISTS.items() if f"values_{ending}" in lists)
    lists[name] = default if isinstance(default, str) else default.item()
    data, output = context.input(0), context.node.output[0]
    if keys.dtype in (np.int16, np.int32):
        data = context.at(context.target_opset).op.Cast(data, to=TensorProto.INT64)
    if held.dtype == values.dtype and values.dtype not in (np.int16, np.int32):
        context.replace(inputs=[data], keep=(), **lists)
        return
    wide = TensorProto.FLOAT if held.dtype == np.float32 else TensorProto.INT64
    shape = context.type(context.node.input[0])
    made = context.fresh("encoded")
    context.replace(inputs=[data], outputs=[made], keep=(), **lists)
    context.state_type(made, _typed(wide, shape))
    elem_type = helper.np_dtype_to_tensor_dtype(values.dtype)
    context.at(context.target_opset).op.Cast(made, to=elem_type, outputs=[output])


def _typed(elem_type: int, like: ValueType | None) -> ValueType:
    return tensor_type(elem_type, None if like is None else like.dims)


def _input_type(context: Context) -> int:
    found = context.elem_type(context.node.input[0])
    if found is None:
        raise Blocked(
            "the dtype of its input is not known",
            "state it in the model's value_info",
            dtype_of=context.node.input[0],
        )
    return found


def _keys_and_values(context: Context) -> tuple[Array, Array]:
    """Return the keys and the values of a node, as many of each.

    Raises:
        Blocked: there are none, or not as many of each.
    """
    keys, values = _entries(context, "keys"), _entries(context, "values")
    if len(keys) != len(values):
        raise Blocked(
            f"it has {len(keys)} keys and {len(values)} values",
            "mend the model: give it one value for each key",
        )
    return keys, values


def _entries(context: Context, side: str) -> Array:
    """Return the keys or the values of a node, from a list or a tensor."""
    tensor = context.value(f"{side}_tensor")
    if tensor is not None:
        array = numpy_helper.to_array(tensor)
        if array.dtype.kind in "OSU":
            texts = [item.decode() if isinstance(item, bytes) else item for item in array.ravel()]
            return np.array(texts, object)
        return array.ravel()
    for ending, (elem_type, _, _) in _LISTS.items():
        found = context.value(f"{side}_{ending}")
        if found is not None:
            return np.array(found, helper.tensor_dtype_to_np_dtype(elem_type))
    raise Blocked(
        f"it has no {side}", f"mend the model: add {side}_int64s, {side}_strings or the like"
    )


def _default(context: Context, values: Array) -> Any:
    """Return what a node of version 4 gives for other inputs than its keys."""
    tensor = context.value("default_tensor")
    if tensor is not None:
        default = numpy_helper.to_array(tensor).ravel()[0]
        return default.decode() if isinstance(default, bytes) else default
    for elem_type, name, backup in _LISTS.values():
        if helper.tensor_dtype_to_np_dtype(elem_type) == values.dtype:
            found = context.value(name, backup)
            return found if isinstance(found, str) else values.dtype.type(found)
    return values.dtype.type(-0.0 if values.dtype.kind == "f" else -1)


def _as_list(side: str, array: Array) -> dict[str, list[Any]]:
    ending = {"O": "strings", "i": "int64s", "f": "floats"}[array.dtype.kind]
    return {f"{side}_{ending}": array.tolist()}


def _refuse_doubled(keys: Array, values: Array) -> None:
    """Refuse a key with two values: versions and runtimes differ in which of them counts."""
    if len(keys) != len(values):
        raise Blocked(
            "it has not one value for each key", "mend the model: give it as many values as keys"
        )
    found: dict[Any, Any] = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        if found.setdefault(key, value) != value:
            raise Blocked(
                f"its key {key!r} is there twice, with different values",
                "remove one of them from the model",
            )


def _same(narrow: Any, wide: Any) -> bool:
    return bool(np.array_equal(np.asarray(narrow, np.float64), wide, equal_nan=True))
