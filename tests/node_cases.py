"""onnx's own node test cases, converted: the result must give what the case expects.

`python -m tests.node_cases > tests/node_cases.md` writes the figures by operator.
"""

from __future__ import annotations

import functools
import random
import re
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

import onnxreduce_cli
from onnxreduce_cli import executor, schemas
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import scopes
from tests.share import share
from tests.steps.checklist import newest_declared, undeclared
from tests.support import CannotRunError, run_ort

USUAL = (7, 9, 11, 13, 17)
NEWEST = newest_declared()
OUTCOMES = ("converted", "blocked", "not run", "wrong", "invalid")


@dataclass(frozen=True)
class Case:
    """One of onnx's cases.

    Attributes:
        operator: the operator that it is about; its function body is told apart.
        feeds: the inputs by name, for each data set.
        wanted: the expected outputs, for each data set.
    """

    name: str
    operator: str
    model: ModelProto
    feeds: tuple[dict[str, Any], ...]
    wanted: tuple[list[Any], ...]
    rtol: float


@dataclass
class Figures:
    """What became of the conversions."""

    by_operator: dict[str, Counter[str]] = field(default_factory=dict)
    reasons: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    cases: int = 0
    no_judge: list[str] = field(default_factory=list)
    only_numpy: list[str] = field(default_factory=list)
    not_run: list[str] = field(default_factory=list)

    @property
    def total(self) -> Counter[str]:
        return sum(self.by_operator.values(), Counter())


@functools.cache
def collected() -> tuple[Any, ...]:
    """What onnx has, as it has it, but for cases of definitions that are not declared."""
    left_out = set(undeclared())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = collect_testcases(None)
    return tuple(case for case in found if left_out.isdisjoint(definitions(case.model)))


@functools.cache
def cases() -> tuple[Case, ...]:
    """Every case that is made of operators of the default domain."""
    single = {
        case.name: case.model.graph.node[0].op_type
        for case in collected()
        if len(case.model.graph.node) == 1
    }
    found = []
    for case in collected():
        if any(node.domain for scope in scopes(case.model) for node in scope.nodes):
            continue
        if case.name in single:
            operator = single[case.name]
        else:
            whole = re.sub(r"_expanded.*", "", case.name)
            operator = f"{single.get(whole, 'several operators')} (expanded)"
        names = [value.name for value in case.model.graph.input]
        feeds, wanted = [], []
        for inputs, outputs in case.data_sets:
            feeds.append(dict(zip(names, map(plain, inputs), strict=False)))
            wanted.append([plain(output) for output in outputs])
        rtol = max(case.rtol or 0, 1e-3)
        found.append(Case(case.name, operator, case.model, tuple(feeds), tuple(wanted), rtol))
    return tuple(found)


def plain(given: Any) -> Any:
    if isinstance(given, onnx.TensorProto):
        return numpy_helper.to_array(given)
    return np.asarray(given) if isinstance(given, np.generic) else given


def all_targets(case: Case) -> list[int]:
    """Every opset but the case's own."""
    return [opset for opset in range(1, NEWEST + 1) if opset != opset_of(case.model)]


def some_targets(case: Case) -> list[int]:
    """Some of them: around each boundary from 7 on, the usual ones, and two drawn."""
    wanted = {NEWEST, *USUAL}
    for op_type in {op_type for scope in scopes(case.model) for op_type in scope.op_types}:
        since = schemas.versions(op_type)
        wanted |= {since[0], *(boundary - 1 for boundary in since)}
    draw = random.Random(case.name)
    wanted = {opset for opset in wanted if opset >= min(USUAL)} | {draw.choice(range(1, 7))}
    rest = [opset for opset in all_targets(case) if opset not in wanted]
    if rest:
        wanted.add(draw.choice(rest))
    return sorted(wanted - {opset_of(case.model)})


def shared_targets(chosen: Sequence[Case]) -> dict[str, list[int]]:
    """By case what a landing tries: each target once for each operator, and one of each case."""
    pairs = [(case, target) for case in chosen for target in some_targets(case)]
    strata: list[Callable[[tuple[Case, int]], Hashable]] = [
        lambda pair: (pair[0].operator, pair[1]),
        lambda pair: pair[0].name,
    ]
    found: dict[str, set[int]] = {}
    for stratum in strata:
        for case, target in share(pairs, stratum, name=lambda pair: f"{pair[0].name} {pair[1]}"):
            found.setdefault(case.name, set()).add(target)
    return {name: sorted(targets) for name, targets in found.items()}


Targets = Callable[[Case], list[int]]


