"""What earlier runs put into a folder."""

from __future__ import annotations

import os

import pytest

from onnxreduce_cli.batch.record import NAME, Made, Record, digest, stamps

RECIPE = {"opset": 13, "expand": []}


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
    return Made(RECIPE, digest(source), stamps({str(data): str(data)}), stamps(outputs))


def test_what_is_noted_is_read_again(folder, made):
    record = Record(folder)
    record.begin("model.onnx")
    record.begin("other.onnx")
    record.finish("model.onnx", made)
    record.begin("gone.onnx")
    record.withdraw("gone.onnx")
    record.begin("b\udcff\n.onnx")
    again = Record(folder)
    assert again.ours == {"model.onnx", "other.onnx", "b\udcff\n.onnx"}
    assert again.made == {"model.onnx": made}


def test_what_a_killed_run_left_is_no_line_and_spoils_none(folder, made):
    record = Record(folder)
    record.begin("model.onnx")
    record.finish("model.onnx", made)
    path = os.path.join(folder, NAME)
    with open(path, "rb") as file:
        content = file.read()
    first = content.index(b"\n") + 1
    for size in range(len(content)):
        with open(path, "wb") as file:
            file.write(content[:size])
        torn = Record(folder)
        # A line that lacks nothing but its end says all.
        assert torn.ours == ({"model.onnx"} if size >= first - 1 else set())
        assert torn.made == ({"model.onnx": made} if size == len(content) - 1 else {})
        torn.begin("later.onnx")
        assert "later.onnx" in Record(folder).ours


def test_lines_that_are_no_notes(folder):
    with open(os.path.join(folder, NAME), "wb") as file:
        file.write(b'\n[]\n3\n{"made": {}}\n\xff\n{"output": "x", "made": {}}\n{"output": "y"}\n')
    assert Record(folder).ours == {"y"}


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
    assert not Made(RECIPE, "", {}, {}).is_of(str(tmp_path / "none"), RECIPE, folder)
