"""Runtimes as text and Markdown: what they take, what they compute wrong, and the sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from onnxreduce_cli.targets.operators import Answer, OperatorTable, read_operators
from onnxreduce_cli.targets.reading import GROUPS, read_runtime, runtime_names
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.targets.rows import FACTS, Quirk, Runtime, Source, VersionFacts
from onnxreduce_cli.targets.versions import Version
from onnxreduce_cli.text import count, wrapped

#: Short names of facts, for several in a line.
_SHORT = {
    "oldest": "opset from",
    "newest": "opset to",
    "best": "best opset",
    "ir": "IR version to",
    "ml": "ai.onnx.ml to",
    "functions": "functions",
    "external_data": "external data",
    "dtypes": "dtypes",
}


def targets_text() -> str:
    """List every runtime on a line: its versions, newest opset and number of known faults."""
    found = [read_runtime(name) for name in runtime_names()]
    width = max(len(item.name) for item in found)
    return wrapped([f"{item.name:{width}}  {item.title}: {_summary(item)}" for item in found])


def _summary(item: Runtime) -> str:
    newest = item.rows[-1]
    parts = [_versions(item)]
    opset = newest.number("newest")
    parts += [f"opset {opset}"] if opset is not None else []
    parts += [count(len(newest.quirks), "known fault")] if newest.quirks else []
    return ", ".join(parts)


def _versions(item: Runtime) -> str:
    first, last = str(item.rows[0].version), str(item.rows[-1].version)
    if first == last:
        return _version(item.rows[0])
    return f"{_version(item.rows[0])} to {last}"


def _version(row: VersionFacts) -> str:
    return "any version" if row.version == Version.of("0") else str(row.version)


def target_text(target: Target, *, whole: bool) -> str:
    """Describe what is known of a target, every fact with its source and date.

    The operators of single versions are listed, those of all versions are counted.

    Args:
        target: the target.
        whole: whether all versions of its runtime are wanted.
    """
    return wrapped(_lines(target, target.runtime.rows if whole else target.rows))


def _lines(target: Target, rows: Sequence[VersionFacts]) -> Iterator[str]:
    found = target.runtime
    also = f"; also called {', '.join(found.aliases)}" if found.aliases else ""
    yield f"{found.name}: {found.title}{also}"
    sources: list[Source] = []
    for row in rows:
        known = _facts(row, sources)
        yield ": ".join([_version(row), *([known] if known else [])])
        if row.note:
            yield f"  {row.note}"
    unknown = _unknown(rows)
    if unknown:
        yield f"not known: {', '.join(unknown)}"
    tables = [(row, OperatorTable.load(found.name, row.version)) for row in rows]
    for row, table in tables:
        if table is not None:
            yield from _operator_lines(row, table, sources, listing=len(rows) == 1)
    if not any(table for _, table in tables):
        yield "not known: operators"
    quirks = list({id(quirk): quirk for row in rows for quirk in row.quirks}.values())
    if quirks:
        yield "what it gets wrong or refuses:"
    for quirk in quirks:
        of = version_range(quirk, found)
        yield f"  {f'{of}: ' if of else ''}{_quirk(quirk)} [{_mark(quirk.source, sources)}]"
    yield "sources:"
    for index, source in enumerate(sources, 1):
        yield f"  [{index}] {source}"


def _operator_lines(
    row: VersionFacts, table: OperatorTable, sources: list[Source], *, listing: bool
) -> Iterator[str]:
    """Yield how many operators a version takes, and which if that is wanted."""
    answers = operator_answers(table)
    by_value: dict[str, list[str]] = {}
    for name, answer in answers.items():
        text = f"{name} if {' and '.join(answer.conditions)}" if answer.conditions else name
        by_value.setdefault(answer.value, []).append(text)
    mark = f" [{_mark(table.source, sources)}]" if table.source else ""
    counts = ", ".join(f"{len(names)} {value}" for value, names in sorted(by_value.items()))
    older = table.stands_in_for(row.version)
    others = f", all others of {', '.join(sorted(table.complete))} not taken"
    text = f"{counts}{others if table.complete else ''}{mark}"
    yield f"operators of {_version(row)}{f', as of {older}' if older else ''}: {text}"
    for value, names in sorted(by_value.items()) if listing else ():
        yield f"  {value}: {'; '.join(names)}"


def operator_answers(table: OperatorTable) -> dict[str, Answer]:
    """Return what is known of each operator by its name, ``com.microsoft.Gelu``, at some opset."""
    return {
        f"{domain}.{op_type}" if domain else op_type: table.answer(domain, op_type, None)
        for domain, op_type in sorted(table.operators())
    }


def _mark(source: Source, sources: list[Source]) -> int:
    if source not in sources:
        sources.append(source)
    return sources.index(source) + 1


def _facts(row: VersionFacts, sources: list[Source]) -> str:
    """Return the known facts of a row, each with the number of its source."""
    return ", ".join(
        f"{_SHORT[name]} {fact} [{_mark(fact.source, sources)}]"
        for name, fact in row.facts.items()
        if fact.source is not None
    )


def _unknown(rows: Sequence[VersionFacts]) -> list[str]:
    """Return the names of the facts that are known for none of the rows."""
    return [
        title
        for name, title in FACTS.items()
        if all(row.facts[name].source is None for row in rows)
    ]


def version_range(quirk: Quirk, found: Runtime) -> str:
    """Return the range of versions that have a quirk; empty for all versions."""
    return found.span(
        [row.version for row in found.rows if any(item is quirk for item in row.quirks)]
    )


def _quirk(quirk: Quirk) -> str:
    form = "" if quirk.form == "any" else f" ({quirk.form})"
    where = f" {quirk.where}" if quirk.where else ""
    wrong = "wrong: " if quirk.effect == "wrong" else ""
    return f"{_operators(quirk)}{form}{where}: {wrong}{quirk.what}"


def _operators(quirk: Quirk) -> str:
    for name, members in GROUPS.items():
        if quirk.operators == set(members):
            return name
    return ", ".join(sorted(quirk.operators))


_START = """# Runtimes

