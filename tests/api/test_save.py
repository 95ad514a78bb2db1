"""Where weights go when a model is converted, and what is refused."""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import onnxreduce_cli
from onnxreduce_cli.api.file_conversion import convert_file
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import InvalidModelError, UsageError
from onnxreduce_cli.model.file import document as files_module
from onnxreduce_cli.model.file import outline
from tests.support import run

X = {"x": np.random.default_rng(0).standard_normal((2, 30)).astype(np.float32)}


@pytest.fixture(params=[True, False], ids=["spans", "plain"], autouse=True)
def spans(request, monkeypatch) -> None:
    monkeypatch.setattr(files_module, "_OUTLINED", 0 if request.param else 1 << 40)
    monkeypatch.setattr(outline, "LARGE", 20)
    monkeypatch.setattr(outline, "MOST_ELEMENTS", 4)


def make_model() -> onnx.ModelProto:
    """Large tensors among the initializers, in a Constant, in a branch; axes in an initializer."""

    def weight(name: str, seed: int) -> TensorProto:
        rng = np.random.default_rng(seed)
        return numpy_helper.from_array(rng.standard_normal((30, 30)).astype(np.float32), name)

    float_info = helper.make_tensor_value_info
    branch = helper.make_graph(
        [helper.make_node("MatMul", ["s", "inner"], ["b"])],
        "branch",
        [],
        [float_info("b", TensorProto.FLOAT, None)],
        [weight("inner", 1)],
    )
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["m"]),
            helper.make_node("Constant", [], ["k"], value=weight("", 2)),
            helper.make_node("MatMul", ["m", "k"], ["n"]),
            helper.make_node("ReduceMean", ["n", "axes"], ["r"], name="mean"),
            helper.make_node("Sub", ["n", "r"], ["s"]),
            helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch),
        ],
        "g",
        [float_info("x", TensorProto.FLOAT, [2, 30])],
        [float_info("y", TensorProto.FLOAT, [2, 30])],
        [
            weight("w", 3),
            numpy_helper.from_array(np.array([1]), "axes"),
            numpy_helper.from_array(np.array(True), "c"),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "model.onnx").write_bytes(make_model().SerializeToString())
    return folder / "model.onnx"


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "model.onnx"


def convert(source: Path, target: Path | None, opset: int | None = 13, **kwargs: object):
    options = Options(opset, **kwargs)
    return convert_file(str(source), None if target is None else str(target), options)


def external(path: Path) -> onnx.ModelProto:
    return onnx.load(path, load_external_data=False)


def moved(source: Path) -> Path:
    """The model with its weights in a file beside it."""
    target = source.with_name("external.onnx")
    convert(source, target, None, threshold=1000)
    return target


def test_the_result_is_what_converting_the_whole_model_gives(source: Path, out: Path) -> None:
    """Byte for byte, from the command, and in memory."""
    convert(source, out, verify=True)
    expected = onnxreduce_cli.convert(make_model(), 13)
    assert out.read_bytes() == expected.SerializeToString()
    assert onnxreduce_cli.convert(source, 13) == expected
    assert onnxreduce_cli.plan(source, 13) == onnxreduce_cli.plan(make_model(), 13)
    convert(source, out, 18, force=True)
    assert out.read_bytes() == source.read_bytes()


def test_other_forms_hold_all_weights(source: Path, tmp_path: Path) -> None:
    convert(source, tmp_path / "model.json")
    assert onnx.load(tmp_path / "model.json") == onnxreduce_cli.convert(make_model(), 13)


def test_streams(source: Path) -> None:
    for given in (str(source), "-"):
        written = io.BytesIO()
        with source.open("rb") as stdin:
            convert_file(given, "-", Options(13, verify=True), stdin=stdin, stdout=written)
        expected = onnxreduce_cli.convert(make_model(), 13)
        assert written.getvalue() == expected.SerializeToString()


