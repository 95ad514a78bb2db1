"""Operators that make tensors of a given shape, and Einsum, below the opset they came with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import blockers, converts, model, one_node, op_types


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 0, 1, -2, 9])
@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool, np.uint8])
def test_trilu(upper: int, k: int | None, dtype: type) -> None:
    x = np.ones((2, 3, 4), dtype)
    if dtype == np.float32:
        x[:, 0, 3], x[:, 2, 0] = np.nan, np.inf
    inputs: dict[str, Any] = {"x": x}
    if k is not None:
        inputs["k"] = np.array(k)
    known = one_node("Trilu", 14, inputs, upper=upper, initializers=("k",))
    shapes = {"x": ["n", "r", "c"]}
    named = one_node("Trilu", 14, inputs, upper=upper, shapes=shapes)
    empty = {**inputs, "x": x[:, :0]}
    for target in (13, 11, 9):
        converts(known, target, inputs, exact=True)
        converts(named, target, inputs, empty, exact=True)
    for target in (8, 7) if dtype == np.float32 else ():
        converts(known, target, inputs, exact=True)


@pytest.mark.newest
def test_constant_of_shape() -> None:
    for value in (None, np.array([-0.0]), np.array([7], np.int64), np.array([True])):
        options = {} if value is None else {"value": numpy_tensor(value)}
        for shape in ([2, 3], [0, 2], [], [1]):
            inputs = {"shape": np.array(shape, np.int64)}
            known = one_node("ConstantOfShape", 9, inputs, initializers=("shape",), **options)
            named = one_node(
                "ConstantOfShape", 9, inputs, output_shapes=[[None] * len(shape)], **options
            )
            for target in (8, 7):
                assert "ConstantOfShape" not in op_types(converts(known, target, {}))
                if 0 not in shape:
                    converts(named, target, inputs, exact=True)


def numpy_tensor(value: np.ndarray) -> Any:
    from onnx import numpy_helper

    return numpy_helper.from_array(value)


@pytest.mark.parametrize("shape", [[2, 3], [4, 1, 3], [3], [1], [2, 1]])
def test_expand(shape: list[int]) -> None:
    for dims in ((2, 3), (3,), (1, 3), (2, 1), ()):
        try:
            np.broadcast_shapes(dims, tuple(shape))
        except ValueError:
            continue
        x = np.full(dims, np.nan, np.float32)
        inputs = {"x": x, "shape": np.array(shape, np.int64)}
        rank = max(len(dims), len(shape))
        names = [f"d{axis}" for axis in range(len(dims))]
        for initializers, shapes in ((("shape",), {}), ((), {}), (("shape",), {"x": names})):
            source = one_node(
                "Expand",
                8,
                inputs,
                initializers=initializers,
                shapes=shapes,
                output_shapes=[[None] * rank],
            )
            converts(source, 7, inputs, exact=True)


@pytest.mark.parametrize("length", ["r", 2])
@pytest.mark.parametrize("rank", ["k", 1])
def test_expand_to_unknown_rank(rank: int | str, length: int | str) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 8]>
        g (float[n] x, int64[{rank}] dims, int64[{length}] shape) => (float[a,b] y) {{
            shaped = Reshape(x, dims)
            y = Expand(shaped, shape)
        }}""")
    cases: list[tuple[list[int], list[int]]] = [([3], [2, 3]), ([1], [2, 4]), ([1], [2, 0])]
    cases += [([0], [2, 1])]
    if rank == "k":
        cases += [([], [2, 3]), ([2, 1], [1, 3]), ([1, 3], [2, 1])]
    if rank == "k" and length == "r":
        cases += [([2, 3], []), ([2, 1], [3]), ([0, 1], [4])]
    feeds = [
        {
            "x": np.arange(np.prod(dims), dtype=np.float32),
            "dims": np.array(dims, np.int64),
            "shape": np.array(shape, np.int64),
        }
        for dims, shape in cases
    ]
    converts(source, 7, *feeds, exact=True)


