"""BatchNormalization across its boundaries, for inference and for training."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from onnxreduce_cli import convert, plan
from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.engine.conversion import Conversion
from tests.support import (
    assert_same,
    blockers,
    converts,
    model,
    one_node,
    op_types,
    run,
)

RANDOM = np.random.default_rng(5)


def normal(*shape: int, dtype: type = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def batch(
    opset: int, x: np.ndarray, *, dtypes: tuple[type, type] = (np.float32, np.float32), **more: Any
) -> tuple[ModelProto, Any]:
    """A BatchNormalization for inference: scale and bias, mean and variance in these dtypes."""
    shape = (1,) if x.ndim == 1 else x.shape[1:2] if more.get("spatial", 1) else x.shape[1:]
    feeds = {
        "x": x,
        "scale": normal(*shape, dtype=dtypes[0]),
        "b": normal(*shape, dtype=dtypes[0]),
        "mean": normal(*shape, dtype=dtypes[1]),
        "var": np.abs(normal(*shape, dtype=dtypes[1])),
    }
    shapes = more.pop("shapes", None)
    found = one_node(
        "BatchNormalization", opset, feeds, shapes=shapes, output_shapes=[[None] * x.ndim], **more
    )
    return found, feeds


@pytest.mark.parametrize("rank", [1, 2, 3, 4, 5])
def test_batch_in_every_rank(rank: int) -> None:
    x = normal(*range(2, rank + 2))
    x.flat[0], x.flat[1] = np.inf, np.nan
    source, feeds = batch(17, x, training_mode=0, epsilon=1e-3)
    for opset in (14, 13, 9, 8, 7):
        result = converts(source, opset, feeds)
        if rank > 1:
            assert op_types(result) == ["BatchNormalization"]
    before = convert(source, 6)
    older = next(node for node in before.graph.node if node.op_type == "BatchNormalization")
    assert any(a.name == "is_test" and a.i == 1 for a in older.attribute)
    # ONNX Runtime has no kernel below 7: what goes down to 5 must come up again the same.
    for opset in (6, 5):
        older_model = convert(source, opset)
        onnx.checker.check_model(older_model)
        newer = convert(older_model, 17)
        assert_same(run(source, feeds)["y0"], run(newer, feeds)["y0"])
    assert "consumed_inputs" in str(convert(source, 5))
    assert "consumed_inputs" not in str(convert(convert(source, 5), 6))


def of_unknown_rank(opset: int, count: int, more: str = "") -> ModelProto:
    """A BatchNormalization of what is reshaped at run time, with some outputs."""
    names = ["y", "m", "v", "sm", "sv"][:count]
    outputs = ", ".join(f"float[{name}c] {name}" for name in names[1:])
    return model(
        f'<ir_version: 7, opset_import: ["" : {opset}]> g (float[n] flat, int64[r] shape, '
        "float[c] scale, float[c] b, float[c] mean, float[c] var) => "
        f"(float[p, q] y{', ' + outputs if outputs else ''}) {{ x = Reshape (flat, shape) "
        f"{', '.join(names)} = BatchNormalization {more} (x, scale, b, mean, var) }}"
    )


@pytest.mark.parametrize("shape", [(12,), (4, 3), (2, 3, 2), (2, 3, 1, 2)])
def test_unknown_rank(shape: tuple[int, ...]) -> None:
    _, feeds = batch(15, normal(*shape))
    feeds |= {"flat": feeds["x"].reshape(-1), "shape": np.array(shape)}
    none = feeds | {"flat": feeds["flat"][:0], "shape": np.array((0, *shape[1:]))}
    for target in (8, 7):
        converts(of_unknown_rank(9, 1), target, feeds, none)
    for target in (13, 8) if len(shape) > 1 else (13,):
        converts(of_unknown_rank(14, 3, "<training_mode = 1>"), target, feeds)
    if len(shape) > 1:
        converts(of_unknown_rank(7, 1), 5, feeds, in_numpy=True)
        converts(of_unknown_rank(7, 5), 14, feeds, in_numpy=True)


def test_spatial() -> None:
    x = normal(2, 3, 4, 5)
    source, feeds = batch(7, x, spatial=1)
    converts(source, 21, feeds)
    source, feeds = batch(7, x, spatial=0)
    result = converts(source, 9, feeds)
    assert "Flatten" in op_types(result)
    converts(source, 21, feeds)
    for target in (6, 5):
        low = converts(source, target, feeds, in_numpy=True)
        assert "spatial" not in str(low)
        converts(low, 13, feeds, in_numpy=True)


def test_spatial_before_7() -> None:
    """The parameters say whether they are for channels, as was written, or for features."""
    x = normal(2, 3, 4)
    source, feeds = batch(6, x, spatial=0, is_test=1)
    converts(source, 7, feeds, in_numpy=True)
    source, channels = batch(6, x, is_test=1)
    node = source.graph.node[0]
    node.attribute.append(helper.make_attribute("spatial", 0))
    result = convert(source, 7)
    assert "spatial" not in str(result)
    assert_same(run(batch(7, x)[0], channels)["y0"], run(result, channels)["y0"])
    del node.attribute[:]
    node.attribute.append(helper.make_attribute("spatial", 0))
    (blocker,) = blockers(source, 7)
    assert "statistics for each feature" in blocker.reason
    for value in source.graph.input[1:]:
        value.type.tensor_type.ClearField("shape")
    (blocker,) = blockers(source, 7)
    assert "rank of 'scale' is not known" in blocker.reason


def training(opset: int, x: np.ndarray, read: int, **more: Any) -> tuple[ModelProto, Any]:
    """A BatchNormalization for training, of whose outputs the first are read."""
    features = "spatial" in more
    _, feeds = batch(opset, x, **({"spatial": 0} if features else {}))
    shapes = [[None] * x.ndim, *[[None] * (x.ndim - 1 if features else 1)] * 4]
    count = 3 if opset >= 14 else 5
    found = one_node(
        "BatchNormalization", opset, feeds, outputs=count, output_shapes=shapes, **more
    )
    del found.graph.output[read:]
    return found, feeds


@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 3, 4), (2, 3, 4, 5)])
@pytest.mark.parametrize("read", [1, 3])
def test_training_down(shape: tuple[int, ...], read: int) -> None:
    more = {"training_mode": 1, "momentum": 0.75, "epsilon": 1e-3}
    source, feeds = training(15, normal(*shape), read, **more)
    for target in (14, 13, 9, 8, 7):
        converts(source, target, feeds)
    converts(source, 5, feeds, in_numpy=True)


@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 3, 4, 5)])
@pytest.mark.parametrize("read", [1, 3, 4, 5])
def test_training_up(shape: tuple[int, ...], read: int) -> None:
    """What ONNX Runtime calls saved_var is no variance."""
    for opset in (9, 7) if len(shape) > 1 else (9,):
        source, feeds = training(opset, normal(*shape), read, momentum=0.75)
        for target in (9, 13, 14, 21):
            if target > opset:
                converts(source, target, feeds, in_numpy=read == 5)
    (change,) = plan(source, 15).changes
    assert ("saved_var" in str(change.warnings)) == (read == 5)
    assert ("ReduceMean" in op_types(convert(source, 15))) == (read > 3)


def test_training_of_features() -> None:
    source, feeds = training(7, normal(4, 3, 2), 5, spatial=0)
    for target in (9, 14, 6):
        converts(source, target, feeds, in_numpy=True)


def test_training_before_7() -> None:
    for read in (1, 3, 5):
        source, feeds = training(6, normal(2, 3, 4, 5), read, is_test=0)
        if read == 1:
            del source.graph.node[0].output[1:]
        for target in (7, 9, 14, 15, 5):
            converts(source, target, feeds, in_numpy=True)
        if read < 5:
            converts(convert(source, 7), 15, feeds)
        warned = str(plan(source, 7).changes[0].warnings)
        assert ("its is_test is 0" in warned) == (read == 1)
    source, _ = training(6, normal(2, 3, 4, 5), 2, is_test=1)
    (blocker,) = blockers(source, 7)
    assert "its definition allows that in training only" in blocker.reason


@pytest.mark.parametrize("outer", [np.float32, np.float64])
def test_training_of_dtypes_apart(outer: type) -> None:
    """ONNX Runtime has no kernel for them."""
    x = normal(2, 3, 4, dtype=np.float16)
    _, feeds = batch(15, x, dtypes=(np.float16, outer))
    source = one_node(
        "BatchNormalization",
        15,
        feeds,
        outputs=3,
        output_shapes=[[None] * 3, [None], [None]],
        training_mode=1,
    )
    for value in source.graph.output[1:]:
        value.type.tensor_type.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(outer))
    for target in (13, 9):
        converts(source, target, feeds, in_numpy=True)
    for index, name in ((1, "scale"), (2, "b")):
        feeds[name] = feeds[name].astype(np.float32)
        source.graph.input[index].type.tensor_type.elem_type = TensorProto.FLOAT
    for target in (14, 13):
        converts(source, target, feeds, in_numpy=True)


@pytest.mark.parametrize(
    ("x", "dtypes"),
    [
        (np.float16, (np.float32, np.float32)),
        (np.float16, (np.float16, np.float32)),
        (np.float32, (np.float32, np.float16)),
    ],
)
def test_dtypes(x: type, dtypes: tuple[type, type]) -> None:
    """ONNX Runtime has no kernel for dtypes apart: the truth is the same in float."""
    source, feeds = batch(15, normal(2, 3, 4, dtype=x), dtypes=dtypes)
    for opset in (14, 13):
        result = convert(source, opset)
        onnx.checker.check_model(result, full_check=True)
        if opset == 13 or dtypes == (np.float32, np.float32):
            truth, _ = batch(15, feeds["x"].astype(np.float32))
            wide = {name: array.astype(np.float32) for name, array in feeds.items()}
            expected = run(truth, wide)["y0"].astype(x)
            assert_same(expected, run(result, feeds)["y0"])


def test_dtypes_with_double() -> None:
    source, feeds = batch(15, normal(2, 3), dtypes=(np.float64, np.float64))
    for target in (14, 13):
        converts(source, target, feeds, in_numpy=True)


def test_sites_with_absent_statistics() -> None:
    """ONNX Runtime's kernel writes them all the same, which would end the process."""
    source, _ = training(9, normal(2, 3), 2)
    for index in (2, 3, 4):
        source.graph.node[0].output[index] = ""
    report = check_sites(Conversion(source, 14))
    assert report.ok
    assert report.checked == 1


def test_sites_in_training() -> None:
    for source, target in (
        (training(15, normal(2, 3, 4), 3, training_mode=1)[0], 13),
        (training(9, normal(2, 3, 4), 3)[0], 15),
        (training(7, normal(2, 3, 4), 5, spatial=0)[0], 15),
    ):
        report = check_sites(Conversion(source, target))
        assert report.ok
        assert report.checked == 1
