"""Whatever fails on the way, the source is intact and the target absent, the old one, or whole."""

from __future__ import annotations

import errno
import hashlib
import multiprocessing
import os
import random
import re
import resource
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from onnxreduce_cli.api.file_conversion import convert_file
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.file import byte_ranges
from onnxreduce_cli.model.file import document as files

#: What a killed process may leave behind.
LEFT_BEHIND = re.compile(r"\.(model|model\.onnx|weights)\.\w+\.part\.(onnx|data|bin)")

#: 24 MB of weights: enough to leave them out, and to be caught while they are written.
LAYERS, WIDTH = 6, 1000

forks = multiprocessing.get_context("forkserver")


def make_model() -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    nodes, weights, value = [], [], "x"
    for layer in range(LAYERS):
        weight = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32)
        weights.append(numpy_helper.from_array(weight, f"w{layer}"))
        nodes += [
            helper.make_node("MatMul", [value, f"w{layer}"], [f"m{layer}"]),
            helper.make_node("ReduceMax", [f"m{layer}"], [f"r{layer}"], axes=[1]),
            helper.make_node("Sub", [f"m{layer}", f"r{layer}"], [f"s{layer}"]),
        ]
        value = f"s{layer}"
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [info("x", TensorProto.FLOAT, [2, WIDTH])],
        [info(value, TensorProto.FLOAT, [2, WIDTH])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with the model as one file, and with its weights in another."""
    found = tmp_path_factory.mktemp("sources")
    onnx.save(make_model(), found / "inline.onnx")
    onnx.save(
        make_model(), found / "external.onnx", save_as_external_data=True, location="weights.bin"
    )
    return found


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def contents(folder: Path) -> dict[str, str]:
    return {path.name: digest(path) for path in folder.iterdir()}


#: By name: what is converted, again and again, with its opset and where weights go.
WORKS: dict[str, list[tuple[str, int, dict[str, object]]]] = {
    "replacing": [("inline.onnx", 18, {}), ("inline.onnx", 19, {})],
    "data going along": [("external.onnx", 18, {})],
    "weights moved out": [("inline.onnx", 18, {"threshold": 1_000_000})],
    "weights moved in": [("external.onnx", 18, {"inline": True})],
}


def convert(folder: Path, target: Path, name: str, opset: int, placed: dict[str, object]) -> None:
    options = Options(opset, force=True, check=False, **placed)
    with pytest.MonkeyPatch.context() as patch:
        # As if the model were a large one.
        patch.setattr(files, "_OUTLINED", 0)
        convert_file(str(folder / name), str(target), options)


def remove_all(folder: Path) -> None:
    """Remove the model, then its data: what is left is never a model without its data."""
    for path in sorted(folder.iterdir(), key=lambda path: path.name != "model.onnx"):
        path.unlink()


def for_ever(work: str, folder: Path, target: Path, begun) -> None:
    while True:
        for step in WORKS[work]:
            begun.set()
            convert(folder, target, *step)
        if work != "replacing":
            remove_all(target.parent)


@pytest.fixture(params=WORKS)
def work(request) -> str:
    return request.param


def left_behind(folder: Path) -> set[str]:
    return {name for name in os.listdir(folder) if LEFT_BEHIND.fullmatch(name)}


def await_a_write(folder: Path) -> None:
    """Return as soon as a process that works for ever has begun to write into the folder."""
    deadline = time.monotonic() + 60
    while not left_behind(folder):
        assert time.monotonic() < deadline, "nothing is written"


def kill(work: str, folder: Path, tmp_path: Path, rounds: int) -> int:
    """Kill as many processes while they work, every second one as soon as it writes.

    Returns:
        How many were writing when they were killed: they left a part of a file behind.
    """
    target = tmp_path / "out" / "model.onnx"
    target.parent.mkdir()
    whole: dict[str, set[str]] = {}
    for step in WORKS[work]:
        convert(folder, target, *step)
        for name, found in contents(target.parent).items():
            whole.setdefault(name, set()).add(found)
    if work != "replacing":
        remove_all(target.parent)
    sources = contents(folder)
    forks.set_forkserver_preload(["tests.test_faults"])
    rng = random.Random(work)
    writing = 0
    for number in range(rounds):
        begun = forks.Event()
        process = forks.Process(target=for_ever, args=(work, folder, target, begun), daemon=True)
        process.start()
        assert begun.wait(60)
        time.sleep(rng.random() / 10)
        if number % 2:
            await_a_write(target.parent)
        process.kill()
        process.join()
        found, left = contents(target.parent), left_behind(target.parent)
        writing += bool(left)
        for name in found.keys() - left:
            assert found[name] in whole[name], f"{name} is neither old nor new"
        if work == "replacing":
            assert "model.onnx" in found
            for name in left:
                (target.parent / name).unlink()
        else:
            assert "model.onnx" not in found or found.keys() - left == whole.keys()
            remove_all(target.parent)
    assert contents(folder) == sources
    return writing


def test_killed_at_any_time(work: str, folder: Path, tmp_path: Path) -> None:
    assert kill(work, folder, tmp_path, 6) >= 1


@pytest.mark.matrix
def test_killed_at_any_time_a_hundred_times(work: str, folder: Path, tmp_path: Path) -> None:
    assert kill(work, folder, tmp_path, 100) >= 25


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Let the operating system fail each write beyond so many bytes of a file."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [10, 5_000, 100_000, 11_000_000, 23_000_000])
def test_a_write_that_fails(work: str, folder: Path, tmp_path: Path, size: int) -> None:
    target = tmp_path / "model.onnx"
    sources = contents(folder)
    for old in (None, b"old"):
        if old is not None:
            target.write_bytes(old)
        # The model of weights that moved out fits into the larger of the limits; they do not.
        with file_size_limit(size), pytest.raises(OSError, match="too large") as caught:
            convert(folder, target, *WORKS[work][0])
        assert caught.value.errno == errno.EFBIG
        assert str(caught.value.filename).startswith(str(tmp_path))
        assert os.listdir(tmp_path) == ([] if old is None else ["model.onnx"])
    assert target.read_bytes() == b"old"
    assert contents(folder) == sources


@pytest.mark.parametrize("share", [0.0, 0.3, 0.99])
def test_a_full_disk(work: str, folder: Path, tmp_path: Path, monkeypatch, share: float) -> None:
    """The kernel copies a part, then there is no space left."""
    real, left = os.copy_file_range, [int(share * 4 * LAYERS * WIDTH**2)]

    def fill(source: int, target: int, count: int, start: int) -> int:
        count = min(count, left[0], 1_000_000)
        if not count:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left[0] -= count
        return real(source, target, count, start)

    monkeypatch.setattr(os, "copy_file_range", fill)
    monkeypatch.setattr(byte_ranges, "_PAGE", 1)  # So the kernel copies all.
    target = tmp_path / "model.onnx"
    target.write_bytes(b"old")
    with pytest.raises(OSError, match="No space left"):
        convert(folder, target, *WORKS[work][0])
    assert contents(tmp_path) == {"model.onnx": hashlib.sha256(b"old").hexdigest()}


def as_nobody(folder: Path, target: Path, answer) -> None:
    # Once before, where it may be done: the package may be in a folder that is closed to others,
    # and nothing of it need be read any more.
    with tempfile.TemporaryDirectory() as open_to_us:
        Path(open_to_us, target.name).write_bytes(b"old")
        convert(folder, Path(open_to_us, target.name), *WORKS["replacing"][0])
    if os.geteuid() == 0:
        os.setegid(65534)
        os.seteuid(65534)
    try:
        convert(folder, target, *WORKS["replacing"][0])
    except OSError as error:
        answer.send((error.errno, error.filename))


def test_a_folder_that_must_not_be_written_to(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as open_to_all:
        sources = Path(open_to_all, "sources")
        shutil.copytree(folder, sources)
        target = Path(open_to_all, "out", "model.onnx")
        target.parent.mkdir()
        target.write_bytes(b"old")
        os.chmod(open_to_all, 0o755)
        os.chmod(sources, 0o755)
        os.chmod(target.parent, 0o555)
        receiver, sender = forks.Pipe()
        process = forks.Process(target=as_nobody, args=(sources, target, sender))
        process.start()
        process.join()
        assert receiver.poll(), "the process ended without an answer"
        number, name = receiver.recv()
        assert number == errno.EACCES
        assert name.startswith(str(target.parent))
        assert ".part" not in name, "the file goes by its own name"
        assert target.read_bytes() == b"old"
        assert os.listdir(target.parent) == ["model.onnx"]
        os.chmod(target.parent, 0o755)


@pytest.mark.parametrize("in_kernel", [True, False])
@pytest.mark.parametrize("name", ["inline.onnx", "external.onnx", "weights.bin"])
def test_a_source_that_is_written_to_while_it_is_read(
    folder: Path, tmp_path: Path, monkeypatch, name: str, in_kernel: bool
) -> None:
    sources = tmp_path / "sources"
    shutil.copytree(folder, sources)
    target = tmp_path / "out" / "model.onnx"
    target.parent.mkdir()
    target.write_bytes(b"old")

    def change(*_: object) -> bool:
        with (sources / name).open("r+b") as file:
            file.seek(1000)
            file.write(b"changed")
        return in_kernel

    # It is asked once a file is open, before a part of it is copied.
    monkeypatch.setattr(byte_ranges, "_keeps_pages", change)
    step = WORKS["replacing" if name == "inline.onnx" else "data going along"][0]
    if name == "external.onnx":
        # It was read in full before its data was copied.
        convert(sources, target, *step)
        onnx.checker.check_model(str(target))
        return
    with pytest.raises(InvalidModelError, match="changed while it was read"):
        convert(sources, target, *step)
    assert os.listdir(target.parent) == ["model.onnx"]
    assert target.read_bytes() == b"old"
