"""Which operators a runtime takes, as `data/operators/NAME.toml` has it for each of its versions.

versions = ["8.2", "8.4", "8.5"]   # that were looked at, the oldest first

[[source]]                         # of the versions that it names; all where it names none
versions = "8.2-8.4"
kind = "document"                  # or "measured"
where = "onnx/onnx-tensorrt 8.2-GA docs/operators.md"
date = "2022-03-15"
complete = ["ai.onnx"]             # in these domains what has no row is not taken; none if left out
fallback = "onnxruntime"           # what has no row there runs on the CPU, by that runtime's table
                                   # of the same version, or of another: "onnxruntime==1.15"

[dtypes]                           # names for sets of dtypes that rows repeat
floats = "float float16"

[casts]                            # dtypes that the runtime computes as others, by versions
"8.2-8.5" = "int64=int32 double=float"

[conditions.pool]                  # a condition: in words, and for nodes as code if that can be
text = "the input is of rank 4 or 5"
ask = "rank 0 = 4-5"

[operators."ai.onnx"]              # facts, separated by semicolons
Abs = "8.2-8.4 T=floats; 8.5- T=floats,int32"
AveragePool = "T=floats if=pool"
BatchNormalization = "@9-14; @15- not"

A file may also say only ``same_as = "onnxruntime"``: the operators are those of that runtime.

A fact is a few words, each of which may be left out. Left out it restricts nothing:

- versions: ``8.4``, ``8.2-8.4``, ``8.5-``, ``-8.4``;
- opsets of the domain: ``@13``, ``@13-17``, ``@13-``;
- dtypes: by the type parameter of the operator's definition (``T=float,double``) or by the index of
  an input (``0=float``); dtypes or the names of sets;
- ``if=NAME,NAME``: conditions, all of which have to hold;
- ``not`` or ``cpu``: the operator is not taken, or runs on the CPU; without these it is taken.

An operator that has facts but none at an opset is treated like one without facts. What a condition
asks is one line for each of what has to hold (see `conditions.ASKS`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from onnx import TensorProto

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.targets.conditions import Condition, condition_of_table
from onnxreduce_cli.targets.reading import parse_toml
from onnxreduce_cli.targets.rows import Source, is_within, opset_range
from onnxreduce_cli.targets.versions import Version

Value = Literal["taken", "taken if", "runs on the CPU", "not taken", "not known"]

#: The name that the files have for the default domain.
DEFAULT_DOMAIN = "ai.onnx"

#: What stands for all domains of which a source names every operator.
EVERY_DOMAIN = "*"

_DATA = Path(__file__).with_name("data") / "operators"

#: The dtypes that there are, of which an older onnx does not know the last ones.
_DTYPES = frozenset(
    {
        *TensorProto.DataType.keys(),  # no mapping
        *("UINT4", "INT4", "FLOAT4E2M1", "FLOAT8E8M0", "UINT2", "INT2"),
    }
)

#: The words of a fact for what is not plainly taken.
_VALUES: dict[str, Value] = {"not": "not taken", "cpu": "runs on the CPU"}

#: The values of an answer, the best one first: of several facts the best one counts.
_ORDER: Sequence[Value] = ("taken", "taken if", "runs on the CPU", "not taken", "not known")

#: The same, the worst one first: of several versions the worst one counts.
_WORST: Sequence[Value] = ("not taken", "not known", "runs on the CPU", "taken if", "taken")


@dataclass(frozen=True, slots=True)
class Answer:
    """What is known of an operator, or of a node, in a version of a runtime.

    Attributes:
        value: whether it is taken.
        conditions: what is not known to hold, of an operator that is taken if; what does not hold,
            of one that is not taken for that; else empty. In words.
        source: the source; None where it is not known.
    """

    value: Value
    conditions: tuple[str, ...] = ()
    source: Source | None = None

    def __str__(self) -> str:
        """``taken if the input is of rank 4 or 5``."""
        why = " and ".join(self.conditions)
        if self.value == "taken if":
            return f"taken if {why}"
        return f"{self.value}, but if {why}" if why else self.value


class OperatorFact(NamedTuple):
    """One fact of an operator.

    Attributes:
        versions: the first and the last version, as indices of the file's versions.
        opsets: the first and the last opset; None for any later.
        dtypes: the dtypes, by the name of a type parameter or by the indices of inputs.
        conditions: the conditions that have to hold.
        value: what it says of the operator.
    """

    versions: tuple[int, int]
    opsets: tuple[int, int | None]
    dtypes: tuple[tuple[str, frozenset[str]], ...]
    conditions: tuple[Condition, ...]
    value: Value


@dataclass(frozen=True, slots=True)
class OperatorSource:
    """What was read for some versions.

    Attributes:
        source: the source; None where the user says so.
        versions: the first and the last version, as indices of the file's versions.
        complete: the domains of which it names every operator that is taken, or `EVERY_DOMAIN`.
        fallback: the runtime whose kernels run what it does not name, with its version if that is
            not the same; may be empty.
    """

    source: Source | None
    versions: tuple[int, int]
    complete: frozenset[str]
    fallback: str = ""


@dataclass(frozen=True, slots=True)
class OperatorFile:
    """The operators of all versions of a runtime.

    Attributes:
        versions: the versions that were looked at, the oldest first.
        sources: the sources.
        casts: the dtypes that a version computes as others: by versions, the other of each.
        facts: the facts of each operator, by its domain and name.
    """

    versions: Sequence[Version]
    sources: Sequence[OperatorSource]
    casts: Sequence[tuple[tuple[int, int], dict[str, str]]]
    facts: dict[tuple[str, str], tuple[OperatorFact, ...]]


class OperatorTable:
    """The operators that one version of a runtime takes.

    Attributes:
        runtime: the name of the runtime.
        wanted: the version that was asked for.
        version: the version that was looked at: that one, or the nearest older one.
        newer: the next version that was looked at; None where there is none.
    """

    def __init__(
        self, runtime: str, file: OperatorFile, index: int, wanted: Version | None = None
    ) -> None:
        self.runtime = runtime
        self.wanted = wanted or file.versions[index]
        self.version = file.versions[index]
        later = file.versions[index + 1 :]
        self.newer = later[0] if later else None
        self._file = file
        self._index = index
        self._found: dict[tuple[str, str, int | None], tuple[OperatorFact, ...]] = {}
        self._read = next(read for read in file.sources if _spans(read.versions, index))
        self._casts = {
            given: held
            for versions, casts in file.casts
            if _spans(versions, index)
            for given, held in casts.items()
        }

    @staticmethod
    @cache
    def load(runtime: str, version: Version) -> OperatorTable | None:
        """Return the table of a version; None where nothing is known of it.

        Raises:
            UsageError: the file is wrong.
        """
        file = read_operators(runtime)
        if file is None:
            return None
        older = [
            index
            for index, looked_at in enumerate(file.versions)
            if looked_at <= version or version.is_of(looked_at)
        ]
        return OperatorTable(runtime, file, older[-1], version) if older else None

    def stands_in_for(self, version: Version) -> Version | None:
        """Return the older version whose operators these are; None if they are the version's own.

        Args:
            version: the version that is meant.
        """
        own = version.is_of(self.version) or self.version.is_of(version)
        return None if own or self.version == Version.of("0") else self.version

    @property
    def source(self) -> Source | None:
        """Return the source of what is known of this version; None where the user says so."""
        return self._read.source

    @property
    def complete(self) -> frozenset[str]:
        """Return the domains of which what has no fact is not taken."""
        return frozenset() if self._read.fallback else self._read.complete

    def operators(self) -> Iterator[tuple[str, str]]:
        """Yield the domain and the name of each operator of which there is a fact."""
        for (domain, op_type), facts in self._file.facts.items():
            if any(_spans(fact.versions, self._index) for fact in facts):
                yield ("" if domain == DEFAULT_DOMAIN else domain), op_type

    def answer(
        self, domain: str, op_type: str, opset: int | None, node: NodeFacts | None = None
    ) -> Answer:
        """Return what is known of an operator, or of one node of it.

        Args:
            domain: the operator's domain; empty or ``ai.onnx`` for the default one.
            op_type: the operator.
            opset: the model's opset of that domain; None where it has none, or for any.
            node: the node; without one no dtype is asked for, and every condition is open.
        """
        domain = domain or DEFAULT_DOMAIN
        facts = self.facts_at(domain, op_type, opset)
        answers = [self._answer_of_fact(fact, op_type, opset, node) for fact in facts]
        if not answers and not self._is_complete(domain):
            return Answer("not known")
        best = min(
            answers or [Answer("not taken", (), self.source)],
            key=lambda answer: _ORDER.index(answer.value),
        )
        if best.value != "not taken" or not self._read.fallback:
            return best
        return self._answer_of_fallback(domain, op_type, opset, node)

    def facts_at(self, domain: str, op_type: str, opset: int | None) -> tuple[OperatorFact, ...]:
        """Return the facts of an operator that hold at an opset; None for any."""
        key = domain or DEFAULT_DOMAIN, op_type, opset
        if key not in self._found:
            self._found[key] = tuple(
                fact
                for fact in self._file.facts.get(key[:2], ())
                if _spans(fact.versions, self._index)
                and (opset is None or is_within(opset, fact.opsets))
            )
        return self._found[key]

    def key(self, domain: str, op_type: str, opset: int, dtypes: Set[str]) -> Hashable:
        """Return a key of what decides the answers on an operator: equal keys, equal answers.

        Args:
            domain: the operator's domain; empty or ``ai.onnx`` for the default one.
            op_type: the operator.
            opset: the model's opset of that domain.
            dtypes: the dtypes that the operator may meet.
        """
        held = dtypes | {self._casts.get(item, item) for item in dtypes}
        facts = tuple(
            (
                fact.value,
                tuple(map(id, fact.conditions)),
                tuple((place, allowed & held) for place, allowed in fact.dtypes),
            )
            for fact in self.facts_at(domain, op_type, opset)
        )
        casts = frozenset(item for item in self._casts.items() if item[0] in dtypes)
        other = self._fallback()
        fallback = other.key(domain, op_type, opset, dtypes) if other is not None else None
        return facts, self._is_complete(domain or DEFAULT_DOMAIN), casts, fallback

    def takes_any(self, op_type: str, opset: int, may_be: Callable[[str], bool]) -> bool:
        """Return whether every node of an operator of the default domain is taken, in any form.

        Args:
            op_type: the operator.
            opset: the model's opset.
            may_be: whether a value of a node may have a type, as schemas spell it.
        """
        return any(
            fact.value == "taken"
            and not fact.conditions
            and all(
                self._allows(kind.removeprefix("tensor(").removesuffix(")"), allowed)
                for place, allowed in fact.dtypes
                for kind in _kinds_at(place, op_type, opset)
                if may_be(kind)
            )
            for fact in self.facts_at("", op_type, opset)
        )

    def _allows(self, dtype: str, allowed: Set[str]) -> bool:
        """Return whether a dtype, or the one that it is computed as, is one of those allowed."""
        return dtype in allowed or self._casts.get(dtype) in allowed

    def _is_complete(self, domain: str) -> bool:
        """Return whether the source names every operator of a domain that is taken."""
        return not self._read.complete.isdisjoint((domain, EVERY_DOMAIN))

    def _fallback(self) -> OperatorTable | None:
        """Return the table of the runtime that runs what this one does not take; None for none."""
        name, _, version = self._read.fallback.partition("==")
        return OperatorTable.load(name, Version.of(version) if version else self.wanted)

    def _answer_of_fallback(
        self, domain: str, op_type: str, opset: int | None, node: NodeFacts | None
    ) -> Answer:
        """Return what becomes of an operator that is not taken, where another runtime helps out."""
        other = self._fallback()
        found = other.answer(domain, op_type, opset, node) if other else Answer("not known")
        if found.value in ("not taken", "not known"):
            return found
        return Answer("runs on the CPU", found.conditions, self.source)

    def _answer_of_fact(
        self, fact: OperatorFact, op_type: str, opset: int | None, node: NodeFacts | None
    ) -> Answer:
        if fact.value != "taken":
            return Answer(fact.value, tuple(item.text for item in fact.conditions), self.source)
        if node is None:
            open_conditions = tuple(item.text for item in fact.conditions)
            return Answer("taken if" if open_conditions else "taken", open_conditions, self.source)
        missed = [*dict.fromkeys(self._missed_dtypes(fact, op_type, opset, node))]
        held = [(item, item.holds(node)) for item in fact.conditions]
        missed += [item.text for item, holds in held if holds is False]
        if missed:
            return Answer("not taken", tuple(missed), self.source)
        unknown = tuple(item.text for item, holds in held if holds is None)
        return Answer("taken if" if unknown else "taken", unknown, self.source)

    def _missed_dtypes(
        self, fact: OperatorFact, op_type: str, opset: int | None, node: NodeFacts
    ) -> Iterator[str]:
        """Yield for each dtype of the node that the fact does not have what it would have to be."""
        for place, allowed in fact.dtypes:
            for name in _values_at(place, op_type, opset, node):
                elem_type = node.elem_type(name)
                if not elem_type:
                    continue
                dtype = TensorProto.DataType.Name(elem_type).lower()
                if not self._allows(dtype, allowed):
                    side = "inputs" if name in node.node.input else "outputs"
                    yield f"its {side} are {_alternatives(allowed)}, not {dtype}"
                    break


def _values_at(place: str, op_type: str, opset: int | None, node: NodeFacts) -> Iterable[str]:
    """Return the node's inputs and outputs of a type parameter, or its inputs by their indices."""
    inputs, outputs = node.node.input, node.node.output
    if place[0].isdigit():
        return [inputs[int(index)] for index in place.split("+") if int(index) < len(inputs)]
    if opset is None or not schemas.exists(op_type, opset):
        return []
    found = schemas.schema(op_type, opset)
    pairs = [
        (formals[min(index, len(formals) - 1)].type_str, name)
        for formals, names in ((found.inputs, inputs), (found.outputs, outputs))
        for index, name in enumerate(names)
        if formals
    ]
    return [name for kind, name in pairs if kind == place and name]


