"""What is done with a mutant, in a process of its own, and what must hold of it."""

from __future__ import annotations

import contextlib
import io
import json
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import NamedTuple

from google.protobuf.message import DecodeError
from onnx import ModelProto

from onnxreduce_cli.cli import main as command_line
from tests.fuzz.mutants import Mutant

if sys.platform != "win32":
    import resource

#: As README and ``onnxreduce --help`` document them.
EXIT_CODES = (0, 1, 2, 3)
#: The most characters that a line may have, and all messages; a report grows with the model.
_LONGEST, _MOST = 2_000, 20_000
#: The processor's seconds that a command may take: those of a clock tell how busy the machine is.
SECONDS = 20.0
#: Bytes of memory that the process may hold.
MEMORY = 1_500_000_000
#: What it may not take even for a moment: the machine has others.
_LIMIT = 6_000_000_000

_raised: list[str] = []


def prepare() -> None:
    """Limit the process, and note what the command line's last resort catches."""
    if sys.platform != "win32":
        resource.setrlimit(resource.RLIMIT_DATA, (_LIMIT, _LIMIT))
    caught = command_line._fail

    def noted(error: Exception) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "onnxreduce_cli" in frame.filename] or list(frames)
        where = f"{Path(own[-1].filename).name}:{own[-1].name}" if own else ""
        _raised.append(f"{type(error).__name__} in {where}")
        caught(error)

    command_line._fail = noted


class Ended(NamedTuple):
    """How a command ended.

    Attributes:
        how: its exit code, or what became of its process.
        problems: what is wrong about it, each by its kind.
    """

    how: str
    problems: list[str]


def ending(found: Mutant) -> Ended:
    """Give a mutant to its command, and look at how it ends."""
    _raised.clear()
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as beside:
        path, second = Path(folder) / "mutant.onnx", Path(beside) / "second.onnx"
        path.write_bytes(found.content)
        if found.second is not None:
            second.write_bytes(found.second)
        files = [path] if found.second is None else [path, second]
        code, out, err = _run([found.command, *map(str, files), *found.arguments])
        if "--json" in found.arguments:
            wrong = [*_in_json(out), *_in_text("", err)]
        else:
            wrong = _in_text(out, err)
        wrong += _in_files(path, found.content, code)
    if code not in EXIT_CODES:
        wrong.append(f"exit code {code}")
    if "a bug in onnxreduce" in err:
        wrong.append(f"a bug: {_raised[-1] if _raised else err[:200]}")
    if time.process_time() - began > SECONDS:
        wrong.append(f"more than {SECONDS:.0f} seconds of the processor")
    if (
        sys.platform == "linux"
        and resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MEMORY >> 10
    ):
        wrong.append(f"more than {MEMORY / 1e9} GB")
    return Ended(f"exit code {code}", wrong)


def _run(arguments: list[str]) -> tuple[int | str | None, str, str]:
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "surrogateescape") for _ in range(2))
    before = sys.argv
    sys.argv = ["onnxreduce", *arguments]
    code: int | str | None = 0
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            command_line.main()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = before
    return code, _text(out), _text(err)


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode(errors="surrogateescape")


def _in_text(report: str, messages: str) -> list[str]:
    wrong, text = [], report + messages
    if "Traceback" in text:
        wrong.append("a traceback")
    control = {character for character in text if not character.isprintable()} - {"\n"}
    if control:
        wrong.append(f"control characters {sorted(map(ascii, control))[:3]}")
    if len(messages) > _MOST or any(len(line) > _LONGEST for line in text.splitlines()):
        wrong.append("a message too long to read")
    return wrong


def _in_json(report: str) -> list[str]:
    try:
        json.loads(report)
    except ValueError:
        return ["no JSON"]
    return []


def _in_files(source: Path, content: bytes, code: int | str | None) -> list[str]:
    wrong = []
    if source.read_bytes() != content:
        wrong.append("the original changed")
    for path in source.parent.iterdir():
        if path.name == source.name:
            continue
        if ".part" in path.name:
            wrong.append("a temporary file is left")
        elif code != 0:
            wrong.append(f"a file is written, and the exit code is {code}")
        elif not _is_model(path):
            wrong.append("what is written is no model")
    return wrong


def _is_model(path: Path) -> bool:
    try:
        ModelProto.FromString(path.read_bytes())
    except DecodeError:
        return False
    return True
