"""What the page on installing tells users to type is typed, and the command works then."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import onnxruntime
import pytest

from tests.test_installing import typed

pytestmark = pytest.mark.kit

HERE = Path(__file__).parents[2]

#: Metadata of a package that holds the module of ONNX Runtime under another name.
METADATA = f"Metadata-Version: 2.1\nName: onnxruntime-gpu\nVersion: {onnxruntime.__version__}\n"


def run(line: str, path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Type a line in the checkout, with a folder first on the path."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PATH": f"{path}{os.pathsep}{environment['PATH']}", **more}
    done = subprocess.run(
        line, shell=True, cwd=HERE, env=environment, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr
    return done


def convert(path: Path, target: Path, more: str = "") -> subprocess.CompletedProcess[str]:
    sample = "samples/reductions_opset18.onnx"
    return run(f"onnxreduce convert {sample} --opset 13 -o {target} --force {more}", path)


def test_beside_another_package_of_onnx_runtime_and_without(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    path, target = tmp_path / "venv" / "bin", tmp_path / "out.onnx"
    for line in typed():
        if line.startswith("pip install"):
            done = run(line, path)
            assert done.returncode == 0, done.stdout + done.stderr
    done = convert(path, target)
    assert done.returncode == 0, done.stderr
    assert "checked by NumPy alone" in done.stdout
    assert convert(path, target, "--strict").returncode == 1
    (packages,) = (tmp_path / "venv" / "lib").glob("python*/site-packages")
    shutil.copytree(Path(onnxruntime.__file__).parent, packages / "onnxruntime")
    (packages / "onnxruntime_gpu.dist-info").mkdir()
    (packages / "onnxruntime_gpu.dist-info" / "METADATA").write_text(METADATA)
    assert "onnxruntime-gpu " in run("pip list", path).stdout
    done = convert(path, target, "--strict --verify")
    assert done.returncode == 0, done.stderr
    assert f"by ONNX Runtime {onnxruntime.__version__} and NumPy" in done.stdout


@pytest.mark.parametrize("tool", ["pipx", "uv"])
def test_apart(tool: str, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", str(tmp_path / "venv")], check=True)
    path, made = tmp_path / "venv" / "bin", tmp_path / "made"
    assert run(f"pip install --quiet {tool}", path).returncode == 0
    (line,) = [line for line in typed() if line.startswith(tool)]
    done = run(
        line,
        path,
        PIPX_HOME=str(tmp_path / "home"),
        PIPX_BIN_DIR=str(made),
        UV_TOOL_DIR=str(tmp_path / "home"),
        UV_TOOL_BIN_DIR=str(made),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    done = convert(made, tmp_path / "out.onnx", "--strict")
    assert done.returncode == 0, done.stderr
