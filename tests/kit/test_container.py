"""The image of the Dockerfile holds the command: its instructions are followed without Docker."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.kit

HERE = Path(__file__).parents[2]


def instructions() -> list[tuple[str, str]]:
    """The instructions of the Dockerfile, each with what follows it."""
    lines = (HERE / "Dockerfile").read_text(encoding="utf-8").splitlines()
    found = [line.partition(" ") for line in lines if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in found]


def is_sent(name: str) -> bool:
    """Whether Docker is sent a file or folder of the checkout, by .dockerignore."""
    rules = (HERE / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert rules[0] == "*"
    return f"!{name}" in rules


def test_the_instructions_make_the_command(tmp_path: Path) -> None:
    """In a folder for the root of the image, with a new environment for its Python."""
    python = tmp_path / "python"
    subprocess.run([sys.executable, "-m", "venv", str(python)], check=True)
    scripts = python / "bin"
    environment = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
    root, entry, folder = tmp_path / "root", [], tmp_path
    for name, rest in instructions():
        if name == "COPY":
            *sources, target = rest.split()
            place = root / target.lstrip("/")
            for source in sources:
                assert is_sent(source), source
                if (HERE / source).is_dir():
                    ignored = shutil.ignore_patterns("__pycache__")
                    shutil.copytree(HERE / source, place, ignore=ignored)
                else:
                    assert target.endswith("/")
                    place.mkdir(parents=True, exist_ok=True)
                    shutil.copy(HERE / source, place)
        elif name == "RUN":
            command = rest.replace(" /source", f" {root}/source")
            subprocess.run(["sh", "-e", "-c", command], env=environment, cwd=root, check=True)
        elif name == "WORKDIR":
            folder = root / rest.lstrip("/")
            folder.mkdir()
        elif name == "ENTRYPOINT":
            entry = json.loads(rest)
        else:
            assert (name, rest) == ("FROM", "python:3.12-slim")
    assert not (root / "source").exists()
    model = folder / "reductions_opset18.onnx"
    shutil.copy(HERE / "samples" / model.name, model)
    command = [str(scripts / entry[0]), *entry[1:], "convert", model.name, "--opset", "13"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "reductions_opset18.opset13.onnx").exists()
