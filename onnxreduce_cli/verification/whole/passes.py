"""The check of a whole model that passes have changed.

The result must pass onnx's full check and load in ONNX Runtime, both in the worker, if the source
does. What a pass did that no check of sites sees is compared before and after.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from onnxreduce_cli.engine.catalogue import Pass
from onnxreduce_cli.engine.options import INTEGERS, Options, dtype_pairs
from onnxreduce_cli.errors import CheckError, ConversionError, UncheckedError
from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.text import count, listed
from onnxreduce_cli.verification.errors import CannotRunError, InputError, LimitError, MissingError
from onnxreduce_cli.verification.running.isolated import (
    close_unused_models,
    full_check_error,
    open_isolated,
)
from onnxreduce_cli.verification.running.runtime import EXECUTORS
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole.equivalence import verify
from onnxreduce_cli.verification.whole.naming import short_message
from onnxreduce_cli.verification.whole.results import VerifyReport

#: A model of more bytes, external data included, or of more nodes is neither loaded nor run.
_MOST_BYTES, _MOST_NODES = 100_000_000, 5_000

#: How many sets of inputs are drawn.
_TRIALS = 2

#: ONNX Runtime's messages on models that may be valid: it lacks a kernel, or the opset is new.
_LACKS = re.compile(
    "Could not find an implementation|NOT_IMPLEMENTED|is under development|"
    "Unsupported model IR version|No Op registered|No opset import|is not a registered function/op|"
    "InsertedPrecisionFreeCast"  # A Cast of its own, which it cannot write below opset 6.
)

#: onnx's words where the shape that a model states is not the one that is inferred. It infers more
#: of a result than of its source, as other nodes take the place of what it knows nothing about.
_STATED = "Inferred shape and existing shape differ"


@dataclass(frozen=True, slots=True)
class WholeCheck:
    """What checking a whole model found.

    Attributes:
        summary: what was done, in one line.
        warnings: what could not be done, and what else a user should know, a line each.
        uncompared: why what only a comparison shows was not compared; empty if it was.
    """

    summary: str
    warnings: tuple[str, ...] = ()
    uncompared: str = ""


class PassedChanges(NamedTuple):
    """What passes have changed.

    Attributes:
        passes: the passes.
        dims: the sizes that they fixed dimensions at.
        dtypes: the dtypes that they changed.
        recast: the inputs and outputs whose dtypes alone they changed.
        ranges: the ranges that integers are taken to lie in, by the names of values.
    """

    passes: Sequence[Pass]
    dims: Mapping[str, int]
    dtypes: Mapping[str, str]
    recast: Collection[str] = ()
    ranges: Mapping[str, tuple[int, int]] = MappingProxyType({})

    @property
    def rounds(self) -> bool:
        """True if a dtype of floats changed, so that numbers are rounded to another."""
        return any(pair != INTEGERS for pair in dtype_pairs(self.dtypes))

    @staticmethod
    def of(passes: Sequence[Pass], options: Options) -> PassedChanges:
        """Return what passes have changed by the options of a conversion."""
        return PassedChanges(
            passes, options.dims, options.dtypes, options.io_dtypes, options.assume_ranges
        )

    @property
    def names(self) -> str:
        """The names of the passes, as text."""
        return " and ".join(item.name for item in self.passes)


def check_passes(
    source: Callable[[], ModelSource],
    result: ModelSource,
    changes: PassedChanges,
    *,
    compare: bool = True,
    strict: bool = False,
) -> WholeCheck:
    """Check a whole model that passes have changed.

    Args:
        source: opens the model as it was; called at most once, and not if all is well at once.
        result: the model as it is now.
        changes: what changed.
        compare: whether to compare the models where no check of sites sees what a pass did.
        strict: whether they must be compared then.

    Raises:
        CheckError: the result is invalid, or does not load, and the source is or does; or they do
            not compute the same.
        UncheckedError: they could not be compared, with `strict`.
    """
    checker = _Checker(source, result, changes)
    whole = compare and any(item.checked == "whole" for item in changes.passes)
    try:
        checker.check_form()
        if _is_large(result):
            checker.done.append("over 100 MB or 5,000 nodes, so neither loaded nor run")
            checker.uncompared = "the model is over 100 MB or 5,000 nodes" if whole else ""
        else:
            checker.check_loading()
            if whole:
                checker.compare()
    finally:
        close_unused_models()
    if checker.uncompared:
        text = f"what {changes.names} did could not be compared: {checker.uncompared}"
        if strict:
            raise UncheckedError(f"nothing was converted, as {text}")
        checker.warnings.append(f"not checked: {text}")
    done = ", ".join(checker.done) or "was not checked"
    return WholeCheck(
        f"{changes.names}: the result {done}", tuple(checker.warnings), checker.uncompared
    )


def _is_large(source: ModelSource) -> bool:
    size = source.mapped
    if source.path is not None:
        size += os.path.getsize(source.path)
    elif source.model is not None:
        size += source.model.ByteSize()
    nodes = sum(len(scope.nodes) for scope in scopes(source.skeleton))
    return size > _MOST_BYTES or nodes > _MOST_NODES


class _Checker:
    """The check of one model.

    Attributes:
        done: what was done.
        warnings: what else a user should know.
        uncompared: why the models could not be compared; empty if they could, or need not.
    """

    def __init__(
        self, source: Callable[[], ModelSource], result: ModelSource, changes: PassedChanges
    ) -> None:
        self.done: list[str] = []
        self.warnings: list[str] = []
        self.uncompared = ""
        self._open = source
        self._opened: ModelSource | None = None
        self._result, self._changes = result, changes

    @property
    def _source(self) -> ModelSource:
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def check_form(self) -> None:
        """Check that the result passes onnx's full check if the source does."""
        try:
            problem = full_check_error(self._result)
            own = full_check_error(self._source) if problem else ""
        except CannotRunError as error:
            self.warnings.append(f"not checked: onnx's full check of the result: {error}")
            return
        if problem and not own and _STATED in problem:
            raise ConversionError(
                f"{self._changes.names}: nothing was converted, as the model states a shape that "
                f"its nodes do not give: {problem}; mend the model's value_info or outputs; "
                "--no-check converts all the same"
            )
        if problem and not own:
            raise self._failure("the result does not pass onnx's full check", problem)
        if problem:
            self.warnings.append(
                f"onnx's full check refuses the result, as it refuses the model itself: {own}"
            )
        else:
            self.done.append("passes onnx's full check")

    def check_loading(self) -> None:
        """Check that ONNX Runtime loads the result if it loads the source."""
        problem = _loading_error(self._result)
        if problem is None:
            self.done.append("loads in ONNX Runtime")
            return
        reason = short_message(problem, self._result)
        if isinstance(problem, LimitError | MissingError) or _LACKS.search(str(problem)):
            self.warnings.append(f"not checked: ONNX Runtime does not load the result: {reason}")
            return
        own = _loading_error(self._source)
        if own is None:
            raise self._failure("ONNX Runtime loads the model but not the result", reason)
        self.warnings.append(
            "ONNX Runtime does not load the result, as it does not load the model itself: "
            f"{short_message(own, self._source)}"
        )

    def compare(self) -> None:
        """Check that both compute the same on inputs of small sizes."""
        for executors in (EXECUTORS[:1], EXECUTORS):
            try:
                report = verify(
                    self._source,
                    self._result,
                    dims=self._changes.dims,
                    trials=_TRIALS,
                    executors=executors,
                    changed=self._changes.dtypes,
                    recast=self._changes.recast,
                    ranges=self._changes.ranges,
                    idle=False,
                )
            except InputError as error:
                self.uncompared = str(error)
                return
            if report.equivalent:
                compared = sum(not trial.void for trial in report.trials)
                own = self._changes.recast or self._changes.ranges
                # The remarks say it themselves.
                exactly = ", and in double precision" if report.in_double and not own else ""
                self.done.append(f"agrees with the model on {count(compared, 'input')}{exactly}")
                if own:
                    self.done += report.remarks
                if self._changes.dtypes:
                    self.warnings += report.warnings
                return
            if report.in_double is False:
                break
        problems = list(_problems(report))
        if problems:
            raise self._failure("the result is not the same function", _first(problems))
        differences = list(_differences(report))
        if differences and self._changes.rounds and report.in_double is not False:
            self.warnings += report.warnings
            self.warnings.append(
                f"{self._changes.names}: {_first(differences)}, which is more than the new dtype "
                "explains by itself; see on real data: --verify -i NAME=FILE.npy"
            )
        elif differences:
            raise self._failure("the result does not compute the same", _first(differences))
        elif _agreed(report):
            self.uncompared = "ONNX Runtime and the NumPy executor do not agree on it"
        else:
            self.uncompared = next((run.reason for run in report.runs if run.reason), "no inputs")

    def _failure(self, what: str, reason: str) -> CheckError:
        """Return the error for a check that failed."""
        advice = dict.fromkeys(item.advice for item in self._changes.passes)
        if self._changes.ranges:
            ranges = self._changes.ranges.items()
            stated = listed([f"{name}={low}:{high}" for name, (low, high) in ranges])
            advice = {f"state ranges that hold, as {stated} may not": None, **advice}
        lines = [
            f"{self._changes.names}: {what}, so nothing was converted: {reason}",
            f"This is a bug in onnxreduce; please report it. To go on, {' or '.join(advice)}; "
            "--no-check converts all the same",
        ]
        return CheckError(lines, "")


