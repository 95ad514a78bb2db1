"""The paths of many models: those that match patterns, and those of their outputs."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.text import quoted


def matching_files(patterns: Iterable[str], out_dir: str | None = None) -> list[str]:
    """Return the files that match names and patterns, each once, in order.

    Not every shell expands patterns. A pattern that matches nothing is returned as it is, as in
    shells, and so is one that is the name of a file. A folder stands for the models in it and in
    the folders below. Files in `out_dir` are outputs, which neither matches.

    Raises:
        UsageError: a folder holds no model.
    """
    found: dict[str, str] = {}
    for pattern in patterns:
        names = [pattern]
        if glob.has_magic(pattern) and not os.path.lexists(pattern):
            matches = sorted(glob.glob(pattern, recursive=True))
            names = [name for name in matches if not _is_in(name, out_dir)] or names
        elif os.path.isdir(pattern):
            names = [name for name in _models_in(pattern) if not _is_in(name, out_dir)]
            if not names:
                raise UsageError(f"folder {quoted(pattern)} holds no .onnx file; name the models")
        for name in names:
            found.setdefault(os.path.abspath(name), name)
    return list(found.values())


def _models_in(folder: str) -> list[str]:
    pattern = os.path.join(glob.escape(folder), "**", "*.onnx")
    return sorted(name for name in glob.glob(pattern, recursive=True) if os.path.isfile(name))


def _is_in(name: str, folder: str | None) -> bool:
    return folder is not None and os.path.realpath(name).startswith(
        os.path.join(os.path.realpath(folder), "")
    )


def output_paths(sources: list[str], out_dir: str) -> list[str]:
    """Return a different output path in a folder for each of several models.

    A model keeps its file name. If two have the same name, all keep their path below the deepest
    folder that they share.

    Raises:
        UsageError: they share no folder, being on different drives.
    """
    # Some file systems do not distinguish upper and lower case.
    names = {os.path.basename(source).casefold() for source in sources}
    if len(names) == len(sources):
        return [os.path.join(out_dir, os.path.basename(source)) for source in sources]
    paths = [os.path.abspath(source) for source in sources]
    try:
        shared = os.path.commonpath([os.path.dirname(path) for path in paths])
    except ValueError as error:
        raise UsageError(
            "models of the same name lie on different drives; convert those of each by themselves"
        ) from error
    return [os.path.join(out_dir, os.path.relpath(path, shared)) for path in paths]
