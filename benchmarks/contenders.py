"""What converts a model file, and what only reads and writes it."""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
import sys

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
    from onnxreduce_cli.api.options import Options

    convert_file(source, target, Options(opset=TARGET, force=True, check=False))


def onnxreduce_checked(source: str, target: str) -> None:
    from onnxreduce_cli.api.file_conversion import convert_file
    from onnxreduce_cli.api.options import Options

    convert_file(source, target, Options(opset=TARGET, force=True))


def down(source: str, target: str) -> None:
    from onnxreduce_cli.api.file_conversion import convert_file
    from onnxreduce_cli.api.options import Options

    convert_file(source, target, Options(opset=LOWER, force=True, check=False))


def down_checked(source: str, target: str) -> None:
    from onnxreduce_cli.api.file_conversion import convert_file
    from onnxreduce_cli.api.options import Options

    convert_file(source, target, Options(opset=LOWER, force=True))


def cpp_converter_down(source: str, target: str) -> None:
    import onnx
    from onnx import version_converter

    onnx.save(version_converter.convert_version(onnx.load(source), LOWER), target)


def plan(source: str, _: str) -> None:
    """What `convert --no-check` does before it writes."""
    from onnxreduce_cli.engine.conversion import Conversion
    from onnxreduce_cli.model.files import load

    document = load(source)
    Conversion(document.model, TARGET, base_dir=document.base_dir)


def inspect(source: str, _: str) -> None:
    """A plan for each opset, and what runtimes take, as text."""
    from onnxreduce_cli.engine import inspection
    from onnxreduce_cli.model.files import load
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


#: What each imports, before its time is taken.
MODULES: dict[Work, str] = {
    load_and_save: "onnx",
    plan: "onnxreduce_cli.engine.conversion",
    inspect: "onnxreduce_cli.report.inspection",
    onnxreduce: "onnxreduce_cli.api.file_conversion",
    onnxreduce_checked: "onnxreduce_cli.verification.sites",
    down: "onnxreduce_cli.api.file_conversion",
    down_checked: "onnxreduce_cli.verification.sites",
    cpp_converter: "onnx.version_converter",
    cpp_converter_down: "onnx.version_converter",
    onnxscript_converter: "onnxscript.version_converter",
}


def prepare(work: Work) -> None:
    if work in MODULES:
        importlib.import_module(MODULES[work])


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
