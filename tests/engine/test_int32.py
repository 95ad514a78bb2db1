"""Values of int64 as int32: what is proven, and what stays behind a Cast."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, TensorProto, numpy_helper

from onnxreduce_cli.engine.passes.int32 import cast_places, int64_places, unproven
from onnxreduce_cli.executor.run import run
from onnxreduce_cli.model.graph.dtype_change import DtypeChange
from onnxreduce_cli.model.types.intervals import Interval
from tests.model.types.known import facts_of

HEAD = '<ir_version: 8, opset_import: ["" : 17]>'

EMBEDDING = """g (int64[2, 3] ids, float[2, 3] x, float[50, 1] table)
    => (float[6, 1] z, int64[2] k, int64[2] n)
    <int64[1] one = {1}, int64[1] zero = {0}, int64[1] six = {6}> {
        two = Constant <value_int = 2> ()
        s = Shape (x)
        r = Gather (s, zero)
        t = Mul (r, six)
        u = Div (t, r)
        v = Concat <axis = 0> (u, one)
        e = Add (ids, one)
        rows = Gather (table, e)
        z = Reshape (rows, v)
        k = ArgMax <axis = 1, keepdims = 0> (x)
        n = Mul (s, two)
    }"""


def model(text: str) -> ModelProto:
    return onnx.parser.parse_model(f"{HEAD} {text}")


def unproven_names(source: ModelProto, **assumed: tuple[int, int]) -> list[str]:
    facts, _ = facts_of(source)
    stated = {name: Interval(*ends) for name, ends in assumed.items()}
    return [item.name for item in unproven(facts, int64_places(facts), stated)]


def narrowed(source: ModelProto) -> ModelProto:
    result = ModelProto()
    result.CopyFrom(source)
    facts, found = facts_of(result)
    places = int64_places(facts)
    change = DtypeChange(result, TensorProto.INT64, TensorProto.INT32, ())
    for tensor in change.tensors:
        array = numpy_helper.to_array(tensor).astype(np.int32)
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    cast_places(found, places, set(change.fixed))
    onnx.checker.check_model(result, full_check=True)
    return result


def by_runtime(source: ModelProto, feeds: dict[str, Any]) -> dict[str, Any]:
    session = onnxruntime.InferenceSession(
        source.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    names = [item.name for item in source.graph.output]
    return dict(zip(names, session.run(names, feeds), strict=True))


def test_an_input_is_unproven_with_all_that_follows_until_its_range_is_stated() -> None:
    source = model(EMBEDDING)
    assert unproven_names(source) == ["ids", "e"]
    assert unproven_names(source, ids=(0, 48)) == []
    assert unproven_names(source, ids=(0, 2**31 - 1)) == ["e"]


def test_a_size_that_is_not_known_is_unproven() -> None:
    source = model('g (float["n", 3] x) => (int64[2] y) { s = Shape (x) y = Add (s, s) }')
    assert unproven_names(source) == ["s", "y"]


def test_a_size_that_only_shapes_read_needs_no_proof() -> None:
    source = model(
        'g (float["n", 3] x, float[6] v) => (float["n", 3] y) { s = Shape (x) y = Reshape (v, s) }'
    )
    assert unproven_names(source) == []


def test_values_are_equal_in_both_dtypes() -> None:
    source = model(EMBEDDING)
    result = narrowed(source)
    feeds = {
        "ids": np.array([[0, 48, 1], [2, 3, 47]]),
        "x": np.array([[1, 3, 2], [5, 4, 3]], np.float32),
        "table": np.arange(50, dtype=np.float32).reshape(50, 1),
    }
    fed = {**feeds, "ids": feeds["ids"].astype(np.int32)}
    for runs in (run, by_runtime):
        before, after = runs(source, feeds), runs(result, fed)
        assert before.keys() == after.keys()
        for name, array in before.items():
            assert isinstance(array, np.ndarray)
            assert np.array_equal(array, after[name])
            assert after[name].dtype == (np.float32 if name == "z" else np.int32)
