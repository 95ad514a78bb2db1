"""The hook of pre-commit refuses a commit whose models do not get where they are meant to run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from tests.support import model

pytestmark = pytest.mark.kit

HERE = Path(__file__).parents[2]

GOOD = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x) => (float[2,1] y) <int64[1] axes = {1}> { [first] y = ReduceMax(x, axes) }"""

#: Nothing before opset 13 has a place for bfloat16 reductions.
BLOCKED = GOOD.replace("float[", "bfloat16[")

CONFIGURATION = """
repos:
  - repo: {repository}
    rev: {revision}
    hooks:
      - id: onnxreduce
        args: [--opset, "11"]
"""


def git(*arguments: str, folder: Path) -> str:
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"]
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository that has the hook, of this checkout as it is now."""
    source = tmp_path / "source"
    tracked = git("ls-files", "-z", "--cached", "--others", "--exclude-standard", folder=HERE)
    for name in filter(None, tracked.split("\0")):
        if (HERE / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(HERE / name, source / name)
    git("init", "--quiet", folder=source)
    git("add", ".", folder=source)
    git("commit", "--quiet", "-m", "all", folder=source)
    found = tmp_path / "project"
    found.mkdir()
    git("init", "--quiet", folder=found)
    revision = git("rev-parse", "HEAD", folder=source)
    text = CONFIGURATION.format(repository=source, revision=revision)
    (found / ".pre-commit-config.yaml").write_text(text)
    return found


def hook(project: Path, home: Path) -> subprocess.CompletedProcess[str]:
    git("add", ".", folder=project)
    return subprocess.run(
        [sys.executable, "-m", "pre_commit", "run", "--color=never", "--verbose"],
        cwd=project,
        capture_output=True,
        text=True,
        env={**os.environ, "PRE_COMMIT_HOME": str(home)},
    )


def test_the_hook(project: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    onnx.save(model(GOOD), project / "good.onnx")
    (project / "notes.txt").write_text("no model")
    passed = hook(project, home)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "all checked" in passed.stdout
    onnx.save(model(BLOCKED), project / "blocked.onnx")
    refused = hook(project, home)
    assert refused.returncode == 1
    assert "bfloat16" in refused.stdout
    assert sorted(path.name for path in project.glob("*.onnx")) == ["blocked.onnx", "good.onnx"]