def _kinds_at(place: str, op_type: str, opset: int) -> Collection[str]:
    """Return the types, as schemas spell them, that an operator allows at a place of a fact."""
    if not schemas.exists(op_type, opset):
        return ()
    found = schemas.schema(op_type, opset)
    if not place[0].isdigit():
        constraints = (item for item in found.type_constraints if item.type_param_str == place)
        return {kind for item in constraints for kind in item.allowed_type_strs}
    inputs, indices = found.inputs, map(int, place.split("+"))
    # The last input may stand for several.
    formals = (item for at in indices for item in inputs[at : at + 1] or inputs[-1:])
    return {kind for item in formals for kind in item.types}


def _alternatives(dtypes: Iterable[str]) -> str:
    names = sorted(dtypes)
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else "".join(names)


def _spans(span: tuple[int, int], index: int) -> bool:
    return span[0] <= index <= span[1]


def worst(answers: Iterable[Answer]) -> Answer:
    """Return the answer for several versions together: that of the one that takes least."""
    return min(answers, key=lambda answer: _WORST.index(answer.value))


@cache
def read_operators(runtime: str) -> OperatorFile | None:
    """Return the operators of a runtime, one of `reading.runtime_names`; None if it has no file.

    Raises:
        UsageError: the file is wrong.
    """
    path = _DATA / f"{runtime}.toml"
    return parse_operators(runtime, path.read_text(encoding="utf-8")) if path.is_file() else None


