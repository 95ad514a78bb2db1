"""Exports of many kinds, converted, load and run in older wheels of ONNX Runtime."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import onnx
import pytest

import onnxreduce_cli
from lab.installing import NoProgramError, install
from lab.kernels import lacking
from onnxreduce_cli.targets.requirement import find_target
from tests.exports import EXPORTS, expected, found_wrong, names, outputs_of, run_all

#: By the version of onnxruntime, the opsets to convert to; None has the version itself choose one,
#: as --for does.
OPSETS: dict[str, tuple[int | None, ...]] = {
    "1.8.1": (None, 8, 9, 11, 13, 14),
    "1.10.0": (None,),
    "1.14.1": (None,),
    "1.15.1": (None, 8, 11, 13, 17),
    "1.16.3": (None,),
    "1.20.1": (None,),
}

pytestmark = pytest.mark.runtimes


def runtime(version: str) -> None:
    """Install a version, or leave the test out where no Python for it is there."""
    try:
        install("onnxruntime", version)
    except NoProgramError as error:
        pytest.skip(str(error))


def as_exported(version: str, given: Iterable[str], folder: Path) -> list[str]:
    """The models among some that give in a version what the exports themselves give in it.

    1.20 rounds what is multiplied by weights of 4 bits.
    """
    exports = folder / "exports"
    exports.mkdir()
    run = [name for name in given if (folder / f"{name}.out.npz").exists()]
    for name in run:
        for suffix in ("onnx", "npz"):
            shutil.copy(EXPORTS / f"{name}.{suffix}", exports)
    assert not run or run_all(version, exports) == 0
    loaded = [name for name in run if (exports / f"{name}.out.npz").exists()]
    return [name for name in loaded if not found_wrong(folder, name, outputs_of(exports, name))]


@pytest.fixture(scope="module")
def outputs() -> dict[str, list[Any]]:
    return expected()


def test_there_are_exports_and_a_runtime() -> None:
    assert len(names()) >= 41
    assert install("onnxruntime", "1.16.3").version == "1.16.3"


#: The least opset of exports that only control flow, which is not written, would take further down:
#: by NonMaxSuppression.
LEAST = {"dyn_nms": 10, "ts_nms": 10}


@pytest.mark.parametrize(
    ("version", "opset"), [(version, opset) for version in OPSETS for opset in OPSETS[version]]
)
def test_all_load_and_agree(
    version: str, opset: int | None, outputs: dict[str, list[Any]], tmp_path: Path
) -> None:
    runtime(version)
    wrong, blocked = {}, set()
    target = f"onnxruntime=={version}" if opset is None else None
    for name in names():
        source = str(EXPORTS / f"{name}.onnx")
        try:
            # Of two the indices are added up at, which only a Loop does at opset 13.
            result = onnxreduce_cli.convert(
                source, opset, runtime=target, check=False, emulate=True
            )
        except onnxreduce_cli.ConversionError as error:
            wrong[name] = str(error.blockers[0])
            blocked.add(name)
            continue
        onnx.checker.check_model(result, full_check=True)
        onnx.save(result, tmp_path / f"{name}.onnx")
        shutil.copy(EXPORTS / f"{name}.npz", tmp_path)
    below = {name for name, least in LEAST.items() if opset is not None and opset < least}
    assert below <= blocked
    assert run_all(version, tmp_path) == 0
    for name in sorted(outputs.keys() - wrong.keys()):
        if text := found_wrong(tmp_path, name, outputs[name]):
            wrong[name] = text
    for name in (*below, *as_exported(version, wrong.keys() - below, tmp_path)):
        del wrong[name]
    told = "\n".join(f"  {name}: {text[:300]}" for name, text in wrong.items())
    right = len(outputs) - len(wrong) - len(below)
    assert not wrong, (
        f"{right} of {len(outputs)} load in {version} at {opset or 'its opset'} and agree\n{told}"
    )


def test_operators_without_kernels() -> None:
    """What the table says that 1.15.1 has no kernels for is what it has none for."""
    version = "1.15.1"
    runtime(version)
    # A StringNormalizer is refused where the locale of its case is not installed.
    found = {name for name in lacking(version) if not name.startswith("StringNormalizer")}
    quirks = find_target(f"onnxruntime=={version}").quirks
    known = {
        f"{op_type}-{quirk.opsets[0]}"
        for quirk in quirks
        if quirk.what == "has no kernel for it"
        for op_type in quirk.operators
    }
    assert found == known
