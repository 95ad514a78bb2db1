"""The reader of the runtimes' files: `data/NAME.toml`, or a table ``[NAME]`` of `data/others.toml`.

title = "OpenCV, its dnn module"   # a title and a row are all that has to be there
aliases = ["cv2"]

[sources.lab]                      # every fact names its source
kind = "measured"                  # or "document", or "error text"
where = "one-node models in wheels"
date = "2026-11-22"

[every]                            # facts of all rows that do not say otherwise
best = { value = 11, source = "lab" }

rows_of = "onnxruntime"            # instead of rows: those of another runtime, without its quirks
since = "1.13"                     # from this version on

[[row]]                            # the oldest first; what none says is not known
version = "4.6"
source = "lab"                     # of the facts of this row that name no other
newest = 23
oldest = { value = 7, source = "docs" }
best = "not known"

[[quirk]]
versions = ">=4.6,<4.8"            # all where it is left out
operators = ["ReduceMax", "ReduceMin"]
opsets = "18-"                     # of the model; all where it is left out
form = "axes input"                # one of `forms.FORMS`; "any" where it is left out
effect = "wrong"                   # or "refused"
what = "reduces all axes"
source = "lab"
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any, get_args

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.schemas import REDUCE, REDUCE_BUT_SUM, SOFTMAX
from onnxreduce_cli.targets.forms import FORMS
from onnxreduce_cli.targets.rows import (
    FACTS,
    Effect,
    Fact,
    Quirk,
    Runtime,
    Source,
    SourceKind,
    VersionFacts,
    opset_range,
)
from onnxreduce_cli.targets.versions import Version, meets_all, version_conditions

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_DATA = Path(__file__).with_name("data")
_SUFFIX = ".toml"

#: The file with a table for each runtime that needs only a few lines.
_SMALL_TABLES_FILE = "others"

#: The file of names that are no runtimes: see `aliases`.
_ALIASES_FILE = "aliases"

#: The value of a fact that is not known.
UNKNOWN = "not known"

#: Names for several operators.
GROUPS = {
    "Reduce*": REDUCE,
    "Reduce* but ReduceSum": REDUCE_BUT_SUM,
    "Softmax family": SOFTMAX,
}


@cache
def runtime_names() -> tuple[str, ...]:
    """Return the names of all runtimes, sorted."""
    files = {path.stem for path in _DATA.iterdir() if path.suffix == _SUFFIX}
    return tuple(sorted(files - {_SMALL_TABLES_FILE, _ALIASES_FILE} | _small_tables().keys()))


@cache
def read_runtime(name: str) -> Runtime:
    """Return a runtime by its name, one of `runtime_names`.

    Raises:
        UsageError: its file is wrong.
    """
    if name in _small_tables():
        return _runtime_of_table(name, _SMALL_TABLES_FILE, _small_tables()[name])
    return parse_runtime(name, _text_of(name))


@cache
def _small_tables() -> dict[str, Any]:
    """Return the tables of the runtimes without a file of their own, by their names."""
    return parse_toml(_SMALL_TABLES_FILE, _text_of(_SMALL_TABLES_FILE))


def _text_of(file: str) -> str:
    return (_DATA / f"{file}{_SUFFIX}").read_text(encoding="utf-8")


def parse_runtime(name: str, text: str) -> Runtime:
    """Read the file of a runtime.

    Raises:
        UsageError: it is wrong.
    """
    return _runtime_of_table(name, name, parse_toml(name, text))


def parse_toml(file: str, text: str) -> dict[str, Any]:
    """Return the text of a file as tables.

    Raises:
        UsageError: it is no TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{file}{_SUFFIX}: {error}") from error


_KEYS = {"title", "aliases", "sources", "every", "row", "quirk", "rows_of", "since"}


