"""Where a converted model goes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import IO

from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.files import STREAM


def output_path(source: str, target: str | None, opset: int | None, options: Options) -> str:
    """Return where to write a model.

    Args:
        source: where it was read from; ``-`` for standard input.
        target: where the user wants it; None for a name made of the source's.
        opset: the opset that it gets.
        options: how it is converted: for which runtime, and whether in place.

    Raises:
        UsageError: the source has no name to make another of.
    """
    if target is not None:
        return target
    if options.in_place:
        return source
    if source == STREAM:
        return STREAM
    path = Path(source)
    if not path.is_file():
        raise UsageError(f"{source} is no regular file; say where to write: -o FILE")
    runtime = options.runtime
    mark = f"opset{opset}" if runtime is None else file_mark(runtime)
    return str(path.with_name(f"{path.stem}.{mark}{path.suffix}"))


def file_mark(runtime: str) -> str:
    """What a file's name has for the runtime that it is for: ``onnxruntime-1.8``."""
    from onnxreduce_cli.targets.requirement import find_target

    return re.sub(r"[^A-Za-z0-9.]+", "-", find_target(runtime).label).strip("-.")


def check_path(source: str, path: str, options: Options, stdout: IO[bytes] | None) -> None:
    """Refuse an output that may not be written.

    Raises:
        UsageError: what is in the way.
    """
    if path == STREAM:
        if options.in_place:
            raise UsageError("--in-place needs a file")
        if stdout is None:
            raise UsageError("standard output is closed; name a file: -o FILE")
        if stdout.isatty():
            raise UsageError("a model is binary; send it to a file: -o FILE")
        return
    if os.path.isdir(path):
        raise UsageError(f"{path} is a folder; name a file: -o {os.path.join(path, 'x.onnx')}")
    if not os.path.exists(path):
        return
    if not os.path.isfile(path):
        raise UsageError(f"{path} is no regular file; for standard output say -o -")
    if source != STREAM and os.path.exists(source) and os.path.samefile(source, path):
        if not options.in_place:
            raise UsageError(f"{path} is the input; to overwrite it say --in-place")
    elif not options.force:
        raise UsageError(f"{path} exists; to overwrite it say --force")
