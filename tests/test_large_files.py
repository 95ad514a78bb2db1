"""Models of tens of gigabytes, in sparse files that occupy no disk: nothing reads their data."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxreduce_cli
from onnxreduce_cli.api.file_conversion import convert_file
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.file import wire

GB = 1 << 30

GRAPH, INITIALIZER, RAW = (
    kind.DESCRIPTOR.fields_by_name[name].number
    for kind, name in (
        (onnx.ModelProto, "graph"),
        (onnx.GraphProto, "initializer"),
        (TensorProto, "raw_data"),
    )
)

#: Reading 20 GB, even of holes, takes longer than this by far.
SECONDS = 5.0


def external(name: str, location: str, dims: list[int], offset: int | None = None) -> TensorProto:
    tensor = TensorProto(name=name, dims=dims, data_type=TensorProto.FLOAT)
    tensor.data_location = TensorProto.EXTERNAL
    entries = {"location": location}
    if offset is not None:
        entries |= {"offset": str(offset), "length": str(4 * int(np.prod(dims)))}
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    return tensor


def save(path: Path, tensors: list[TensorProto]) -> Path:
    """A model that takes one row of each tensor, and the mean of them."""
    nodes = [helper.make_node("Gather", [t.name, "i"], [f"row_{t.name}"]) for t in tensors]
    nodes += [
        helper.make_node("Sum", [f"row_{t.name}" for t in tensors], ["sum"]),
        helper.make_node("ReduceMax", ["sum"], ["y"], axes=[-1]),
    ]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("i", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 1])],
        tensors,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def sparse(path: Path, size: int) -> None:
    with path.open("wb") as file:
        file.truncate(size)
    assert path.stat().st_blocks == 0


WIDTH = 1 << 10


@pytest.fixture(params=["one file", "many files", "no lengths"])
def large(request, tmp_path: Path) -> Path:
    """A model with 20 GB of external data."""
    folder = tmp_path / "in"
    folder.mkdir()
    rows = GB // (4 * WIDTH)
    if request.param == "one file":
        sparse(folder / "w.bin", 20 * GB)
        tensors = [external(f"w{n}", "w.bin", [rows, WIDTH], n * GB) for n in range(20)]
    elif request.param == "many files":
        (folder / "data").mkdir()
        for n in range(20):
            sparse(folder / "data" / f"{n}.bin", GB)
        tensors = [external(f"w{n}", f"data/{n}.bin", [rows, WIDTH], 0) for n in range(20)]
    else:
        sparse(folder / "a.bin", 20 * GB)
        tensors = [external("a", "a.bin", [20 * rows, WIDTH])]
    return save(folder / "model.onnx", tensors)


def blocks(folder: Path) -> int:
    return sum(path.stat().st_blocks for path in folder.rglob("*") if path.is_file())


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def resident(*arguments: object) -> int:
    """The peak of resident memory of a Python process and those it starts, in bytes.

    Measured from between: a process begins with the peak of the one that starts it, and that of
    whoever runs many tests is high.
    """
    script = (
        "import resource, subprocess, sys\n"
        "subprocess.run([sys.executable, *sys.argv[1:]], check=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    call = [sys.executable, "-c", script, *map(str, arguments)]
    found = subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True)
    return 1024 * int(found.stdout.splitlines()[-1])


def test_in_the_same_folder_only_the_graph_is_written(large: Path) -> None:
    before = {path: path.stat().st_atime_ns for path in large.parent.rglob("*.bin")}
    # Whatever reads a file makes its time of access later than a time long ago.
    for path in before:
        os.utime(path, ns=(0, path.stat().st_mtime_ns))
    start = time.monotonic()
    done = convert_file(str(large), None, Options(18))
    assert time.monotonic() - start < SECONDS
    assert {path.stat().st_atime_ns for path in before} == {0}
    assert done.data.files == ()
    written = Path(done.target)
    assert written.parent == large.parent
    assert written.stat().st_size < 10_000
    found = onnx.load(written, load_external_data=False)
    source = onnx.load(large, load_external_data=False)
    assert [*found.graph.initializer][: len(source.graph.initializer)] == [
        *source.graph.initializer
    ]
    # By path, as no model of this size is one message.
    onnx.checker.check_model(str(written), full_check=True)


@pytest.mark.parametrize("way", ["copy", "link"])
def test_in_another_folder_data_goes_along(large: Path, tmp_path: Path, way) -> None:
    target = tmp_path / "out" / "model.onnx"
    target.parent.mkdir()
    start, memory = time.monotonic(), peak()
    options = Options(18, external_data=way)
    done = convert_file(str(large), str(target), options)
    assert time.monotonic() - start < SECONDS
    assert peak() - memory < 100_000
    assert sum(os.path.getsize(path) for path in done.data.files) == 20 * GB
    assert blocks(target.parent) < 1000
    if way == "copy":
        onnx.checker.check_model(str(target), full_check=True)


def test_library_and_inspection_do_not_read_it_either(large: Path) -> None:
    start = time.monotonic()
    model = onnxreduce_cli.convert(large, 18)
    assert model.graph.initializer[0].data_location == TensorProto.EXTERNAL
    assert onnxreduce_cli.plan(large, 11).possible
    assert time.monotonic() - start < SECONDS


def test_what_does_not_fit_into_one_file_is_refused(large: Path, tmp_path: Path) -> None:
    target = tmp_path / "inline.onnx"
    with pytest.raises(InvalidModelError, match=r"21\.47 GB and protobuf holds no more"):
        convert_file(str(large), str(target), Options(18, inline=True))
    assert not target.exists()


# ONNX Runtime maps each tensor such that it might write to it, for which a system may want as much
# memory as the tensor is large, if not use it: tensors of 1 GB, not one of 20.
@pytest.mark.parametrize("large", ["one file", "many files"], indirect=True)
def test_verify_maps_the_weights(large: Path) -> None:
    """In ONNX Runtime and in the NumPy executor: half a gigabyte is enough for twenty."""
    convert_file(str(large), None, Options(18))
    script = (
        "import sys, onnxreduce_cli\n"
        "report = onnxreduce_cli.verify(*sys.argv[1:], trials=2)\n"
        "ran = {(run.executor, run.trials) for run in report.runs}\n"
        "assert ran == {('onnxruntime', 2), ('numpy', 2)}, report.runs\n"
        "assert report.equivalent, report\n"
    )
    converted = large.with_name("model.opset18.onnx")
    assert resident("-c", script, large, converted) < 500_000_000


def inline(path: Path, tensors: int, rows: int) -> Path:
    """A model of inline weights that are holes of the file, each of so many rows."""
    size = 4 * WIDTH * rows
    names = [f"w{n}" for n in range(tensors)]
    heads = []
    for name in names:
        weight = TensorProto(name=name, dims=[rows, WIDTH], data_type=TensorProto.FLOAT)
        fields = weight.SerializeToString() + wire.header(RAW, size)
        heads.append(wire.header(INITIALIZER, len(fields) + size) + fields)
    bare = onnx.load(save(path, []), load_external_data=False)
    nodes = [helper.make_node("Gather", [name, "i"], [f"row_{name}"]) for name in names]
    bare.graph.node[0].input[:] = [node.output[0] for node in nodes]
    bare.graph.node.extend(nodes)
    bare.graph.node.sort(key=lambda node: node.op_type != "Gather")
    rest = bare.graph.SerializeToString()
    bare.ClearField("graph")
    with path.open("wb") as file:
        file.write(bare.SerializeToString())
        file.write(wire.header(GRAPH, len(rest) + sum(len(head) + size for head in heads)))
        for head in heads:
            file.write(head)
            file.seek(size, os.SEEK_CUR)
        file.write(rest)
    return path


@pytest.mark.parametrize(
    "tensors", [pytest.param(3, id="180 MB"), pytest.param(18, id="1 GB", marks=pytest.mark.matrix)]
)
def test_inline_weights_are_not_held(tmp_path: Path, tensors: int) -> None:
    """Converted, moved out and moved in again in less memory than the weights take."""
    source = inline(tmp_path / "in.onnx", tensors, 15_000)
    size = source.stat().st_size
    paths = [tmp_path / name for name in ("out.onnx", "external.onnx", "back.onnx")]
    options: list[list[str]] = [[], ["--external-data-threshold", "1MB"], ["--inline"]]
    for start, path, option in zip((source, source, paths[1]), paths, options, strict=True):
        used = resident(
            "-m", "onnxreduce_cli", "convert", start, "--opset", 18, "-o", path, *option
        )
        assert used < 120_000_000
    assert abs(paths[0].stat().st_size - size) < 1000
    assert paths[2].read_bytes() == paths[0].read_bytes()
    assert paths[1].stat().st_size < 10_000
    onnx.checker.check_model(str(paths[1]), full_check=True)
    if tensors > 3:
        onnx.checker.check_model(str(paths[0]), full_check=True)
        done = convert_file(str(source), str(paths[0]), Options(18, force=True, verify=True))
        assert done.verified is not None
    for path in (source, *paths):
        path.unlink()
    Path(f"{paths[1]}.data").unlink()
