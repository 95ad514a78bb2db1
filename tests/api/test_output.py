"""Where a converted model goes, and what may not be written over."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from onnxreduce_cli.api.file_conversion import check_path, output_path
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import UsageError


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model, a link to it, another file, and a folder."""
    monkeypatch.chdir(tmp_path)
    Path("m.onnx").touch()
    Path("other.onnx").touch()
    os.link("m.onnx", "link.onnx")
    Path("folder").mkdir()


@pytest.mark.parametrize(
    ("source", "target", "runtime", "in_place", "expected"),
    [
        ("m.onnx", None, None, False, "m.opset13.onnx"),
        ("folder/../m.onnx", None, None, False, "folder/../m.opset13.onnx"),
        ("m.onnx", None, "onnxruntime==1.8", False, "m.onnxruntime-1.8.onnx"),
        ("m.onnx", None, None, True, "m.onnx"),
        ("m.onnx", "t.onnx", None, False, "t.onnx"),
        ("m.onnx", "t.onnx", None, True, "t.onnx"),
        ("-", None, None, False, "-"),
        ("-", "t.onnx", None, False, "t.onnx"),
    ],
)
def test_paths(
    source: str, target: str | None, runtime: str | None, in_place: bool, expected: str
) -> None:
    found = output_path(source, target, 13, Options(runtime=runtime, in_place=in_place))
    assert Path(found) == Path(expected)


@pytest.mark.parametrize("source", ["folder", "missing.onnx", os.devnull])
def test_a_source_without_a_name_to_make_another_of(source: str) -> None:
    with pytest.raises(UsageError) as caught:
        output_path(source, None, 13, Options())
    assert str(caught.value) == f"{source} is no regular file; name the output: -o FILE"


class Terminal(io.BytesIO):
    """Standard output that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("path", "in_place", "force", "stdout", "reason"),
    [
        ("new.onnx", False, False, None, None),
        ("m.onnx", True, False, None, None),
        ("link.onnx", True, False, None, None),
        ("other.onnx", False, True, None, None),
        ("other.onnx", True, True, None, None),
        ("-", False, False, io.BytesIO(), None),
        ("-", True, False, io.BytesIO(), "--in-place needs a file"),
        ("-", False, False, None, "standard output is closed; name a file: -o FILE"),
        ("-", False, True, Terminal(), "a model is binary; send it to a file: -o FILE"),
        ("m.onnx", False, True, None, "m.onnx is the input; to overwrite it say --in-place"),
        ("link.onnx", False, True, None, "link.onnx is the input; to overwrite it say --in-place"),
        ("other.onnx", False, False, None, "other.onnx exists; to overwrite it say --force"),
        ("other.onnx", True, False, None, "other.onnx exists; to overwrite it say --force"),
        (
            "folder",
            True,
            True,
            None,
            f"folder is a folder; name a file: -o {os.path.join('folder', 'x.onnx')}",
        ),
        (
            os.devnull,
            True,
            True,
            None,
            f"{os.devnull} is no regular file; for standard output say -o -",
        ),
    ],
)
def test_what_may_be_written(
    path: str, in_place: bool, force: bool, stdout: io.BytesIO | None, reason: str | None
) -> None:
    options = Options(in_place=in_place, force=force)
    if reason is None:
        check_path("m.onnx", path, options, stdout)
        return
    with pytest.raises(UsageError) as caught:
        check_path("m.onnx", path, options, stdout)
    assert str(caught.value) == reason


@pytest.mark.parametrize("source", ["-", "missing.onnx"])
def test_a_file_that_is_not_the_source_is_overwritten_by_force_alone(source: str) -> None:
    check_path(source, "m.onnx", Options(force=True), None)
    with pytest.raises(UsageError, match=r"m\.onnx exists; to overwrite it say --force"):
        check_path(source, "m.onnx", Options(in_place=True), None)