def _runtime_of_table(name: str, file: str, data: dict[str, Any]) -> Runtime:
    """Return the runtime that a table describes.

    Raises:
        UsageError: the table is wrong; the message names the file and the key.
    """
    try:
        _check_keys(data, "file", _KEYS)
        sources = {key: _source_of_table(given) for key, given in data.get("sources", {}).items()}
        quirks = [_quirk_of_table(given, sources) for given in data.get("quirk", [])]
        rows = (
            _rows_of(data["rows_of"], Version.of(data.get("since", "0")), quirks)
            if "rows_of" in data
            else [
                _version_facts(given, data.get("every", {}), sources, quirks)
                for given in data["row"]
            ]
        )
        versions = [row.version for row in rows]
        if versions != sorted(set(versions)):
            raise ValueError(
                "its rows are not in ascending order of versions, or two have one version"
            )
        return Runtime(name, data["title"], rows, tuple(data.get("aliases", ())))
    except KeyError as error:
        raise UsageError(f"{file}{_SUFFIX}: {name} lacks {error}") from error
    except (AttributeError, TypeError) as error:
        raise UsageError(f"{file}{_SUFFIX}: {name} has a value of a wrong type: {error}") from error
    except ValueError as error:
        raise UsageError(f"{file}{_SUFFIX}: {name}: {error}") from error


def _rows_of(name: str, since: Version, quirks: list[Quirk]) -> list[VersionFacts]:
    """Return the rows of another runtime from a version on, with these quirks."""
    return [
        VersionFacts(
            row.version,
            row.facts,
            [quirk for quirk in quirks if meets_all(row.version, quirk.versions)],
        )
        for row in read_runtime(name).rows
        if row.version >= since
    ]


def _check_keys(given: dict[str, Any], what: str, known: set[str]) -> None:
    if odd := set(given) - known:
        raise ValueError(f"a {what} has no {', '.join(sorted(odd))}")


def _check_choice(value: str, known: tuple[str, ...]) -> Any:
    if value not in known:
        raise ValueError(f"{value!r} is none of {', '.join(known)}")
    return value


def _source_of_table(given: dict[str, Any]) -> Source:
    _check_keys(given, "source", {"kind", "where", "date"})
    return Source(
        _check_choice(given["kind"], get_args(SourceKind)), given["where"], str(given["date"])
    )


def _version_facts(
    given: dict[str, Any],
    every: dict[str, Any],
    sources: dict[str, Source],
    quirks: list[Quirk],
) -> VersionFacts:
    _check_keys(given, "row", {*FACTS, "version", "source", "note"})
    _check_keys(every, "row", {*FACTS, "source"})
    version = Version.of(given["version"])
    facts = {}
    for name in FACTS:
        side = given if name in given else every
        source = side.get("source", given.get("source"))
        facts[name] = _fact_of_value(side.get(name, UNKNOWN), source, sources)
    own = [quirk for quirk in quirks if meets_all(version, quirk.versions)]
    return VersionFacts(version, facts, own, given.get("note", ""))


def _fact_of_value(given: Any, source: str | None, sources: dict[str, Source]) -> Fact:
    if isinstance(given, dict):
        _check_keys(given, "fact", {"value", "source"})
        given, source = given["value"], given["source"]
    if given == UNKNOWN:
        return Fact(None, None)
    if source is None:
        raise ValueError(f"{given!r} has no source")
    return Fact(tuple(given) if isinstance(given, list) else given, sources[source])


def _quirk_of_table(given: dict[str, Any], sources: dict[str, Source]) -> Quirk:
    known = {"versions", "operators", "opsets", "form", "effect", "what", "source"}
    _check_keys(given, "quirk", known)
    operators = [op for name in given["operators"] for op in GROUPS.get(name, (name,))]
    return Quirk(
        version_conditions(given.get("versions", "")),
        frozenset(operators),
        opset_range(given.get("opsets", "")),
        _check_choice(given.get("form", "any"), tuple(FORMS)),
        _check_choice(given["effect"], get_args(Effect)),
        given["what"],
        sources[given["source"]],
    )