def test_weights_out_and_in(source: Path, out: Path) -> None:
    done = convert(source, out, threshold=1000, verify=True)
    assert done.data.files == (f"{out}.data",)
    onnx.checker.check_model(str(out), full_check=True)
    locations = {
        entry.value
        for tensor in external(out).graph.initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    assert locations == {"model.onnx.data"}
    assert out.stat().st_size < 2000
    expected = run(make_model(), X)["y"]
    assert np.array_equal(run(onnx.load(out), X)["y"], expected)
    convert(out, out.with_name("back.onnx"), 18, inline=True, verify=True)
    back = external(out.with_name("back.onnx"))
    assert not any(tensor.external_data for tensor in back.graph.initializer)
    assert np.array_equal(run(back, X)["y"], expected)


def test_weights_are_moved_without_a_change_of_opset(source: Path, out: Path) -> None:
    convert(source, out, None, threshold=1000)
    assert external(out).opset_import[0].version == 18
    again = out.with_name("again.onnx")
    convert(out, again, None, inline=True)
    assert onnx.load(again) == make_model()
    # There is nothing to move: the very bytes that were read.
    other = out.with_name("other.onnx")
    convert(source, other, None, threshold=1 << 40)
    assert other.read_bytes() == source.read_bytes()
    assert not Path(f"{other}.data").exists()


def test_in_place(source: Path) -> None:
    convert(source, None, in_place=True, threshold=1000)
    assert sorted(os.listdir(source.parent)) == ["model.onnx", "model.onnx.data"]
    assert np.array_equal(run(onnx.load(source), X)["y"], run(make_model(), X)["y"])
    # The data that the model is in is never written over.
    before = Path(f"{source}.data").read_bytes()
    convert(source, None, 18, in_place=True, inline=True)
    convert(source, None, in_place=True, force=True, threshold=1000)
    assert Path(f"{source}.data").read_bytes() == before
    assert Path(f"{source}.2.data").exists()
    assert np.array_equal(run(onnx.load(source), X)["y"], run(make_model(), X)["y"])


def test_data_in_the_way(source: Path, out: Path) -> None:
    Path(f"{out}.data").write_bytes(b"precious")
    with pytest.raises(UsageError, match="exists"):
        convert(source, out, threshold=1000)
    assert os.listdir(out.parent) == ["model.onnx.data"]
    assert Path(f"{out}.data").read_bytes() == b"precious"
    # An earlier run may have been killed before it wrote the model.
    convert(source, out, threshold=1000, force=True)
    assert np.array_equal(run(onnx.load(out), X)["y"], run(make_model(), X)["y"])


def test_options_that_contradict(source: Path, out: Path) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        convert(source, out, threshold=1000, inline=True)
    with pytest.raises(UsageError, match="needs a file"):
        convert_file(
            str(source),
            "-",
            Options(13, threshold=1000),
            stdout=io.BytesIO(),
        )


def test_the_same_folder_keeps_references_and_data(source: Path) -> None:
    path = moved(source)
    data = Path(f"{path}.data")
    # Nobody could read this.
    data.unlink()
    data.mkdir()
    convert(path, None, 13)
    result = external(path.with_name("external.opset13.onnx"))
    assert result.graph.initializer[0] == external(path).graph.initializer[0]


@pytest.mark.parametrize("way", ["copy", "link", "keep"])
def test_another_folder(source: Path, out: Path, way: str) -> None:
    path = moved(source)
    done = convert(path, out, external_data=way, verify=way != "keep")
    data = out.with_name("external.onnx.data")
    assert done.data.brought == (() if way == "keep" else ((f"{path}.data", str(data)),))
    assert done.data.linked == ((str(data),) if way == "link" else ())
    if way == "keep":
        assert not data.exists()
        return
    assert data.samefile(f"{path}.data") == (way == "link")
    Path(f"{path}.data").unlink()
    assert np.array_equal(run(onnx.load(out), X)["y"], run(make_model(), X)["y"])


def test_two_models_may_share_their_data(source: Path, out: Path) -> None:
    path = moved(source)
    for name in ("one.onnx", "two.onnx"):
        convert(path, out.with_name(name))
    assert sorted(os.listdir(out.parent)) == ["external.onnx.data", "one.onnx", "two.onnx"]


def test_the_output_is_not_the_models_own_data(source: Path, out: Path) -> None:
    path = moved(source)
    data = Path(f"{path}.data")
    before = data.read_bytes()
    with pytest.raises(UsageError, match="external data"):
        convert(path, data, force=True)
    assert data.read_bytes() == before
    with pytest.raises(UsageError, match="external data"):
        convert(path, out.with_name(data.name))
    assert os.listdir(out.parent) == []


def test_data_outside(source: Path, out: Path, tmp_path: Path) -> None:
    path = moved(source)
    os.replace(f"{path}.data", tmp_path / "away.data")
    Path(f"{path}.data").symlink_to(tmp_path / "away.data")
    for target in (None, out):
        with pytest.raises(InvalidModelError, match="--allow-outside-data"):
            convert(path, target)
    assert os.listdir(out.parent) == []
    convert(path, None, allow_outside=True)
    convert(path, out, allow_outside=True)
    # The result has the data in its own folder, where onnx loads it.
    assert np.array_equal(run(onnx.load(out), X)["y"], run(make_model(), X)["y"])


def test_a_result_too_large_for_protobuf(source: Path, out: Path, monkeypatch) -> None:
    convert(source, out, threshold=1000)
    monkeypatch.setattr(files_module, "LARGEST", 10_000)
    inline = out.with_name("inline.onnx")
    with pytest.raises(InvalidModelError, match=r"protobuf holds no more.*external-data-threshold"):
        convert(out, inline, 18, inline=True)
    assert not inline.exists()
    with pytest.raises(InvalidModelError, match=r"cannot be read: it is larger than 2\.14 GB"):
        convert(source, inline)


def test_a_source_that_changes_before_the_end(source: Path, out: Path, request) -> None:
    """Weights that were left where they are may not be those that the plan was made for."""
    original = source.read_bytes()
    out.write_bytes(b"old")

    def change(*_: object, **__: object) -> None:
        source.write_bytes(original[:-1] + b"x")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("onnxreduce_cli.api.file_conversion.check_conversion", change)
        if "plain" in request.node.name:
            # It has been read in full.
            convert(source, out, force=True)
            expected = onnxreduce_cli.convert(make_model(), 13)
            assert out.read_bytes() == expected.SerializeToString()
            return
        with pytest.raises(InvalidModelError, match="changed while it was read"):
            convert(source, out, force=True)
    assert out.read_bytes() == b"old"
    assert os.listdir(out.parent) == ["model.onnx"]
