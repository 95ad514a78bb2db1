"""What the command line imports."""

import subprocess
import sys
from pathlib import Path


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
        " 'onnxreduce_cli.worker.process', 'onnxreduce_cli.verification.sites.checking',"
        " 'onnxreduce_cli.engine.contraction', 'onnxreduce_cli.engine.runtime',"
        " 'onnxreduce_cli.targets.reading')\n"
        "print([name for name in unwanted if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
