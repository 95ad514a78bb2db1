"""AveragePool, MaxPool, LpPool and GlobalLpPool across their boundaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from onnxreduce_cli import convert, plan
from tests.support import blockers, converts, converts_or_counts, one_node

RANDOM = np.random.default_rng(9)


def pool(op_type: str, opset: int, x: np.ndarray, **more: Any) -> ModelProto:
    return one_node(op_type, opset, {"x": x}, **more)


def image(*shape: int) -> np.ndarray:
    x = RANDOM.standard_normal(shape).astype(np.float32)
    x.flat[0], x.flat[-1] = np.inf, -np.inf
    return x


@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool", "LpPool"])
@pytest.mark.parametrize("length", range(5, 8))
@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("pads", [(0, 0), (1, 1), (0, 1), (1, 0)])
def test_ceil_mode(
    op_type: str, length: int, stride: int, kernel: int, pads: tuple[int, int]
) -> None:
    x = image(1, 2, length, 6)
    options = {
        "kernel_shape": [kernel, 2],
        "strides": [stride, 1],
        "pads": [pads[0], 0, pads[1], 0],
    }
    source = pool(op_type, 22, x, ceil_mode=1, **options)
    for opset in (21, 17, 8):
        converts(source, opset, {"x": x})
    # What it states must hold on both sides.
    shape = [[1, 2, None, None]]
    below = pool(op_type, 18, x, ceil_mode=1, output_shapes=shape, **options)
    converts(below, 22, {"x": x})
    last = -(-(length + sum(pads) - kernel) // stride) * stride
    warned = [change.warnings for change in plan(below, 22).changes if change.warnings]
    assert bool(warned) == (last >= length + pads[0])


@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool", "LpPool"])
@pytest.mark.parametrize("stride", [2, 3])
@pytest.mark.parametrize("kernel", [2, 3])
@pytest.mark.parametrize("pads", [(0, 0), (1, 1)])
def test_ceil_mode_of_unknown_sizes(
    op_type: str, stride: int, kernel: int, pads: tuple[int, int]
) -> None:
    options = {
        "kernel_shape": [kernel, 2],
        "strides": [stride, 1],
        "pads": [pads[0], 0, pads[1], 0],
        "shapes": {"x": [1, "c", "h", "w"]},
        "output_shapes": [[1, "c", None, None]],
    }
    images = [{"x": image(1, 2, length, 6)} for length in (5, 6, 7)]
    for here, opsets in ((22, (21, 17, 8)), (18, (22,))):
        source = pool(op_type, here, images[0]["x"], ceil_mode=1, **options)
        for opset in opsets:
            converts(source, opset, *images)


def test_indices_of_a_max_pool() -> None:
    x = RANDOM.permutation(49).astype(np.float32).reshape(1, 1, 7, 7)
    options = {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    source = pool("MaxPool", 22, x, outputs=2, ceil_mode=1, dilations=[1, 1], **options)
    for opset in (21, 11, 9, 8, 7):
        converts(source, opset, {"x": x}, exact=True)


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("dilations", [[1, 1], [2, 3]])
@pytest.mark.parametrize(
    ("dtype", "storage_order", "shape"),
    [
        (np.float32, 0, None),
        (np.float64, 1, None),
        (np.float16, 1, None),
        (np.float32, 1, ["n", "c", "h", "w"]),
    ],
)
def test_without_indices(
    dtype: type, storage_order: int, dilations: list[int], shape: list[str] | None
) -> None:
    # Many are the same, and some windows begin in the padding.
    x = RANDOM.integers(-2, 3, (2, 3, 6, 7)).astype(dtype)
    more: dict[str, Any] = {"storage_order": storage_order, "dilations": dilations, "outputs": 2}
    if shape is not None:
        more["shapes"] = {"x": shape}
    for pads in ([0, 0, 0, 0], [1, 0, 1, 1]):
        options = {"kernel_shape": [2, 2], "strides": [2, 1], "pads": pads}
        source = pool("MaxPool", 12, x, **options, **more)
        for target in (9, 7) if max(dilations) > 1 else (7,):
            converts_or_counts(source, target, {"x": x}, exact=True)
    same = {"kernel_shape": [3, 2], "auto_pad": "SAME_LOWER", **more}
    if max(dilations) == 1:
        converts_or_counts(pool("MaxPool", 12, x, **same), 7, {"x": x}, exact=True)


@pytest.mark.newest
@pytest.mark.parametrize("dilations", [[1, 1], [2, 3]])
def test_without_indices_of_what_is_no_number(dilations: list[int]) -> None:
    x = RANDOM.integers(-2, 3, (2, 3, 6, 7)).astype(np.float32)
    x[0, 0, :3] = -np.inf
    with_nan = x.copy()
    with_nan[:, :, ::3, ::2] = np.nan
    options = {"kernel_shape": [2, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]}
    source = pool("MaxPool", 12, x, outputs=2, dilations=dilations, **options)
    converts(source, 7, {"x": x}, {"x": with_nan}, exact=True)


def test_indices_that_nothing_reads() -> None:
    x = image(1, 1, 6, 6)
    source = pool("MaxPool", 12, x, outputs=2, kernel_shape=[2, 2], storage_order=1)
    del source.graph.output[1]
    (node,) = converts(source, 7, {"x": x}).graph.node
    assert len(node.output) == 1
    assert [item.name for item in node.attribute] == ["kernel_shape"]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
@pytest.mark.parametrize("outputs", [1, 2])
def test_small_integers(dtype: type, outputs: int) -> None:
    limits = np.iinfo(dtype)
    x = RANDOM.integers(limits.min, limits.max, (1, 2, 6, 6), dtype=dtype, endpoint=True)
    options = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}
    source = pool("MaxPool", 12, x, outputs=outputs, **options)
    for opset in (11, 8):
        converts(source, opset, {"x": x}, exact=True)


def test_unknown_sizes() -> None:
    x, dynamic = image(1, 2, 7, 7), {"x": ["n", "c", "h", "w"]}
    safe = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 0, 0, 0]}
    source = pool("MaxPool", 22, x, shapes=dynamic, ceil_mode=1, **safe)
    same = converts(source, 10, {"x": x})
    assert same.graph.node[0] == source.graph.node[0]
    same = {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "SAME_UPPER"}
    converts(pool("MaxPool", 22, x, shapes=dynamic, ceil_mode=1, **same), 21, {"x": x})
    valid = {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "VALID"}
    converts(pool("MaxPool", 22, x, shapes=dynamic, ceil_mode=1, **valid), 21, {"x": x})


@pytest.mark.usefixtures("any_size")
def test_dilated_windows_cut_off() -> None:
    options = {"kernel_shape": [2, 2], "dilations": [4, 1], "strides": [5, 2], "ceil_mode": 1}
    for length in (8, 9, 10, 11):
        x = image(1, 2, length, 4)
        for shape in ({}, {"x": ["n", "c", "h", "w"]}):
            source = pool("MaxPool", 22, x, outputs=2, shapes=shape, pads=[0, 0, 1, 1], **options)
            converts_or_counts(source, 21, {"x": x}, in_numpy=True)
            converts_or_counts(source, 9, {"x": x})


def test_valid_with_ceil_mode() -> None:
    options = {"kernel_shape": [2, 2], "strides": [2, 2], "auto_pad": "VALID", "ceil_mode": 1}
    for length in (5, 6):
        x = image(1, 1, length, 4)
        converts(pool("MaxPool", 18, x, **options), 9, {"x": x})


@pytest.mark.parametrize(("op_type", "target"), [("MaxPool", 9), ("MaxPool", 7), ("LpPool", 17)])
@pytest.mark.parametrize("ceil_mode", [0, 1])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 1]])
def test_dilations(pads: list[int], ceil_mode: int, op_type: str, target: int) -> None:
    x = image(1, 2, 8, 7)
    options = {"kernel_shape": [2, 3], "dilations": [3, 2], "strides": [2, 1]}
    for shapes in ({}, {"x": ["n", "c", "h", "w"]}):
        more = {"ceil_mode": ceil_mode, "pads": pads, "shapes": shapes}
        converts_or_counts(pool(op_type, 18, x, **more, **options), target, {"x": x}, check=True)
        same = {"auto_pad": "SAME_UPPER", "shapes": shapes, **options}
        converts_or_counts(pool(op_type, 18, x, **same), target, {"x": x}, in_numpy=True)


@pytest.mark.newest
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 1, 1], [1, 1, 0, 0]])
@pytest.mark.parametrize("count_include_pad", [0, 1])
@pytest.mark.parametrize("shapes", [{}, {"x": ["n", "c", "h", "w"]}])
def test_dilated_means(pads: list[int], count_include_pad: int, shapes: dict[str, Any]) -> None:
    x = RANDOM.standard_normal((1, 2, 8, 7)).astype(np.float32)
    x[0, 0, 0, 0], x[0, 1, 0, 0] = np.inf, np.nan
    options = {"kernel_shape": [2, 3], "dilations": [3, 2], "strides": [2, 1], "shapes": shapes}
    for ceil_mode in (0, 1):
        more = {"ceil_mode": ceil_mode, "count_include_pad": count_include_pad, "pads": pads}
        for dtype in (np.float32, np.float16):
            given = x.astype(dtype)
            source = pool("AveragePool", 19, given, **options, **more)
            for target in (18, 7):
                converts_or_counts(source, target, {"x": given}, in_numpy=True)


@pytest.mark.newest
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 0, 1], [1, 1, 1, 1]])
def test_count_include_pad(pads: list[int]) -> None:
    options = {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1}
    for size in (6, 7, 8):
        x = RANDOM.standard_normal((1, 1, size, size)).astype(np.float32)
        for shapes in ({}, {"x": [1, 1, "h", "w"]}):
            source = pool("AveragePool", 18, x, pads=pads, shapes=shapes, **options)
            for target in (9, 7, 6):
                converts(source, target, {"x": x})


@pytest.mark.parametrize("auto_pad", ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
def test_without_counted_pads(auto_pad: str) -> None:
    options = {"kernel_shape": [3, 3], "strides": [2, 1], "count_include_pad": 1}
    if auto_pad != "NOTSET":
        options["auto_pad"] = auto_pad
    x = RANDOM.standard_normal((1, 2, 6, 7)).astype(np.float32)
    converts(pool("AveragePool", 9, x, **options), 6, {"x": x})
    pads_known = not auto_pad.startswith("SAME")
    source = pool("AveragePool", 9, x, shapes={"x": [1, 2, "h", "w"]}, **options)
    if pads_known:
        converts(source, 6, {"x": x})


@pytest.mark.parametrize("op_type", ["LpPool", "GlobalLpPool"])
def test_p_before_2(op_type: str) -> None:
    x = image(1, 2, 4, 4)
    options = {"kernel_shape": [2, 2]} if op_type == "LpPool" else {}
    for given in ({}, {"p": 3}):
        source = pool(op_type, 5, x, **options, **given)
        older = converts(source, 1, {"x": x}, in_numpy=True)
        (p,) = (a for a in older.graph.node[0].attribute if a.name == "p")
        assert p.f == given.get("p", 2)
        (p,) = (a for a in convert(older, 5).graph.node[0].attribute if a.name == "p")
        assert p.i == given.get("p", 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("p", [2.5, 0.5])
def test_p_that_is_not_whole(dtype: type, p: float) -> None:
    x = image(1, 2, 4, 4).astype(dtype)
    x[0, 0, 0, 0], x[0, 1, 3, 3] = np.inf, np.nan
    source = pool("GlobalLpPool", 1, x, p=p, output_shapes=[[1, 2, 1, 1]])
    converts(source, 2, {"x": x}, in_numpy=True)
    converts(source, 13, {"x": x}, in_numpy=True)
    options = {"kernel_shape": [2, 3], "pads": [1, 1, 0, 1], "strides": [2, 1]}
    source = pool("LpPool", 1, x, p=p, output_shapes=[[1, 2, 2, 4]], **options)
    converts(source, 2, {"x": x}, in_numpy=True)


def test_p_that_makes_no_norm() -> None:
    x = image(1, 2, 4, 4)
    for p in (-0.5, np.inf, np.nan):
        source = pool("GlobalLpPool", 1, x, p=p, output_shapes=[[1, 2, 1, 1]])
        (blocker,) = blockers(source, 2)
        assert f"p is {p}" in blocker.reason
    source = pool("LpPool", 1, x, output_shapes=[[1, 2, 1, 1]])
    (blocker,) = blockers(source, 2)
    assert "kernel_shape" in blocker.reason


@pytest.mark.parametrize("dilations", [[1, 1], [2, 1]])
@pytest.mark.parametrize("storage_order", [0, 1])
def test_indices_of_size_0(dilations: list[int], storage_order: int) -> None:
    options = {"kernel_shape": [2, 3], "strides": [2, 1], "dilations": dilations}
    x = image(2, 2, 5, 4)
    feeds = [{"x": x}, {"x": x[:0]}]
    more: dict[str, Any] = {"storage_order": storage_order, "shapes": {"x": ["n", "c", "h", "w"]}}
    source = pool("MaxPool", 10, feeds[0]["x"], outputs=2, **options, **more)
    for target in (9, 7) if max(dilations) > 1 else (7,):
        converts_or_counts(source, target, *feeds, exact=True)


@pytest.mark.parametrize("op_type", ["LpPool", "MaxPool"])
def test_no_window(op_type: str) -> None:
    """A division that cuts towards 0 makes one window of a size less than the stride below 0."""
    options = {"kernel_shape": [2], "strides": [4], "dilations": [2]}
    shapes = {"x": ["n", "c", "l"]}
    x = image(1, 2, 9)
    feeds = [{"x": x[..., :length]} for length in (9, 3, 0)]
    source = pool(op_type, 18, feeds[0]["x"], shapes=shapes, **options)
    converts(source, {"LpPool": 17, "MaxPool": 9}[op_type], *feeds, in_numpy=True)
