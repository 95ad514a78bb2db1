"""Reading model files: one that ends nowhere, or is larger than protobuf allows."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.file import document as files
from onnxreduce_cli.model.file.document import LARGEST, STREAM, load
from tests.support import model

TOO_LARGE = r"cannot be read: it is larger than 2\.14 GB, and protobuf"


class Endless(io.RawIOBase):
    """A stream of zeros that counts what is read of it."""

    count = 0

    def read(self, size: int = -1) -> bytes:
        assert size > 0, "all of it is asked for"
        self.count += size
        return bytes(size)


def test_a_stream_without_an_end_is_read_as_far_as_protobuf_goes(monkeypatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 10_000_000)
    stream = Endless()
    with pytest.raises(InvalidModelError, match=TOO_LARGE):
        load(STREAM, stream)
    assert 10_000_000 < stream.count < 12_000_000


def test_a_device_without_an_end(monkeypatch) -> None:
    monkeypatch.setattr(files, "LARGEST", 10_000_000)
    with pytest.raises(InvalidModelError, match=f"/dev/zero {TOO_LARGE}"):
        load("/dev/zero")


def test_a_file_larger_than_protobuf_allows_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    path.touch()
    os.truncate(path, LARGEST + 1)
    os.utime(path, ns=(0, 0))  # Whatever reads it makes its time of access later.
    with pytest.raises(InvalidModelError, match=TOO_LARGE):
        load(path)
    assert path.stat().st_atime_ns == 0


@pytest.mark.parametrize("room", [0, 1])
@pytest.mark.parametrize("way", ["stream", "file"])
def test_the_largest_that_is_read(tmp_path: Path, monkeypatch, way: str, room: int) -> None:
    found = model('<ir_version: 8, opset_import: ["": 13]> g (float x) => (float y) {y = Abs(x)}')
    content = found.SerializeToString()
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    monkeypatch.setattr(files, "LARGEST", len(content) - room)
    given = (STREAM, io.BytesIO(content)) if way == "stream" else (path,)
    if room:
        with pytest.raises(InvalidModelError, match=TOO_LARGE):
            load(*given)
    else:
        assert load(*given).model == found
