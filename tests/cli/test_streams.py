"""Streams that are closed, full, or read by somebody who stops."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys

import onnx
import pytest

from onnxreduce_cli.cli import streams
from onnxreduce_cli.errors import UsageError
from tests.support import model

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3,4] x) => (float[2,1,4] y) <int64[1] axes = {1}> {
    [mean] y = ReduceMean(x, axes)
}"""

BLOCKED = """<ir_version: 8, opset_import: ["" : 18]>
g (bfloat16[2,3] x) => (bfloat16[1,1] y) { [first] y = ReduceMax(x) }"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model(TEXT), path)
    return path


def call(shell, *arguments):
    """The command in a shell, in which it is ``$@``."""
    command = [sys.executable, "-m", "onnxreduce_cli", *map(str, arguments)]
    # As users have it: streams keep what cannot be written, unless Python is told otherwise.
    env = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    shown = ["bash", "-c", shell, "bash", *command]
    done = subprocess.run(shown, capture_output=True, check=False, env=env)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    assert b"bug in" not in done.stderr
    return done


def test_standard_output_that_is_closed(source):
    assert call('"$@" >&-', "convert", source, "--opset", 13, "--no-check").returncode == 0
    assert onnx.load(source.with_name("model.opset13.onnx")).opset_import[0].version == 13
    done = call('"$@" >&-', "convert", source, "--opset", 13, "-o", "-", "--no-check")
    assert done.returncode == 2
    assert b"standard output is closed" in done.stderr


def test_standard_input_that_is_closed(source):
    for command in (("convert", "-", "--opset", 13, "-o", "-"), ("inspect", "-")):
        done = call('"$@" <&-', *command)
        assert done.returncode == 2
        assert b"standard input is closed" in done.stderr


def test_all_streams_closed(source):
    done = call('"$@" <&- >&- 2>&-', "convert", source, "--opset", 13)
    assert done.returncode == 0
    onnx.checker.check_model(onnx.load(source.with_name("model.opset13.onnx")), full_check=True)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full here")
def test_standard_output_that_is_full(source):
    for command in (("inspect", source), ("ops",)):
        done = call('"$@" >/dev/full', *command)
        assert done.returncode == 2
        assert done.stderr == b"Error: standard output: No space left on device\n"
    done = call('"$@" >/dev/full', "convert", source, "--opset", 13, "-o", "-", "--no-check")
    assert done.returncode == 2
    assert done.stderr.count(b"No space left on device") == 1
    assert call('"$@" >/dev/full 2>/dev/full', "ops").returncode == 2


def test_a_reader_that_stops_does_not_change_how_it_ends(source):
    assert call('"$@" | head -1; exit ${PIPESTATUS[0]}', "ops").returncode == 0
    onnx.save(model(BLOCKED), source)
    dry = ("convert", source, "--opset", 11, "--dry-run")
    # The shell's end of the pipe is closed before the command writes.
    done = call('"$@" | true; exit ${PIPESTATUS[0]}', *dry)
    assert done.returncode == 1
    assert b"ReduceMax node first" in done.stderr
    onnx.save(model(TEXT), source)
    # A model that did not arrive is no success.
    done = call('"$@" | true; exit ${PIPESTATUS[0]}', "convert", source, "--opset", 13, "-o", "-")
    assert done.returncode == 1


def test_an_output_that_is_no_regular_file_is_left_alone(source, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for target in (pipe, "/dev/stdout", os.devnull):
        done = call(
            '"$@" | cat; exit ${PIPESTATUS[0]}',
            "convert",
            source,
            "--opset",
            13,
            "--force",
            "-o",
            target,
        )
        assert done.returncode == 2
        assert b"is no regular file; for standard output say -o -" in done.stderr
    assert pipe.is_fifo()


def test_an_input_that_is_no_regular_file_needs_a_name_for_the_output(source, tmp_path):
    shell = '"$@" <(cat ' + str(source) + ")"
    done = call(shell, "convert", "--opset", 13)
    assert done.returncode == 2
    assert b"name the output: -o FILE" in done.stderr
    target = tmp_path / "out.onnx"
    assert call(shell, "convert", "--opset", 13, "-o", target, "--no-check").returncode == 0
    assert onnx.load(target).opset_import[0].version == 13


def test_names_that_are_not_utf_8(source):
    path = os.fsencode(source.parent) + b"/n\xff\xfe.onnx"
    os.rename(source, path)
    for command in (["convert", "--opset", "13", "--verify"], ["inspect"], ["verify"]):
        run = [sys.executable, "-m", "onnxreduce_cli", command[0], path, *command[1:]]
        done = subprocess.run(run, capture_output=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    assert os.path.exists(os.fsencode(source.parent) + b"/n\xff\xfe.opset13.onnx")


@pytest.mark.parametrize(
    ("encoding", "shown"), [("cp1252", "a -> sqrt é \\u4e2d"), ("utf-8", "a → √ é 中")]
)
def test_signs_that_an_encoding_lacks(encoding, shown, monkeypatch):
    """Of ours with others, of names by their numbers."""
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    monkeypatch.setattr(sys, "stderr", None)
    streams.prepare_streams()
    streams.say("a → √ é 中")
    sys.stdout.flush()
    assert written.getvalue().decode(encoding).rstrip() == shown


class Full(io.StringIO):
    """A stream that takes nothing."""

    def write(self, _):
        raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("name", "err"), [("standard output", False), ("standard error", True)], ids=["out", "err"]
)
def test_which_stream_is_full(name, err, monkeypatch):
    monkeypatch.setattr(sys, "stderr" if err else "stdout", Full())
    with pytest.raises(OSError, match="No space left") as caught:
        streams.say("text", err=err)
    assert (caught.value.errno, caught.value.filename) == (errno.ENOSPC, name)


def test_what_comes_after_a_reader_that_stops_is_dropped(tmp_path, monkeypatch):
    class Left(io.StringIO):
        """A pipe whose reader has stopped."""

        def write(self, _):
            raise BrokenPipeError

        def fileno(self):
            return number

    path = tmp_path / "file"
    with open(path, "wb") as file:
        number = file.fileno()
        monkeypatch.setattr(sys, "stdout", Left())
        streams.say("text")
        # The stream's own number leads nowhere from then on.
        os.write(number, b"more")
    assert path.read_bytes() == b""


def test_streams_that_are_closed_in_this_process(monkeypatch):
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(sys, name, None)
    assert streams.standard_output() is None
    with pytest.raises(UsageError, match="standard input is closed; name a file"):
        streams.standard_input()


def test_streams_that_are_open(monkeypatch):
    for name in ("stdin", "stdout"):
        monkeypatch.setattr(sys, name, io.TextIOWrapper(io.BytesIO()))
    assert streams.standard_output() is sys.stdout.buffer
    assert streams.standard_input() is sys.stdin.buffer
