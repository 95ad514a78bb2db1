"""Operators that may appear in a model, as users list them: ``Add, Resize@11-13``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from onnxreduce_cli import schemas
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.targets.operators import (
    DEFAULT_DOMAIN,
    EVERY_DOMAIN,
    OperatorFact,
    OperatorFile,
    OperatorSource,
    OperatorTable,
)
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.targets.rows import FACTS, Fact, Runtime, VersionFacts, opset_range
from onnxreduce_cli.targets.versions import Version
from onnxreduce_cli.text import did_you_mean

#: The option of the list, which is also the name of the target.
OPTION = "--allow-ops"

#: The suffixes of files, which no operator's name ends with.
_FILES = {".txt", ".ops", ".list", ".md", ".json", ".csv", ".onnx"}

_ENTRY = re.compile(r"([^\s@]+?)(?:@(\d*-?\d*))?")


def operator_list_target(entries: Iterable[str]) -> Target:
    """Return a target that takes only the operators of a list, at any opset.

    Args:
        entries: operators, those of other domains with the domain: ``Clip``,
            ``com.microsoft.Gelu``. An entry may name the opsets at which the operator is taken:
            ``Clip@11-12``, ``Resize@11-``.

    Raises:
        UsageError: an entry names no operator, or there is no entry.
    """
    facts: dict[tuple[str, str], tuple[OperatorFact, ...]] = {}
    for entry in entries:
        name, opsets = _operator_entry(entry)
        facts[name] = (*facts.get(name, ()), OperatorFact((0, 0), opsets, (), (), "taken"))
    if not facts:
        raise UsageError(f"{OPTION} lists no operator")
    version = Version.of("0")
    source = OperatorSource(None, (0, 0), frozenset({EVERY_DOMAIN}))
    table = OperatorTable(OPTION, OperatorFile([version], [source], [], facts), 0)
    row = VersionFacts(version, {name: Fact(None, None) for name in FACTS}, [])
    advice = f"add it to {OPTION} if it may stay"
    return Target(Runtime(OPTION, OPTION, [row]), OPTION, [row], advice=advice, table=table)


def operator_list_entries(text: str) -> tuple[str, ...]:
    """Return the entries of a list with commas, or of a file with one on a line.

    Args:
        text: the list, or the path of the file; what follows ``#`` there is a remark.

    Raises:
        UsageError: the file cannot be read.
    """
    path = Path(text)
    try:
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else [text]
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{OPTION}: {text} cannot be read: {error}") from error
    except ValueError:  # No name of a file.
        lines = [text]
    if lines == [text] and (path.suffix in _FILES or path.name != text):
        raise UsageError(f"{OPTION}: there is no file {text!r}")
    found = [item.strip() for line in lines for item in line.partition("#")[0].split(",")]
    return tuple(item for item in found if item)


def _operator_entry(item: str) -> tuple[tuple[str, str], tuple[int, int | None]]:
    """Return the domain and the name of the operator of an entry, and its opsets."""
    found = _ENTRY.fullmatch(item)
    name, opsets = found.groups() if found else (item, None)
    name = name.removeprefix("ai.onnx.") if name.count(".") == 2 else name
    if found is None or opsets in ("", "-"):
        raise UsageError(f"{OPTION}: {item!r} is no operator; say Clip, or Clip@11-12")
    known = schemas.operators()
    if "." not in name and name not in known:
        hint = did_you_mean(name, known)
        raise UsageError(f"{OPTION}: there is no operator {name!r}, and no such file{hint}")
    domain, _, op_type = name.rpartition(".")
    return (domain or DEFAULT_DOMAIN, op_type), opset_range(opsets or "")