def run_cases(chosen: Iterable[Case], targets: Targets) -> Figures:
    """Convert each case to its targets, and from the lowest reached to the newest."""
    figures = Figures()
    for case in chosen:
        in_ort = is_judge(case)
        if in_ort is None:
            figures.no_judge.append(case.name)
            continue
        figures.cases += 1
        if not in_ort:
            figures.only_numpy.append(case.name)
        counts = figures.by_operator.setdefault(case.operator, Counter())
        for way, outcome in outcomes(case, in_ort, targets(case)):
            kind, _, detail = outcome.partition(": ")
            counts[kind] += 1
            if kind in ("wrong", "invalid"):
                figures.problems.append(f"{case.name} {way} {outcome}")
            elif kind == "blocked":
                # Names of values in the expanded bodies say nothing.
                figures.reasons[re.sub(r"'\w+_test_\w+'", "a value within", detail)] += 1
            elif kind == "not run":
                figures.not_run.append(f"{case.name} {way}")
    return figures


def is_judge(case: Case) -> bool | None:
    """Whether ONNX Runtime can judge a case; None where neither it nor NumPy can.

    An executor that gets the unconverted case wrong, or draws random numbers, is no judge.
    """
    in_ort = judge(case, case.model, in_ort=True, or_numpy=False) in ("converted", "not run")
    if any(ml_dtypes_in(values) for values in (*case.feeds, *case.wanted)):
        in_ort = False
    if judge(case, case.model, in_ort=in_ort) == "converted":
        return in_ort
    return None


def ml_dtypes_in(values: Any) -> bool:
    """Whether some tensor is of a dtype that ONNX Runtime's Python interface lacks."""
    listed = [*values.values()] if isinstance(values, dict) else values
    dtypes = (getattr(value, "dtype", np.dtype(bool)) for value in listed)
    return any(value is None for value in listed) or any(dtype.kind == "V" for dtype in dtypes)


def outcomes(case: Case, in_ort: bool, targets: Iterable[int]) -> Iterator[tuple[str, str]]:
    own = opset_of(case.model)
    lowest = None
    known: dict[bytes, str] = {}
    for target in targets:
        result, outcome = convert(case.model, target)
        if result is not None:
            key = meaning(result)
            if key not in known:
                known[key] = checked(case, case.model, result, in_ort)
            outcome = known[key]
            lowest = lowest or result
        yield f"{own}->{target}", outcome
    if lowest is not None and opset_of(lowest) < own:
        result, outcome = convert(lowest, NEWEST)
        if result is not None:
            outcome = checked(case, lowest, result, in_ort)
        yield f"{own}->{opset_of(lowest)}->{NEWEST}", outcome


def convert(source: ModelProto, target: int) -> tuple[ModelProto | None, str]:
    """The converted model, or why there is none."""
    try:
        return onnxreduce_cli.convert(source, target, emulate=True), ""
    except onnxreduce_cli.CheckError as error:
        return None, f"wrong: {error}"
    except onnxreduce_cli.ConversionError as error:
        return None, f"blocked: {error.blockers[0].op_type}: {error.blockers[0].reason}"
    except Exception as error:
        return None, f"wrong: {type(error).__name__} {error}"


def meaning(model: ModelProto) -> bytes:
    """What tells models apart that compute differently: all but the opset and IR version.

    Which definitions of its operators they read is part of it: with equal nodes and definitions
    two opsets are the same to whatever checks or runs a model.
    """
    since = sorted(definitions(model))
    copy = ModelProto()
    copy.CopyFrom(model)
    copy.ir_version = 0
    for entry in copy.opset_import:
        if is_default(entry.domain):
            entry.version = 0
    return repr(since).encode() + copy.SerializeToString(deterministic=True)


def definitions(model: ModelProto) -> set[tuple[str, int]]:
    """The operators and since-versions by which a model's nodes are read."""
    opset = max(
        (entry.version for entry in model.opset_import if is_default(entry.domain)), default=1
    )
    return {
        (op_type, max((v for v in schemas.versions(op_type) if v <= opset), default=0))
        for scope in scopes(model)
        for op_type, node in zip(scope.op_types, scope.nodes, strict=True)
        if is_default(node.domain)
    }


def opset_of(model: ModelProto) -> int:
    (version,) = {entry.version for entry in model.opset_import if is_default(entry.domain)}
    return version


def checked(case: Case, source: ModelProto, result: ModelProto, in_ort: bool) -> str:
    """What became of a conversion."""
    if is_valid(source) and (problem := why_invalid(result)):
        return f"invalid: {problem}"
    return judge(case, result, in_ort=in_ort)


@functools.lru_cache(maxsize=1)
def _validity(content: bytes) -> bool:
    return not why_invalid(ModelProto.FromString(content))


def is_valid(model: ModelProto) -> bool:
    """Whether the checker takes a model; it refuses one of onnx's own cases."""
    return _validity(model.SerializeToString())


def why_invalid(model: ModelProto) -> str:
    """What the checker has against a model; empty if nothing."""
    try:
        onnx.checker.check_model(model, full_check=True)
    except Exception as error:
        return str(error) or type(error).__name__
    return ""


