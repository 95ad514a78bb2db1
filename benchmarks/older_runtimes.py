"""Exports converted for an older ONNX Runtime: how many load there and compute the same.

`python -m benchmarks older-runtimes` installs these versions as the lab does, prints what it finds,
and writes it to `older_runtimes.json`, which the documentation and the README quote.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import shutil
import tempfile
from collections.abc import Callable
from datetime import datetime, timezone
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import onnx

from tests.exports import EXPORTS, expected, found_wrong, names, run_all

RECORD = Path(__file__).with_suffix(".json")

#: Versions of onnxruntime, each with the opset to convert to for it.
RUNTIMES = {"1.8.1": 13, "1.15.1": 17}

#: The IR version that came with an opset, which other converters leave to their caller.
IR_VERSIONS = {13: 7, 17: 8}

Converter = Callable[[str, int], onnx.ModelProto]


def onnxreduce(source: str, opset: int, *, emulate: bool = False) -> onnx.ModelProto:
    import onnxreduce

    return onnxreduce.convert(source, opset, emulate=emulate)


def cpp_converter(source: str, opset: int) -> onnx.ModelProto:
    from onnx import version_converter

    return version_converter.convert_version(onnx.load(source), opset)


def onnxscript_converter(source: str, opset: int, *, fallback: bool) -> onnx.ModelProto:
    from onnxscript import version_converter

    model = onnx.load(source)
    version_converter.convert_version(model, opset, fallback=fallback)
    return model


def older_ir(convert: Converter, source: str, opset: int) -> onnx.ModelProto:
    """Convert, and set the IR version by hand."""
    model = convert(source, opset)
    model.ir_version = min(model.ir_version, IR_VERSIONS[opset])
    return model


def converters() -> dict[str, Converter]:
    """Those that are installed."""
    found: dict[str, Converter] = {
        "onnxreduce": onnxreduce,
        "onnxreduce --emulate": partial(onnxreduce, emulate=True),
    }
    others: dict[str, Converter] = {"onnx.version_converter": cpp_converter}
    if importlib.util.find_spec("onnxscript"):
        others["onnxscript"] = partial(onnxscript_converter, fallback=False)
        others["onnxscript, fallback=True"] = partial(onnxscript_converter, fallback=True)
    for name, convert in others.items():
        found[name] = convert
        found[f"{name}, IR version set by hand"] = partial(older_ir, convert)
    return found


def _convert(convert: Converter, source: str, opset: int, target: str) -> None:
    """Write what a converter makes of a file, or nothing where it refuses."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    onnx.save(convert(source, opset), target)


def outcome(convert: Converter, name: str, runtime: str, folder: Path, before: list[Any]) -> str:
    """What becomes of an export: refused, other opset, does not load, differs or agrees."""
    source, target = str(EXPORTS / f"{name}.onnx"), folder / f"{name}.onnx"
    # In a process of its own, as some conversions end it.
    process = multiprocessing.get_context("fork").Process(
        target=_convert, args=(convert, source, RUNTIMES[runtime], str(target))
    )
    process.start()
    process.join()
    if process.exitcode or not target.exists():
        return "refused"
    opsets = {item.domain: item.version for item in onnx.load(target).opset_import}
    if opsets.get("", opsets.get("ai.onnx")) != RUNTIMES[runtime]:
        return "left at another opset"
    shutil.copy(EXPORTS / f"{name}.npz", folder)
    if run_all(runtime, folder) or (folder / f"{name}.error").exists():
        return "does not load or run"
    return "differs" if found_wrong(folder, name, before) else "agrees"


def measured() -> dict[str, Any]:
    """By runtime and converter, how many exports have each outcome."""
    before = expected()
    found: dict[str, Any] = {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "exports": len(before),
        "versions": {name: version(name) for name in _packages()},
        "opsets": RUNTIMES,
        "outcomes": {},
    }
    for runtime in RUNTIMES:
        by_converter = found["outcomes"].setdefault(runtime, {})
        for title, convert in converters().items():
            counts: dict[str, int] = {}
            for name in names():
                with tempfile.TemporaryDirectory() as folder:
                    what = outcome(convert, name, runtime, Path(folder), before[name])
                counts[what] = counts.get(what, 0) + 1
            by_converter[title] = dict(sorted(counts.items()))
            print(f"onnxruntime {runtime}: {title}: {by_converter[title]}", flush=True)
    return found


def _packages() -> list[str]:
    """The packages that decide what is found; onnxruntime's runs the exports as they are."""
    found = ("onnx", "onnxscript", "onnxruntime")
    return [name for name in found if importlib.util.find_spec(name)]


def main() -> None:
    """Measure, print and record."""
    RECORD.write_text(json.dumps(measured(), indent=2) + "\n", encoding="utf-8")
