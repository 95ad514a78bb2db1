"""External data: which locations are accepted, and how files go along."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto

from onnxreduce_cli.errors import InvalidModelError, UsageError
from onnxreduce_cli.model.file import external
from onnxreduce_cli.model.file.document import Document, load
from onnxreduce_cli.model.file.external import bring_data_files, data_files, relocate


def document(folder: Path, *locations: str) -> Document:
    model = onnx.ModelProto(ir_version=8, graph=onnx.GraphProto(name="g"))
    for location in locations:
        tensor = model.graph.initializer.add(dims=[3], data_type=1, name=location)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=location)
    folder.mkdir(exist_ok=True)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return load(path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.bin").write_bytes(b"a" * 5000)
    (folder / "sub" / "b.bin").write_bytes(b"b")
    return folder


@pytest.fixture
def target(tmp_path: Path) -> Path:
    folder = tmp_path / "target"
    folder.mkdir()
    return folder


def test_every_file_is_found_once(source: Path) -> None:
    found = data_files(document(source, "a.bin", "sub/b.bin", "a.bin", "sub/../a.bin"))
    assert [file.location for file in found] == ["a.bin", "sub/b.bin", "sub/../a.bin"]
    assert {Path(file.path) for file in found} == {source / "a.bin", source / "sub" / "b.bin"}
    assert all(file.inside for file in found)
    # They need not be there to be named: what is kept is never looked at.
    assert data_files(document(source, "none.bin"))


@pytest.mark.parametrize(
    "location", ["../out.bin", "sub/../../out.bin", "{}/out.bin", "link.bin", "away/out.bin"]
)
def test_locations_that_leave_the_folder(source: Path, tmp_path: Path, location: str) -> None:
    (tmp_path / "out.bin").write_bytes(bytes(12))
    (source / "link.bin").symlink_to(tmp_path / "out.bin")
    (source / "away").symlink_to(tmp_path)
    location = location.format(tmp_path)
    found = document(source, location)
    with pytest.raises(InvalidModelError, match="--allow-outside-data"):
        data_files(found)
    (file,) = data_files(found, allow_outside=True)
    assert os.path.realpath(file.path) == str(tmp_path / "out.bin")


@pytest.mark.newest
@pytest.mark.parametrize("location", ["../out.bin", "{}/out.bin", "link.bin", "linked.bin"])
def test_onnx_refuses_them_too_and_hard_links(source: Path, tmp_path: Path, location: str) -> None:
    """Why data is copied where nothing else is asked for: onnx loads neither of two hard links."""
    (tmp_path / "out.bin").write_bytes(bytes(12))
    (source / "link.bin").symlink_to(tmp_path / "out.bin")
    os.link(tmp_path / "out.bin", source / "linked.bin")
    document(source, location.format(tmp_path))
    with pytest.raises(onnx.checker.ValidationError):
        onnx.load(source / "model.onnx")
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(str(source / "model.onnx"))
    if location == "linked.bin":
        (tmp_path / "out.bin").unlink()
        assert onnx.load(source / "model.onnx").graph.initializer[0].raw_data == bytes(12)


def test_a_stream_has_no_folder(source: Path) -> None:
    with (source / "model.onnx").open("wb") as file:
        file.write(document(source, "a.bin").model.SerializeToString())
    with (
        (source / "model.onnx").open("rb") as file,
        pytest.raises(InvalidModelError, match="stream"),
    ):
        data_files(load("-", file))


def test_copies(source: Path, target: Path) -> None:
    os.utime(source / "a.bin", ns=(5, 1_234_567_890_123_456_789))
    found = data_files(document(source, "a.bin", "sub/b.bin"))
    told: list[tuple[int, int]] = []
    with bring_data_files(
        found, str(target), "copy", lambda *args: told.append(args[:2])
    ) as linked:
        assert linked == []
    assert (target / "a.bin").read_bytes() == b"a" * 5000
    assert (target / "sub" / "b.bin").read_bytes() == b"b"
    assert (target / "a.bin").stat().st_mtime_ns == 1_234_567_890_123_456_789
    assert (target / "a.bin").stat().st_nlink == 1
    assert told[-1] == (5001, 5001)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_a_sparse_file_stays_sparse(source: Path, target: Path) -> None:
    size = 20 << 30
    with (source / "a.bin").open("wb") as file:
        file.truncate(size)
        file.seek(7 << 30)
        file.write(b"data")
    with bring_data_files(data_files(document(source, "a.bin")), str(target), "copy"):
        pass
    status = (target / "a.bin").stat()
    assert status.st_size == size
    assert status.st_blocks * 512 < 1 << 20
    with (target / "a.bin").open("rb") as file:
        file.seek(7 << 30)
        assert file.read(4) == b"data"


def test_holes_that_the_platform_cannot_tell(source: Path, target: Path, monkeypatch) -> None:
    monkeypatch.delattr(os, "SEEK_DATA")
    with bring_data_files(data_files(document(source, "a.bin")), str(target), "copy"):
        pass
    assert (target / "a.bin").read_bytes() == b"a" * 5000
    (target / "a.bin").unlink()
    monkeypatch.setattr(os, "SEEK_DATA", 99, raising=False)
    with bring_data_files(data_files(document(source, "a.bin")), str(target), "copy"):
        pass
    assert (target / "a.bin").read_bytes() == b"a" * 5000


def test_blocks_are_shared_where_they_can_be(source: Path, target: Path, monkeypatch) -> None:
    """The request that makes a copy without copying is tried before anything is copied."""
    import fcntl

    asked = []

    def share(writer: int, request: int, reader: int) -> None:
        asked.append(request)
        os.pwrite(writer, os.pread(reader, 5000, 0).upper(), 0)

    monkeypatch.setattr(fcntl, "ioctl", share)
    with bring_data_files(data_files(document(source, "a.bin")), str(target), "copy"):
        pass
    assert asked == [0x40049409]
    assert (target / "a.bin").read_bytes() == b"A" * 5000


def test_links_and_what_is_done_where_there_are_none(
    source: Path, target: Path, monkeypatch
) -> None:
    found = data_files(document(source, "a.bin"))
    with bring_data_files(found, str(target), "link") as linked:
        assert linked == [str(target / "a.bin")]
    assert (target / "a.bin").samefile(source / "a.bin")
    # It is there already.
    with bring_data_files(found, str(target), "link") as linked:
        assert linked == []
    (target / "a.bin").unlink()

    def refuse(*_):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr(os, "link", refuse)
    with bring_data_files(found, str(target), "link") as linked:
        assert linked == []
    assert (target / "a.bin").read_bytes() == b"a" * 5000


def test_a_copy_that_is_there_is_known_by_its_time(source: Path, target: Path) -> None:
    found = data_files(document(source, "a.bin"))
    os.utime(source / "a.bin", ns=(5, 1_234_567_890_123_456_789))
    for _ in range(2):
        with bring_data_files(found, str(target), "copy"):
            pass
    first = (target / "a.bin").stat()
    for size, time in ((4999, 1_234_567_890_123_456_789), (5000, 1_234_567_890_123_456_788)):
        (target / "a.bin").write_bytes(b"p" * size)
        os.utime(target / "a.bin", ns=(5, time))
        with (
            pytest.raises(UsageError, match="exists"),
            bring_data_files(found, str(target), "copy"),
        ):
            pass
        assert (target / "a.bin").read_bytes() == b"p" * size
    # A time in whole seconds is what many archives give to all their files.
    for path in (source, target):
        (path / "a.bin").write_bytes(path.name[0].encode() * 6)
        os.utime(path / "a.bin", ns=(5, 1_000_000_000))
    with pytest.raises(UsageError, match="exists"), bring_data_files(found, str(target), "copy"):
        pass
    assert first.st_size == 5000


def test_what_is_missing_or_in_the_way_stops_all(source: Path, target: Path) -> None:
    found = data_files(document(source, "a.bin", "none.bin"))
    with (
        pytest.raises(InvalidModelError, match="is not there"),
        bring_data_files(found, str(target), "copy"),
    ):
        pass
    assert os.listdir(target) == []
    (target / "a.bin").symlink_to("nowhere")
    found = data_files(document(source, "a.bin"))
    with pytest.raises(UsageError, match="exists"), bring_data_files(found, str(target), "copy"):
        pass
    assert (target / "a.bin").is_symlink()


def test_what_was_brought_goes_if_the_model_is_not_written(source: Path, target: Path) -> None:
    found = data_files(document(source, "a.bin", "sub/b.bin"))
    (target / "sub").mkdir()
    os.link(source / "sub" / "b.bin", target / "sub" / "b.bin")

    def fail() -> None:
        with bring_data_files(found, str(target), "copy"):
            assert (target / "a.bin").exists()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert not (target / "a.bin").exists()
    assert (target / "sub" / "b.bin").exists()


def test_data_that_changes_while_it_is_copied(source: Path, target: Path, monkeypatch) -> None:
    real = external.copy

    def slow(*args):
        real(*args)
        os.truncate(source / "a.bin", 1)

    monkeypatch.setattr(external, "copy", slow)
    found = data_files(document(source, "a.bin"))
    with (
        pytest.raises(InvalidModelError, match="changed while it was read"),
        bring_data_files(found, str(target), "copy"),
    ):
        pass
    assert os.listdir(target) == []


def test_data_outside_stays_and_is_found(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out.bin").write_bytes(b"")
    found = document(source, "../out.bin", "a.bin", str(tmp_path / "out.bin"))
    deep = tmp_path / "x" / "y"
    deep.mkdir(parents=True)
    files = data_files(found, allow_outside=True)
    assert relocate(found, files, str(deep))
    with bring_data_files(files, str(deep), "copy"):
        pass
    assert os.listdir(deep) == ["a.bin"]
    values = [tensor.external_data[0].value for tensor in found.model.graph.initializer]
    assert values == ["../../out.bin", "a.bin", str(tmp_path / "out.bin")]
    assert not relocate(found, [file for file in files if file.inside], str(deep))