def judge(case: Case, model: ModelProto, *, in_ort: bool, or_numpy: bool = True) -> str:
    """Run a model on the case's inputs and compare with what it expects."""
    for feeds, wanted in zip(case.feeds, case.wanted, strict=True):
        try:
            outputs, where = run(model, feeds, in_ort, or_numpy)
        except executor.UnsupportedError:
            return "not run"
        except CannotRunError:
            return "not run"
        except Exception as error:
            return f"invalid: {type(error).__name__} {error}"
        if len(outputs) != len(wanted):
            return f"wrong: {len(outputs)} outputs in {where}"
        for index, (want, got) in enumerate(zip(wanted, outputs, strict=True)):
            if not same(want, got, case.rtol):
                return f"wrong: output {index} in {where}: {short(got)} for {short(want)}"
    return "converted"


def run(
    model: ModelProto, feeds: dict[str, Any], in_ort: bool, or_numpy: bool
) -> tuple[list[Any], str]:
    if in_ort:
        try:
            return run_ort(model, feeds), "ONNX Runtime"
        except CannotRunError:
            if not or_numpy:
                raise
    known = {value.name for value in model.graph.input}
    given = {name: value for name, value in feeds.items() if name in known}
    return list(executor.run(model, given).values()), "NumPy"


def short(value: Any) -> str:
    dtype, shape = getattr(value, "dtype", type(value)), getattr(value, "shape", "")
    return f"{dtype}{shape} {' '.join(str(value).split())[:150]}"


def same(want: Any, got: Any, rtol: float) -> bool:
    """Whether an output is the expected one, in dtype, shape and value."""
    if want is None or got is None:
        return want is got
    if isinstance(want, (list, tuple)):
        return (
            isinstance(got, list)
            and len(want) == len(got)
            and all(same(w, g, rtol) for w, g in zip(want, got, strict=True))
        )
    want = np.asarray(want)
    if want.dtype.kind in "US":
        want = want.astype(object)
    if not isinstance(got, np.ndarray) or want.dtype != got.dtype or want.shape != got.shape:
        return False
    if want.dtype == object:
        texts = [t.decode() if isinstance(t, bytes) else t for t in want.reshape(-1)]
        return texts == [t.decode() if isinstance(t, bytes) else t for t in got.reshape(-1)]
    if want.dtype.kind in "biu":
        return np.array_equal(want, got)
    # Bodies in 16 bits round after every node; the cases round once or otherwise.
    wide = want.astype(np.float64)
    largest = float(np.max(np.abs(wide[np.isfinite(wide)]), initial=0))
    coarse = want.dtype.itemsize == 2
    atol = (
        2 * float(ml_dtypes.finfo(want.dtype).eps) * largest if coarse else 1e-6 * max(1, largest)
    )
    return np.allclose(got.astype(np.float64), wide, rtol=rtol, atol=atol, equal_nan=True)


def markdown(figures: Figures) -> str:
    """The figures as a document."""
    total = figures.total
    lines = [
        "# onnx's own node cases, converted",
        "",
        f"The node test cases of onnx {onnx.__version__}, {figures.cases} of them, run in ONNX "
        f"Runtime {onnxruntime.__version__}, each converted "
        f"to every opset from 1 to {NEWEST}, and back up to the newest from the lowest reached. "
        "*Converted*: valid by `onnx.checker`, and what ONNX Runtime (or the NumPy executor where "
        "that has no kernel) computes is what the case expects. *Not run*: valid, but neither has "
        "a kernel. Written by `python -m tests.node_cases`.",
        "",
        f"Of {len(figures.only_numpy)} cases NumPy alone is the judge: ONNX Runtime does not take "
        "their dtypes from Python, or refuses the case or gets it wrong before any conversion.",
        "",
        f"Left out are {len(figures.no_judge)} cases that neither executor can judge: those that "
        "draw random numbers, and those that neither computes as expected before conversion.",
        "",
        "| operator | " + " | ".join(OUTCOMES) + " |",
        "|---|" + "---:|" * len(OUTCOMES),
    ]
    rows = [("**all**", total), *sorted(figures.by_operator.items())]
    lines += [
        f"| {operator} | " + " | ".join(str(counts[kind]) for kind in OUTCOMES) + " |"
        for operator, counts in rows
    ]
    if figures.not_run:
        lines += ["", "Not run: " + ", ".join(f"`{item}`" for item in figures.not_run) + "."]
    lines += ["", "## Why conversions were blocked", "", "| times | operator and reason |"]
    lines += ["|---:|---|"]
    reasons = sorted(figures.reasons.items(), key=lambda item: (-item[1], item[0]))
    lines += [f"| {count} | {reason.replace('|', chr(92) + '|')} |" for reason, count in reasons]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(run_cases(cases(), all_targets)), end="")
