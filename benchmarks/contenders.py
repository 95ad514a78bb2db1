"""What converts a model file, and what only reads and writes it, as commands."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence

from benchmarks.harness import PROGRAM, SOURCE, TARGET

Command = Sequence[str]

COPY: Command = ("cp", SOURCE, TARGET)


def _python(text: str) -> Command:
    return (sys.executable, "-c", text, SOURCE, TARGET)


LOAD_AND_SAVE = _python("import sys, onnx; onnx.save(onnx.load(sys.argv[1]), sys.argv[2])")


def onnxreduce(*options: str) -> Command:
    return (PROGRAM, "convert", SOURCE, "-o", TARGET, "-q", *options)


def _converter(package: str, opset: int) -> Command:
    return _python(
        f"import sys, onnx; from {package} import version_converter; "
        f"made = version_converter.convert_version(onnx.load(sys.argv[1]), {opset}); "
        "onnx.save(made, sys.argv[2])"
    )


def contenders(opset: int, *, up: bool, slow: bool = True) -> dict[str, Command]:
    """Load and save, and what converts to an opset and is installed.

    Args:
        opset: the opset.
        up: whether that is a later one than the model's; the others have no way down.
        slow: whether those are among them that take minutes where there is much.
    """
    found = {
        "onnx.load + onnx.save": LOAD_AND_SAVE,
        "onnxreduce --no-check": onnxreduce("--opset", str(opset), "--no-check"),
        "onnxreduce": onnxreduce("--opset", str(opset)),
    }
    if up:
        found["onnx.version_converter"] = _converter("onnx", opset)
    if up and slow and importlib.util.find_spec("onnxscript"):
        found["onnxscript's converter"] = _converter("onnxscript", opset)
    return found
