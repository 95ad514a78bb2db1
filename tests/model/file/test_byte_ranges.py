"""Pieces are written in order, however the kernel copies, or an error says why not."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import pytest

from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.file import byte_ranges
from onnxreduce_cli.model.file.byte_ranges import FileRange, StoredFile, total_size, write

CONTENT = os.urandom(100_000)


@pytest.fixture
def stored(tmp_path: Path) -> StoredFile:
    path = tmp_path / "source"
    path.write_bytes(CONTENT)
    return StoredFile.at(str(path))


def some(stored: StoredFile) -> list[byte_ranges.ByteRange]:
    view = memoryview(b"a view")
    return [
        b"first",
        FileRange(stored, 10, 90_000),
        view,
        FileRange(stored, 0, 0),
        FileRange(stored, 5, 6),
    ]


EXPECTED = b"first" + CONTENT[10:90_000] + b"a view" + CONTENT[5:6]


def refusing(number: int):
    def call(*_):
        raise OSError(number, os.strerror(number))

    return call


def stopping(name: str):
    """A call that copies a little at a time, and nothing more after a while."""
    real, left = getattr(os, name), [3]

    def call(first, second, count_or_start, *rest):
        left[0] -= 1
        if left[0] < 0:
            return 0
        if name == "sendfile":
            return real(first, second, count_or_start, min(rest[0], 1000))
        return real(first, second, min(count_or_start, 1000), *rest)

    return call


@pytest.mark.parametrize(
    "calls",
    [
        {},
        {"copy_file_range": refusing(errno.EXDEV)},
        {"copy_file_range": refusing(errno.ENOSYS), "sendfile": refusing(errno.EINVAL)},
        {"copy_file_range": None, "sendfile": None},
        {"copy_file_range": stopping("copy_file_range")},
        {"copy_file_range": stopping("copy_file_range"), "sendfile": stopping("sendfile")},
    ],
    ids=("kernel", "two file systems", "refused", "not there", "stops", "both stop"),
)
def test_every_way_of_copying_gives_the_same(stored, tmp_path, monkeypatch, calls) -> None:
    monkeypatch.setattr(byte_ranges, "_COPIED", 777)
    monkeypatch.setattr(byte_ranges, "_PAGE", 1)
    for name, call in calls.items():
        if call is None:
            monkeypatch.delattr(os, name)
        else:
            monkeypatch.setattr(os, name, call)
    assert total_size(some(stored)) == len(EXPECTED)
    with (tmp_path / "target").open("wb") as file:
        write(some(stored), file)
    assert (tmp_path / "target").read_bytes() == EXPECTED
    memory = io.BytesIO()
    write(some(stored), memory)
    assert memory.getvalue() == EXPECTED


@pytest.mark.parametrize(("before", "start", "in_kernel"), [(5, 4101, True), (5, 4096, False)])
def test_the_kernel_copies_what_keeps_its_place_in_pages(
    stored, tmp_path, monkeypatch, before: int, start: int, in_kernel: bool
) -> None:
    called: list[str] = []
    for name in ("copy_file_range", "sendfile"):
        real = getattr(os, name)
        note = lambda *given, real=real, name=name: called.append(name) or real(*given)  # noqa: E731
        monkeypatch.setattr(os, name, note)
    target = tmp_path / "target"
    with target.open("wb") as file:
        write([b"-" * before, FileRange(stored, start, start + 900)], file)
    assert target.read_bytes() == b"-" * before + CONTENT[start : start + 900]
    assert bool(called) == in_kernel


def test_a_pipe_and_a_file_that_is_appended_to(stored, tmp_path) -> None:
    target = tmp_path / "target"
    target.write_bytes(b"before")
    with target.open("ab") as file:
        write(some(stored), file)
    assert target.read_bytes() == b"before" + EXPECTED
    reader, writer = os.pipe()
    with open(writer, "wb") as file:
        write([b"first", FileRange(stored, 10, 4000)], file)
    with open(reader, "rb") as file:
        assert file.read() == b"first" + CONTENT[10:4000]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_failing_disk_is_no_reason_to_copy_in_another_way(
    stored, tmp_path, monkeypatch, number
) -> None:
    monkeypatch.setattr(byte_ranges, "_PAGE", 1)
    monkeypatch.setattr(os, "copy_file_range", refusing(number))
    with (
        (tmp_path / "target").open("wb") as file,
        pytest.raises(OSError, match=os.strerror(number)),
    ):
        write(some(stored), file)


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(CONTENT)
    os.replace(other, path)


def written_to(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"x")
    status = path.stat()
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


@pytest.mark.parametrize(
    "change",
    [
        replaced,
        written_to,
        lambda path: os.truncate(path, 50),
        lambda path: os.truncate(path, 1 << 20),
    ],
    ids=("replaced", "written to", "shorter", "longer"),
)
def test_a_source_that_changes_is_noticed(stored, tmp_path, change) -> None:
    with pytest.raises(InvalidModelError, match="changed while it was read"), stored.opened():
        change(Path(stored.path))
    with (
        (tmp_path / "target").open("wb") as file,
        pytest.raises(InvalidModelError, match="changed while it was read"),
    ):
        write([FileRange(stored, 0, 10)], file)
    with pytest.raises(InvalidModelError, match="changed while it was read"):
        FileRange(stored, 0, 10).read()


def test_a_source_that_ends_too_early(stored, tmp_path) -> None:
    with (
        open(stored.path, "rb") as source,
        (tmp_path / "target").open("wb") as file,
        pytest.raises(InvalidModelError, match="shorter"),
    ):
        byte_ranges.copy(source, 99_000, 5_000, file)
