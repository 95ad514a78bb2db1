"""What a project states in its pyproject.toml."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.support import model


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A folder with a model at 18, and a folder in it to work in; writes the table."""
    inner = tmp_path / "inner"
    inner.mkdir()
    monkeypatch.chdir(inner)
    source = model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] x) => (float[2,1] y) { s = Mul(x, x) y = ReduceSum<keepdims=1>(s, axes) }
    """.replace("s = Mul", "axes = Constant<value_ints=[1]>() s = Mul")
    )
    onnx.save(source, inner / "m.onnx")

    def write(text: str) -> None:
        (tmp_path / "pyproject.toml").write_text(text)

    return write


def test_for_and_contract(project, onnxreduce):
    project('[tool.onnxreduce]\nfor = "onnxruntime==1.8"\ncontract = ["Relu"]\n')
    result = onnxreduce("convert", "m.onnx", "--dry-run")
    assert result.code == 2
    assert "Relu" in result.err
    project('[tool.onnxreduce]\nfor = "onnxruntime==1.8"\ncontract = "family, Gelu"\n')
    result = onnxreduce("convert", "m.onnx", "--dry-run")
    assert "for onnxruntime 1.8: it does not take the model's own opset, 18" in result.out


def test_paths_are_from_the_folder_of_the_settings(project, onnxreduce, tmp_path):
    (tmp_path / "taken.txt").write_text("Constant\nMul\nReduceSum\n")
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    project("""[tool.onnxreduce]
        opset = 13
        verify = true
        allow-ops = "taken.txt"
        input = {x = "x.npy"}
        out-dir = "converted"
        report = "pages/report.html"
        junit = "report.xml"
    """)
    (tmp_path / "pages").mkdir()
    result = onnxreduce("convert", "m.onnx")
    assert result.code == 0, result.err
    for name in ("converted/m.onnx", "pages/report.html", "report.xml"):
        assert (tmp_path / name).is_file(), name
    assert [path.name for path in (tmp_path / "inner").iterdir()] == ["m.onnx"]
    # What is typed is from this folder.
    assert onnxreduce("convert", "m.onnx", "--out-dir", "here").code == 0
    assert (tmp_path / "inner/here/m.onnx").is_file()


def test_the_command_line_wins(project, onnxreduce):
    project('[tool.onnxreduce]\nfor = "onnxruntime==1.8"\ncontract = "Relu"\n')
    said = ["--dry-run", "--contract", "Gelu"]
    result = onnxreduce("convert", "m.onnx", *said, "--for", "onnxruntime==1.20")
    assert "for onnxruntime 1.20" in result.out
    result = onnxreduce("convert", "m.onnx", *said, "--opset", "17")
    assert "opset 18 to 17" in result.out
    assert "for onnxruntime" not in result.out


def test_dtypes(project, onnxreduce):
    project('[tool.onnxreduce]\ndtype = "float=double"\n')
    assert onnxreduce("convert", "m.onnx", "--opset", "13", "-o", "double.onnx").code == 0
    (output,) = onnx.load("double.onnx").graph.output
    assert output.type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    said = ["--dtype", "float=float16", "-o", "half.onnx"]
    assert onnxreduce("convert", "m.onnx", "--opset", "13", *said).code == 0
    (output,) = onnx.load("half.onnx").graph.output
    assert output.type.tensor_type.elem_type == onnx.TensorProto.FLOAT16


def test_tolerances_where_models_are_compared(project, onnxreduce):
    project("[tool.onnxreduce]\nrtol = 0.5\natol = 0\n")
    assert onnxreduce("convert", "m.onnx", "--opset", "13", "-q").code == 0
    near = onnx.load("m.onnx")
    near.graph.node[-1].output[0] = "sum"
    near.graph.node.add(op_type="Mul", input=["sum", "factor"], output=["y"])
    near.graph.initializer.append(numpy_helper.from_array(np.float32([1.1]), "factor"))
    onnx.save(near, "near.onnx")
    compare = ["verify", "m.onnx", "near.onnx", "--executor", "numpy"]
    assert onnxreduce(*compare).code == 0
    assert onnxreduce(*compare, "--rtol", "0.01").code == 1
    assert onnxreduce(*compare, "--exact").code == 1


def test_every_option_of_both_commands(project, onnxreduce):
    project(
        """[tool.onnxreduce]
        opset = 13
        strict = true
        verify = true
        trials = 2
        seed = 5
        strip-metadata = "all"
        external-data-threshold = "1MB"
        ir-version = 8
        dim = {N = 3}
        io-dtype = {x = "double"}
        timeout = 30
        out-dir = "inner/out"
        force = true
        json = "inner/report.json"
        executor = "numpy"
        special = true
        """
    )
    found = onnx.load("m.onnx")
    for value in (*found.graph.input, *found.graph.output):
        value.type.tensor_type.shape.dim[0].dim_param = "N"
    onnx.save(found, "m.onnx")
    assert onnxreduce("convert", "m.onnx").code == 0
    found = json.loads(Path("report.json").read_text())
    told = found["call"]["options"]
    assert (told["strict"], told["seed"], told["trials"], told["timeout"]) == (True, 5, 2, 30)
    assert (told["external-data-threshold"], told["ir-version"], told["dim"]) == (
        10**6,
        8,
        {"N": 3},
    )
    written = onnx.load("out/m.onnx")
    assert (written.ir_version, written.opset_import[0].version) == (8, 13)
    assert written.graph.input[0].type.tensor_type.elem_type == onnx.TensorProto.DOUBLE
    assert onnxreduce("verify", "m.onnx", "m.onnx").code == 0
    found = json.loads(Path("report.json").read_text())
    assert {run["executor"] for run in found["runs"]} == {"numpy"}
    assert found["call"]["options"]["special"] is True
    # What the command line gives wins, and what goes with it.
    assert onnxreduce("convert", "m.onnx", "--opset", 17, "-o", "own.onnx").code == 0
    assert onnx.load("own.onnx").opset_import[0].version == 17


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[tool.onnxreduce]\nopsett = 13",
            "has no 'opsett'; did you mean opset",
        ),
        ("[tool.onnxreduce]\noutput = 'x.onnx'", "has no 'output'"),
        ("[tool.onnxreduce]\nmodels = 'x.onnx'", "has no 'models'"),
        ("[tool.onnxreduce]\nfor = 8", "for of [tool.onnxreduce] must be a text, not 8"),
        ("[tool.onnxreduce]\ndtype = 'half'", "dtype of [tool.onnxreduce]: 'half' is not of the"),
        ("[tool.onnxreduce]\nverify = true\nrtol = -1", "[tool.onnxreduce]: -1.0 is not 0 or more"),
        (
            "[tool.onnxreduce]\ncontract = [1]",
            "must be a text, a list of texts, or a table, not [1]",
        ),
        ("[tool.onnxreduce]\nstrict = 1", "strict of [tool.onnxreduce] must be true or false"),
        ("[tool.onnxreduce]\njobs = true", "jobs of [tool.onnxreduce] must be a number, not True"),
        ("[tool.onnxreduce]\njobs = 0", "jobs of [tool.onnxreduce]: 0 is not in the range"),
        ("[tool.onnxreduce]\nexternal-data = 'no'", "'no' is not one of 'link', 'copy', 'keep'"),
        ("[tool.onnxreduce", "cannot be read"),
    ],
)
def test_what_is_wrong_is_told(project, onnxreduce, text, said):
    project(text)
    result = onnxreduce("convert", "m.onnx", "--dry-run", "--opset", "13")
    assert result.code == 2
    assert said in " ".join(result.err.split())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("for = 'opencv==2'", "for of [tool.onnxreduce]: nothing is known of opencv before 4.5"),
        ("contract = ['Relu']", "contract of [tool.onnxreduce]: no nodes are known to stand for"),
        (
            "dtype = 'int8=float'",
            "dtype of [tool.onnxreduce]: --dtype int8=float: it changes float",
        ),
    ],
)
def test_a_value_that_means_nothing_is_told_with_its_file(project, onnxreduce, text, said):
    project(f"[tool.onnxreduce]\n{text}\n")
    result = onnxreduce("convert", "m.onnx", "--dry-run", "--expand", "Softmax")
    assert result.code == 2
    assert f"pyproject.toml: {said}" in " ".join(result.err.split())


@pytest.mark.parametrize("text", ["[tool.other]\nx = 1\n", "[tool.other", "name = 'onnxreduce'\n"])
def test_without_a_table(project, onnxreduce, text):
    project(text)
    assert onnxreduce("convert", "m.onnx", "--dry-run", "--opset", "13").code == 0


def test_a_file_that_is_no_text(project, onnxreduce):
    project("")
    Path("../pyproject.toml").write_bytes(b"\xff")
    result = onnxreduce("convert", "m.onnx", "--dry-run", "--opset", "13")
    assert result.code == 2
    assert "cannot be read" in " ".join(result.err.split())