def _first(found: Sequence[str]) -> str:
    """Return the first of several findings, whole, and how many others there are."""
    others = len(found) - 1
    return f"{found[0]} (and {count(others, 'other difference')})" if others else found[0]


def _loading_error(source: ModelSource) -> CannotRunError | None:
    """Return why ONNX Runtime does not load a model; None if it does."""
    try:
        open_isolated(source, EXECUTORS[0])
    except CannotRunError as error:
        return error
    return None


def _problems(report: VerifyReport) -> Iterator[str]:
    """Yield why two models are not the same function, whatever numbers they compute."""
    yield from report.interface
    same = _agreed(report)
    for found in report.comparisons:
        differ = found.errors.problem and found.first[0] != found.second[0]
        if differ and found.output not in same:
            yield f"output {found.output!r}: {found.errors.problem}"
    ran = {(run.model, run.executor): run for run in report.runs}
    for executor in EXECUTORS:
        sides = [ran.get((model, executor)) for model in (report.a, report.b or "")]
        before, after = sides
        if before is None or after is None or not before.trials or after.trials:
            continue
        if not _LACKS.search(after.reason):
            yield f"{executor} runs the model but not the result: {after.reason}"


def _agreed(report: VerifyReport) -> set[str]:
    """Return the outputs in which the models agree in some executor: another is at fault then."""
    return {
        found.output
        for found in report.comparisons
        if found.agree and found.first[0] != found.second[0]
    }


def _differences(report: VerifyReport) -> Iterator[str]:
    """Yield in which outputs two models differ."""
    same = _agreed(report)
    for found in report.comparisons:
        differ = not found.agree and found.first[0] != found.second[0]
        if differ and found.output not in same:
            yield f"output {found.output!r} differs in {found.second[1]}: {found.errors}"
