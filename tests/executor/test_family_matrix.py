"""The family against the oracle: every since-version, dtype and form of axes."""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper

from onnxreduce_cli.executor import run
from tests.executor import oracle
from tests.executor.models import LATEST, model, value

REDUCE = [
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax",
    "ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
]  # fmt: skip
NORMALISE = ["Softmax", "LogSoftmax", "Hardmax"]
SHAPES = [(2, 3, 4), (5,), (), (2, 0, 3)]
# Every n-th case runs by default; the whole with -m matrix.
SAMPLE = 6

DTYPES = {
    f"tensor({name})": np.dtype(dtype)
    for name, dtype in {
        "float": np.float32,
        "double": np.float64,
        "float16": np.float16,
        "bfloat16": ml_dtypes.bfloat16,
        "int8": np.int8,
        "uint8": np.uint8,
        "int32": np.int32,
        "int64": np.int64,
        "uint32": np.uint32,
        "uint64": np.uint64,
        "bool": np.bool_,
    }.items()
}


@dataclass(frozen=True)
class Case:
    op: str
    since: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    values: str
    axes: tuple[int, ...] | None = None
    keepdims: int = 1
    noop: int | None = None
    axis: int | None = None


def versions(op: str) -> list[int]:
    return sorted(
        s.since_version
        for s in onnx.defs.get_all_schemas_with_history()
        if s.name == op and s.domain == "" and s.since_version <= LATEST
    )


def axes_forms(rank: int, since: int) -> list[tuple[int, ...] | None]:
    forms: list[tuple[int, ...] | None] = [None, ()]
    if rank:
        forms += [(0,), tuple(range(rank))]
    if rank > 2:
        forms += [(0, 2), (2, 1)]
    if rank and since >= 11:
        forms += [(-1,), tuple(range(-rank, 0))]
    return list(dict.fromkeys(forms))


def reduce_cases(op: str) -> Iterator[Case]:
    for since in versions(op):
        schema = onnx.defs.get_schema(op, since, "")
        noops = [None, 0, 1] if "noop_with_empty_axes" in schema.attributes else [None]
        for kind in sorted(schema.inputs[0].types):
            dtype = DTYPES[kind]
            floats = dtype.kind not in "iub"
            shapes = [(shape, "plain") for shape in SHAPES]
            shapes += [((2, 3, 4), "special"), ((3, 2), "large" if floats else "extreme")]
            for (shape, values), keepdims in itertools.product(shapes, (0, 1)):
                for axes, noop in itertools.product(axes_forms(len(shape), since), noops):
                    if noop == 0 and axes:
                        continue  # the same as leaving it out
                    yield Case(op, since, dtype, shape, values, axes, keepdims, noop)


def normalise_cases(op: str) -> Iterator[Case]:
    for since in versions(op):
        schema = onnx.defs.get_schema(op, since, "")
        for kind in sorted(schema.inputs[0].types):
            for shape in [*SHAPES, (3, 1, 2, 2), (4, 3)]:
                axes: list[int | None] = list(range(len(shape)))
                if since >= 11:
                    axes += range(-len(shape), 0)
                if (len(shape) >= 2 or since == 13) and shape:
                    axes.append(None)
                for axis, values in itertools.product(axes, ("plain", "special", "large")):
                    yield Case(op, since, DTYPES[kind], shape, values, axis=axis)


def all_cases(op: str) -> list[Case]:
    return list(reduce_cases(op) if op in REDUCE else normalise_cases(op))


def data_of(case: Case) -> np.ndarray[Any, Any]:
    rng = np.random.default_rng(zlib.crc32(repr(case).encode()))
    size = math.prod(case.shape)
    if case.dtype.kind == "b":
        return rng.integers(0, 2, size).astype(bool).reshape(case.shape)
    if case.dtype.kind in "iu":
        info = np.iinfo(case.dtype)
        low = 0 if case.dtype.kind == "u" else -9
        flat = rng.integers(low, 12, size).astype(case.dtype)
        if case.values == "special":
            flat[:] = 0
        if case.values == "extreme" and case.op not in {
            "ReduceL2", "ReduceLogSum", "ReduceLogSumExp",
        }:  # fmt: skip
            flat = rng.integers(info.min, info.max, size, dtype=case.dtype, endpoint=True)
            flat[0], flat[-1] = info.min, info.max
        return flat.reshape(case.shape)
    real = rng.normal(0, 2, size)
    if case.values == "special" and size > 1:
        picks = rng.integers(0, size, 4)
        real[picks] = [-np.inf, np.inf, 0.0, -np.inf]
        if rng.integers(2):
            real[picks[0]] = np.nan
        if rng.integers(2):
            real[:] = -np.inf
    if case.values == "large":
        real *= 40
    if case.op == "Hardmax":
        real = np.round(np.nan_to_num(real, nan=0.0))  # ties, and no NaN: not ordered
    return real.astype(case.dtype).reshape(case.shape)