RANGES = [(0, 5, 1), (5, 0, -2), (2, 9, 3), (3, 3, 1), (4, 1, 1), (1, 4, -1), (-7, 8, 5)]


@pytest.mark.parametrize("bounds", RANGES)
@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32, np.float64])
def test_range(bounds: tuple[int, int, int], dtype: type) -> None:
    inputs = {
        name: np.array(value, dtype) for name, value in zip(("a", "b", "c"), bounds, strict=True)
    }
    for initializers in ((), ("a", "c"), ("a", "b", "c")):
        source = one_node("Range", 11, inputs, initializers=initializers)
        for target in (10, 9):
            converts(source, target, inputs)
    if np.issubdtype(dtype, np.floating):
        for target in (8, 7):
            converts(one_node("Range", 11, inputs), target, inputs)
    fractions = {"a": np.array(0.1, dtype), "b": np.array(1.05, dtype), "c": np.array(0.3, dtype)}
    if np.issubdtype(dtype, np.floating):
        converts(one_node("Range", 11, fractions), 10, fractions)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis: int) -> None:
    indices = np.array([[0, 2], [5, 1]])
    for values in (np.array([0, 1], np.float32), np.array([np.nan, -3], np.float32)):
        inputs = {"i": indices, "d": np.array(3), "v": values}
        for initializers in ((), ("d",)):
            source = one_node(
                "OneHot",
                9,
                inputs,
                initializers=initializers,
                axis=axis,
                output_shapes=[[None, None, None]],
            )
            for target in (8, 7):
                converts(source, target, inputs, {**inputs, "i": indices[::-1]})


@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2, -3])
def test_one_hot_of_unknown_rank(axis: int) -> None:
    values = np.array([np.nan, -3], np.float32)
    inputs = {"i": np.array([[0, 2], [5, 1]]), "d": np.array(3), "v": values}
    source = one_node("OneHot", 9, inputs, axis=axis, hidden=("i",), output_shapes=[[None] * 3])
    if axis < -1:
        source.opset_import[0].version = 11
    for target in (8, 7):
        converts(source, target, inputs)


@pytest.mark.parametrize("upper", [0, 1])
def test_trilu_of_unknown_rank(upper: int) -> None:
    x = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    source = one_node("Trilu", 14, {"x": x, "k": np.array(1)}, upper=upper, hidden=("x",))
    for target in (13, 9, 7):
        feeds = [{"x": x, "k": np.array(k)} for k in (1, -1)]
        converts(source, target, *feeds, exact=True)
        converts(source, target, {"x": x[:, :0], "k": np.array(0)}, exact=True, in_numpy=True)


def test_eye_like() -> None:
    x = np.ones((2, 3), np.int32)
    for options in ({}, {"k": 1, "dtype": 1}, {"k": -1}):
        converts(one_node("EyeLike", 9, {"x": x}, **options), 8, {"x": x})
        named = one_node(
            "EyeLike", 9, {"x": x}, shapes={"x": ["n", "m"]}, output_shapes=[["n", "m"]], **options
        )
        for target in (8, 7):
            converts(named, target, {"x": x}, {"x": np.ones((4, 1), np.int32)})


@pytest.mark.parametrize(
    ("op_type", "opset", "inputs", "options"),
    [
        ("EyeLike", 9, {"x": np.ones((1100, 1000), np.int32)}, {"k": 3}),
        ("Trilu", 14, {"x": np.ones((1100, 1000), np.float32)}, {"upper": 0}),
        (
            "OneHot",
            9,
            {"i": np.array([1, 1_999_999]), "depth": np.array(2_000_000), "v": np.array([0, 1])},
            {"initializers": ("depth",)},
        ),
    ],
)
def test_large_constants_are_not_written_into_the_model(
    op_type: str, opset: int, inputs: dict[str, Any], options: dict[str, Any]
) -> None:
    source = one_node(op_type, opset, inputs, **options)
    assert converts(source, opset - 1, inputs).ByteSize() < 20_000


