"""Folding: whatever is folded is what the operator gives when it runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, helper, numpy_helper

from onnxreduce_cli.model.graph.folding import OPERATORS, Folded, fold, shape_of
from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.types.facts import Facts
from tests.support import CannotRunError, model, run

small = st.integers(-6, 6)
vectors = st.lists(small, min_size=0, max_size=5)


def graph(op_type: str, opset: int, arrays: list[Any], **attributes: Any) -> ModelProto:
    """One node on initializers."""
    tensors = [numpy_helper.from_array(array, f"i{n}") for n, array in enumerate(arrays)]
    node = helper.make_node(op_type, [tensor.name for tensor in tensors], ["y"], **attributes)
    output = onnx.ValueInfoProto(name="y")
    output.type.tensor_type.elem_type = 7
    built = helper.make_graph([node], "g", [], [output], tensors)
    return helper.make_model(built, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def agrees(found: ModelProto) -> bool:
    """Whether the value was folded; what is folded must be what an executor gives."""
    all_scopes = scopes(found)
    folded = Facts(found, all_scopes).constant(all_scopes[0], "y")
    if folded is None:
        return False
    found.graph.output[0].type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(folded.dtype)
    try:
        value = run(found, {}, in_numpy=True)["y"]
    except CannotRunError:
        return True
    assert isinstance(value, np.ndarray)
    assert (folded.dtype, folded.shape) == (value.dtype, value.shape)
    np.testing.assert_array_equal(folded, value)
    return True


def i64(values: Any) -> np.ndarray[Any, Any]:
    return np.array(values, np.int64)


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["Add", "Sub", "Mul", "Div", "Equal", "Less", "Greater"]),
    vectors,
    small,
    st.sampled_from([np.int64, np.int32, np.float32]),
)
def test_arithmetic(op_type: str, values: list[int], other: int, dtype: Any) -> None:
    # No division of integers by zero: it may end a process that runs it.
    if op_type == "Div" and np.dtype(dtype).kind == "i":
        assert not agrees(graph(op_type, 13, [np.array([1], dtype), np.array([0], dtype)]))
        other = other or 1
    assert agrees(graph(op_type, 13, [np.array(values, dtype), np.array(other, dtype)]))


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([np.int8, np.uint8, np.int32, np.int64, np.uint64]),
    st.lists(st.integers(-300, 300), max_size=6),
    small,
    st.integers(0, 1),
)
def test_remainders(dtype: Any, values: list[int], divisor: int, fmod: int) -> None:
    info = np.iinfo(dtype)
    whole = [*values, int(info.min), int(info.max)]
    a = np.array([min(max(value, int(info.min)), int(info.max)) for value in whole], dtype)
    b = np.array([divisor], np.int64).astype(dtype)
    if dtype is np.int64 and divisor == -1:
        a = a[a > info.min]  # Dividing it ends a process.
    assert agrees(graph("Mod", 13, [a, b], fmod=fmod)) == bool(divisor)
    floats = [a.astype(np.float32), b.astype(np.float32)]
    assert not agrees(graph("Mod", 13, floats, fmod=1))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(0, 3), min_size=2, max_size=3),
    st.sampled_from([None, 0, 1, -2, 2**40, -(2**40)]),
    st.integers(0, 1),
    st.sampled_from([np.float32, np.int64, bool]),
)
def test_triangles(shape: list[int], k: int | None, upper: int, dtype: Any) -> None:
    x = np.resize(np.array([1, np.nan, np.inf] if dtype is np.float32 else [3, 1], dtype), shape)
    assert agrees(graph("Trilu", 14, [x, *([] if k is None else [i64(k)])], upper=upper))


@settings(max_examples=100, deadline=None)
@given(small, small, small)
def test_range(start: int, limit: int, delta: int) -> None:
    found = graph("Range", 11, [i64(start), i64(limit), i64(delta)])
    assert agrees(found) == (delta != 0)


@settings(max_examples=200, deadline=None)
@given(
    vectors.filter(bool),
    st.integers(-8, 8),
    st.integers(-8, 8),
    st.sampled_from([-2, -1, 1, 2, None]),
    st.sampled_from([10, 11, 13]),
)
def test_slice(values: list[int], start: int, end: int, step: int | None, opset: int) -> None:
    arrays = [i64(values), i64([start]), i64([end]), i64([0])]
    if step is not None:
        arrays.append(i64([step]))
    assert agrees(graph("Slice", opset, arrays))


@settings(max_examples=60, deadline=None)
@given(vectors.filter(bool), st.integers(-8, 8), st.integers(-8, 8))
def test_slice_with_attributes(values: list[int], start: int, end: int) -> None:
    assert agrees(graph("Slice", 9, [i64(values)], starts=[start], ends=[end], axes=[0]))


@settings(max_examples=100, deadline=None)
@given(st.lists(small, min_size=1, max_size=5), st.data())
def test_gather(values: list[int], draw: st.DataObject) -> None:
    size = len(values)
    index = draw.draw(st.integers(-size, size - 1))
    assert agrees(graph("Gather", 13, [i64(values), i64(index)]))
    assert agrees(graph("Gather", 13, [i64(values), i64([index, 0])], axis=0))


@settings(max_examples=60, deadline=None)
@given(st.lists(vectors, min_size=1, max_size=4))
def test_concat(parts: list[list[int]]) -> None:
    assert agrees(graph("Concat", 13, [i64(part) for part in parts], axis=0))


@settings(max_examples=60, deadline=None)
@given(st.permutations([1, 2, 3]), st.sampled_from([[-1], [3, 2], [0, -1], [2, -1], [1, 6], [6]]))
def test_reshape(dims: list[int], shape: list[int]) -> None:
    values = np.arange(6, dtype=np.int64).reshape(dims)
    assert agrees(graph("Reshape", 13, [values, i64(shape)]))


def test_casts_and_the_rest() -> None:
    for array in (i64([1, -2, 0]), np.array([1.7, -2.7, 0.0], np.float32)):
        for to in (6, 7, 1, 11, 9):
            assert agrees(graph("Cast", 13, [array], to=to))
        for op_type in ("Neg", "Abs"):
            assert agrees(graph(op_type, 13, [array]))
        assert agrees(graph("NonZero", 13, [array]))
    assert not agrees(graph("NonZero", 13, [np.array(3)]))  # ONNX Runtime gives it a row.
    assert agrees(graph("Not", 13, [np.array([True, False])]))
    assert agrees(graph("Where", 13, [np.array([True, False]), i64([1, 2]), i64([3, 4])]))
    assert agrees(graph("ConstantOfShape", 13, [i64([2, 3])]))
    assert agrees(
        graph("ConstantOfShape", 13, [i64([2])], value=helper.make_tensor("", 7, [1], [5]))
    )
    for axes in ([0], [-1], [0, 1]):
        assert agrees(graph("Unsqueeze", 13, [i64([1, 2]), i64(axes)]))
        assert agrees(graph("Unsqueeze", 11, [i64([1, 2])], axes=axes))
    assert agrees(graph("Squeeze", 13, [i64([[1]]), i64([0])]))
    assert agrees(graph("Squeeze", 13, [i64([[1]])]))
    assert agrees(graph("Identity", 13, [i64([4])]))
    for options in ({}, {"perm": [0, 2, 1]}):
        cube = i64(np.arange(6)).reshape(1, 2, 3)
        assert agrees(graph("Transpose", 13, [cube], **options))


def test_what_cannot_run_is_not_folded() -> None:
    for found in (
        graph("Concat", 13, [i64([[1]]), i64([2])], axis=0),
        graph("Gather", 13, [i64([1]), i64([5])]),
        graph("Reshape", 13, [i64([1, 2]), i64([3])]),
        graph("Squeeze", 13, [i64([1, 2]), i64([0])]),
        graph("Range", 13, [i64(0), i64(10**9), i64(1)]),
        graph("ConstantOfShape", 13, [i64([10**5, 10**5])]),
    ):
        all_scopes = scopes(found)
        assert Facts(found, all_scopes).constant(all_scopes[0], "y") is None


def test_legacy_broadcasting_is_not_folded() -> None:
    assert not agrees(graph("Add", 6, [i64([1, 2]), i64(1)], broadcast=1))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.one_of(st.integers(0, 9), st.just("N"), st.none()), max_size=5))
def test_a_shape_known_in_part(dims: list[Any]) -> None:
    folded = shape_of(tuple(dims))
    known = [isinstance(dim, int) for dim in dims]
    assert folded.known.tolist() == known
    assert folded.values[folded.known].tolist() == [dim for dim in dims if isinstance(dim, int)]
    assert (folded.constant is None) == (not all(known))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 4), max_size=5),
    st.integers(-6, 6),
    st.one_of(st.none(), st.integers(-6, 6)),
)
def test_a_part_of_a_shape(dims: list[int], start: int, end: int | None) -> None:
    given_end = {} if end is None else {"end": end}
    array = np.zeros(dims, np.float32)
    assert agrees(graph("Shape", 15, [array], start=start, **given_end))


def test_parts_that_are_known_survive_moves_only() -> None:
    shape = shape_of(("N", 3, 4))
    index = Folded.whole(i64([1]))
    picked = fold("Gather", 13, {"axis": 0}, [shape, index])
    assert picked is not None
    assert picked.constant is not None
    assert picked.constant.tolist() == [3]
    unknown = fold("Gather", 13, {"axis": 0}, [shape, Folded.whole(i64([0]))])
    assert unknown is not None
    assert unknown.constant is None
    assert fold("Add", 13, {}, [shape, index]) is None
    joined = fold("Concat", 13, {"axis": 0}, [shape, index])
    assert joined is not None
    assert joined.known.tolist() == [False, True, True, True]


def test_casts_that_numpy_does_otherwise() -> None:
    proto = onnx.TensorProto
    for to in (proto.FLOAT8E4M3FN, proto.FLOAT8E5M2, proto.STRING):
        assert not agrees(graph("Cast", 19, [np.array([1e4, 1], np.float32)], to=to))
    assert not agrees(graph("Cast", 19, [np.array(["1"], object)], to=onnx.TensorProto.INT64))


@pytest.mark.newest
def test_bit_casts() -> None:
    nan = np.array([0x7FC01234, 1], np.uint32)
    for array, to in ((nan, 1), (nan.view(np.float32), 6), (np.array(-1, np.int16), 4)):
        assert agrees(graph("BitCast", 26, [array], to=to))
    assert not agrees(graph("BitCast", 26, [np.array([2], np.uint8)], to=9))


def test_every_operator_is_tested_here() -> None:
    assert len(OPERATORS) == 26, "add the new one to these tests"


@pytest.mark.parametrize("kind", ["raw", "external", "typed"])
def test_initializers_in_every_form(kind: str, tmp_path: Any) -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] x) => (float[1,3] y) <int64[1] axes = {0}> { y = ReduceMax(x, axes) }""")
    tensor = source.graph.initializer[0]
    if kind == "raw":
        tensor.CopyFrom(numpy_helper.from_array(i64([0]), "axes"))
    if kind == "external":
        (tmp_path / "axes.bin").write_bytes(i64([0]).tobytes())
        tensor.ClearField("int64_data")
        tensor.data_location = onnx.TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="axes.bin")
    all_scopes = scopes(source)
    found = Facts(source, all_scopes, str(tmp_path)).constant(all_scopes[0], "axes")
    assert found is not None
    assert found.tolist() == [0]
    if kind == "external":
        assert (
            Facts(source, all_scopes, str(tmp_path / "no")).constant(all_scopes[0], "axes") is None
        )
