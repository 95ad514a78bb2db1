"""Measures runtimes: `python -m lab opencv==4.6.0 onnxruntime==1.8.1`.

Each of the models of `measured.json`, and some of several nodes that are drawn at random, is run as
exported and as converted for that runtime, one process for each; with `--whole` instead the exports
of `tests/data/exports` and the models of `shipped.py`, also at some opsets. A folder for each
runtime is made in `.lab/`, or where the environment variable ONNXREDUCE_LAB says.

`python -m lab NAME==VERSION --record` writes the rows of a version into `docs/measured.md`.

The exit code is 1 if a runtime computes wrong what was converted for it, no longer takes what it
took as exported, or makes of a small model something else than `onnxreduce_cli/targets/data` says;
also if a runtime could not be installed, but for want of its Python where another one was run.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto

from lab.cases import Case, cases, whole_cases
from lab.installing import Installed, NoProgramError, NotThereError, install
from lab.matrix import (
    BLOCKED,
    BY_HAND,
    MATRIX,
    NOT_RUN,
    WHOLE,
    Result,
    counts,
    merge,
    read,
    write_document,
)
from lab.predict import predicted
from lab.running import Told, is_coarse, told
from onnxreduce_cli import ConversionError, convert
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.targets.requirement import Target, find_target

#: How many characters are kept of why it is not right, in the results.
_SAID = 200


@dataclass(frozen=True)
class Run:
    """What a runtime made of a model as exported and as converted for it.

    Attributes:
        exported: what became of it as exported; None if that was not run.
        converted: what became of it as converted; None if it cannot be converted.
        surprises: what the table of targets says otherwise, for people.
        by_hand: what became of it at the opset that suits the runtime best; None if that was not
            run.
        blocked: why it cannot be converted.
    """

    exported: Told | None
    converted: Told | None
    surprises: tuple[str, ...]
    by_hand: str | None = None
    blocked: str = ""

    @property
    def result(self) -> Result:
        """The two outcomes."""
        return Result(
            NOT_RUN if self.exported is None else self.exported.verdict,
            BLOCKED if self.converted is None else self.converted.verdict,
            self.by_hand or NOT_RUN,
            self.blocked[:_SAID]
            if self.converted is None
            else " ".join(self.converted.why.split())[-_SAID:],
        )

    @property
    def is_bad(self) -> bool:
        """Whether it is wrong as converted, broken, or not what the table says."""
        return self.result.is_wrong or self.result.is_broken or bool(self.surprises)


def measured(
    installed: Installed, given: Mapping[str, Case], *, exported: bool, whole: bool = False
) -> Iterator[tuple[str, Run]]:
    """What a runtime makes of each model, one after another.

    Args:
        installed: the runtime.
        given: the models by their names.
        exported: whether they are run as exported, too.
        whole: whether they are whole models, which are run at the opsets of `BY_HAND`, too; what
            the table of targets says is of single nodes, and not asked of them.
    """
    name = f"{installed.runtime}=={installed.version}"
    target = find_target(name)

    def run(case: Case) -> Run:
        before = _told(installed, case, case.model) if exported else None
        best = _by_hand(installed, case, before) if whole else None
        try:
            made = convert(case.model, runtime=name, check=False)
        except ConversionError as error:
            surprises = () if whole else _surprises(target, [(case.model, before)])
            return Run(before, None, surprises, best, str(error))
        same = before is not None and made == case.model
        after = before if same else _told(installed, case, made)
        runs = [(case.model, before), *([] if same else [(made, after)])]
        return Run(before, after, () if whole else _surprises(target, runs), best)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        yield from zip(given, pool.map(run, given.values()), strict=True)


def _by_hand(installed: Installed, case: Case, before: Told | None) -> str:
    """The best of a model as it is and at each of some opsets."""
    best = BLOCKED if before is None else before.verdict
    for opset in reversed(BY_HAND):
        if best == "right":
            break
        try:
            made = convert(case.model, opset, check=False)
        except ConversionError:
            continue
        verdict = _told(installed, case, made).verdict
        best = verdict if verdict == "right" or best == BLOCKED else best
    return best


def _told(installed: Installed, case: Case, model: ModelProto) -> Told:
    coarse = is_coarse(installed, case.model)
    return told(installed, model, case.inputs, case.right, coarse=coarse)


def _surprises(target: Target, runs: list[tuple[ModelProto, Told | None]]) -> tuple[str, ...]:
    found = []
    for model, ran in runs:
        said = predicted(target, admit(model))
        # What is computed wrong may come out right: all axes are reduced, and the others are 1.
        # It may be refused as well, by what reads it.
        # What dies refuses.
        verdict = None if ran is None else "refused" if ran.verdict == "crash" else ran.verdict
        if ran is not None and verdict != said and said != "wrong":
            why = f": {' '.join(ran.why.split())}" if ran.why else ""
            found.append(f"{ran.verdict} where the table says {said}{why}")
    return tuple(found)


def main() -> int:
    """Measure the runtimes named on the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m lab",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("runtimes", nargs="+", metavar="NAME==VERSION", type=_named)
    parser.add_argument("--only", action="append", default=[], help="models that begin with this")
    parser.add_argument("--graphs", type=int, default=20, help="how many models are drawn")
    parser.add_argument("--whole", action="store_true", help="run whole models instead")
    parser.add_argument("--converted", action="store_true", help="run none as exported")
    parser.add_argument("--output", type=Path, help="a JSON file that the results are added to")
    parser.add_argument(
        "--record", action="store_true", help="run both kinds, and write docs/measured.md"
    )
    parser.add_argument("--missing", action="store_true", help="leave out what the file has")
    options = parser.parse_args()
    if options.missing and not (options.record or options.output):
        parser.error("--missing is of a file: say --output FILE, or --record")
    bad, ran = False, 0
    kinds = [(options.whole, options.output)]
    if options.record:
        kinds = [(False, MATRIX), (True, WHOLE)]
    given = {
        whole: dict(whole_cases(options.only)) if whole else cases(options.only, options.graphs)
        for whole, _ in kinds
    }
    for text in options.runtimes:
        try:
            installed = install(*text.split("=="))
        except NotThereError as error:
            print(f"NOT RUN: {text}: {error}", file=sys.stderr)
            bad |= not isinstance(error, NoProgramError)
            continue
        ran += 1
        for whole, output in kinds:
            has = read(output).get(text, {}) if options.missing else {}
            left = {name: case for name, case in given[whole].items() if name not in has}
            runs = {}
            for name, run in measured(installed, left, exported=not options.converted, whole=whole):
                runs[name] = run
                if output is not None:
                    merge(output, text, {name: run.result})
            print("\n".join(_lines(text, runs)), flush=True)
            bad |= any(run.is_bad for run in runs.values())
        if options.record:
            write_document()
    return int(bad or not ran)


def _named(text: str) -> str:
    if text.count("==") != 1:
        raise argparse.ArgumentTypeError(f"{text!r} names no version; say NAME==VERSION")
    return text


def _lines(name: str, runs: Mapping[str, Run]) -> list[str]:
    """How many are right as exported and as converted, and which are not right or a surprise."""
    found = {source: run.result for source, run in runs.items()}
    lines = [f"{name}: {counts(found.values())}"]
    for source, run in runs.items():
        result = run.result
        if result.converted != "right" or run.surprises:
            marks = "".join(f"; {text}" for text in run.surprises)
            broken = "BROKEN, " if result.is_broken else ""
            lines.append(
                f"  {source}: {broken}{result.exported} as exported, "
                f"{result.converted} as converted{marks}"
            )
    return lines


if __name__ == "__main__":
    sys.exit(main())
