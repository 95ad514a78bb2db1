"""Activations: Gelu, Mish, HardSwish, Swish, SwiGLU, Celu, ThresholdedRelu, Shrink, Selu, Relu."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from onnxreduce_cli import schemas
from tests.support import converts, model, one_node

NASTY = [0.0, -0.0, 1e-20, -1e-7, 0.3, -0.5, 1, -1, 3, -3, 8.7, -9, 60, -100, 3e4, -3e4]


SPECIAL = [np.inf, -np.inf, np.nan]


def _nasty(dtype: type) -> np.ndarray:
    more = [1e30, -1e30] if dtype != np.float16 else [6e4, -6e4]
    return np.array([*NASTY, *more, *SPECIAL], dtype)


ACTIVATIONS = [
    ("Gelu", 20, {}, (19, 17, 13, 9)),
    ("Gelu", 20, {"approximate": "tanh"}, (19, 13, 9, 7)),
    ("Mish", 18, {}, (17, 13, 11, 9, 7)),
    ("HardSwish", 14, {}, (13, 11, 9, 7)),
    ("Swish", 24, {}, (23, 13, 11, 7)),
    ("Swish", 24, {"alpha": 1.7}, (23, 13, 11, 7)),
    ("SwiGLU", 28, {"alpha": -0.3}, (27, 23, 13, 11, 7)),
    ("Celu", 12, {}, (11, 9, 7)),
    ("Celu", 12, {"alpha": 0.01}, (11, 9, 7)),
    ("ThresholdedRelu", 10, {"alpha": 0.25}, (9, 8, 7)),
    ("Shrink", 9, {"lambd": 1.0, "bias": 0.5}, (8, 7)),
]


def _has_dtype(case: tuple[Any, ...], dtype: type) -> bool:
    """Whether the operator's first version takes the dtype and ONNX Runtime computes in it."""
    op_type, _, attributes, _ = case
    if op_type == "Celu":
        return dtype == np.float32
    # Of doubles ONNX Runtime computes these, or their factors, in float.
    in_float = op_type == "Shrink" or attributes.get("approximate") == "tanh"
    return dtype != np.float64 or not in_float


@pytest.mark.parametrize(
    ("op_type", "opset", "attributes", "targets", "dtype"),
    [
        (*case, dtype)
        for case in ACTIVATIONS
        if case[1] <= schemas.newest_opset()
        for dtype in (np.float32, np.float64, np.float16)
        if _has_dtype(case, dtype)
    ],
)
def test_element_wise(
    op_type: str, opset: int, attributes: dict[str, Any], targets: tuple[int, ...], dtype: type
) -> None:
    data = _nasty(dtype)
    names = ["x", "y"] if op_type == "SwiGLU" else ["x"]
    arrays = dict(zip(names, (data, data[::-1].copy()), strict=False))
    source = one_node(op_type, opset, arrays, **attributes)
    for target in targets:
        converts(source, target, arrays, {name: array[::-1] for name, array in arrays.items()})
    scalars = {name: np.array(0.7, dtype) for name in names}
    converts(one_node(op_type, opset, scalars, **attributes), targets[0], scalars)
    empty = {name: np.zeros((2, 0), dtype) for name in names}
    converts(one_node(op_type, opset, empty, **attributes), targets[-1], empty)


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64, np.uint8])
@pytest.mark.parametrize(
    ("lambd", "bias"), [(0.5, 0.5), (1.0, -0.7), (2.5, 1.5), (-1.5, 0.0), (1.0, 1.0)]
)
def test_shrink_of_integers(dtype: type, lambd: float, bias: float) -> None:
    data = np.array([-5, -2, -1, 0, 1, 2, 5, 100]).clip(np.iinfo(dtype).min).astype(dtype)
    # What chooses below opset 9 needs the size of the smaller integers.
    shapes = {"x": ["N"]} if data.itemsize > 1 else None
    source = one_node("Shrink", 13, {"x": data}, shapes=shapes, lambd=lambd, bias=bias)
    for target in (8, 7):
        converts(source, target, {"x": data}, exact=True)


@pytest.mark.parametrize("alpha", [-1.0, -2.0, 0.0, -0.0])
def test_celu_with_alpha_that_is_not_positive(alpha: float) -> None:
    x = np.array([-300, -3, -1e-6, -0.0, 0, 0.5, 3, 1e30, np.inf, -np.inf, np.nan], np.float32)
    for target in (11, 7):
        converts(one_node("Celu", 12, {"x": x}, alpha=alpha), target, {"x": x}, in_numpy=True)
        converts(one_node("Celu", 12, {"x": x[1:8]}, alpha=alpha), target, {"x": x[1:8]})


X = np.array([[1.5, -2, 0], [np.inf, -np.inf, np.nan], [-0.0, 3, -4]], np.float32)


def test_selu_older_defaults_and_selu_newer_defaults():
    low = converts(one_node("Selu", 6, {"x": X}), 1, {"x": X})
    assert len(low.graph.node[0].attribute) == 2
    source = model(
        '<ir_version: 4, opset_import: ["" : 1]> g (float[3, 3] x) => (float[3, 3] y) '
        "{ y = Selu <consumed_inputs=[0]> (x) }"
    )
    high = converts(source, 6, {"x": X})
    assert {a.name for a in high.graph.node[0].attribute} == {"alpha", "gamma"}


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("target", [13, 11, 9])
def test_relu_of_integers(dtype, target):
    info = np.iinfo(dtype)
    inputs = {"x": np.array([info.min, -1, 0, 1, info.max], dtype)}
    converts(one_node("Relu", 14, inputs), target, inputs, exact=True)
