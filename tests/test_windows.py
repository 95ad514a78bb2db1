"""What Windows refuses is not done: no file that is open, by anyone, is replaced or removed.

Linux lets both happen, so that what it allows is taken away here: `os.replace`, `os.unlink` and
`os.remove` fail for a file that this process, or one that it started, has open or mapped.
"""

from __future__ import annotations

import errno
import io
import ntpath
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import onnxreduce_cli
from onnxreduce_cli.api.file_conversion import convert_file
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.model.file import external
from onnxreduce_cli.steps import registry
from tests.support import model

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it is looked up in /proc")

REDUCED = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N,3] x) => (float[N,1] y) <int64[1] axes = {1}> { [first] y = ReduceMax(x, axes) }"""


def family() -> Iterator[int]:
    """This process, and those that it started, and so on."""
    waiting = [os.getpid()]
    while waiting:
        process = waiting.pop()
        yield process
        for task in Path(f"/proc/{process}/task").glob("*/children"):
            waiting += map(int, task.read_text().split())


def is_open(path: str) -> bool:
    """True if some process of the family has a file open or mapped."""
    if not os.path.exists(path):
        return False
    wanted = os.path.realpath(path)
    for process in family():
        for handle in Path(f"/proc/{process}/fd").glob("*"):
            try:
                if os.readlink(handle) == wanted:
                    return True
            except OSError:  # It was closed meanwhile.
                continue
        if wanted in Path(f"/proc/{process}/maps").read_text():
            return True
    return False


@pytest.fixture
def as_windows(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Refuse what Windows would; gives what was replaced or removed."""
    done: list[str] = []

    def guarded(true: Callable[..., Any], count: int) -> Callable[..., Any]:
        def call(*paths: Any, **options: Any) -> Any:
            for path in paths[:count]:
                if isinstance(path, str | os.PathLike) and is_open(os.fspath(path)):
                    raise PermissionError(errno.EACCES, "it is in use", os.fspath(path))
                done.append(str(path))
            return true(*paths, **options)

        return call

    for name, count in (("replace", 2), ("rename", 2), ("unlink", 1), ("remove", 1)):
        monkeypatch.setattr(os, name, guarded(getattr(os, name), count))
    return done


def test_the_guard_works(as_windows: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("w"), pytest.raises(PermissionError, match="it is in use"):
        os.unlink(path)
    os.unlink(path)
    assert str(path) in as_windows


@pytest.fixture
def source(tmp_path: Path) -> Path:
    found = tmp_path / "a.onnx"
    onnx.save(model(REDUCED), found)
    return found


@pytest.fixture
def large(tmp_path: Path) -> Path:
    """A model whose large tensor stays in its file until it is needed."""
    weights = numpy_helper.from_array(np.ones((1, 20_000_000), np.float32), "w")
    nodes = [
        helper.make_node("Add", ["x", "w"], ["s"]),
        helper.make_node("ReduceMax", ["s", "axes"], ["y"], name="first"),
    ]
    axes = numpy_helper.from_array(np.array([1]), "axes")
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", 1, [1, 1])],
        [helper.make_tensor_value_info("y", 1, [1, 1])],
        [weights, axes],
    )
    found = tmp_path / "large.onnx"
    onnx.save(
        helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 18)]), found
    )
    return found


def opset(path: Path) -> int:
    return int(onnx.load(path, load_external_data=False).opset_import[0].version)


def test_a_new_file(as_windows: list[str], source: Path, tmp_path: Path) -> None:
    done = onnxreduce_cli.convert_file(source, tmp_path / "b.onnx", 13, verify=True)
    assert done.verified is not None
    assert as_windows
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx", "b.onnx"]


def test_in_place(as_windows: list[str], source: Path, tmp_path: Path) -> None:
    onnxreduce_cli.convert_file(source, opset=13, in_place=True, verify=True)
    assert opset(source) == 13
    assert [path.name for path in tmp_path.iterdir()] == ["a.onnx"]