Name the runtime, and its version if you know it. The opset, the IR version and the form of each
node are then chosen for it:

    onnxreduce convert model.onnx --for onnxruntime==1.8

| you have | type |
|---|---|
| one version | `--for onnxruntime==1.8` |
| several, and one file for all | `--for 'opencv>=4.6,<5'` |
| any version | `--for openvino` |
| the ONNX Runtime that is installed here | `--for installed` |
| a runtime that is not below, but you know its opset | `--opset 13` |
| a runtime that is not below, but you know its operators | `--allow-ops ops.txt` |

`onnxreduce inspect model.onnx` says which runtimes take a model as it is, and which after a
conversion.

Below is what is known of each runtime, and from where: *measured* by running it (`lab/`), a
*document* of its vendor, or an *error text* that a user reported. *Wrong* means that the runtime
computes something else and reports no error. A version that is not in a table is taken for the
nearest older one. Written by `python -m onnxreduce_cli.report.targets` from
`onnxreduce_cli/targets/data/`."""


def targets_markdown() -> str:
    """Return all runtimes as Markdown: every row with its facts, every quirk, every source."""
    lines = [_START]
    for name in runtime_names():
        lines += ["", *_section(read_runtime(name))]
    return "\n".join(lines) + "\n"


def _section(found: Runtime) -> Iterator[str]:
    sources: list[Source] = []
    unknown = _unknown(found.rows)
    shown = [name for name, title in FACTS.items() if title not in unknown]
    yield f"## {found.title}"
    yield ""
    yield f"`{'`, `'.join((found.name, *found.aliases))}`"
    yield ""
    yield _cells("type", *(FACTS[name] for name in shown), "")
    yield "|---" * (len(shown) + 2) + "|"
    for row in found.rows:
        cells = []
        for name in shown:
            fact = row.facts[name]
            mark = "" if fact.source is None else f" [{_mark(fact.source, sources)}]"
            cells.append(f"{fact}{mark}")
        yield _cells(f"`--for {_requirement(found, row)}`", *cells, row.note)
    if unknown:
        yield ""
        yield f"Not known: {', '.join(unknown)}."
    operators = read_operators(found.name)
    yield ""
    if operators is None:
        yield "Its operators are not known."
    else:
        first, last = operators.versions[0], operators.versions[-1]
        of = f"of versions {first} to {last}" if first != last else f"of version {last}"
        typed = f"{found.name}=={last}"
        if last == Version.of("0"):
            of, typed = "of all versions", found.name
        source = operators.sources[-1].source
        mark = f" [{_mark(source, sources)}]" if source else ""
        yield f"`onnxreduce targets {typed}` lists the operators {of}{mark}."
    quirks = list({id(quirk): quirk for row in found.rows for quirk in row.quirks}.values())
    if quirks:
        yield ""
        yield _cells("versions", "operators", "form", "opsets", "result", "what it does")
        yield "|---" * 6 + "|"
    for quirk in quirks:
        yield _cells(
            version_range(quirk, found) or "all",
            _operators(quirk),
            quirk.form,
            quirk.where or "all",
            quirk.effect,
            f"{quirk.what} [{_mark(quirk.source, sources)}]",
        )
    for index, source in enumerate(sources, 1):
        yield ""
        yield f"[{index}] {source}"


def _requirement(found: Runtime, row: VersionFacts) -> str:
    """Return what is typed after ``--for``."""
    return found.name if row.version == Version.of("0") else f"{found.name}=={row.version}"


def _cells(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    from pathlib import Path

    Path("docs/targets.md").write_text(targets_markdown(), encoding="utf-8")
