"""onnx's node cases, converted: what converts is valid and gives what the case expects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx
import pytest

from onnxreduce_cli.errors import CheckError
from onnxreduce_cli.verification.sites import checking
from tests import node_cases, share
from tests.node_cases import (
    Case,
    Figures,
    all_targets,
    cases,
    markdown,
    run_cases,
    same,
    shared_targets,
    some_targets,
    why_invalid,
)
from tests.support import one_node

#: Every n-th case is in the ordinary tests.
FEW = 90

#: All of them are so many tests, which run beside each other.
PARTS = 8

DOCUMENT = Path(__file__).with_name("node_cases.md")

#: Operators of which no case can be judged: images are decoded with a library of Python's.
NOT_JUDGED = {"Bernoulli", "Bernoulli (expanded)", "ImageDecoder"}


def check(figures: Figures) -> None:
    assert not figures.problems, "\n".join(figures.problems[:30])
    total = figures.total
    assert not total["wrong"] + total["invalid"]
    assert total["not run"] <= total["converted"] / 1000 + 1
    assert total["converted"] > 2 * total["blocked"]


def check_sources(chosen: Iterable[Case]) -> None:
    """Where the checker takes no source, it is not asked about results either."""
    refused = Counter(filter(None, (why_invalid(case.model) for case in chosen)))
    assert refused.total() <= 3, refused.most_common(3)


def test_some_cases() -> None:
    figures = run_cases(cases()[::FEW], some_targets)
    check(figures)
    assert figures.cases >= 18
    assert figures.total["converted"] >= 150


@pytest.mark.matrix
@pytest.mark.parametrize("part", range(PARTS))
def test_all_cases(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    """To the opsets around the boundaries and some others: to all it takes half an hour."""
    chosen, targets = cases()[part::PARTS], shared_targets(cases())
    check_sources(chosen)
    figures = run_cases(chosen, lambda case: targets[case.name])
    with capsys.disabled():
        print("\n" + markdown(figures).partition("## Why")[0])
    check(figures)
    assert figures.cases >= 1_400 / PARTS
    assert figures.total["converted"] >= (15_000 if share.whole else 3_000) / PARTS
    assert len(figures.no_judge) <= 80 / PARTS
    check_sources(chosen)


def rows(text: str) -> dict[str, dict[str, int]]:
    found = {}
    for line in text.partition("## Why")[0].splitlines():
        name, *counts = (cell.strip() for cell in line.strip("|").split("|"))
        if counts and all(cell.isdigit() for cell in counts):
            found[name] = dict(zip(node_cases.OUTCOMES, map(int, counts), strict=True))
    return found


def test_the_document_tells_of_every_operator() -> None:
    told = rows(DOCUMENT.read_text(encoding="utf-8"))
    assert told["**all**"]["converted"] >= 41_000
    assert all(row["wrong"] == row["invalid"] == 0 for row in told.values())
    assert {case.operator for case in cases()} - set(told) <= NOT_JUDGED


def test_targets_are_around_the_boundaries() -> None:
    def reduce_sum(name: str) -> Case:
        model = one_node("ReduceSum", 13, {"x": np.zeros((2, 3), np.float32)})
        return Case(name, "ReduceSum", model, (), (), 1e-3)

    case = reduce_sum("test_reduce_sum")
    assert {7, 9, 10, 11, 12, 17, node_cases.NEWEST} <= set(some_targets(case))
    assert min(some_targets(case)) < 7
    assert some_targets(case) == some_targets(case)
    drawn = {tuple(some_targets(reduce_sum(f"test_reduce_sum_{n}"))) for n in range(12)}
    assert len(drawn) > 3, "another draw for each case"
    assert all_targets(case) == [*range(1, 13), *range(14, node_cases.NEWEST + 1)]
    assert 13 not in some_targets(case), "that is its own opset"


def test_alike_results_are_judged_once_and_others_are_not() -> None:
    def relu(opset: int, name: str = "x") -> onnx.ModelProto:
        return one_node("Relu", opset, {name: np.zeros(2, np.float32)})

    assert node_cases.meaning(relu(7)) == node_cases.meaning(relu(12))
    # Another definition reads it, or it is another node.
    assert node_cases.meaning(relu(12)) != node_cases.meaning(relu(13))
    assert node_cases.meaning(relu(12)) != node_cases.meaning(relu(12, "z"))


@pytest.mark.newest
def test_a_wrong_result_is_counted() -> None:
    case = next(case for case in cases() if case.name == "test_relu")
    broken = Case(
        case.name,
        case.operator,
        case.model,
        case.feeds,
        tuple([wanted[0] + np.float32(1)] for wanted in case.wanted),
        case.rtol,
    )
    assert run_cases([broken], some_targets).no_judge == ["test_relu"]
    kinds = {outcome.split(":")[0] for _, outcome in node_cases.outcomes(broken, True, [7, 13])}
    assert kinds == {"wrong"}


def test_a_failing_check_is_counted_as_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    def check(report: object, **_: object) -> None:
        raise CheckError(["not the same"], "")

    monkeypatch.setattr(checking, "refuse_failures", check)
    case = next(case for case in cases() if case.name == "test_gelu_default_1")
    assert node_cases.convert(case.model, 13) == (None, "wrong: not the same")


def test_the_comparison_can_fail() -> None:
    x = np.array([1.0, 2.0], np.float32)
    assert same(x, x, 1e-3)
    assert not same(x, x + np.float32(0.1), 1e-3)
    assert not same(x, x.astype(np.float64), 1e-3)
    assert not same(x, x[None], 1e-3)
    assert not same([x], x, 1e-3)
    assert not same(None, x, 1e-3)