@pytest.mark.parametrize("options", [{}, {"threshold": 1000}, {"verify": True}])
def test_a_large_file_in_place(as_windows: list[str], large: Path, options: dict[str, Any]) -> None:
    onnxreduce_cli.convert_file(large, opset=13, in_place=True, **options)
    assert opset(large) == 13
    assert not [path for path in large.parent.iterdir() if ".part" in path.name]


def test_external_data_in_place(as_windows: list[str], large: Path, tmp_path: Path) -> None:
    done = onnxreduce_cli.convert_file(large, tmp_path / "b.onnx", 17, threshold=1000)
    onnxreduce_cli.convert_file(done.target, opset=13, in_place=True, verify=True)
    onnxreduce_cli.convert_file(done.target, opset=18, in_place=True, inline=True)
    assert opset(tmp_path / "b.onnx") == 18


def test_a_stream_and_a_dry_run_are_compared(
    as_windows: list[str], source: Path, onnxreduce: Any, tmp_path: Path
) -> None:
    result = onnxreduce("convert", source, "--opset", 13, "--dry-run", "--verify")
    assert result.code == 0, result.err
    assert [path.name for path in tmp_path.iterdir()] == ["a.onnx"]


def test_streams_are_compared(as_windows: list[str], source: Path, tmp_path: Path) -> None:
    written = io.BytesIO()
    options = Options(13, verify=True)
    convert_file("-", "-", options, stdin=io.BytesIO(source.read_bytes()), stdout=written)
    assert onnx.load_from_string(written.getvalue()).opset_import[0].version == 13
    assert not list(Path(tempfile.gettempdir()).glob("onnxreduce-*.onnx"))


def test_models_that_differ_leave_nothing(
    as_windows: list[str], large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = ("ReduceMax", 18, "down")
    step = registry.STEPS[key]

    def wrong(context: Any) -> None:
        context.replace(inputs=[context.op.Neg(context.input(0))], axes=[1])

    monkeypatch.setitem(registry.STEPS, key, registry.Step(*key, "step", step.description, wrong))
    for options in ({"verify": True}, {"verify": True, "dims": {"nothing": 1}}):
        with pytest.raises(onnxreduce_cli.OnnxreduceError):
            onnxreduce_cli.convert_file(large, opset=13, check=False, **options)
        assert [path.name for path in large.parent.iterdir()] == ["large.onnx"]


def test_what_fails_leaves_nothing(as_windows: list[str], source: Path, tmp_path: Path) -> None:
    blocked = tmp_path / "blocked.onnx"
    onnx.save(model(REDUCED.replace("float[", "bfloat16[")), blocked)
    with pytest.raises(onnxreduce_cli.ConversionError):
        onnxreduce_cli.convert_file(blocked, opset=11, verify=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx", "blocked.onnx"]


@pytest.mark.parametrize(("encoding", "arrow"), [("cp1252", "->"), ("utf-8", "→")])
def test_what_a_pipe_cannot_encode(source: Path, encoding: str, arrow: str) -> None:
    named = model(REDUCED)
    named.graph.node[0].name = "日"
    onnx.save(named, source)
    done = subprocess.run(
        [sys.executable, "-m", "onnxreduce", "convert", source, "--opset", "13", "--dry-run"],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        check=True,
    )
    text = done.stdout.decode(encoding)
    assert f"axes [1] {arrow} attribute: " in text
    assert ("日" if encoding == "utf-8" else r"\u65e5") in text


def test_locations_are_written_as_models_write_them(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(os.path, "relpath", ntpath.relpath)
        patch.setattr(os, "sep", "\\")
        found = external._reference(r"C:\models\w.bin", r"C:\out\deep")
        elsewhere = external._reference(r"D:\models\w.bin", r"C:\out")
    assert found == "../../models/w.bin"
    assert elsewhere == r"D:\models\w.bin"
