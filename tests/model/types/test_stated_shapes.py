"""False shapes that a newer opset's shape inference sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from onnxreduce_cli import convert
from onnxreduce_cli.engine.conversion import Conversion
from tests.support import converts, model

FEEDS = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}


def column(opset: int, *, stated: str = "n", between: str = "") -> ModelProto:
    """A column of labels, computed by a Reshape to a shape that Concat computes."""
    return model(
        f"""<ir_version: 7, opset_import: ["" : {opset}]>
        g (float[n,3] x) => (int64[{stated}] label)
        <int64[1] one = {{1}}, int64[1] first = {{0}} {between}> {{
            top = ArgMax<axis = 1, keepdims = 0>(x)
            shape = Shape(x)
            rows = Gather(shape, first)
            sizes = Concat<axis = 0>(rows, one)
            tall = Reshape(top, sizes)
            label = Identity(tall)
        }}"""
    )


def dims(found: ModelProto, index: int = 0) -> list[int | str | None]:
    shape = found.graph.output[index].type.tensor_type.shape
    return [dim.dim_value or dim.dim_param or None for dim in shape.dim]


@pytest.mark.parametrize("target", [14, 18, 21])
@pytest.mark.parametrize("between", ["", ", int64[n] tall"])
def test_a_false_rank_is_mended(target: int, between: str) -> None:
    source = column(13, between=between)
    onnx.checker.check_model(source, full_check=True)
    result = converts(source, target, FEEDS)
    assert dims(result) == [None, None]


@pytest.mark.parametrize("target", [11, 12, 13])
def test_where_nothing_tells_it_stays(target: int) -> None:
    source = column(12 if target == 13 else 13)
    assert dims(converts(source, target, FEEDS)) == ["n"]


def test_what_is_true_stays_as_it_is() -> None:
    source = column(13, stated="rows, 1")
    assert dims(converts(source, 18, FEEDS)) == ["rows", 1]


def test_in_a_branch() -> None:
    source = model(
        """<ir_version: 7, opset_import: ["" : 13]>
        g (bool c, float[n,3] x) => (float[m] y)
        <int64[1] one = {1}, int64[1] all = {-1}> {
            y = If(c) <
                then_branch = t () => (float[k] a) {
                    shape = Shape(x)
                    sizes = Concat<axis = 0>(shape, one)
                    a = Reshape(x, sizes)
                },
                else_branch = e () => (float[k] b) { b = Reshape(x, all) }
            >
        }"""
    )
    result = convert(source, 16, check=False)
    graph = result.graph.node[-1].attribute[0].g
    assert len(graph.output[0].type.tensor_type.shape.dim) == 3
    onnx.checker.check_model(result, full_check=True)


def test_operators_without_inference_before() -> None:
    source = model(
        """<ir_version: 4, opset_import: ["" : 9]>
        g (float[2,3] x, bool[6] c) => (float[n,m] y) { y = Compress(x, c) }"""
    )
    feeds = {**FEEDS, "c": np.array([True, False, True, True, False, True])}
    assert dims(converts(source, 11, feeds)) == [None]


def test_the_user_is_told(onnxreduce: Any, tmp_path: Path) -> None:
    path = tmp_path / "labels.onnx"
    onnx.save(column(13), path)
    result = onnxreduce("convert", path, "--opset", 18)
    assert result.code == 0
    assert (
        "warning: 'label' was stated to have shape [n], but what computes it gives [?, ?], which "
        "is stated now" in result.err
    )


def test_no_inference_where_it_tells_nothing_new(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxreduce_cli.engine.conversion.mend_shapes", None)
    constant = model(
        """<ir_version: 7, opset_import: ["" : 13]>
        g (float[n,3] x) => (float[m] y) <int64[1] all = {-1}> { y = Reshape(x, all) }"""
    )
    Conversion(constant, 18).apply()
    Conversion(column(14, stated="n, 1"), 13).apply()
    Conversion(column(14, stated="n, 1"), 18).apply()