def parse_operators(runtime: str, text: str) -> OperatorFile:
    """Read the file of a runtime's operators.

    Raises:
        UsageError: it is wrong; the message names the file and what is wrong.
    """
    name = f"operators/{runtime}"
    try:
        return _operators_of_table(parse_toml(name, text))
    except KeyError as error:
        raise UsageError(f"{name}.toml lacks {error}") from error
    except (AttributeError, TypeError) as error:
        raise UsageError(f"{name}.toml has a value of a wrong type: {error}") from error
    except ValueError as error:
        raise UsageError(f"{name}.toml: {error}") from error


def _operators_of_table(data: dict[str, Any]) -> OperatorFile:
    if "same_as" in data:
        _check_keys(data, {"same_as"})
        other = read_operators(data["same_as"])
        if other is None:
            raise ValueError(f"{data['same_as']} has no such file")
        return other
    _check_keys(data, {"versions", "source", "dtypes", "casts", "conditions", "operators"})
    texts = data["versions"]
    versions = [Version.of(text) for text in texts]
    if versions != sorted(set(versions)):
        raise ValueError("its versions are not in ascending order, or two are the same")
    sets = {name: frozenset(held.split()) for name, held in data.get("dtypes", {}).items()}
    conditions = {
        name: condition_of_table(name, given) for name, given in data.get("conditions", {}).items()
    }
    sources = [_source_of_table(given, texts) for given in data["source"]]
    for index, text in enumerate(texts):
        if sum(_spans(read.versions, index) for read in sources) != 1:
            raise ValueError(f"not one source names version {text}")
    casts = [
        (_version_span(span, texts), dict(pair.split("=") for pair in held.split()))
        for span, held in data.get("casts", {}).items()
    ]
    facts = {
        (domain, op_type): tuple(
            _fact_of_text(part.strip(), texts, sets, conditions) for part in text.split(";")
        )
        for domain, rows in data["operators"].items()
        for op_type, text in rows.items()
    }
    return OperatorFile(versions, sources, casts, facts)


