"""Which models are meant, and where each goes."""

from __future__ import annotations

import os

import pytest

from onnxreduce_cli.batch.layout import matching_files, output_paths
from onnxreduce_cli.errors import UsageError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name in ("b.onnx", "a.onnx", "c.txt", "sub/a.onnx", "[x].onnx"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_patterns(folder):
    assert matching_files(["?.onnx"]) == ["a.onnx", "b.onnx"]
    assert matching_files(["**/a.onnx"]) == ["a.onnx", os.path.join("sub", "a.onnx")]
    assert matching_files(["b.onnx", "*.onnx"]) == ["b.onnx", "[x].onnx", "a.onnx"]
    assert matching_files(["./a.onnx", "a.onnx", str(folder / "a.onnx")]) == ["./a.onnx"]


def test_names_that_look_like_patterns_and_patterns_that_match_nothing(folder):
    assert matching_files(["[x].onnx"]) == ["[x].onnx"]
    assert matching_files(["none*.onnx", "gone.onnx"]) == ["none*.onnx", "gone.onnx"]


def test_outputs_of_earlier_runs_are_no_sources_of_patterns(folder):
    assert matching_files(["**/*.onnx"], "sub") == ["[x].onnx", "a.onnx", "b.onnx"]
    assert matching_files(["sub/a.onnx"], "sub") == ["sub/a.onnx"]


def test_targets():
    assert output_paths(["x/a.onnx", "y/b.onnx"], "out") == ["out/a.onnx", "out/b.onnx"]
    same = ["zoo/x/m.onnx", "zoo/y/m.onnx", "zoo/y/deep/other.onnx"]
    assert output_paths(same, "out") == ["out/x/m.onnx", "out/y/m.onnx", "out/y/deep/other.onnx"]
    assert output_paths(["zoo/m.onnx", "zoo/y/m.onnx"], "out") == ["out/m.onnx", "out/y/m.onnx"]
    # One file where case does not count.
    assert output_paths(["x/M.onnx", "y/m.onnx"], "out") == ["out/x/M.onnx", "out/y/m.onnx"]


def test_targets_on_different_drives(monkeypatch):
    def other_drive(_):
        raise ValueError("Paths don't have the same drive")

    monkeypatch.setattr(os.path, "commonpath", other_drive)
    with pytest.raises(UsageError, match="different drives"):
        output_paths(["x/m.onnx", "y/m.onnx"], "out")
