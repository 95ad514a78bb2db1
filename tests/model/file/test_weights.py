"""Weights move out of a model's file and into it, and stay what they are."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, SparseTensorProto, TensorProto, helper, numpy_helper

from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.file import document as files_module
from onnxreduce_cli.model.file import outline
from onnxreduce_cli.model.file.byte_ranges import write
from onnxreduce_cli.model.file.document import load
from onnxreduce_cli.model.file.external import data_files
from onnxreduce_cli.model.file.weights import move_in, move_out

#: Every dtype but strings, in raw form and in a field of its own.
DTYPES = [
    number
    for name, number in TensorProto.DataType.items()
    if name not in ("UNDEFINED", "STRING") and not name.startswith("FLOAT6")
]


@pytest.fixture(params=[True, False], ids=["spans", "plain"], autouse=True)
def spans(request, monkeypatch) -> None:
    """Once with the file's large tensors left out, once with all in memory."""
    monkeypatch.setattr(files_module, "_OUTLINED", 0 if request.param else 1 << 40)
    monkeypatch.setattr(outline, "LARGE", 20)
    monkeypatch.setattr(outline, "MOST_ELEMENTS", 4)


def typed(elem_type: int) -> TensorProto:
    values = [index % 2 for index in range(41)]
    return helper.make_tensor(f"typed {elem_type}", elem_type, [41], values)


def raw(elem_type: int) -> TensorProto:
    found = numpy_helper.from_array(numpy_helper.to_array(typed(elem_type)))
    found.name = f"raw {elem_type}"
    return found


def saved(tmp_path: Path, *tensors: TensorProto) -> Path:
    model = onnx.ModelProto(ir_version=10)
    model.opset_import.add(version=21)
    model.graph.name = "g"
    model.graph.initializer.extend(tensors)
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def moved_out(path: Path, threshold: int) -> Path:
    """Where the model is written, its data beside it."""
    document = load(path)
    content = move_out(document, threshold, "w.data")
    target = path.parent / "out" / "model.onnx"
    target.parent.mkdir(exist_ok=True)
    for file, parts in (
        (target, document.byte_ranges("protobuf")),
        (target.parent / "w.data", content),
    ):
        with file.open("wb") as writer:
            write(parts, writer)
    return target


def same(first: TensorProto, second: TensorProto) -> bool:
    if (first.name, first.data_type, first.dims) != (second.name, second.data_type, second.dims):
        return False
    a, b = (numpy_helper.to_array(tensor) for tensor in (first, second))
    return a.dtype == b.dtype and a.tobytes() == b.tobytes()


def test_every_dtype_there_and_back(tmp_path: Path) -> None:
    tensors = [make(elem_type) for elem_type in DTYPES for make in (typed, raw)]
    path = moved_out(saved(tmp_path, *tensors), 1)
    bare = onnx.load(path, load_external_data=False)
    assert all(tensor.data_location == TensorProto.EXTERNAL for tensor in bare.graph.initializer)
    loaded = onnx.load(path)
    assert all(map(same, loaded.graph.initializer, tensors))
    document = load(path)
    assert move_in(document, data_files(document))
    with (tmp_path / "back.onnx").open("wb") as file:
        write(document.byte_ranges("protobuf"), file)
    back = onnx.load(tmp_path / "back.onnx")
    assert all(map(same, back.graph.initializer, tensors))
    assert not any(tensor.external_data for tensor in back.graph.initializer)
    assert all(map(same, document.whole().graph.initializer, tensors))


def test_the_threshold_and_where_data_begins(tmp_path: Path) -> None:
    sizes = [25, 24, 20_000, 26, 5]
    tensors = [numpy_helper.from_array(np.arange(n, dtype=np.float32), str(n)) for n in sizes]
    path = moved_out(saved(tmp_path, *tensors), 100)
    entries = {
        tensor.name: {entry.key: entry.value for entry in tensor.external_data}
        for tensor in onnx.load(path, load_external_data=False).graph.initializer
    }
    assert entries["24"] == entries["5"] == {}
    assert entries["25"] == {"location": "w.data", "offset": "0", "length": "100"}
    assert entries["20000"] == {"location": "w.data", "offset": "65536", "length": "80000"}
    assert entries["26"] == {"location": "w.data", "offset": "147456", "length": "104"}
    assert (path.parent / "w.data").stat().st_size == 147456 + 104
    onnx.checker.check_model(str(path))


