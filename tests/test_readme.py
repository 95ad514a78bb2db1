"""What the README tells users to type works as it stands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnxreduce_cli.cli import main as command_line
from tests.support import model

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")

TEXT = """<ir_version: 8, opset_import: ["" : 13]>
g (float[2,3,4] x) => (float[1,1,1] y) {
    [softmax] s = LogSoftmax(x)
    [sum] y = ReduceL1(s)
}"""

#: What does not reach opset 7: nothing there gives as many elements as the values say.
HARD = """<ir_version: 8, opset_import: ["" : 18]>
g (string[3] x) => (string[3] y) { [hard] y = StringNormalizer<case_change_action="LOWER">(x) }"""

#: What reaches no opset.
IMPOSSIBLE = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3,4] x) => (float[2,3,4] y) { [odd] y = Eiffel(x) }"""


def section(title):
    return re.split(r"^## ", README, flags=re.M)[1:][titles().index(title)]


def titles():
    return re.findall(r"^## (.*)$", README, flags=re.M)


def commands(title):
    lines = re.findall(r"^    (onnxreduce .*)$", section(title), flags=re.M)
    return [line.partition("  #")[0].strip() for line in lines]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder in which the README's commands find what they name."""
    monkeypatch.chdir(tmp_path)
    for name in ("models", "there"):
        (tmp_path / name).mkdir()
    for name in ("model.onnx", "a.onnx", "b.onnx", "a", "models/a.onnx", "models/b.onnx"):
        (tmp_path / name).write_bytes(model(TEXT).SerializeToString())
    np.save("x.npy", np.ones((2, 3, 4), np.float32))
    return tmp_path


def test_there_is_such_a_command():
    (script,) = entry_points(group="console_scripts", name="onnxreduce")
    assert script.load() is command_line.program


@pytest.mark.parametrize("line", commands("What it does"))
def test_each_command(onnxreduce, folder, line):
    if "<" not in line:
        assert onnxreduce(*shlex.split(line)[1:]).code == 0
    else:
        whole = line.replace("onnxreduce", f"{sys.executable} -m onnxreduce_cli.cli.main", 1)
        subprocess.run(["bash", "-c", whole], check=True, capture_output=True)
        assert onnx.load("b").opset_import[0].version == 13


@pytest.mark.parametrize("line", commands("In CI"))
def test_the_commands_for_ci_tell_by_their_exit_code(onnxreduce, folder, line):
    arguments = shlex.split(line)[1:]
    assert onnxreduce(*arguments).code == 0
    onnx.save(onnx.parser.parse_model(IMPOSSIBLE), folder / "models" / "odd.onnx")
    result = onnxreduce(*arguments)
    assert result.code == 1
    assert "Eiffel node odd (opset 18)" in result.err


def test_the_library(folder, capsys):
    onnx.save(model(HARD), folder / "model.onnx")
    (code,) = re.findall(r"^As a library:\n\n((?:    .*\n|\n)+)", README, flags=re.M)
    lines = [line[4:] for line in code.splitlines()]
    values = {"x": np.array(["A", "b", "C"], object)}
    exec("\n".join(lines), values)
    assert values["model"].opset_import[0].version == 13
    assert values["plan"].possible
    assert values["report"].equivalent
    assert list(values["outputs"]) == ["y"]
    assert capsys.readouterr().out.startswith("hard StringNormalizer ")
