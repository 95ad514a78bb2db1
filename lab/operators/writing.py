"""Writes what a maker read as a file of `onnxreduce_cli/targets/data/operators/`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import onnx

import onnxreduce_cli
from onnxreduce_cli.targets.operators import DEFAULT_DOMAIN, parse_operators

FOLDER = Path(onnxreduce_cli.__file__).parent / "targets" / "data" / "operators"


#: Names for sets of dtypes that rows have whole.
SETS = {
    "ints": "int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    "floats": "float16 float double",
    "float8": "float8e4m3fn float8e4m3fnuz float8e5m2 float8e5m2fnuz",
}


class Row(NamedTuple):
    """One fact of an operator in one version.

    Attributes:
        opsets: the first and the last opset; None for any.
        dtypes: the dtypes, by the name of a type parameter or the indices of inputs (``0+1``).
        conditions: the names of the conditions that have to hold.
        value: ``not`` or ``cpu``; empty where the operator is taken.
    """

    opsets: tuple[int | None, int | None] = (None, None)
    dtypes: tuple[tuple[str, frozenset[str]], ...] = ()
    conditions: tuple[str, ...] = ()
    value: str = ""


@dataclass
class Source:
    """What was read for some versions; see `targets.operators`.

    Attributes:
        kind: ``document`` or ``measured``.
        where: the file, with its repository, or the package.
        date: the date of what was read.
        complete: the domains that it names every taken operator of.
        fallback: the runtime that runs the rest.
    """

    kind: str
    where: str
    date: str
    complete: Sequence[str] = ()
    fallback: str = ""


#: The facts of a version: by domain (empty for the default one) and operator.
Facts = Mapping[tuple[str, str], Collection[Row]]


@dataclass
class Release:
    """One version of a runtime.

    Attributes:
        version: the version.
        source: what was read. Versions next to each other with equal sources share them.
        facts: the facts.
    """

    version: str
    source: Source
    facts: Facts


def check_names(names: Iterable[tuple[str, str]], made_up: Collection[str] = ()) -> None:
    """Check that onnx defines each operator, of the domains that it knows.

    Args:
        names: domains and operators.
        made_up: operators of the default domain that no onnx defines, which the runtime does take.

    Raises:
        ValueError: there are others.
    """
    schemas = onnx.defs.get_all_schemas_with_history()
    known = {(found.domain, found.name) for found in schemas}
    domains = {domain for domain, _ in known}
    odd = {
        (domain, name)
        for domain, name in names
        if domain in domains and (domain, name) not in known and (domain or name not in made_up)
    }
    if odd:
        raise ValueError(f"no onnx defines {', '.join(sorted(map(str, odd)))}")


def write(
    runtime: str,
    maker: str,
    releases: Sequence[Release],
    *,
    conditions: Mapping[str, tuple[str, str]] | None = None,
    casts: Mapping[str, str] | None = None,
    made_up: Collection[str] = (),
) -> Path:
    """Write the file of a runtime and return its path.

    Args:
        runtime: its name in `targets`.
        maker: the name of the maker's module.
        releases: its versions, the oldest first.
        conditions: the words and the lines of code of each condition that rows name.
        casts: the dtypes that it computes as others, by versions.
        made_up: operators of the default domain that no onnx defines.

    Raises:
        ValueError: a row names an operator that nobody defines.
    """
    check_names({name for release in releases for name in release.facts}, made_up)
    text = _text(maker, releases, conditions or {}, casts or {})
    parse_operators(runtime, text)
    path = FOLDER / f"{runtime}.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _text(
    maker: str,
    releases: Sequence[Release],
    conditions: Mapping[str, tuple[str, str]],
    casts: Mapping[str, str],
) -> str:
    versions = [release.version for release in releases]
    rows = _rows(releases)
    used = Counter(
        word for texts in rows.values() for text in texts.values() for word in _names(text)
    )
    lines = [f"# Written by `python -m lab.operators.{maker}`.", f"versions = {_list(versions)}"]
    for first, last in _runs([release.source for release in releases]):
        source = releases[first].source
        lines += ["", "[[source]]"]
        if (first, last) != (0, len(versions) - 1):
            lines.append(f'versions = "{_span(first, last, versions)}"')
        lines += [f'{key} = "{getattr(source, key)}"' for key in ("kind", "where", "date")]
        if source.complete:
            lines.append(f"complete = {_list(source.complete)}")
        if source.fallback:
            lines.append(f'fallback = "{source.fallback}"')
    if any(name in used for name in SETS):
        lines += ["", "[dtypes]"]
        lines += [f'{name} = "{dtypes}"' for name, dtypes in SETS.items() if used[name]]
    if casts:
        lines += ["", "[casts]", *(f'"{span}" = "{text}"' for span, text in casts.items())]
    for name in sorted(conditions.keys() & used.keys()):
        words, ask = conditions[name]
        lines += ["", f"[conditions.{name}]", f'text = "{words}"']
        if "\n" in ask.strip():
            lines.append(f'ask = """\n{ask.strip()}"""')
        elif ask:
            lines.append(f'ask = "{ask}"')
    for domain in sorted(rows, key=lambda name: (name != DEFAULT_DOMAIN, name)):
        lines += ["", f'[operators."{domain}"]']
        lines += [f'{name} = "{text}"' for name, text in sorted(rows[domain].items())]
    return "\n".join(lines) + "\n"


def _rows(releases: Sequence[Release]) -> dict[str, dict[str, str]]:
    """Return the text of each row, by domain and operator."""
    versions = [release.version for release in releases]
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    order: dict[str, tuple[int, int]] = {}
    for index, release in enumerate(releases):
        for name, facts in release.facts.items():
            for row in facts:
                words = _words(row)
                first, last = row.opsets
                order[words] = (first or 0, last or 1 << 31)
                found.setdefault(name, {}).setdefault(words, []).append(index)
    rows: dict[str, dict[str, str]] = {}
    for (domain, op_type), facts in found.items():
        parts = []
        for words, indices in facts.items():
            for first, last in _ranges(indices):
                span = (
                    "" if (first, last) == (0, len(versions) - 1) else _span(first, last, versions)
                )
                parts.append((first, order[words], f"{span} {words}".strip()))
        text = "; ".join(part for *_, part in sorted(parts))
        rows.setdefault(domain or DEFAULT_DOMAIN, {})[op_type] = text
    return rows


def _words(row: Row) -> str:
    words = []
    first, last = row.opsets
    if first is not None or last is not None:
        same = first == last
        words.append(f"@{first or ''}" if same else f"@{first or ''}-{last or ''}")
    for place, dtypes in row.dtypes:
        words.append(f"{place}={','.join(_dtypes(dtypes))}")
    if row.conditions:
        words.append(f"if={','.join(row.conditions)}")
    return " ".join([*words, row.value] if row.value else words)


def _dtypes(dtypes: frozenset[str]) -> list[str]:
    """Return the names of the sets that are whole in some dtypes, and the other dtypes."""
    sets = [(name, set(held.split())) for name, held in SETS.items()]
    whole = [(name, held) for name, held in sets if held <= dtypes]
    rest = dtypes.difference(*(held for _, held in whole))
    return [*(name for name, _ in whole), *sorted(rest)]


def _names(text: str) -> list[str]:
    """Return the names of sets and conditions in a row."""
    return [
        name
        for part in text.split(";")
        for word in part.split()
        if "=" in word
        for name in word.partition("=")[2].split(",")
    ]


def _ranges(indices: Sequence[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for index in sorted(indices):
        if found and found[-1][1] == index - 1:
            found[-1] = (found[-1][0], index)
        elif not found or found[-1][1] != index:
            found.append((index, index))
    return found


def _runs(items: Sequence[Source]) -> list[tuple[int, int]]:
    """Return the first and the last index of each run of equal items."""
    starts = [i for i, item in enumerate(items) if not i or item != items[i - 1]]
    return [(start, end - 1) for start, end in zip(starts, [*starts[1:], len(items)], strict=True)]


def _span(first: int, last: int, versions: Sequence[str]) -> str:
    if last == len(versions) - 1:
        return f"{versions[first]}-"
    return versions[first] if first == last else f"{versions[first]}-{versions[last]}"


def _list(items: Iterable[str]) -> str:
    return f"[{', '.join(f'{chr(34)}{item}{chr(34)}' for item in items)}]"
