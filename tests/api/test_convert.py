"""The library's functions that convert: a model, a file, and as onnx's own converter is called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import version_converter

import onnxreduce
from onnxreduce import ConversionError, UsageError
from tests.support import model

SOURCE = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N,3] x) => (float[N,1] y) <int64[1] axes = {1}> { [first] y = ReduceMax(x, axes) }"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "a.onnx"
    onnx.save(model(SOURCE), found)
    return found


def opset(path: str | Path) -> int:
    return int(onnx.load(path).opset_import[0].version)


def test_a_file(path: Path) -> None:
    done = onnxreduce.convert_file(path, opset=13)
    assert done.target == str(path.with_name("a.opset13.onnx"))
    assert opset(done.target) == 13
    with pytest.raises(UsageError, match="force=True"):
        onnxreduce.convert_file(path, opset=13)
    assert onnxreduce.convert_file(path, opset=13, force=True).plan.changes


def test_a_file_with_what_the_command_can_do(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "b.onnx"
    done = onnxreduce.convert_file(
        path,
        out,
        runtime="onnxruntime==1.8",
        dims={"N": 2},
        strip_metadata="all",
        verify=True,
        trials=2,
        threshold=1,
    )
    assert done.verified is not None
    assert len(done.verified.trials) == 2
    made = onnx.load(out)
    assert made.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2


def test_a_dry_run_of_a_file(path: Path, tmp_path: Path) -> None:
    done = onnxreduce.convert_file(path, tmp_path / "b.onnx", 13, dry_run=True)
    assert done.plan.changes
    assert not (tmp_path / "b.onnx").exists()


def test_an_option_that_is_none(path: Path) -> None:
    with pytest.raises(TypeError, match="strikt"):
        onnxreduce.convert_file(path, opset=13, strikt=True)  # type: ignore[call-arg]


@pytest.mark.parametrize("target", [13, 20])
def test_what_calls_the_converter_of_onnx_can_call_this(target: int) -> None:
    source = model(SOURCE)
    kept = model(SOURCE)
    made = onnxreduce.convert_version(source, target)
    assert source == kept
    assert [(item.domain, item.version) for item in made.opset_import] == [("", target)]
    theirs: Any = version_converter.convert_version(source, 20)
    assert type(made) is type(theirs)
    onnx.checker.check_model(made, full_check=True)


def test_nothing_is_asked_for(path: Path) -> None:
    for call in (onnxreduce.convert, onnxreduce.plan):
        with pytest.raises(UsageError, match="no change is requested"):
            call(path)
    with pytest.raises(UsageError, match="target and allow_ops exclude"):
        onnxreduce.convert(path, runtime="onnxruntime==1.8", allow_ops=["Add"])


def test_in_place() -> None:
    given = model(SOURCE)
    assert onnxreduce.convert(given, 13, in_place=True) is given
    assert given.opset_import[0].version == 13
    blocked = model(SOURCE.replace("float[", "bfloat16["))
    kept = blocked.SerializeToString()
    with pytest.raises(ConversionError):
        onnxreduce.convert(blocked, 11, in_place=True)
    assert blocked.SerializeToString() == kept
