"""The record of a folder's outputs: a small file by which `--resume` skips finished models.

Neither dates nor the outputs themselves show what is finished: an output does not name its source
and options, and files from archives and container layers all have one date. So one line is added
for each output before it is written, which says that a run wrote it, and one afterwards. Lines are
only ever added, and each is on disk before the next step, so a run may be killed at any time: an
output without its second line is made again.

Several runs may add lines at a time: each holds a lock while it adds one.

Anything may have written to the file: lines that are not valid entries are ignored.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, BinaryIO

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.file.digest import digests

#: The file's name in the folder of outputs.
NAME = ".onnxreduce.jsonl"

#: The most bytes of a line; runs write far shorter ones, and longer ones are ignored.
_LONGEST = 1 << 20

#: The flags for opening the record: links are not followed, and pipes are not waited for.
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)

#: Size in bytes and time of the last change in nanoseconds, by path.
Stamps = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class OutputEntry:
    """The recipe and the files of one output.

    Attributes:
        recipe: the options and the versions of the tools that the output was made with.
        digest: the SHA-256 of the source file, in hexadecimal.
        read: the stamps of the source's external data.
        written: the stamps of the files that were written, by their paths within the folder.
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
        """Return whether all files that were written exist, and are unchanged."""
        return all(
            stamp(os.path.join(folder, path)) == found for path, found in self.written.items()
        )


def stamp(path: str) -> tuple[int, int] | None:
    """Return a file's size and time of change; None if there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):  # A path with NUL is no path.
        return None
    return found.st_size, found.st_mtime_ns


def stamps(paths: dict[str, str]) -> Stamps:
    """Return the stamps of files that exist, by the names given to them."""
    found = {name: stamp(path) for name, path in paths.items()}
    return {name: item for name, item in found.items() if item is not None}


def digest(path: str) -> str:
    """Return the SHA-256 of a file, in hexadecimal; empty if it cannot be read."""
    with suppress(OSError):
        return "".join(item.sha256 for item in digests([path], "read"))
    return ""


class OutputRecord:
    """The record of a folder's outputs.

    Attributes:
        ours: the outputs that runs have begun to write, by their paths within the folder.
        entries: the entries of finished outputs, by the same paths.
    """

    def __init__(self, folder: str) -> None:
        """Read the record, if there is one; a line that a killed run left half-written is ignored.

        Raises:
            UsageError: something other than a file has its name.
            OSError: it cannot be read.
        """
        self._folder = folder
        self._path = os.path.join(folder, NAME)
        self.ours: set[str] = set()
        self.entries: dict[str, OutputEntry] = {}
        if not os.path.lexists(self._path):
            return
        with self._open(os.O_RDONLY) as file:
            while line := file.readline(_LONGEST):
                self._read(line)

    def _open(self, flags: int) -> BinaryIO:
        """Open the record, and check that it is a regular file, before and after opening."""
        refused = UsageError(f"{self._path} is no regular file; remove it, and run again")
        if os.path.lexists(self._path) and not stat.S_ISREG(os.lstat(self._path).st_mode):
            raise refused
        number = os.open(self._path, flags | _FLAGS, 0o666)
        file = os.fdopen(number, "rb") if flags == os.O_RDONLY else os.fdopen(number, "rb+", 0)
        if not stat.S_ISREG(os.fstat(number).st_mode):
            file.close()
            raise refused
        return file

    def _read(self, line: bytes) -> None:
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return
        output = found.get("output") if isinstance(found, dict) else None
        if not isinstance(output, str):
            return
        made = found.get("made")
        if made is not None:
            made = _entry_of(made)
            if made is None:
                return
        if found.get("withdrawn"):
            self.ours.discard(output)
            self.entries.pop(output, None)
            return
        self.ours.add(output)
        if made is not None:
            self.entries[output] = made

    def may_replace(self, output: str) -> bool:
        """Return whether a run wrote the file at an output's path, if there is one.

        A run begins an output only if there is no file, or one that it may overwrite. It may be
        killed between the file and its second line, so a file that exists after the first line is
        taken for the run's own.
        """
        path = os.path.join(self._folder, output)
        if output not in self.ours:
            return False
        return not os.path.lexists(path) or stat.S_ISREG(os.lstat(path).st_mode)

    def begin(self, output: str) -> None:
        """Add the first line of an output that is about to be written."""
        if output not in self.ours:
            self._add({"output": output})
            self.ours.add(output)

    def finish(self, output: str, made: OutputEntry) -> None:
        """Add the second line of an output, which is finished."""
        self._add({"output": output, "made": asdict(made)})
        self.entries[output] = made

    def withdraw(self, output: str) -> None:
        """Add a line that an output was not written after all: a file there is not the run's."""
        if output in self.ours:
            self._add({"output": output, "withdrawn": True})
            self.ours.remove(output)
            self.entries.pop(output, None)

    def _add(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, sort_keys=True).encode() + b"\n"
        with self._open(os.O_RDWR | os.O_APPEND | os.O_CREAT) as file:
            _lock(file)
            # A run that was killed may have left half a line.
            torn = file.seek(0, os.SEEK_END) > 0 and _last(file) != b"\n"
            file.write(b"\n" + line if torn else line)
            os.fsync(file.fileno())


def _last(file: BinaryIO) -> bytes:
    file.seek(-1, os.SEEK_END)
    return file.read(1)


def _lock(file: BinaryIO) -> None:
    """Lock a file against other runs until it is closed, if its file system has locks."""
    with suppress(ImportError, OSError):
        import fcntl

        fcntl.lockf(file, fcntl.LOCK_EX)


def _entry_of(found: Any) -> OutputEntry | None:
    """Return the entry that a line holds; None if it is not valid."""
    if not isinstance(found, dict):
        return None
    recipe, source = found.get("recipe"), found.get("digest")
    read, written = _stamps_of(found.get("read")), _stamps_of(found.get("written"))
    if not isinstance(recipe, dict) or not isinstance(source, str):
        return None
    return None if read is None or written is None else OutputEntry(recipe, source, read, written)


def _stamps_of(found: Any) -> Stamps | None:
    if not isinstance(found, dict):
        return None
    stamps: Stamps = {}
    for path, item in found.items():
        match item:
            case [int(size), int(time)]:
                stamps[path] = size, time
            case _:
                return None
    return stamps
