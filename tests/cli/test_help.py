"""The help of the commands, which sorts options and shows what can be typed."""

from __future__ import annotations

import shlex
from pathlib import Path

import click
import pytest

from docs.generator.workplace import prepare
from onnxreduce_cli.cli.help import EXAMPLES, section_of
from onnxreduce_cli.cli.main import cli

COMMANDS = cli.list_commands(click.Context(cli))


def command(name: str) -> click.Command:
    found = cli.get_command(click.Context(cli), name)
    assert found is not None
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_options_are_in_a_section(onnxreduce, name: str) -> None:
    options = [item for item in command(name).params if isinstance(item, click.Option)]
    left = {str(item.name) for item in options if section_of(str(item.name)) == "Options"}
    assert left <= {"model"}  # Of `ops`.
    shown = onnxreduce(name, "-h").out
    assert all(item.opts[-1] in shown for item in options)
    assert ("Checks:" in shown) == (name in ("convert", "run", "verify"))


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_the_help_shows_examples_as_they_are_typed(onnxreduce, name: str) -> None:
    shown = onnxreduce(*filter(None, [name]), "-h").out.splitlines()
    assert [line.strip() for line in shown[shown.index("Examples:") + 1 :]] == [*EXAMPLES[name]]
    assert len(EXAMPLES[name]) >= 3


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_work(
    onnxreduce, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    for line in EXAMPLES[name]:
        result = onnxreduce(*shlex.split(line)[1:])
        assert result.code == 0, f"{line}\n{result.out}{result.err}"


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("convert model.onnx --fuse Gelu", "--contract OPERATOR,...|GROUP"),
        ("convert model.onnx --runtime opencv", "--for RUNTIME"),
        ("convert model.onnx --target=opencv", "--for RUNTIME"),
        ("convert model.onnx --target_opset 13", "--opset"),
        ("verify a.onnx b.onnx --input-shape x:1,3", "--dim NAME=SIZE,..."),
        ("convert model.onnx --simplify", "--fold"),
        ("convert model.onnx --fp16", "--dtype float=float16"),
    ],
)
def test_options_of_other_tools_lead_to_ours(onnxreduce, typed: str, meant: str) -> None:
    result = onnxreduce(*typed.split())
    assert result.code == 2
    assert f"; it is {meant} here." in result.err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("upgrade model.onnx", "It is here: onnxreduce convert MODEL --opset N"),
        ("info model.onnx", "It is here: onnxreduce inspect MODEL"),
        ("inspct model.onnx", "Did you mean inspect?"),
        (
            "model.onnx --opset 13",
            "A command comes before a model: onnxreduce convert model.onnx --opset 13",
        ),
    ],
)
def test_what_is_no_command_leads_to_one(onnxreduce, typed: str, meant: str) -> None:
    result = onnxreduce(*typed.split())
    assert (result.code, result.out) == (2, "")
    assert meant in result.err


def test_a_second_name_that_was_meant_as_the_output(
    onnxreduce, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    before = sorted(tmp_path.iterdir())
    result = onnxreduce("convert", "model.onnx", "out.onnx", "--opset", 13)
    assert (result.code, result.out) == (2, "")
    assert "there is no model out.onnx; to write to that file: -o out.onnx" in result.err
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("name", ["report.md", "report.xml", "report"])
def test_a_page_is_called_one(onnxreduce, name: str) -> None:
    result = onnxreduce("inspect", "model.onnx", "--report", name)
    assert result.code == 2
    assert "--report writes a page, as in --report report.html" in result.err


def test_an_option_that_a_command_does_not_have_is_not_proposed(onnxreduce) -> None:
    result = onnxreduce("verify", "a.onnx", "--simplify")
    assert result.code == 2
    assert "--fold" not in result.err


def test_a_bare_command_shows_its_usage(onnxreduce) -> None:
    result = onnxreduce()
    assert (result.code, result.out) == (2, "")
    assert result.err.rstrip() == onnxreduce("-h").out.rstrip()
    assert "\\n" not in result.err


def test_lists_take_commas(onnxreduce, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    typed = "convert export.onnx --dry-run --expand Gelu,LayerNormalization --dtype"
    assert onnxreduce(*typed.split(), "fp32=fp16,double=fp16").code == 0
    result = onnxreduce("convert", "dynamic.onnx", "--dry-run", "--dim", "batch=1,seq=128")
    assert "batch = 1, seq = 128" in result.out


def test_verify_may_be_quiet(onnxreduce, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    result = onnxreduce("verify", "a.onnx", "b.onnx", "-q")
    assert (result.code, result.out, result.err) == (0, "", "")


def test_a_folder_stands_for_its_models(
    onnxreduce, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    typed = ("convert", "models", "--opset", "17", "--out-dir", "models/out", "--force")
    # What it wrote into the folder is no input of the next run.
    assert [onnxreduce(*typed).code for _ in range(2)] == [0, 0]
    found = {path.name for path in (tmp_path / "models/out").glob("*.onnx")}
    assert found == {"reductions.onnx", "segmentation.onnx"}
    (tmp_path / "empty").mkdir()
    result = onnxreduce("convert", "empty", "--opset", "17")
    assert (result.code, result.err) == (
        2,
        "Error: folder 'empty' holds no .onnx file; name the models\n",
    )
