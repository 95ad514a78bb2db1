"""The loop of every comparison: inputs are drawn, executors run both models, outputs are judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from onnxreduce_cli.verification.compare.outcomes import Judgement, RunKey, RunOutcome
from onnxreduce_cli.verification.inputs.drawing import ShapeChoice

Inputs = Mapping[str, Any]


class InputRequest(NamedTuple):
    """A request for one set of inputs that the reference accepts.

    Attributes:
        values: the value profile; ``given`` where nothing is drawn.
        choices: the choices of shapes, the best tests first.
        draw: draws inputs of one of these shapes; None where that would be too large.
        times: how often each choice is tried, as values decide too.
        before: choices that are tried before, once each, where some other set was accepted.
        optional: whether the set is left out where the reference accepts none.
    """

    values: str
    choices: Sequence[ShapeChoice]
    draw: Callable[[ShapeChoice], dict[str, Any] | None]
    times: int = 1
    before: Sequence[ShapeChoice] = ()
    optional: bool = False


@dataclass(slots=True)
class Run:
    """One set of inputs, and the outcomes of running it.

    Attributes:
        values: the value profile.
        feeds: the inputs by name.
        accepted: whether the reference accepts them.
        outcomes: by model and executor.
        judgements: by output, how the models and the executors compare.
    """

    values: str
    feeds: dict[str, Any]
    accepted: bool
    outcomes: dict[RunKey, RunOutcome]
    judgements: dict[str, Judgement] = field(default_factory=dict)


#: Runs the reference: its outcomes, and whether it accepts the inputs.
RunReference = Callable[[dict[str, Any]], tuple[dict[RunKey, RunOutcome], bool]]


def draw_runs(
    wanted: Iterable[InputRequest], run_reference: RunReference, *, persistent: bool = False
) -> Iterator[Run]:
    """Draw each set of inputs until the reference accepts it.

    Args:
        wanted: the sets; each is taken when the one before has run.
        run_reference: runs the reference.
        persistent: whether all choices are tried for each set, even if the first accepted none.

    Yields:
        for each set the run that was accepted, else the first; none where all are too large.
    """
    # The choice that the last set needed comes first.
    level: int | None = 0
    accepted = False
    for item in wanted:
        places = range(len(item.choices) if level is not None else 1)
        order = sorted(places, key=lambda place: (place != level, place))
        first: Run | None = None
        before = item.before if level is not None else ()
        tried = [(level, choice) for choice in before]
        tried += [(place, item.choices[place]) for place in order for _ in range(item.times)]
        for place, choice in tried:
            feeds = item.draw(choice)
            if feeds is None:
                continue
            run = Run(item.values, feeds, False, {})
            run.outcomes, run.accepted = run_reference(feeds)
            first = first or run
            if run.accepted:
                first, level, accepted = run, place, True
                break
        else:
            if not accepted and not persistent:
                # Larger sizes take long: where none is accepted, later sets try the first only.
                level = None
        if first is not None and (first.accepted or not item.optional):
            yield first


def compare_models(
    searches: Iterable[Iterable[Run]],
    complete: Callable[[Iterable[Run]], Iterable[Run]],
    judge: Callable[[Run, str], Judgement],
    names: Sequence[str],
) -> Iterator[Run]:
    """Compare two models on inputs that the reference accepts.

    Args:
        searches: what `draw_runs` yields for one executor after another, until one accepts inputs.
        complete: adds the outcomes of all other models and executors.
        judge: judges an output of a run.
        names: the outputs to be compared.

    Yields:
        the runs with their judgements; where no executor accepts inputs, the first one's runs.
    """
    runs: Iterable[Run] = ()
    for search in searches:
        stream, refused = iter(search), list[Run]()
        accepted = _until_accepted(stream, refused)
        runs = runs or refused
        if accepted is not None:
            runs = chain(refused, (accepted,), stream)
            break
    for run in complete(runs):
        run.judgements.update((name, judge(run, name)) for name in names)
        yield run


def _until_accepted(stream: Iterator[Run], refused: list[Run]) -> Run | None:
    """Return the first accepted run; add the runs before it to `refused`."""
    for run in stream:
        if run.accepted:
            return run
        refused.append(run)
    return None
