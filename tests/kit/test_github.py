"""GitHub's action converts and verifies; its steps are run here as GitHub's runner would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.page_data import held

pytestmark = pytest.mark.kit

HERE = Path(__file__).parents[2]
ACTION = yaml.safe_load((HERE / "action.yml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((HERE / ".github" / "workflows").glob("*.yml"))


def steps() -> Iterator[tuple[str, str]]:
    """The shell scripts of the action and of the workflows, by where they are."""
    for step in ACTION["runs"]["steps"]:
        if "run" in step:
            yield f"action.yml: {step['name']}", step["run"]
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items():
            for number, step in enumerate(job.get("steps", ())):
                if "run" in step:
                    yield f"{path.name}: {name}, {number}", step["run"]


@pytest.mark.parametrize(("place", "script"), list(steps()))
def test_scripts_are_sound(place: str, script: str) -> None:
    # As part of a script, what comes from elsewhere could run anything.
    assert "${{" not in script, place
    done = subprocess.run(
        [str(Path(sys.executable).with_name("shellcheck")), "--shell=bash", "-"],
        input=script,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout


@pytest.fixture
def action(tmp_path: Path) -> Any:
    """Runs the action's steps in a folder, and gives what the last one ended with."""
    folder = tmp_path / "project"
    folder.mkdir()

    def call(**inputs: str) -> subprocess.CompletedProcess[str]:
        given = {name: item.get("default", "") for name, item in ACTION["inputs"].items()}
        given |= {name.replace("_", "-"): value for name, value in inputs.items()}
        done = None
        for step in ACTION["runs"]["steps"]:
            if "run" not in step:
                continue
            own = {
                name: given[value.removeprefix("${{ inputs.").removesuffix(" }}")]
                for name, value in step.get("env", {}).items()
            }
            done = subprocess.run(
                ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
                cwd=folder,
                capture_output=True,
                text=True,
                env={
                    "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
                    "HOME": os.environ["HOME"],
                    "GITHUB_ACTIONS": "true",
                    "GITHUB_ACTION_PATH": str(HERE),
                    "GITHUB_OUTPUT": str(tmp_path / "outputs"),
                    "RUNNER_TEMP": str(tmp_path / "runner"),
                    **own,
                },
            )
            if done.returncode:
                break
        assert done is not None
        return done

    call.folder = folder  # type: ignore[attr-defined]
    return call


def test_models_are_converted_and_reported(action: Any, tmp_path: Path) -> None:
    done = action(
        models=f"{HERE}/samples/reductions*.onnx\n{HERE}/samples/attention*.onnx\n",
        **{"for": "onnxruntime==1.8"},
        out_dir="converted models",
        arguments="--trials\n2\n",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list((action.folder / "converted models").glob("*.onnx"))) == 3
    (line,) = (tmp_path / "outputs").read_text().splitlines()
    reports = Path(line.removeprefix("reports="))
    assert json.loads((reports / "report.json").read_text())
    assert (reports / "junit.xml").read_text().startswith("<?xml")
    found, _ = held(reports / "report.html")
    assert any(model["source"].endswith("reductions_opset18.onnx") for model in found["models"])


def test_what_is_in_the_way_is_annotated(action: Any) -> None:
    done = action(models=f"{HERE}/samples/reductions_opset18.onnx", opset="99")
    assert done.returncode == 2
    (action.folder / "broken.onnx").write_bytes(b"no model")
    done = action(models="broken.onnx", opset="13")
    assert done.returncode == 2
    assert "::error" in done.stdout + done.stderr
    assert sorted(path.name for path in action.folder.iterdir()) == ["broken.onnx"]


def test_what_is_given_is_no_script(action: Any) -> None:
    done = action(models="$(touch here)\n`touch here`; touch here", opset="13")
    assert done.returncode == 2
    assert list(action.folder.iterdir()) == []
