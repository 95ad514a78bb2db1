"""The program as a process: how it starts and ends."""

import subprocess
import sys
from pathlib import Path

import pytest


def test_the_program_ends_at_once_and_loses_nothing(tmp_path: Path) -> None:
    script = (
        "import atexit, sys\n"
        "from onnxreduce_cli.cli.program import program\n"
        "atexit.register(print, 'put away')\n"
        "sys.argv[1:] = ['ops', 'ReduceSum']\n"
        "class Kept:\n"
        "    def __del__(self): print('freed')\n"
        "kept = Kept()\n"
        "program()\n"
    )
    shown = tmp_path / "shown.txt"
    with shown.open("w") as file:
        done = subprocess.run([sys.executable, "-c", script], stdout=file, check=False)
    assert done.returncode == 0
    text = shown.read_text()
    assert text.startswith("ReduceSum")
    assert text.endswith("put away\n"), "what other things want done at the end is done"
    assert "freed" not in text


@pytest.mark.parametrize(
    ("raised", "code"), [("KeyboardInterrupt", 130), ("SystemExit(3)", 3), ("OSError", 2)]
)
def test_what_ends_it_while_it_imports_gives_no_traceback(raised: str, code: int) -> None:
    script = (
        "import sys\n"
        "from onnxreduce_cli.cli.program import program\n"
        "class Ends:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == 'click': raise {raised}\n"
        "sys.meta_path.insert(0, Ends())\n"
        "program()\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (code, b"", b"")
