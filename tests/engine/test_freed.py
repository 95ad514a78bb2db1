"""What is known of a model is freed with the conversion, without a run of the collector.

That may be long in coming, as it counts objects, and a model of gigabytes has few.
"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from contextlib import suppress

import onnx
import pytest

import onnxreduce_cli
from benchmarks.models import many_functions
from onnxreduce_cli.engine.inspection import inspect
from onnxreduce_cli.errors import ConversionError
from onnxreduce_cli.model.types.facts import Facts
from tests.exports import EXPORTS
from tests.support import several_times

NAMES = ("dyn_sampled", "dyn_swin", "ts_nms", "ts_indices", "ts_reductions")


@pytest.fixture
def left(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[weakref.ref[Facts]]]:
    """References to all facts that are made; the collector does not run."""
    made: list[weakref.ref[Facts]] = []
    prepare = Facts.__init__

    def noted(self: Facts, *arguments: object) -> None:
        made.append(weakref.ref(self))
        prepare(self, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(Facts, "__init__", noted)
    gc.disable()
    yield made
    gc.enable()


def is_all_freed(left: list[weakref.ref[Facts]]) -> bool:
    return bool(left) and all(item() is None for item in left)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("target", [6, 13, 18])
@pytest.mark.parametrize("check", [False, True])
def test_converted_or_refused(
    name: str, target: int, check: bool, left: list[weakref.ref[Facts]]
) -> None:
    source = onnx.load(EXPORTS / f"{name}.onnx")
    with suppress(ConversionError):
        onnxreduce_cli.convert(source, target, check=check, emulate=True)
    assert is_all_freed(left)


def test_for_a_runtime(left: list[weakref.ref[Facts]]) -> None:
    source = onnx.load(EXPORTS / "ts_reductions.onnx")
    onnxreduce_cli.convert(source, runtime="opencv==4.6", emulate=True)
    assert is_all_freed(left)


@pytest.mark.parametrize("name", NAMES)
def test_inspected(name: str, left: list[weakref.ref[Facts]]) -> None:
    inspect(onnx.load(EXPORTS / f"{name}.onnx"))
    assert is_all_freed(left)


def test_alike_nodes_and_functions(tmp_path, left: list[weakref.ref[Facts]]) -> None:
    many_functions(str(tmp_path / "m.onnx"), 100)
    repeated = several_times(onnx.load(EXPORTS / "ts_reductions.onnx"), 5)
    for found in (repeated, onnx.load(tmp_path / "m.onnx")):
        onnxreduce_cli.convert(found, 18, in_place=True)
        onnxreduce_cli.convert(found, 13)
    assert is_all_freed(left)