EQUATIONS = [
    ("ij->ji", [(2, 3)]),
    ("ij->j", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij", [(2, 3)]),
    ("ii->i", [(3, 3)]),
    ("iji->j", [(3, 2, 3)]),
    ("ii", [(3, 3)]),
    ("...ij->...ji", [(4, 2, 3)]),
    ("i,i", [(3,), (3,)]),
    ("i,j->ij", [(3,), (2,)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,jk->ki", [(2, 3), (3, 4)]),
    ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("bqhd,bkhd->bhqk", [(2, 4, 3, 5), (2, 6, 3, 5)]),
    ("bhqk,bkhd->bqhd", [(2, 3, 4, 6), (2, 6, 3, 5)]),
    ("abc,cde->abde", [(2, 3, 4), (4, 5, 6)]),
    ("abcd,cde->abe", [(2, 3, 4, 5), (4, 5, 6)]),
    ("abcd,dce->abe", [(2, 3, 4, 5), (5, 4, 6)]),
    ("ab,cd->ac", [(2, 3), (4, 5)]),
    ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("ij,ij->i", [(2, 3), (2, 3)]),
    ("...ij,...jk->...ik", [(4, 2, 3), (1, 3, 5)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("i,ij,j->", [(2,), (2, 3), (3,)]),
    ("bij, bjk -> bik", [(2, 0, 3), (2, 3, 4)]),
    ("ij,jk->ik", [(2, 0), (0, 4)]),
    ("Bn,nB->B", [(2, 3), (3, 2)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
@pytest.mark.newest
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(2)
    for dtype in (np.float32, np.float64, np.int64):
        inputs = {
            f"x{index}": (rng.normal(size=shape) * 5).astype(dtype)
            for index, shape in enumerate(shapes)
        }
        rank = np.einsum(equation, *inputs.values()).ndim
        output = [[None] * rank]
        source = one_node("Einsum", 12, inputs, equation=equation, output_shapes=output)
        for target in (11, 9, 7) if dtype != np.int64 else (11, 9):
            converts(source, target, inputs)
        if "ii" in equation or "iji" in equation:
            continue
        named = {
            name: [f"{name}_{axis}" for axis in range(array.ndim)] for name, array in inputs.items()
        }
        symbolic = one_node(
            "Einsum", 12, inputs, equation=equation, output_shapes=output, shapes=named
        )
        converts(symbolic, 11, inputs)


@pytest.mark.parametrize("equation", ["ii->i", "iij->ji", "jii", "iji,i->ij"])
def test_einsum_of_a_diagonal_of_unknown_size(equation: str) -> None:
    x = np.arange(9, dtype=np.float32)
    shape = [3] * len(equation.partition(",")[0].partition("->")[0])
    inputs = {"x": np.resize(x, shape)} | ({"z": x[:3]} if "," in equation else {})
    names = {name: ["n"] * array.ndim for name, array in inputs.items()}
    rank = np.einsum(equation, *inputs.values()).ndim
    source = one_node(
        "Einsum", 12, inputs, equation=equation, shapes=names, output_shapes=[[None] * rank]
    )
    for target in (11, 8):
        converts(source, target, inputs)


def test_einsum_that_cannot() -> None:
    x = np.ones((3, 3), np.float32)
    unranked = one_node(
        "Einsum",
        12,
        {"x": x},
        equation="i...->i",
        hidden=("x",),
        output_shapes=[[None]],
    )
    assert "rank" in blockers(unranked, 11)[0].reason
    of_two = one_node(
        "Einsum", 12, {"x": x}, equation="ij->ji", hidden=("x",), output_shapes=[[None, None]]
    )
    converts(of_two, 11, {"x": x})
