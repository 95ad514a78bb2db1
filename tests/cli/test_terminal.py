"""What people see on a terminal, and what their shell offers them."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.external_data_helper import convert_model_to_external_data

from onnxreduce_cli.cli.streams import coloured
from tests.support import model

TEXT = """<ir_version: 8, opset_import: ["" : 18, "local" : 1], producer_name: "maker">
g (float[batch,3] x, int64[1] axes) => (float[batch,3] y, float[batch,1] z)
<int64[1] axes = {1}, float[3] w = {1, 2, 3}> {
    [first] y = local.Scaled(x, w)
    [second] z = ReduceMax<keepdims = 1>(x, axes)
}
<domain: "local", opset_import: ["" : 18]>
Scaled (a, b) => (c) { s = Softmax<axis = -1>(a)  c = Mul(s, b) }"""


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)
    found = model(TEXT)
    found.metadata_props.add(key="author", value="somebody\x1b[2J")
    found.graph.node[0].metadata_props.add(key="namespace", value="a/b")
    onnx.save(found, "a.onnx")
    for tensor in found.graph.initializer:
        tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor), tensor.name))
    convert_model_to_external_data(found, location="w.bin", size_threshold=0)
    onnx.save(found, "outside.onnx")


def test_inspect_shows_what_a_model_holds(onnxreduce):
    shown = onnxreduce("inspect", "a.onnx").out
    for line in (
        "a.onnx: IR version 8, ai.onnx 18, local 1",
        "input   x     float[batch,3]",
        "input   axes  int64[1] (has a default)",
        "output  z     float[batch,1]",
        "weights: 1 int64, 1 float; 4 elements",
        "metadata: author=somebody\\x1b[2J, of 1 node",
        "function local.Scaled: 2 nodes, ai.onnx 18",
    ):
        assert line in shown.split("\n"), shown
    assert re.search(r"^file: \d+ bytes; written by maker$", shown, re.MULTILINE)
    assert "\x1b" not in shown
    assert "external data: 'w.bin', " in onnxreduce("inspect", "outside.onnx").out


def test_many_inputs_are_not_all_shown(onnxreduce):
    found = model(TEXT)
    for number in range(100):
        found.graph.input.add().CopyFrom(onnx.helper.make_tensor_value_info(f"n{number}", 1, [1]))
    onnx.save(found, "many.onnx")
    shown = onnxreduce("inspect", "many.onnx").out
    assert "input   and 82 more" in shown
    assert shown.count("\n") < 80


def test_verify_tells_a_line_for_each_output(onnxreduce):
    found = onnx.load("a.onnx")
    found.graph.node[1].op_type = "ReduceMin"
    onnx.save(found, "b.onnx")
    shown = onnxreduce("verify", "a.onnx", "b.onnx", "--trials", 2).out.split("\n")
    assert shown[0].startswith("NOT EQUIVALENT")
    lines = [line for line in shown if re.match("  [yz]: ", line)]
    assert [line.split()[:2] for line in lines] == [["y:", "ok"], ["z:", "DIFFERENT"]]
    whole = onnxreduce("verify", "a.onnx", "b.onnx", "--trials", 2, "--verbose").out
    assert "z: both models in numpy: DIFFERENT" in whole
    assert "y: a.onnx, onnxruntime and numpy: ok" in whole


def test_run_shows_numbers_and_few_values(onnxreduce):
    np.save("x.npy", np.array([[1, 2, 3], [4, 5, 6.5]], np.float32))
    shown = onnxreduce("run", "a.onnx", "-i", "x=x.npy").out
    assert "z: float32[2, 1], min 3, mean 4.75, max 6.5\n  [[3.0], [6.5]]" in shown
    np.save("x.npy", np.ones((200, 3), np.float32))
    shown = onnxreduce("run", "a.onnx", "-i", "x=x.npy").out
    assert "z: float32[200, 1], min 1, mean 1, max 1, 200 elements\n" in shown
    assert shown.count("\n") == 3


@pytest.mark.parametrize("columns", [80, 120, 200])
def test_lines_are_as_wide_as_the_terminal(onnxreduce, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    for call in (
        ("inspect", "a.onnx"),
        ("convert", "a.onnx", "outside.onnx", "--opset", "9", "--dry-run"),
        ("convert", "a.onnx", "--opset", "9", "--dry-run"),
        ("targets",),
        ("ops", "Softmax"),
        ("verify", "a.onnx", "outside.onnx", "--trials", "1"),
        ("convert", "a.onnx", "--for", "opencv==4.6", "--dry-run", "--verify"),
    ):
        lines = onnxreduce(*call).out.split("\n")
        assert max(map(len, lines)) <= columns, call
        assert call[0] != "inspect" or max(map(len, lines)) > columns - 25


def test_colours_are_for_terminals_that_want_them(onnxreduce, monkeypatch):
    import click

    call = ("convert", "a.onnx", "--opset", 13, "--dry-run")
    assert "\x1b" not in onnxreduce(*call).out, "it goes into a pipe"
    monkeypatch.setattr(click.utils, "should_strip_ansi", lambda stream, color=None: color is False)
    assert "\x1b[32m\x1b[1mCan be converted\x1b[0m to opset" in onnxreduce(*call).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in onnxreduce(*call).out


def test_what_is_painted():
    assert coloured("NOT EQUIVALENT: a and b differ").startswith("\x1b[31m")
    assert coloured("a.onnx  can be converted  opset 9").split("  ")[1].startswith("\x1b[32m")
    assert (
        coloured("  1 Add: converted: can be converted") == "  1 Add: converted: can be converted"
    )


def offered(capsys, monkeypatch, words):
    """What is offered for the last of some words, by its kind."""
    from onnxreduce_cli.cli.main import main

    monkeypatch.setenv("_ONNXREDUCE_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_LINE", f"onnxreduce {words}")
    monkeypatch.setattr("sys.argv", ["onnxreduce"])
    with pytest.raises(SystemExit):
        main()
    return [tuple(line.split(",", 1)) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("insp", ("plain", "inspect")),
        ("ops ReduceLogSumE", ("plain", "ReduceLogSumExp")),
        ("convert a.onnx --for openc", ("plain", "opencv")),
        ("convert a.onnx --for opencv==4.6", ("plain", "opencv==4.6")),
        ("convert a.onnx --contract all,Hard", ("plain", "all,HardSigmoid")),
        ("convert a.onnx --expand LogSoft", ("plain", "LogSoftmax")),
        ("convert a.onnx --dim b", ("plain", "batch=")),
        ("verify a.onnx --dim b", ("plain", "batch=")),
        ("targets onnxruntime-w", ("plain", "onnxruntime-web")),
        ("inspect a.", ("file", "a.")),
        ("convert a.", ("file", "a.")),
        ("run a.onnx -o out", ("file", "out")),
    ],
)
def test_completion(capsys, monkeypatch, words, first):
    assert offered(capsys, monkeypatch, words)[0] == first


@pytest.mark.parametrize(
    ("typed", "words", "offers"),
    [
        ("onnxreduce convert a.onnx --for openc", [], "opencv"),
        ("onnxreduce convert a.onnx --for opencv==4.6", ["opencv", "==", "4.6"], "4.6"),
        (
            "onnxreduce convert a.onnx --for=opencv==4.6",
            ["--for", "=", "opencv", "==", "4.6"],
            "4.6",
        ),
        ("onnxreduce convert a.onnx --dim b", [], "batch="),
    ],
)
def test_completion_in_bash(tmp_path, monkeypatch, typed, words, offers):
    """Bash takes an equals sign for a word's end, and puts what is offered after it."""
    program = tmp_path / "bin" / "onnxreduce"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {Path(sys.executable).as_posix()} -m onnxreduce "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    begun = [*typed.split(" ")[:-1], *words] if words else typed.split(" ")
    script = f"""
        eval "$(_ONNXREDUCE_COMPLETE=bash_source onnxreduce)"
        COMP_LINE={shlex.quote(typed)}; COMP_POINT=${{#COMP_LINE}}
        COMP_WORDS=({" ".join(map(shlex.quote, begun))}); COMP_CWORD={len(begun) - 1}
        COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
        _onnxreduce_completion onnxreduce; printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stdout.splitlines()[0] == offers


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_set_up_by_the_program(capsys, monkeypatch, shell):
    monkeypatch.setattr("click.shell_completion.BashComplete._check_version", lambda _: None)
    from onnxreduce_cli.cli.main import main

    monkeypatch.setenv("_ONNXREDUCE_COMPLETE", f"{shell}_source")
    monkeypatch.setattr("sys.argv", ["onnxreduce"])
    with pytest.raises(SystemExit):
        main()
    assert f"_ONNXREDUCE_COMPLETE={shell}_complete" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("call", "meant"),
    [
        ("verify a.onnx --dim bathc=2", "did you mean batch?"),
        ("convert a.onnx --dim bathc=2", "did you mean 'batch'?"),
        ("convert a.onnx --opset 13 --expand LogSoftmx", "did you mean LogSoftmax, "),
        ("convert a.onnx --opset 13 --expand gelu", "did you mean Gelu, "),
        ("convert a.onnx --contract Geluu", "did you mean Gelu?"),
        ("convert a.onnx --allow-ops Addd", "did you mean"),
        ("convert a.onnx --for opencw", "did you mean opencv?"),
        ("ops ReducSum", "did you mean ReduceSum"),
        ("convert a.onnx --opst 13", "--opset"),
        ("inspct a.onnx", "Did you mean inspect?"),
    ],
)
def test_did_you_mean(onnxreduce, call, meant):
    result = onnxreduce(*call.split())
    assert result.code == 2
    assert meant in result.err
