"""Operator by pair of opsets by dtype by form of the axes: nothing wrong, nothing invalid."""

from __future__ import annotations

import contextlib
from collections import Counter

import onnx
import pytest

import onnxreduce_cli
from onnxreduce_cli import executor
from tests import matrix, share
from tests.matrix import REDUCE, SOFTMAX, Case
from tests.support import CannotRunError, run_ort

#: Draws for each stratum: in the ordinary tests, and in the matrix.
FEW, MANY = 1, 30 if share.whole else 4
#: Every n-th case is run in ONNX Runtime as well.
IN_ORT = 25


def outcome(case: Case, in_ort: bool = False) -> str:
    """``converted``, ``blocked: why``, or ``wrong: what``."""
    model, feeds = matrix.build(case)
    reason = matrix.may_block(case)
    try:
        onnxreduce_cli.convert(
            model,
            case.target,
            in_place=True,
            check=in_ort,
            emulate=case.target < 11,  # From there up the family is never taken for an emulation.
        )
    except onnxreduce_cli.ConversionError as error:
        return f"blocked: {reason}" if reason else f"wrong: blocked, {error}"
    except Exception as error:
        return f"wrong: {type(error).__name__} {error}"
    try:
        onnx.checker.check_model(model, full_check=True)
        wrong = matrix.mismatch(case, executor.run(model, feeds)["y"])
        # Before opset 7 ONNX Runtime promises nothing, and of size 0 it gets some shapes wrong.
        promised = case.target >= 7 and 0 not in case.shape and case.dtype in ("float", "double")
        if in_ort and not wrong and promised and case.values == "plain":
            with contextlib.suppress(CannotRunError):
                wrong = matrix.mismatch(case, run_ort(model, feeds)[0])
    except Exception as error:
        wrong = f"{type(error).__name__} {error}"
    return f"wrong: {wrong}" if wrong else "converted"


def run_cases(op: str, draws: int) -> Counter[str]:
    counts: Counter[str] = Counter()
    wrong = []
    for index, case in enumerate(matrix.cases(op, draws)):
        found = outcome(case, index % IN_ORT == 0)
        if found.startswith("wrong"):
            wrong.append(f"{case}: {found}")
        counts[found.split(",")[0] if found.startswith("wrong") else found] += 1
    assert not wrong, f"{len(wrong)} of {counts.total()} wrong:\n" + "\n".join(wrong[:20])
    return counts


@pytest.mark.parametrize("op", [*REDUCE, *SOFTMAX])
def test_sampled_conversions_are_right(op: str) -> None:
    counts = run_cases(op, FEW)
    assert counts["converted"] > counts.total() / 2


@pytest.mark.matrix
@pytest.mark.parametrize("op", [*REDUCE, *SOFTMAX])
def test_all_conversions_are_right(op: str, capsys: pytest.CaptureFixture[str]) -> None:
    counts = run_cases(op, MANY)
    with capsys.disabled():
        print(f"\n{op}: {counts.total():,} cases, {counts['converted']:,} converted")
    assert counts["converted"] > counts.total() / 2