def test_tensors_that_onnx_finds_no_data_for_stay(tmp_path: Path) -> None:
    """Strings, sparse tensors, training information; those of nodes and functions move."""
    path = saved(tmp_path, raw(TensorProto.FLOAT))
    model = onnx.load(path)
    text = model.graph.initializer.add(name="t", data_type=TensorProto.STRING, dims=[50])
    text.string_data.extend([b"text"] * 50)
    sparse = SparseTensorProto(dims=[99], values=raw(1), indices=raw(TensorProto.INT64))
    model.graph.sparse_initializer.append(sparse)
    model.training_info.add().initialization.initializer.append(raw(1))
    constant = helper.make_node("Constant", [], ["c"], value=raw(1))
    default = onnx.FunctionProto(name="f", node=[constant])
    default.attribute_proto.add(name="v", type=AttributeProto.TENSOR).t.CopyFrom(raw(1))
    model.functions.append(default)
    model.graph.node.append(constant)
    inner = onnx.GraphProto(initializer=[raw(1)])
    model.graph.node.append(helper.make_node("If", ["x"], ["y"], then_branch=inner))
    path.write_bytes(model.SerializeToString())
    target = moved_out(path, 1)
    found = onnx.load(target, load_external_data=False)
    assert found.graph.initializer[1] == text
    assert found.graph.sparse_initializer[0] == sparse
    assert found.training_info == model.training_info
    assert found.functions[0].attribute_proto == default.attribute_proto
    moved = [
        found.graph.initializer[0],
        found.graph.node[0].attribute[0].t,
        found.graph.node[1].attribute[0].g.initializer[0],
        found.functions[0].node[0].attribute[0].t,
    ]
    assert all(tensor.data_location == TensorProto.EXTERNAL for tensor in moved)
    # What onnx loads is the model as it was, but for what it says of where data is.
    loaded = onnx.load(target)
    assert same(loaded.graph.node[1].attribute[0].g.initializer[0], raw(1))
    assert same(loaded.functions[0].node[0].attribute[0].t, raw(1))


@pytest.mark.parametrize(
    "entries",
    [
        {"offset": "0"},
        {"location": "w.bin", "offset": "-1"},
        {"location": "w.bin", "offset": "many"},
        {"location": "w.bin", "offset": "4", "length": "9"},
        {"location": "w.bin", "length": "-1"},
    ],
)
def test_references_to_what_is_not_there(tmp_path: Path, entries: dict[str, str]) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(12))
    tensor = TensorProto(name="w", dims=[3], data_type=1, data_location=TensorProto.EXTERNAL)
    for key, value in entries.items():
        tensor.external_data.add(key=key, value=value)
    other = TensorProto(name="v", dims=[3], data_type=1, data_location=TensorProto.EXTERNAL)
    other.external_data.add(key="location", value="w.bin")
    document = load(saved(tmp_path, other, tensor))
    with pytest.raises(InvalidModelError, match="tensor 'w'"):
        move_in(document, data_files(document))


def test_data_without_a_length_reaches_to_the_end(tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(bytes(4) + np.arange(3, dtype=np.float32).tobytes())
    tensor = TensorProto(name="w", dims=[3], data_type=1, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    tensor.external_data.add(key="offset", value="4")
    document = load(saved(tmp_path, tensor))
    assert move_in(document, data_files(document))
    found = numpy_helper.to_array(document.whole().graph.initializer[0])
    assert found.tolist() == [0, 1, 2]


def test_numbers_that_do_not_fit(tmp_path: Path) -> None:
    tensor = TensorProto(name="w", dims=[99], data_type=TensorProto.INT64)
    tensor.int64_data.extend(range(1000, 1050))
    document = load(saved(tmp_path, tensor))
    with pytest.raises(InvalidModelError, match="tensor 'w' cannot be read"):
        move_out(document, 1, "w.data")