def _check_keys(given: dict[str, Any], known: set[str]) -> None:
    if odd := set(given) - known:
        raise ValueError(f"nothing is called {', '.join(sorted(odd))} here")


def _source_of_table(given: dict[str, Any], versions: Sequence[str]) -> OperatorSource:
    _check_keys(given, {"versions", "kind", "where", "date", "complete", "fallback"})
    if given["kind"] not in ("document", "measured"):
        raise ValueError(f"a source is no {given['kind']!r}")
    return OperatorSource(
        Source(given["kind"], given["where"], given["date"]),
        _version_span(given.get("versions", ""), versions),
        frozenset(given.get("complete", ())),
        given.get("fallback", ""),
    )


def _version_span(text: str, versions: Sequence[str]) -> tuple[int, int]:
    """Return the indices of the first and the last version of ``8.2-8.4``, ``8.5-`` or ``8.4``."""
    first, dash, last = text.partition("-")
    start = versions.index(first) if first else 0
    end = versions.index(last) if last else len(versions) - 1 if dash or not first else start
    if end < start:
        raise ValueError(f"{text!r} ends before it begins")
    return start, end


def _fact_of_text(
    text: str,
    versions: Sequence[str],
    sets: dict[str, frozenset[str]],
    conditions: dict[str, Condition],
) -> OperatorFact:
    span, opsets, value = _version_span("", versions), opset_range(""), "taken"
    dtypes: list[tuple[str, frozenset[str]]] = []
    needed: tuple[Condition, ...] = ()
    for word in text.split():
        name, equals, held = word.partition("=")
        if name == "if":
            needed = tuple(conditions[item] for item in held.split(","))
        elif equals:
            dtypes.append((name, _dtypes_of_text(held, sets)))
        elif word in _VALUES:
            value = _VALUES[word]
        elif word.startswith("@"):
            opsets = opset_range(word[1:])
        else:
            span = _version_span(word, versions)
    return OperatorFact(span, opsets, tuple(dtypes), needed, value)  # type: ignore[arg-type]


def _dtypes_of_text(text: str, sets: dict[str, frozenset[str]]) -> frozenset[str]:
    found: set[str] = set()
    for item in text.split(","):
        found |= sets.get(item, {item})
    if odd := {item for item in found if item.upper() not in _DTYPES}:
        raise ValueError(f"there is no dtype {', '.join(sorted(odd))}")
    return frozenset(found)
