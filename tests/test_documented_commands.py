"""What the README and the documentation tell users to type works as it stands."""

from __future__ import annotations

import importlib.util
import re
import shlex
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import onnx
import pytest
import yaml

from docs.generator.session import run
from docs.generator.workplace import prepare
from onnxreduce_cli.cli.program import program
from onnxreduce_cli.targets.reading import runtime_names
from onnxreduce_cli.targets.requirement import find_target
from tests.pages import ROOT, blocks, commands, is_session, pages, python

#: What only a shell understands.
SHELL = re.compile(r"[<>|;&]|^(?!onnxreduce )")

#: A model that every runtime takes in some form.
RELU = """<ir_version: 8, opset_import: ["" : 13]>
g (float[1,3,4,4] x) => (float[1,3,4,4] y) { [relu] y = Relu(x) }"""

#: What reaches no opset.
IMPOSSIBLE = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3,4] x) => (float[2,3,4] y) { [odd] y = Eiffel(x) }"""


def typed(name: str) -> list[tuple[str, int]]:
    """The commands of a page that are run here."""
    return [(line, ends) for line, ends in commands(pages()[name]) if is_run(name, line)]


def is_run(name: str, line: str) -> bool:
    return line.startswith("onnxreduce ") or (is_session(name) and "venv" not in line)


def with_commands(sessions: bool) -> list[str]:
    return [name for name in pages() if is_session(name) == sessions and typed(name)]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which commands find what they name."""
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    return tmp_path


def check(onnxreduce, folder: Path, line: str, ends: int) -> None:
    """Type a line; quoted patterns aside, only a shell knows redirections and other commands."""
    if SHELL.search(re.sub(r"'[^']*'", "", line)):
        ended = run(line, folder)
        assert ended.returncode == ends, f"{line}\n{ended.stdout}"
    else:
        result = onnxreduce(*shlex.split(line)[1:])
        assert result.code == ends, f"{line}\n{result.out}{result.err}"


@pytest.mark.parametrize(
    ("name", "line", "ends"),
    [(name, *item) for name in with_commands(False) for item in typed(name)],
)
def test_each_command(onnxreduce, folder, name, line, ends):
    check(onnxreduce, folder, line, ends)


@pytest.mark.parametrize("name", with_commands(True))
def test_each_session(onnxreduce, folder, name):
    for line, ends in typed(name):
        check(onnxreduce, folder, line, ends)


def test_there_are_commands_in_all_places():
    assert {"README.md", "converting.md", "reports.md", "pipelines.md"} <= {*with_commands(False)}
    assert len(with_commands(True)) >= 8


@pytest.mark.parametrize("name", [name for name, path in pages().items() if [*python(path)]])
def test_python_code(folder, name, capsys):
    values: dict[str, object] = {}
    for code in python(pages()[name]):
        exec(code, values)
    assert isinstance(values["model"], onnx.ModelProto)
    assert values["model"].opset_import[0].version == 13


@pytest.mark.parametrize("name", pages())
def test_other_commands_name_what_there_is(name):
    """What takes too long to be run here is run by `.ci/run`, or is a module that exists."""
    ci = [line for line, _ in commands(pages()["README.md"]) if line.startswith("python3 -m venv ")]
    assert len(ci) == 2
    for line, _ in commands(pages()[name]):
        if "venv .venv" in line:
            assert line in ci
        for module in re.findall(r"python -m ([\w.]+)", line):
            assert importlib.util.find_spec(module), line


def requirements() -> list[str]:
    """What the page of runtimes says can be typed after ``--for``."""
    found = re.findall(r"`--for ([^`]*)`", pages()["targets.md"].read_text(encoding="utf-8"))
    return [text.strip("'") for text in found if text != "installed"]


def test_every_runtime_can_be_named():
    named = {find_target(text).runtime.name for text in requirements()}
    assert named == set(runtime_names())


@pytest.mark.matrix
@pytest.mark.parametrize("requirement", requirements())
def test_each_command_for_a_runtime(onnxreduce, folder, requirement):
    onnx.save(onnx.parser.parse_model(RELU), folder / "relu.onnx")
    assert onnxreduce("convert", "relu.onnx", "--for", requirement, "--dry-run").code == 0


def test_there_is_such_a_command():
    (script,) = entry_points(group="console_scripts", name="onnxreduce")
    assert script.load() is program


def written_in(language: str) -> list[tuple[str, str]]:
    """The blocks of all pages that are in a language, with the page's name."""
    return [
        (name, "\n".join(block.lines))
        for name, path in pages().items()
        for block in blocks(path)
        if block.language == language
    ]


@pytest.mark.parametrize(("name", "settings"), written_in("toml"))
def test_settings(onnxreduce, folder, name, settings):
    (folder / "pyproject.toml").write_text(settings, encoding="utf-8")
    result = onnxreduce("convert", "model.onnx", "--dry-run")
    assert result.code == 0, result.err
    assert "  for onnxruntime 1.8: " in result.out


def test_the_job_for_gitlab(folder):
    (job,) = [found["onnx"] for _, text in written_in("yaml") if "onnx" in (found := loaded(text))]
    install, convert = job["script"]
    assert install.startswith("pip install git+https://")
    ended = run(convert, folder)
    assert ended.returncode == 0, ended.stdout
    for path in (*job["artifacts"]["paths"], *job["artifacts"]["reports"].values()):
        assert (folder / path).exists(), path


def test_the_step_for_github_says_what_the_action_takes():
    action = loaded((ROOT / "action.yml").read_text(encoding="utf-8"))
    (step,) = [
        found[0] for _, text in written_in("yaml") if isinstance(found := loaded(text), list)
    ]
    assert {"models"} < set(step["with"]) <= set(action["inputs"])


def loaded(text: str) -> Any:
    return yaml.safe_load(text)


@pytest.mark.parametrize("line", [line for line, _ in typed("pipelines.md")])
def test_the_commands_for_ci_tell_by_their_exit_code(onnxreduce, folder, line):
    onnx.save(onnx.parser.parse_model(IMPOSSIBLE), folder / "models" / "odd.onnx")
    result = onnxreduce(*shlex.split(line)[1:])
    assert result.code == 1
    assert "Eiffel node odd (opset 18)" in result.err
