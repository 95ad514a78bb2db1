"""The part of an exhaustive matrix that each landing tries."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests import node_cases, share
from tests.test_idempotence import node_case_requests


@pytest.fixture(autouse=True)
def of_a_landing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "whole", False)


def test_each_stratum_has_its_share() -> None:
    chosen = share.share(range(1000), lambda number: number % 7, each=3)
    assert len(chosen) == 21
    assert chosen == sorted(chosen)
    assert {number % 7 for number in chosen} == set(range(7))
    assert chosen == share.share(range(1000), lambda number: number % 7, each=3)


def test_a_new_item_changes_no_other_stratum() -> None:
    before = share.share(range(1000), lambda number: number % 7)
    after = share.share(range(1001), lambda number: number % 7)
    assert len(set(before) & set(after)) >= 6


def test_all_is_tried_if_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(share, "whole", True)
    assert share.share(range(1000), each=3) == list(range(1000))
    some = node_cases.cases()[::300]
    assert node_cases.shared_targets(some) == {
        case.name: node_cases.some_targets(case) for case in some
    }


def test_every_case_and_every_boundary_of_every_operator_is_tried() -> None:
    cases = node_cases.cases()
    drawn = node_cases.shared_targets(cases)
    assert drawn.keys() == {case.name for case in cases}
    assert all(drawn.values())
    tried = {(case.operator, opset) for case in cases for opset in drawn[case.name]}
    assert tried == {(case.operator, to) for case in cases for to in node_cases.some_targets(case)}
    count = sum(map(len, drawn.values()))
    assert count < sum(len(node_cases.some_targets(case)) for case in cases) / 3


def test_every_request_is_made_of_every_operator() -> None:
    drawn = node_case_requests()
    found = {(case.operator, str(request)) for case, request in drawn}
    for operator in ("ReduceSum", "Resize", "If"):
        assert (operator, str({"opset": 13})) in found
        assert (operator, str({"runtime": "opencv==4.6"})) in found


def test_of_each_test_some_parameters_are_run(pytestconfig: pytest.Config) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "--collect-only", "--each", "2"]
    ran = subprocess.run(
        [*command, "tests/test_matrix.py", "-k", "test_sampled_conversions_are_right"],
        cwd=pytestconfig.rootpath,
        capture_output=True,
        text=True,
        check=True,
    )
    assert len([line for line in ran.stdout.splitlines() if "::" in line]) == 2
