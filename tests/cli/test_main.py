"""The program as a whole: how it starts and ends."""

import subprocess
import sys
from pathlib import Path


def test_the_program_ends_at_once_and_loses_nothing(tmp_path: Path) -> None:
    script = (
        "import atexit, sys\n"
        "from onnxreduce_cli.cli.main import program\n"
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


def test_a_conversion_without_checks_imports_no_executor_and_reads_of_no_runtime(
    tmp_path: Path,
) -> None:
    source = Path(__file__).parents[2] / "samples" / "reductions_opset18.onnx"
    script = (
        "import sys\n"
        "from onnxreduce_cli.cli.main import main\n"
        f"sys.argv[1:] = ['convert', {str(source)!r}, '--opset', '13', '--no-check', '-q',"
        f" '-o', {str(tmp_path / 'out.onnx')!r}]\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "unwanted = ('onnxruntime', 'onnxreduce_cli.executor', 'onnx.reference', 'multiprocessing',"
        " 'onnxreduce_cli.verification.process', 'onnxreduce_cli.verification.sites',"
        " 'onnxreduce_cli.engine.contraction', 'onnxreduce_cli.engine.runtime',"
        " 'onnxreduce_cli.targets.reading')\n"
        "print([name for name in unwanted if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
