"""Progress: on a terminal, and nowhere else."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import numpy as np
import onnx
import pytest

from onnxreduce_cli.cli.streams import progress_bar
from tests.support import model

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3,4] x) => (float[2,1,4] y) <int64[1] axes = {1}> { y = ReduceMean(x, axes) }"""


def on_a_terminal(*arguments):
    """What the command prints on a terminal that is its standard error."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "onnxreduce_cli", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 1024):
                shown += piece
        except OSError:
            pass  # That is how Linux tells that nobody writes any more.
        finally:
            os.close(ours)
        process.stdout.read()
    return shown.decode(), process.returncode


def test_of_many_models(tmp_path):
    for name in ("a", "b"):
        onnx.save(model(TEXT), tmp_path / f"{name}.onnx")
    (tmp_path / "ab.onnx").touch()
    call = ("convert", tmp_path / "*.onnx", "--opset", 13, "--out-dir", tmp_path / "out")
    shown, code = on_a_terminal(*call, "--no-check")
    assert code == 2
    assert "converting" in shown
    assert "100%" in shown
    assert "\r\x1b[K" + f"{tmp_path / 'ab.onnx'} is empty" in shown
    done = subprocess.run(
        [sys.executable, "-m", "onnxreduce_cli", *map(str, call), "--resume"],
        capture_output=True,
        check=False,
    )
    assert done.stderr.decode() == f"{tmp_path / 'ab.onnx'} is empty\n"


def test_of_data_that_goes_along(tmp_path):
    source = model(TEXT)
    weight = onnx.numpy_helper.from_array(np.zeros(1000, np.float32), "w")
    source.graph.initializer.append(weight)
    path = tmp_path / "model.onnx"
    onnx.save(source, path, save_as_external_data=True, location="w.bin", size_threshold=100)
    target = tmp_path / "there" / "model.onnx"
    target.parent.mkdir()
    call = ("convert", path, "--opset", 13, "-o", target, "--no-check")
    shown, code = on_a_terminal(*call)
    assert code == 0
    assert "copying data" in shown
    assert "100%" in shown
    assert (target.parent / "w.bin").read_bytes() == (tmp_path / "w.bin").read_bytes()
    shown, code = on_a_terminal(*call[:-2], path.with_name("here.onnx"), "--no-check")
    assert (shown, code) == ("", 0)


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self):
        return True


def test_a_bar_is_drawn_from_the_first_report_on(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar("copying") as report:
        assert terminal.getvalue() == ""
        report(0, 40, "a")
        assert "copying" in terminal.getvalue()
        report(10, 40, "b")
        assert "25%" in terminal.getvalue()
        report(40, 40, "c")
    assert terminal.getvalue().count("100%") == 1
    assert terminal.getvalue().endswith("\n")


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_nothing_is_drawn_elsewhere(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("copying") as report:
        assert report is None
    assert stream is None or stream.getvalue() == ""


def test_without_a_report_no_bar_is_drawn(monkeypatch):
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with progress_bar("copying"):
        pass
    assert terminal.getvalue() == ""
