"""What converts a model file, and what only reads and writes it."""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tempfile
from functools import partial

from benchmarks import models
from benchmarks.harness import Work

#: The opset that all converters are asked for, and the one that those are that go down.
TARGET, LOWER = 18, 13


def copy(source: str, target: str) -> None:
    command = shutil.which("cp")
    assert command is not None
    subprocess.run([command, source, target], check=True)


def load_and_save(source: str, target: str) -> None:
    import onnx

    onnx.save(onnx.load(source), target)


def onnxreduce(source: str, target: str) -> None:
    from onnxreduce_cli.api.file_conversion import convert_file
    from onnxreduce_cli.engine.options import Options

    convert_file(source, target, Options(opset=TARGET, force=True, check=False))


def onnxreduce_checked(source: str, target: str) -> None:
    from onnxreduce_cli.api.file_conversion import convert_file
    from onnxreduce_cli.engine.options import Options

    convert_file(source, target, Options(opset=TARGET, force=True))


def down(source: str, target: str) -> None:
    from onnxreduce_cli.api.file_conversion import convert_file
    from onnxreduce_cli.engine.options import Options

    convert_file(source, target, Options(opset=LOWER, force=True, check=False))


def down_checked(source: str, target: str) -> None:
    from onnxreduce_cli.api.file_conversion import convert_file
    from onnxreduce_cli.engine.options import Options

    convert_file(source, target, Options(opset=LOWER, force=True))


def cpp_converter_down(source: str, target: str) -> None:
    import onnx
    from onnx import version_converter

    onnx.save(version_converter.convert_version(onnx.load(source), LOWER), target)


def plan(source: str, _: str) -> None:
    """What `convert --no-check` does before it writes."""
    from onnxreduce_cli.engine.conversion import Conversion
    from onnxreduce_cli.model.file.document import load

    document = load(source)
    Conversion(document.model, TARGET, base_dir=document.base_dir)


def inspect(source: str, _: str) -> None:
    """A plan for each opset, and what runtimes take, as text."""
    from onnxreduce_cli.engine import inspection
    from onnxreduce_cli.model.file.document import load
    from onnxreduce_cli.report.contents import contents
    from onnxreduce_cli.report.inspection import inspection_text

    document = load(source)
    found = inspection.inspect(document.model, document.base_dir)
    inspection_text(found, contents(document, source), source)


def command(source: str, target: str, *more: str) -> None:
    """The command as a user calls it, in a process of its own."""
    call = [sys.executable, "-m", "onnxreduce_cli", "convert", source, "-o", target]
    subprocess.run([*call, "--opset", str(TARGET), "--quiet", *more], check=True)


def unchecked_command(source: str, target: str) -> None:
    """The same without checks."""
    command(source, target, "--no-check")


def cpp_converter(source: str, target: str) -> None:
    import onnx
    from onnx import version_converter

    onnx.save(version_converter.convert_version(onnx.load(source), TARGET), target)


def onnxscript_converter(source: str, target: str) -> None:
    import onnx
    from onnxscript import version_converter

    model = onnx.load(source)
    version_converter.convert_version(model, TARGET, fallback=True)
    onnx.save(model, target)


#: Whole commands, and what is no Python: nothing of these is imported here.
_COMMANDS: frozenset[Work] = frozenset({copy, command, unchecked_command})

#: Those that go down.
_DOWN: frozenset[Work] = frozenset({down, down_checked, cpp_converter_down})


def prepare(work: Work) -> None:
    """Let a contender import what it needs, by letting it do the same to small models.

    The processes that check are ended: to start them is part of the work.
    """
    if isinstance(work, partial) or work in _COMMANDS:
        return
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/model.onnx", f"{folder}/out.onnx"
        models.many_functions(source, 2)
        if work is not onnxscript_converter:
            work(source, target)
        models.many_nodes(source, 5, LOWER if work not in _DOWN else TARGET)
        work(source, target)
    if "onnxreduce_cli.worker.process" in sys.modules:
        from onnxreduce_cli.worker.process import end_current

        end_current()


def converters(*, slow: bool = True) -> dict[str, Work]:
    """Those that are installed; `slow` ones as well, which take minutes where there is much."""
    found = {
        "onnx.load + onnx.save": load_and_save,
        "cp": copy,
        "onnxreduce --no-check": onnxreduce,
        "onnxreduce": onnxreduce_checked,
        "onnx.version_converter": cpp_converter,
    }
    if slow and importlib.util.find_spec("onnxscript"):
        found["onnxscript's converter"] = onnxscript_converter
    return found
