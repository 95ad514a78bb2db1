"""The process of whoever calls the library has its limits and settings during and after a call."""

from __future__ import annotations

import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import pytest
from google.protobuf.message import DecodeError
from onnx import ModelProto, parser

import onnxreduce_cli
from onnxreduce_cli.errors import InvalidModelError
from tests.model.file.test_nesting import nested
from tests.model.types.test_safe_inference import doubling

LIMITS = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]

TOO_DEEP = nested(33)


def settings() -> list[object]:
    """The limits of this process, and whether its protobuf reads what nests too deep."""
    found: list[object] = [resource.getrlimit(limit) for limit in LIMITS]
    try:
        ModelProto.FromString(TOO_DEEP)
    except DecodeError:
        return [*found, "refuses"]
    return [*found, "reads"]


def plain() -> ModelProto:
    """A model for which types are inferred of the whole graph: an initializer can be overridden."""
    return parser.parse_model("""<ir_version: 8, opset_import: ["" : 11]>
        g (float[2,3,4] x, float[4] w) => (float[2,3,4] y) <float[4] w = {1, 2, 3, 4}> {
            a = Mul(x, w)
            y = Softmax<axis = 1>(a)
        }""")


def growing() -> ModelProto:
    return parser.parse_model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[262144,262144] x) => (float[] y) <int64[1] all = {-1}> {
            a = Reshape(x, all)
            b = Add(a, a)
            y = ReduceMean<axes = [0]>(b)
        }""")


MODELS = {
    "plain": plain,
    "deep": lambda: ModelProto.FromString(nested(32)),
    "doubling": lambda: doubling("Concat", 41),
    "growing": growing,
}


@contextmanager
def watched() -> Iterator[list[list[object]]]:
    """Look at the settings again and again from another thread."""
    found: list[list[object]] = []
    done = threading.Event()

    def watch() -> None:
        found.append(settings())
        while not done.wait(0.0005):
            found.append(settings())

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield found
    finally:
        done.set()
        thread.join()


def check(name: str) -> None:
    """Convert a model of `MODELS`: what its call finds, and leaves, is what was there before."""
    before = settings()
    # Without another thread, as most programs are, at the moments when native code runs here.
    during: list[list[object]] = []
    infer = onnx.shape_inference.infer_shapes

    def looked_at(*arguments: object, **options: object) -> ModelProto:
        during.append(settings())
        return infer(*arguments, **options)  # type: ignore[arg-type]

    onnx.shape_inference.infer_shapes = looked_at
    try:
        # First without the worker that checks, for which there are threads.
        onnxreduce_cli.convert(MODELS[name](), 18, check=False)
        onnxreduce_cli.convert(MODELS[name](), 18)
    finally:
        onnx.shape_inference.infer_shapes = infer
    assert settings() == before
    with watched() as found:
        onnxreduce_cli.convert(MODELS[name](), 18)
    assert settings() == before
    assert during or name != "plain"
    assert all(item == before for item in [*during, *found])
    assert before[-1] == "refuses"


@pytest.mark.parametrize("name", MODELS)
def test_settings_are_the_same_during_and_after_a_conversion(name: str) -> None:
    program = f"from tests.api.test_caller_unchanged import check; check({name!r})"
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_settings_are_the_same_after_a_file_that_nests_too_deep(tmp_path: Path) -> None:
    before = settings()
    path = tmp_path / "deep.onnx"
    path.write_bytes(TOO_DEEP)
    with pytest.raises(InvalidModelError, match="nest deeper"):
        onnxreduce_cli.convert(path, 18)
    assert settings() == before
