"""LabelEncoder of ai.onnx.ml, across 2 and 4."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper

from onnxreduce import ConversionError, convert
from tests.steps.ml.models import DTYPES, of_node, same_at

STRINGS = np.array(["a", "c", "?", ""], object)
INTEGERS = np.array([0, 2, -1, 7], np.int64)


def encoder(version: int, x: Any, elem_type: int, **attributes: Any) -> Any:
    return of_node("LabelEncoder", version, x, {"y": (elem_type, ["N"])}, **attributes)


def tensor(values: list[Any], dtype: Any) -> TensorProto:
    return numpy_helper.from_array(np.array(values, dtype))


@pytest.mark.parametrize("version", [2, 4])
def test_one_list_becomes_two(version: int) -> None:
    classes = {"classes_strings": ["c", "a"], "default_int64": -9, "default_string": "none"}
    result = same_at(encoder(1, STRINGS, TensorProto.INT64, **classes), version, STRINGS)
    assert {item.name for item in result.graph.node[0].attribute} >= {
        "keys_strings",
        "values_int64s",
    }
    same_at(encoder(1, INTEGERS, TensorProto.STRING, **classes), version, INTEGERS)


def test_two_lists_become_one() -> None:
    """In the order of the integers, whatever that of the lists is."""
    words = {"keys_int64s": [2, 0, 1], "values_strings": ["c", "a", "b"], "default_string": "no"}
    result = same_at(encoder(2, INTEGERS, TensorProto.STRING, **words), 1, INTEGERS)
    found = {item.name: item for item in result.graph.node[0].attribute}
    assert list(found["classes_strings"].strings) == [b"a", b"b", b"c"]
    numbers = {"keys_strings": ["c", "a"], "values_int64s": [1, 0], "default_int64": 5}
    same_at(encoder(4, STRINGS, TensorProto.INT64, **numbers), 1, STRINGS)


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"keys_strings": ["a", "b"], "values_int64s": [1, 2]}, "not 0, 1, 2"),
        ({"keys_strings": ["a", "b"], "values_int64s": [0, 0]}, "not 0, 1, 2"),
        ({"keys_strings": ["a", "b"], "values_strings": ["x", "y"]}, "strings and int64 only"),
        ({"keys_strings": ["a", "b"], "values_floats": [0.0, 1.0]}, "strings and int64 only"),
    ],
)
def test_what_one_list_cannot_say_blocks(attributes: dict[str, Any], reason: str) -> None:
    elem_type = {
        "values_int64s": TensorProto.INT64,
        "values_strings": TensorProto.STRING,
        "values_floats": TensorProto.FLOAT,
    }[[*attributes][1]]
    with pytest.raises(ConversionError, match=reason):
        convert(encoder(2, STRINGS, elem_type, **attributes), ml_opset=1)


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.int16, np.int32, np.float64])
@pytest.mark.parametrize("default", [True, False])
def test_values_in_tensors_become_lists(dtype: Any, default: bool) -> None:
    attributes: dict[str, Any] = {
        "keys_tensor": tensor(["a", "b", "c"], object),
        "values_tensor": tensor([3, 0, 5], dtype),
    }
    if default:
        attributes["default_tensor"] = tensor([-7], dtype)
    made = encoder(4, STRINGS, DTYPES[np.dtype(dtype)], **attributes)
    narrow = dtype in (np.int16, np.int32, np.float64)
    try:
        result = same_at(made, 2, STRINGS)
    except Exception as error:  # ONNX Runtime has kernels of a few combinations only.
        if "Could not find an implementation" not in str(error):
            raise
        result = convert(made, ml_opset=2, check=False)
    assert [node.op_type for node in result.graph.node] == ["LabelEncoder", *["Cast"] * narrow]


def test_narrow_keys_are_looked_up_as_int64() -> None:
    x = np.array([5, 6, 9], np.int32)
    made = encoder(
        4,
        x,
        TensorProto.INT64,
        keys_tensor=tensor([5, 6], np.int32),
        values_tensor=tensor([1, 2], np.int64),
    )
    result = convert(made, ml_opset=2)
    assert [node.op_type for node in result.graph.node] == ["Cast", "LabelEncoder"]
    found = {item.name: list(item.ints) for item in result.graph.node[1].attribute if item.ints}
    assert found == {"keys_int64s": [5, 6], "values_int64s": [1, 2]}


@pytest.mark.parametrize(
    ("dtype", "keys", "values", "reason"),
    [
        (np.float64, [0.1], tensor([1], np.int64), "keys are doubles"),
        (np.float32, [np.nan, 1], tensor([1, 2], np.int64), "a key is NaN"),
        (np.int64, [1, 1], tensor([1, 2], np.int64), "is there twice"),
        (np.int64, [1], tensor([0.1], np.float64), "doubles that no float holds"),
    ],
)
def test_tensors_that_lists_cannot_hold_block(
    dtype: Any, keys: list[Any], values: TensorProto, reason: str
) -> None:
    x = np.array([1], dtype)
    made = encoder(4, x, values.data_type, keys_tensor=tensor(keys, dtype), values_tensor=values)
    with pytest.raises(ConversionError, match=reason):
        convert(made, ml_opset=2)


def test_a_key_with_two_values_is_not_moved_up() -> None:
    """ONNX Runtime takes the first of them, and version 4 the last."""
    made = encoder(2, INTEGERS, TensorProto.INT64, keys_int64s=[1, 1], values_int64s=[1, 2])
    with pytest.raises(ConversionError, match="its key 1 is there twice"):
        convert(made, ml_opset=4)
    twice = encoder(1, STRINGS, TensorProto.INT64, classes_strings=["a", "a"])
    with pytest.raises(ConversionError, match="a class is there twice"):
        convert(twice, ml_opset=2)


@pytest.mark.parametrize("version", [1, 4])
def test_keys_without_values_block(version: int) -> None:
    made = encoder(2, STRINGS, TensorProto.INT64, keys_strings=["a", "b"], values_int64s=[0])
    with pytest.raises(ConversionError, match="it has 2 keys and 1 values"):
        convert(made, ml_opset=version)
