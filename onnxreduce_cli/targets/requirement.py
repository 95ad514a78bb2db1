"""Requirements such as ``onnxruntime>=1.8,<1.12``, and the targets that they name."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache, cached_property

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.runtime_module import RuntimeMissingError, import_onnxruntime
from onnxreduce_cli.targets.aliases import Alias, aliases
from onnxreduce_cli.targets.operators import Answer, OperatorTable, worst
from onnxreduce_cli.targets.reading import read_runtime, runtime_names
from onnxreduce_cli.targets.rows import Quirk, Runtime, VersionFacts
from onnxreduce_cli.targets.versions import Version, VersionCondition, meets_all, version_conditions
from onnxreduce_cli.text import nearest

#: The name of the ONNX Runtime that is installed beside this program.
INSTALLED = "installed"
_HERE = "onnxruntime"

_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(.*?)\s*")


@dataclass(frozen=True)
class Target:
    """All versions of a runtime that a model is to run in.

    Attributes:
        runtime: the runtime.
        label: what the user meant, as ``onnxruntime 1.8`` or ``onnxruntime >=1.8,<1.12``.
        rows: the facts of those versions, the oldest first; at least one.
        remark: a remark for the user on the choice of versions; may be empty.
        conditions: the conditions on the version; empty where there are none.
        advice: what the user can do about a node that it does not take.
        table: the operators that the user allows; None for those that are known of the runtime.
        versions: the versions, where single ones are named; else those of the rows are meant.
        title: what the user meant, by its full name, as ``OpenCV 4.6``; empty for no runtime.
        exact: whether what is known is of these versions themselves, and not of the nearest ones.
    """

    runtime: Runtime
    label: str
    rows: Sequence[VersionFacts]
    remark: str = ""
    conditions: str = ""
    advice: str = "leave --for out if that does not matter"
    table: OperatorTable | None = None
    versions: Sequence[Version] = ()
    title: str = ""
    exact: bool = True

    @cached_property
    def operator_tables(self) -> Sequence[OperatorTable | None]:
        """Return for each version the operators that it takes; None where they are not known."""
        if self.table is not None:
            return [self.table]
        versions = self.versions or [row.version for row in self.rows]
        return _tables(self.runtime.name, tuple(versions))

    def answer(
        self, domain: str, op_type: str, opset: int, node: NodeFacts | None = None
    ) -> Answer:
        """Return what is known of an operator, or of one node of it, in all versions.

        Args:
            domain: the operator's domain; empty for the default one.
            op_type: the operator.
            opset: the model's opset of that domain.
            node: the node; without one no dtype is asked for, and every condition is open.
        """
        return worst(
            Answer("not known") if table is None else table.answer(domain, op_type, opset, node)
            for table in self.operator_tables
        )

    def may_refuse(
        self, op_type: str, opset: int, may_be: Callable[[str], bool] = lambda _: True
    ) -> bool:
        """Return whether a version may not take some nodes of an operator of the default domain.

        Arguments are those of `OperatorTable.takes_any`.
        """
        return any(
            table is not None
            and not table.takes_any(op_type, opset, may_be)
            and table.answer("", op_type, opset).value != "not known"
            for table in self.operator_tables
        )

    def key(self, domain: str, op_type: str, opset: int, dtypes: Set[str]) -> Hashable:
        """Return a key of what is known of an operator of some dtypes: equal keys, equal verdicts.

        Arguments are those of `OperatorTable.key`.
        """
        tables = (
            table and table.key(domain, op_type, opset, dtypes) for table in self.operator_tables
        )
        quirks = (
            id(quirk)
            for quirk in self.quirks
            if not domain and op_type in quirk.operators and quirk.at(opset)
        )
        return tuple(tables), tuple(quirks)

    @property
    def knows_operators(self) -> bool:
        """True if something is known of the operators of each version."""
        return None not in self.operator_tables

    @property
    def oldest(self) -> int:
        """Return the oldest opset that all versions take; 1 where it is not known."""
        return max(self._numbers("oldest"), default=1)

    @property
    def newest(self) -> int | None:
        """Return the newest opset that all versions take; None where it is not known."""
        return min(self._numbers("newest"), default=None)

    @property
    def best(self) -> int | None:
        """Return the opset with the fewest quirks, where all versions agree on one."""
        found = set(self._numbers("best"))
        return found.pop() if len(found) == 1 else None

    @property
    def ir_version(self) -> int | None:
        """Return the newest IR version that all versions take; None where it is not known."""
        return min(self._numbers("ir"), default=None)

    @property
    def ml_version(self) -> int | None:
        """Return the newest ai.onnx.ml that all versions take; None where it is not known."""
        return min(self._numbers("ml"), default=None)

    @cached_property
    def quirks(self) -> Sequence[Quirk]:
        """Return the quirks of all versions, each once."""
        return list({id(quirk): quirk for row in self.rows for quirk in row.quirks}.values())

    def _numbers(self, name: str) -> Iterator[int]:
        found = (row.number(name) for row in self.rows)
        return (number for number in found if number is not None)


@cache
def _tables(runtime: str, versions: tuple[Version, ...]) -> Sequence[OperatorTable | None]:
    """Return the tables of versions, each once."""
    found = [OperatorTable.load(runtime, version) for version in versions]
    return list({table and table.version: table for table in found}.values())


def find_target(text: str) -> Target:
    """Return the target that a requirement names.

    Args:
        text: a runtime's name with conditions on its version, as pip takes them; without any, the
            newest version that is known is meant. ``installed`` is the onnxruntime that is
            installed.

    Raises:
        UsageError: there is no such runtime, a condition is malformed, or no version meets it.
    """
    found = _REQUIREMENT.fullmatch(text)
    if found is None:
        raise UsageError(f"{text!r} is no runtime; say NAME or NAME==VERSION: {_HERE}==1.20")
    name, conditions = found.groups()
    if name.lower() == INSTALLED and not conditions:
        name, conditions = _HERE, f"=={_installed_version()}"
    alias = _alias(name)
    if alias is not None and (conditions or alias.name != alias.runtime):
        target = _target_of_alias(text, alias, conditions)
        if target is not None:
            return target
    known = read_runtime(_runtime_name(name))
    try:
        wanted = version_conditions(conditions)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}; say {_suggestion(known, conditions)}") from error
    return _target(known, conditions, wanted)


def _alias(name: str) -> Alias | None:
    """Return the product of a name, whatever its case; None where there is none."""
    for alias in aliases().values():
        if _normalized(name) in map(_normalized, (alias.name, *alias.names)):
            return alias
    return None


def _target_of_alias(text: str, alias: Alias, conditions: str) -> Target | None:
    """Return the target of the runtime in a product; None if its own versions are named.

    Raises:
        UsageError: a condition is malformed, or no version meets it.
    """
    try:
        chosen = alias.choose(conditions)
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}; say {_suggested_alias(alias)}") from error
    if not chosen.releases:
        if alias.name == alias.runtime:
            return None
        known = ", ".join(release.text for release in alias.releases)
        raise UsageError(f"no version of {alias.name} that is known meets {text!r}; known: {known}")
    runtime = read_runtime(alias.runtime)
    versions = [release.runtime_version for release in chosen.releases]
    targets = [
        _target(runtime, f"=={version}", version_conditions(f"=={version}")) for version in versions
    ]
    rows = [row for target in targets for row in target.rows]
    version = chosen.releases[-1].text if len(versions) == 1 else ""
    label = f"{alias.name} {version or conditions}"
    inner = dict.fromkeys(str(version) for version in versions)
    where = dict.fromkeys(release.source.where for release in chosen.releases)
    remarks = [
        chosen.remark,
        f"{label} has {runtime.name} {', '.join(inner)} ({'; '.join(where)})",
        *dict.fromkeys(target.remark for target in targets),
    ]
    return Target(
        runtime,
        f"{label}, {targets[-1].label}" if len(targets) == 1 else label,
        list({id(row): row for row in rows}.values()),
        "; ".join(filter(None, remarks)),
        conditions or "==",
        versions=versions,
        title=_title(alias.title, conditions and (version or conditions), version),
        exact=not chosen.remark and all(target.exact for target in targets),
    )


def _title(title: str, version: str, newest: str = "") -> str:
    """Return a full name with a version: ``OpenCV 4.6``; the newest known where none is named."""
    name = title.partition(",")[0]
    if newest and not version:
        return f"{name}, taken as its newest known, {newest}"
    return f"{name} {version}".rstrip()


def _suggested_alias(alias: Alias) -> str:
    return f"{alias.name}=={alias.releases[-1].text}"


def _suggestion(known: Runtime, conditions: str) -> str:
    """Return the requirement that was probably meant: ``opencv==4.*`` for ``4.x``."""
    found = re.search(r"(\d+(?:\.\d+)*)(\.x\b)?", conditions, re.IGNORECASE)
    if found is None:
        return f"{known.name}=={known.rows[-1].version}"
    return f"{known.name}=={found[1]}{'.*' if found[2] else ''}"


def _installed_version() -> str:
    """Return the numbers of the version of ONNX Runtime, without what marks a build."""
    try:
        found = re.match(r"\d+(\.\d+)*", import_onnxruntime().__version__)
    except RuntimeMissingError as error:
        raise UsageError(f"ONNX Runtime {error}; or name a version: --for {_HERE}==1.20") from error
    assert found is not None
    return found[0]


def _runtime_name(given: str) -> str:
    """Return the name of the runtime that a user names, whatever its case."""
    spelled = {
        _normalized(alias): name
        for name in runtime_names()
        for alias in (name, *read_runtime(name).aliases)
    }
    found = spelled.get(_normalized(given))
    if found is not None:
        return found
    glued = re.fullmatch(r"(.*[^\d.])(\d+(?:\.\d+)*)", given)
    if glued is not None and _normalized(glued[1]).strip("-") in spelled:
        meant = f"{spelled[_normalized(glued[1]).strip('-')]}=={glued[2]}"
        raise UsageError(f"no runtime {given!r} is known; did you mean {meant}? {_WAY_ON}")
    spelled |= {
        _normalized(name): alias.name
        for alias in aliases().values()
        for name in (alias.name, *alias.names)
    }
    near = nearest(_normalized(given), spelled)
    if near:
        meant = ", ".join(dict.fromkeys(spelled[item] for item in near))
        raise UsageError(f"no runtime {given!r} is known; did you mean {meant}? {_WAY_ON}")
    raise UsageError(
        f"no runtime {given!r} is known; onnxreduce targets lists the known ones. {_WAY_ON}"
    )


#: What to do for a runtime of which nothing is known.
_WAY_ON = (
    "For any other say --opset N, and --allow-ops with the list of operators that its vendor gives"
)


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _target(known: Runtime, conditions: str, wanted: tuple[VersionCondition, ...]) -> Target:
    if not wanted:
        newest = known.rows[-1]
        label = _label(known, newest)
        remark = _version_remark(known, label, newest.version, newest)
        title = _title(known.title, "", label.removeprefix(known.name).strip())
        return Target(known, label, [newest], remark, title=title, exact=not remark)
    if len(wanted) == 1 and wanted[0].sign == "==" and not wanted[0].series:
        version = wanted[0].version
        row = facts_of_version(known, version)
        label = f"{known.name} {version}"
        remark = _version_remark(known, label, version, row)
        title = _title(known.title, str(version))
        return Target(
            known,
            label,
            [row],
            remark,
            conditions,
            versions=[version],
            title=title,
            exact=not remark,
        )
    rows = list(_matching_rows(known, wanted))
    if not rows:
        first, last = known.rows[0].version, known.rows[-1].version
        raise UsageError(
            f"no version of {known.name} that is known meets {conditions}; known are {first} to "
            f"{last}"
        )
    label = f"{known.name} {conditions}"
    named = [clause.version for clause in wanted if meets_all(clause.version, wanted)]
    meets = any(
        meets_all(row.version, wanted) or any(version.is_of(row.version) for version in named)
        for row in rows
    )
    newest = rows[-1]
    remark = (
        _version_remark(known, _label(known, newest), newest.version, newest)
        if meets
        else _older_version_remark(label, newest.version, _later(known, newest))
    )
    title = _title(known.title, conditions)
    return Target(known, label, rows, remark, conditions, title=title, exact=not remark)


def _version_remark(known: Runtime, label: str, version: Version, row: VersionFacts) -> str:
    """Return the remark that facts of an older version are used; empty where they are its own.

    The operators have versions of their own, which may be more or fewer than the rows.
    """
    table = OperatorTable.load(known.name, version)
    own_row = _is_own(version, row.version)
    if (own_row and table is None) or (table is not None and _is_own(version, table.version)):
        return ""
    if table is None:
        return _older_version_remark(label, row.version, _later(known, row))
    if own_row:
        nearest = "the nearest older" if table.newer else "the newest"
        return f"its operators are taken to be those of {table.version}, {nearest} that are known"
    later = [other for other in (_later(known, row), table.newer) if other is not None]
    return _older_version_remark(
        label, max(row.version, table.version), min(later) if later else None
    )


def _older_version_remark(label: str, older: Version, newer: Version | None) -> str:
    """Return the remark that the facts of an older version are used."""
    if newer is not None:
        return f"{label} is between {older} and {newer}: taken for {older}, the older"
    return f"{label} is newer than all that is known: taken for {older}, the newest"


def _later(known: Runtime, row: VersionFacts) -> Version | None:
    """Return the version of the next row; None after the last."""
    return next((other.version for other in known.rows if other.version > row.version), None)


def _label(known: Runtime, row: VersionFacts) -> str:
    return known.name if _holds_for_all_versions(row) else f"{known.name} {row.version}"


def _holds_for_all_versions(row: VersionFacts) -> bool:
    """Return whether a row holds for versions that have no number."""
    return row.version == _ALL_VERSIONS


def _is_own(version: Version, known: Version) -> bool:
    """Return whether what is known of a version is known of another."""
    return known == _ALL_VERSIONS or version.is_of(known)


#: The version of what holds for versions that have no number.
_ALL_VERSIONS = Version.of("0")


def facts_of_version(known: Runtime, version: Version) -> VersionFacts:
    """Return the facts of a version: its own, or those of the nearest older one.

    Raises:
        UsageError: the version is older than all that are known.
    """
    own = [row for row in known.rows if row.version <= version or version.is_of(row.version)]
    if not own:
        oldest = known.rows[0].version
        raise UsageError(
            f"nothing is known of {known.name} before {oldest}; say {known.name}=={oldest} if "
            "that is near enough"
        )
    return own[-1]


def _matching_rows(known: Runtime, wanted: tuple[VersionCondition, ...]) -> Iterable[VersionFacts]:
    """Return the facts of all versions that the conditions name or allow."""
    named = [
        facts_of_version(known, clause.version)
        for clause in wanted
        if clause.sign in ("==", ">=", "<=", "~=", ">")
        and (clause.sign == ">" or meets_all(clause.version, wanted))
        and clause.version >= known.rows[0].version
    ]
    return [row for row in known.rows if row in named or meets_all(row.version, wanted)]
