"""The loop that site checks and `verify` share: inputs are drawn, models run, outputs judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest

from onnxreduce_cli.verification.compare.loop import InputRequest, Run, compare_models, draw_runs
from onnxreduce_cli.verification.compare.outcomes import Judgement, RunKey, RunOutcome, Side
from onnxreduce_cli.verification.inputs.drawing import ShapeChoice

#: Ways to draw inputs, by the size that they give to all dimensions.
SIZES = (2, 3, 4, 5)

KEY: RunKey = (Side.REFERENCE, "numpy")


def wanted(count: int, *, times: int = 1, most: int = 9) -> Iterator[InputRequest]:
    """Sets of inputs that hold the size by which they were drawn, if that is not above `most`."""

    def draw(choice: ShapeChoice) -> dict[str, Any] | None:
        return {"size": choice.size} if choice.size <= most else None

    for number in range(count):
        yield InputRequest(f"set {number}", [ShapeChoice({}, size) for size in SIZES], draw, times)


class Reference:
    """A reference that accepts some sizes; it notes what it is run on."""

    def __init__(self, accepts: Callable[[int], bool]) -> None:
        self._accepts = accepts
        self.asked: list[int] = []

    def __call__(self, feeds: dict[str, Any]) -> tuple[dict[RunKey, RunOutcome], bool]:
        self.asked.append(feeds["size"])
        return {KEY: RunOutcome(dict(feeds))}, self._accepts(feeds["size"])


def test_ways_are_tried_until_one_is_accepted_which_comes_first_for_the_next_set() -> None:
    reference = Reference(lambda size: size >= 4)
    runs = list(draw_runs(wanted(3), reference))
    assert reference.asked == [2, 3, 4, 4, 4]
    assert [run.feeds["size"] for run in runs] == [4, 4, 4]
    assert [run.values for run in runs] == ["set 0", "set 1", "set 2"]
    assert all(run.accepted and run.outcomes[KEY].values == run.feeds for run in runs)


def test_a_later_set_may_need_another_way() -> None:
    accepted = iter([True, False, False, True])
    reference = Reference(lambda _: next(accepted))
    assert [run.feeds["size"] for run in draw_runs(wanted(2), reference)] == [2, 4]
    assert reference.asked == [2, 2, 3, 4]


@pytest.mark.parametrize("persistent", [False, True])
def test_what_no_way_suits_is_looked_for_again_only_where_that_is_wanted(persistent: bool) -> None:
    reference = Reference(lambda _: False)
    runs = list(draw_runs(wanted(2), reference, persistent=persistent))
    assert reference.asked == [*SIZES, *(SIZES if persistent else SIZES[:1])]
    assert [run.feeds["size"] for run in runs] == [2, 2]
    assert not any(run.accepted for run in runs)


def test_a_set_that_no_way_suits_after_others_did_gives_its_first_run() -> None:
    accepted = iter([True, False, False, False, False, False, True])
    runs = list(draw_runs(wanted(3), Reference(lambda _: next(accepted))))
    assert [run.accepted for run in runs] == [True, False, True]
    assert [run.feeds["size"] for run in runs] == [2, 2, 3]


def test_each_way_is_tried_as_often_as_its_values_decide() -> None:
    reference = Reference(lambda size: size == 3)
    list(draw_runs(wanted(1, times=3), reference))
    assert reference.asked == [2, 2, 2, 3]


def test_what_is_too_large_is_not_run() -> None:
    reference = Reference(lambda size: size == 5)
    (run,) = draw_runs(wanted(1, most=3), reference)
    assert not run.accepted
    assert reference.asked == [2, 3]
    assert list(draw_runs(wanted(2, most=1), reference)) == []


def run_of(size: int, *, accepted: bool) -> Run:
    return Run("ordinary", {"size": size}, accepted, {})


def compared(*searches: Iterable[Run]) -> list[Run]:
    def judge(run: Run, name: str) -> Judgement:
        return Judgement({}, None, {}, agree=run.feeds["size"] > len(name))

    return list(compare_models(searches, lambda runs: runs, judge, ["y", "output"]))


def test_the_first_executor_that_accepts_inputs_finds_them() -> None:
    def never() -> Iterator[Run]:
        raise AssertionError("it was asked")
        yield

    refused = [run_of(1, accepted=False)]
    found = [run_of(size, accepted=size != 2) for size in (2, 3, 4)]
    assert compared(refused, found, never()) == found


def test_where_none_accepts_inputs_the_runs_of_the_first_are_compared() -> None:
    first, second = ([run_of(size, accepted=False)] for size in (1, 2))
    assert compared([], first, second) == first
    assert compared() == []


def test_every_output_of_every_run_is_judged() -> None:
    small, large = compared([run_of(3, accepted=True), run_of(9, accepted=True)])
    assert {name: item.agree for name, item in small.judgements.items()} == {
        "y": True,
        "output": False,
    }
    assert all(item.agree for item in large.judgements.values())


def test_runs_are_judged_as_they_are_asked_for() -> None:
    def search() -> Iterator[Run]:
        yield run_of(1, accepted=True)
        raise AssertionError("it was asked for another")

    runs = compare_models([search()], lambda runs: runs, lambda *_: Judgement({}, None, {}), [])
    assert next(runs).feeds == {"size": 1}
