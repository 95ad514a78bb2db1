"""The record of earlier runs in a folder: a small file, by which `--resume` skips finished models.

Neither dates nor the outputs themselves can tell: an output does not say which source and which
options it was made from, and where files come out of archives and container layers, all have one
date. So a line is added for each output before it is written, which says that it is ours, and one
afterwards. Lines are only ever added, and each is on disk before the next step, so a run may be
killed at any time: an output without its second line is made again.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from typing import Any

#: Its name in the folder of the outputs.
NAME = ".onnxreduce.jsonl"

_CHUNK = 1 << 20

#: Size in bytes and time of the last change in nanoseconds, by path.
Stamps = dict[str, tuple[int, int]]


@dataclass(frozen=True)
class Made:
    """The recipe and the files of one output.

    Attributes:
        recipe: what else decides what it holds: the options, and the versions of the tools.
        digest: the SHA-256 of the source file, in hexadecimal.
        read: the source's external data.
        written: the files that were written, by their paths within the folder.
    """

    recipe: dict[str, Any]
    digest: str
    read: Stamps
    written: Stamps

    def is_of(self, source: str, recipe: dict[str, Any], folder: str) -> bool:
        """Return whether the output was made of `source` by `recipe`, and its files are intact."""
        return (
            self.recipe == recipe
            and self.digest != ""
            and all(stamp(path) == found for path, found in self.read.items())
            and self.is_there(folder)
            and self.digest == digest(source)
        )

    def is_there(self, folder: str) -> bool:
        """Return whether all files that were written are there, and unchanged."""
        return all(
            stamp(os.path.join(folder, path)) == found for path, found in self.written.items()
        )


def stamp(path: str) -> tuple[int, int] | None:
    """A file's size and time of change; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns


def stamps(paths: dict[str, str]) -> Stamps:
    """The stamps of files, by the names given to them."""
    found = {name: stamp(path) for name, path in paths.items()}
    return {name: item for name, item in found.items() if item is not None}


def digest(path: str) -> str:
    """The SHA-256 of a file, in hexadecimal; empty where there is none that can be read."""
    found = hashlib.sha256()
    if not os.path.isfile(path):
        return ""
    try:
        with open(path, "rb") as file:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
    except OSError:
        return ""
    return found.hexdigest()


class Record:
    """The record of a folder.

    Attributes:
        ours: the outputs that runs have begun to write, by their paths within the folder.
        made: how those were made that were finished.
    """

    def __init__(self, folder: str) -> None:
        """Read the record, if there is one; what a killed run left half-written is no line."""
        self._path = os.path.join(folder, NAME)
        self.ours: set[str] = set()
        self.made: dict[str, Made] = {}
        try:
            with open(self._path, "rb") as file:
                content = file.read()
        except FileNotFoundError:
            content = b""
        self._torn = bool(content) and not content.endswith(b"\n")
        for line in content.splitlines():
            self._read(line)

    def _read(self, line: bytes) -> None:
        try:
            found = json.loads(line)
            output = found["output"]
            made = found.get("made")
            if made is not None:
                made = Made(
                    made["recipe"],
                    made["digest"],
                    {path: tuple(item) for path, item in made["read"].items()},
                    {path: tuple(item) for path, item in made["written"].items()},
                )
        except (ValueError, KeyError, TypeError, AttributeError):
            return
        if found.get("withdrawn"):
            self.ours.discard(output)
            self.made.pop(output, None)
            return
        self.ours.add(output)
        if made is not None:
            self.made[output] = made

    def begin(self, output: str) -> None:
        """Note that an output is about to be written, by its path within the folder."""
        if output not in self.ours:
            self._add({"output": output})
            self.ours.add(output)

    def finish(self, output: str, made: Made) -> None:
        """Note how an output was made."""
        self._add({"output": output, "made": vars(made)})
        self.made[output] = made

    def withdraw(self, output: str) -> None:
        """Note that an output was not written after all: what may come to be there is not ours."""
        if output in self.ours:
            self._add({"output": output, "withdrawn": True})
            self.ours.remove(output)
            self.made.pop(output, None)

    def _add(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, sort_keys=True).encode() + b"\n"
        with open(self._path, "ab", buffering=0) as file:
            file.write(b"\n" + line if self._torn else line)
            os.fsync(file.fileno())
        self._torn = False
