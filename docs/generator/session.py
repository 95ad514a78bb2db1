"""Running commands as a reader of the documentation would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from docs.generator.workplace import ROOT


def run(command: str, folder: Path, columns: int = 100) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder; what it prints on both streams is in its ``stdout``."""
    onnxreduce = f"{sys.executable} -W ignore -m onnxreduce"
    script = f'onnxreduce() {{ {onnxreduce} "$@"; }}; {command}'
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": str(columns), "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        text=True,
        check=False,
        timeout=120,
    )
