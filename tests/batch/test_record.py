"""What earlier runs put into a folder."""

from __future__ import annotations

import json
import multiprocessing
import os

import pytest

from onnxreduce_cli.batch.record import NAME, OutputEntry, OutputRecord, digest, stamps
from onnxreduce_cli.errors import UsageError

RECIPE = {"opset": 13, "expand": []}

#: What a line says of an output.
GOOD = {"recipe": RECIPE, "digest": "", "read": {}, "written": {}}


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"source")
    return str(path)


@pytest.fixture
def folder(tmp_path):
    path = tmp_path / "out"
    path.mkdir()
    (path / "model.onnx").write_bytes(b"output")
    (path / "weights.bin").write_bytes(b"weights")
    return str(path)


@pytest.fixture
def made(tmp_path, source, folder):
    data = tmp_path / "weights.bin"
    data.write_bytes(b"weights")
    outputs = {name: os.path.join(folder, name) for name in ("model.onnx", "weights.bin")}
    return OutputEntry(RECIPE, digest(source), stamps({str(data): str(data)}), stamps(outputs))


def test_what_is_noted_is_read_again(folder, made):
    record = OutputRecord(folder)
    record.begin("model.onnx")
    record.begin("other.onnx")
    record.finish("model.onnx", made)
    record.begin("gone.onnx")
    record.withdraw("gone.onnx")
    record.begin("b\udcff\n.onnx")
    again = OutputRecord(folder)
    assert again.ours == {"model.onnx", "other.onnx", "b\udcff\n.onnx"}
    assert again.entries == {"model.onnx": made}


def test_what_a_killed_run_left_is_no_line_and_spoils_none(folder, made):
    record = OutputRecord(folder)
    record.begin("model.onnx")
    record.finish("model.onnx", made)
    path = os.path.join(folder, NAME)
    with open(path, "rb") as file:
        content = file.read()
    first = content.index(b"\n") + 1
    for size in range(len(content)):
        with open(path, "wb") as file:
            file.write(content[:size])
        torn = OutputRecord(folder)
        # A line that lacks nothing but its end says all.
        assert torn.ours == ({"model.onnx"} if size >= first - 1 else set())
        assert torn.entries == ({"model.onnx": made} if size == len(content) - 1 else {})
        torn.begin("later.onnx")
        assert "later.onnx" in OutputRecord(folder).ours


def note(made=None, /, **values):
    entry = values if made is None else {"output": "x", "made": {**made, **values}}
    return json.dumps(entry).encode()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"[]",
        b"3",
        b'"output"',
        b"\xff",
        b"[" * 100_000,
        b'{"output": ' + b"[" * 100_000,
        b'{"output": ' + b"9" * 10_000 + b"}",
        b'{"output": "' + b"x" * (1 << 20) + b'"}',
        note(made={}),
        note(output=["x"]),
        note(output=None),
        note(output="x", made={}),
        note(output="x", made=[]),
        note(GOOD, recipe=[]),
        note(GOOD, digest=None),
        note(GOOD, read=[]),
        note(GOOD, written={"x": "ab"}),
        note(GOOD, written={"x": [1]}),
        note(GOOD, written={"x": [1, None]}),
        note(GOOD, written={"x": [1, [2]]}),
    ],
    ids=lambda line: line[:60].decode(errors="replace"),
)
def test_lines_that_are_no_notes(folder, line):
    with open(os.path.join(folder, NAME), "wb") as file:
        file.write(line + b'\n{"output": "y"}\n')
    record = OutputRecord(folder)
    assert (record.ours, record.entries) == ({"y"}, {})


def test_paths_that_are_none_are_not_there(folder, source):
    found = OutputEntry(RECIPE, digest(source), {"a\0b": (1, 2)}, {"a\0b": (1, 2)})
    assert not found.is_of(source, RECIPE, folder)
    assert not found.is_there(folder)


def test_what_is_no_file_is_refused(folder):
    path = os.path.join(folder, NAME)
    victim = os.path.join(folder, "model.onnx")
    for make in (
        lambda: os.mkfifo(path),
        lambda: os.symlink("/dev/zero", path),
        lambda: os.symlink(victim, path),
        lambda: os.symlink("missing", path),
    ):
        make()
        with pytest.raises(UsageError, match="is no regular file"):
            OutputRecord(folder)
        os.unlink(path)
        record = OutputRecord(folder)
        make()
        with pytest.raises(UsageError, match="is no regular file"):
            record.begin("later.onnx")
        os.unlink(path)
    os.mkdir(path)
    with pytest.raises(UsageError, match="is no regular file"):
        OutputRecord(folder)
    with open(victim, "rb") as file:
        assert file.read() == b"output"


def test_only_what_a_run_made_may_be_replaced(folder, made):
    record = OutputRecord(folder)
    assert not record.may_replace("model.onnx")
    for name in ("model.onnx", "gone.onnx"):
        record.begin(name)
    # A run that is killed between a file and its second line has made it.
    assert record.may_replace("gone.onnx")
    assert record.may_replace("model.onnx")
    record.finish("model.onnx", made)
    assert record.may_replace("model.onnx")
    assert not record.may_replace("weights.bin")
    path = os.path.join(folder, "model.onnx")
    os.rename(path, f"{path}.kept")
    os.symlink(f"{path}.kept", path)
    assert not record.may_replace("model.onnx")


def test_done_is_what_is_all_there_and_from_this_source(folder, source, made):
    assert made.is_of(source, dict(RECIPE), folder)
    assert not made.is_of(source, {**RECIPE, "opset": 14}, folder)
    assert not made.is_of(source + "x", RECIPE, folder)


def test_another_source_of_the_same_size_and_date_is_noticed(folder, source, made):
    before = os.stat(source)
    with open(source, "wb") as file:
        file.write(b"SOURCE")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not made.is_of(source, RECIPE, folder)


@pytest.mark.parametrize("name", ["model.onnx", "weights.bin"])
def test_an_output_that_is_cut_short_or_gone_is_noticed(folder, source, made, name):
    path = os.path.join(folder, name)
    with open(path, "r+b") as file:
        file.truncate(3)
    assert not made.is_of(source, RECIPE, folder)
    os.unlink(path)
    assert not made.is_of(source, RECIPE, folder)


def test_changed_external_data_is_noticed(folder, source, made):
    (path,) = made.read
    os.utime(path, ns=(0, 0))
    assert not made.is_of(source, RECIPE, folder)


def test_a_source_that_cannot_be_read_has_no_digest(tmp_path, folder):
    assert digest(str(tmp_path / "none")) == digest(str(tmp_path)) == ""
    assert not OutputEntry(RECIPE, "", {}, {}).is_of(str(tmp_path / "none"), RECIPE, folder)


def add_many(folder, name, count):
    record = OutputRecord(folder)
    for number in range(count):
        record.begin(f"{name}-{number}.onnx")


def test_several_runs_add_at_a_time(folder):
    runs = [
        multiprocessing.get_context("spawn").Process(target=add_many, args=(folder, name, 100))
        for name in "abc"
    ]
    for run in runs:
        run.start()
    for run in runs:
        run.join()
    assert OutputRecord(folder).ours == {f"{name}-{n}.onnx" for name in "abc" for n in range(100)}


def test_half_a_line_of_another_run_spoils_none(folder):
    record = OutputRecord(folder)
    record.begin("a.onnx")
    # Another run, which is killed meanwhile.
    with open(os.path.join(folder, NAME), "ab") as file:
        file.write(b'{"output": "b.on')
    record.begin("c.onnx")
    assert OutputRecord(folder).ours == {"a.onnx", "c.onnx"}
