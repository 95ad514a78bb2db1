"""DeformConv below the opset that it came with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support import blockers, converts, converts_or_counts, one_node

pytestmark = pytest.mark.usefixtures("any_size")

RNG = np.random.default_rng(5)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def case(
    shape: tuple[int, ...],
    weights: tuple[int, ...],
    after: tuple[int, ...],
    *,
    shared: int = 1,
    bias: bool = False,
    mask: bool = False,
) -> dict[str, np.ndarray | None]:
    """Inputs of a DeformConv with places within the image and outside."""
    elements = shared * int(np.prod(weights[2:]))
    inputs: dict[str, np.ndarray | None] = {
        "x": normal(*shape),
        "w": normal(*weights),
        "offset": normal(shape[0], elements * len(after), *after) * 2,
        "b": normal(weights[0]) if bias else None,
    }
    if mask:
        inputs["mask"] = normal(shape[0], elements, *after)
    return inputs


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(
    ("inputs", "attributes"),
    [
        (case((2, 2, 4, 5), (3, 2, 2, 2), (3, 4)), {}),
        (case((1, 4, 5, 6), (2, 2, 3, 2), (4, 7), bias=True), {"group": 2, "pads": [1, 1, 0, 1]}),
        (
            case((2, 4, 7, 8), (4, 4, 2, 3), (3, 6), shared=2, bias=True, mask=True),
            {"offset_group": 2, "strides": [2, 1], "dilations": [2, 1]},
        ),
    ],
)
def test_deform_conv(inputs: dict[str, Any], attributes: dict[str, Any], dynamic: bool) -> None:
    feeds = {name: array for name, array in inputs.items() if array is not None}
    shapes = {"x": ["n", "c", "h", "w"], "offset": ["n", "o", "i", "j"]} if dynamic else {}
    shapes |= {"mask": ["n", "m", "i", "j"]} if dynamic and "mask" in feeds else {}
    source = one_node(
        "DeformConv",
        19,
        inputs,
        initializers=("w",),
        shapes=shapes,
        output_shapes=[["n", len(feeds["w"]), "i", "j"]] if dynamic else (),
        **attributes,
    )
    for opset in (18, 9, 7):
        converts_or_counts(source, opset, feeds, in_numpy=True)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_dtypes(dtype: type) -> None:
    inputs = case((1, 2, 4, 5), (3, 2, 2, 2), (3, 4))
    feeds = {name: array.astype(dtype) for name, array in inputs.items() if array is not None}
    converts(one_node("DeformConv", 19, feeds), 18, feeds, in_numpy=True)


@pytest.mark.parametrize(
    "inputs",
    [
        case((2, 2, 6), (3, 2, 3), (4,)),
        case((1, 2, 3, 4, 5), (3, 2, 2, 2, 2), (2, 3, 4), mask=True),
    ],
)
def test_lines_and_volumes(inputs: dict[str, Any]) -> None:
    feeds = {name: array for name, array in inputs.items() if array is not None}
    for opset in (18, 7):
        converts_or_counts(one_node("DeformConv", 19, inputs), opset, feeds, in_numpy=True)


def test_offsets_that_are_no_finite_numbers_lead_outside() -> None:
    inputs = case((2, 2, 4, 5), (3, 2, 2, 2), (3, 4))
    offset = inputs["offset"]
    assert offset is not None
    offset[0, :6, 0, 1] = offset[1, 1:7, 2, 3] = [np.nan, np.inf, -np.inf, -np.inf, np.nan, np.inf]
    feeds = {name: array for name, array in inputs.items() if array is not None}
    source = one_node("DeformConv", 19, inputs)
    for target in (18, 9):
        converts(source, target, feeds)
        converts(source, target, feeds, in_numpy=True)


def test_an_unknown_kernel() -> None:
    feeds = {k: a for k, a in case((1, 2, 4, 5), (3, 2, 2, 2), (3, 4)).items() if a is not None}
    shapes = {"w": [3, 2, "k", "l"]}
    output = [[1, 3, "i", "j"]]
    source = one_node("DeformConv", 19, feeds, shapes=shapes, output_shapes=output)
    (blocker,) = blockers(source, 18)
    assert "kernel" in blocker.reason
    source = one_node(
        "DeformConv", 19, feeds, shapes=shapes, output_shapes=output, kernel_shape=[2, 2]
    )
    converts(source, 18, feeds, in_numpy=True)
