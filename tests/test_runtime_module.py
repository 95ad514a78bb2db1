"""What stands for ONNX Runtime is what is imported, whichever package it is from."""

from __future__ import annotations

import sys
from types import ModuleType

import onnxruntime
import pytest

from onnxreduce_cli.runtime_module import RuntimeMissingError, import_onnxruntime


def test_the_module_of_onnx_runtime() -> None:
    assert import_onnxruntime() is onnxruntime


def test_none_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(RuntimeMissingError, match="is not installed: pip"):
        import_onnxruntime()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("import no_such_module", "^cannot be imported: No module named 'no_such_module'$"),
        ("raise ImportError('DLL load failed')", "^cannot be imported: DLL load failed$"),
        (None, "^is installed in part only: pip install --force-reinstall onnxruntime$"),
    ],
)
def test_one_that_is_broken(
    content: str | None, message: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a library that the system lacks, or by the removal of one of two packages."""
    (tmp_path / "onnxruntime").mkdir()
    if content is not None:
        (tmp_path / "onnxruntime" / "__init__.py").write_text(content)
    monkeypatch.delitem(sys.modules, "onnxruntime")
    # Without the folder that has the true one, which comes before any that has no __init__.py.
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(RuntimeMissingError, match=message):
        import_onnxruntime()


def test_the_version_that_it_says_itself(monkeypatch: pytest.MonkeyPatch, onnxreduce) -> None:
    """A build of another package has other numbers than the package onnxruntime beside it."""
    other = ModuleType("onnxruntime")
    other.InferenceSession, other.__version__ = object, "1.20.1+cu126"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "onnxruntime", other)
    assert "onnxruntime 1.20.1+cu126" in onnxreduce("--version").out
    assert onnxreduce("targets", "installed").out.splitlines()[1].startswith("1.20: ")
