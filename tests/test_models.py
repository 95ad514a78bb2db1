"""Real models: what converts gives what the source gave, in ONNX Runtime where that runs it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

import onnxreduce_cli
from onnxreduce_cli.executor import ExecutorError
from tests.support import Expected

OWN = Path(__file__).parent / "data" / "models"
SHIPPED = Path(onnx.__file__).parent / "backend" / "test" / "data"
TARGETS = (7, 9, 11, 13, 17, 18, 21)


#: Models that no executor runs: of opset 6, whose Add repeats a dimension of 1, which it forbids;
#: and of another domain.
NOT_RUN = {"light": 0, "pytorch-converted": 0, "pytorch-operator": 2, "simple": 2}


def compare(source: ModelProto, feeds: dict[str, Any], counts: Counter[str]) -> None:
    """Convert to every target; whatever converts must be valid and give the same."""
    try:
        expected = Expected(source, feeds)
    except ExecutorError:
        counts["not run"] += 1
        return
    content = source.SerializeToString()
    for target in TARGETS:
        blockers = onnxreduce_cli.plan(source, target).blockers
        if blockers:
            assert all(blocker.reason for blocker in blockers)
            counts["blocked"] += 1
            continue
        result = onnxreduce_cli.convert(source, target)
        assert source.SerializeToString() == content
        onnx.checker.check_model(result, full_check=True)
        for name, before, after in expected.beside(result):
            close(before, after, f"{name} at {target}")
        counts["converted"] += 1


def close(expected: Any, actual: Any, text: str) -> None:
    if isinstance(expected, list):
        for one, other in zip(expected, actual, strict=True):
            close(one, other, text)
        return
    if isinstance(expected, dict):
        assert list(expected) == list(actual), text
        close(list(expected.values()), list(actual.values()), text)
        return
    expected, actual = np.asarray(expected), np.asarray(actual)
    assert (expected.dtype, expected.shape) == (actual.dtype, actual.shape), text
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5, err_msg=text)
    else:
        np.testing.assert_array_equal(actual, expected, err_msg=text)


@pytest.mark.parametrize("path", sorted(OWN.glob("*.onnx")), ids=lambda path: path.stem)
def test_models_of_real_exporters(path: Path) -> None:
    counts: Counter[str] = Counter()
    with np.load(path.with_suffix(".npz")) as feeds:
        compare(onnx.load(path), dict(feeds), counts)
    assert counts["converted"] >= 1
    assert not counts["not run"]


def test_there_are_models() -> None:
    assert len(list(OWN.glob("*.onnx"))) >= 11


def shipped(kind: str) -> Iterator[Path]:
    return (path for path in sorted((SHIPPED / kind).iterdir()) if model_of(path).is_file())


def model_of(path: Path) -> Path:
    return path / "model.onnx" if path.is_dir() else path


def inputs_of(path: Path, source: ModelProto) -> dict[str, Any]:
    """The inputs that come with a model, or drawn ones."""
    given = {tensor.name for tensor in source.graph.initializer}
    wanted = [value for value in source.graph.input if value.name not in given]
    feeds = {}
    for index, value in enumerate(wanted):
        file = path / "test_data_set_0" / f"input_{index}.pb"
        if file.is_file():
            feeds[value.name] = stored(file, value)
        else:
            dims = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
            dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            feeds[value.name] = np.random.default_rng(index).normal(0, 1, dims).astype(dtype)
    return feeds


def stored(file: Path, value: onnx.ValueInfoProto) -> Any:
    if value.type.WhichOneof("value") == "sequence_type":
        return numpy_helper.to_list(onnx.SequenceProto.FromString(file.read_bytes()))
    return numpy_helper.to_array(TensorProto.FromString(file.read_bytes()))


Check = Callable[[ModelProto, dict[str, Any], Counter[str]], None]


def check_shipped(kind: str, check: Check, capsys: pytest.CaptureFixture[str]) -> Counter[str]:
    """Run a check on every model of one kind that onnx ships; what it counted."""
    counts: Counter[str] = Counter()
    wrong = []
    for path in shipped(kind):
        if path.suffix and path.suffix != ".onnx":
            continue
        source = onnx.load(model_of(path))
        try:
            check(source, inputs_of(path, source), counts)
        except Exception as error:
            wrong.append(f"{path.name}: {type(error).__name__} {str(error)[:300]}")
    with capsys.disabled():
        print(f"\n{kind}: {dict(counts)}, {len(wrong)} wrong")
    assert not wrong, "\n".join(wrong)
    return counts


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["light", "pytorch-converted", "pytorch-operator", "simple"])
def test_models_that_onnx_ships(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    counts = check_shipped(kind, compare, capsys)
    assert counts["converted"] > counts["not run"]
    assert counts["not run"] <= NOT_RUN[kind]