def build(case: Case) -> tuple[onnx.ModelProto, dict[str, np.ndarray[Any, Any]]]:
    data = data_of(case)
    inputs = {"x": data}
    attrs: dict[str, Any] = {}
    if case.op in REDUCE:
        if case.keepdims == 0 or zlib.crc32(repr(case).encode()) % 2:
            attrs["keepdims"] = case.keepdims
        if case.noop is not None:
            attrs["noop_with_empty_axes"] = case.noop
        if case.axes is not None:
            if "axes" in onnx.defs.get_schema(case.op, case.since, "").attributes:
                attrs["axes"] = list(case.axes)
            else:
                inputs["axes"] = np.array(case.axes, dtype=np.int64)
    elif case.axis is not None:
        attrs["axis"] = case.axis
    node = helper.make_node(case.op, list(inputs), ["y"])
    for name, given in attrs.items():
        kind = onnx.AttributeProto.INTS if isinstance(given, list) else None
        node.attribute.append(helper.make_attribute(name, given, attr_type=kind))
    typed = [value(k, v.dtype, None) for k, v in inputs.items()]
    return model([node], typed, ["y"], case.since), inputs


def expected(case: Case, data: np.ndarray[Any, Any]) -> tuple[tuple[int, ...], list[Any]]:
    if case.op in REDUCE:
        return oracle.reduce(case.op, data, case.axes, case.keepdims, case.noop or 0)
    axis = case.axis if case.axis is not None else (-1 if case.since >= 13 else 1)
    return data.shape, oracle.normalise(case.op, data, axis, coerce=case.since < 13)


def close(got: float, want: float, dtype: np.dtype[Any]) -> bool:
    rounded = float(np.asarray(want).astype(dtype))
    if math.isnan(rounded) or math.isinf(rounded) or rounded == got:
        return got == rounded or (math.isnan(got) and math.isnan(rounded))
    # One rounding of the dtype; for double, a few, and cancellation near 0.
    step = float(ml_dtypes.finfo(dtype).eps)
    few = 8 if dtype == np.float64 else 1
    return abs(got - want) <= few * step * abs(want) + 1e-13


def mismatch(case: Case) -> str | None:
    built, inputs = build(case)
    y = run(built, inputs)["y"]
    with np.errstate(all="ignore"):
        shape, want = expected(case, inputs["x"])
        if not isinstance(y, np.ndarray) or y.dtype != case.dtype or y.shape != shape:
            return f"{case}: {getattr(y, 'dtype', None)}{getattr(y, 'shape', None)}, not {shape}"
        for got, right in zip(y.reshape(-1), want, strict=True):
            if right is None:
                continue
            if case.dtype.kind in "iub":
                same = int(got) == int(right)
            else:
                same = close(float(got), float(right), case.dtype)
            if not same:
                return f"{case}: {got} instead of {right} for {inputs['x'].tolist()}"
    return None


def check(cases: list[Case]) -> None:
    wrong = [text for case in cases if (text := mismatch(case)) is not None]
    assert not wrong, f"{len(wrong)} of {len(cases)} cases are wrong, e.g. {wrong[:3]}"


@pytest.mark.parametrize("op", [*REDUCE, *NORMALISE])
def test_sampled_cases_agree_with_the_oracle(op: str) -> None:
    cases = all_cases(op)[::SAMPLE]
    assert len(cases) >= 30
    check(cases)


@pytest.mark.matrix
@pytest.mark.parametrize("op", [*REDUCE, *NORMALISE])
def test_all_cases_agree_with_the_oracle(op: str) -> None:
    check(all_cases(op))


def test_the_matrix_is_as_large_as_it_claims() -> None:
    cases = [case for op in [*REDUCE, *NORMALISE] for case in all_cases(op)]
    assert len(set(cases)) == len(cases) >= 16_000


def test_every_version_of_the_family_is_in_the_matrix() -> None:
    for op in [*REDUCE, *NORMALISE]:
        assert {case.since for case in all_cases(op)} == set(versions(op))


def test_the_oracle_itself() -> None:
    data = np.array([[1.0, 2.0], [3.0, 4.0]])
    assert oracle.reduce("ReduceSum", data, [0], 0, 0) == ((2,), [4.0, 6.0])
    assert oracle.reduce("ReduceMean", data, None, 1, 0) == ((1, 1), [2.5])
    assert oracle.reduce("ReduceSumSquare", data, [], 1, 1) == ((2, 2), [1.0, 4.0, 9.0, 16.0])
    assert oracle.normalise("Hardmax", data, 0, coerce=True) == [0.0, 0.0, 0.0, 1.0]
    assert oracle.normalise("Hardmax", data, 0, coerce=False) == [0.0, 0.0, 1.0, 1.0]
