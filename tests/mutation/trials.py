"""Mutants that are tried with the tests that reach them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import CodeType

import pytest

from tests.mutation import forks, runs
from tests.mutation.explained import Explained
from tests.mutation.mutants import Mutant
from tests.mutation.order import in_order, within
from tests.mutation.swap import Functions, outermost

KILLED, SURVIVED, UNTESTED = "killed", "survived", "reached by no test"
EXPLAINED = "explained"

#: Gives the name of the test that fails, if any does.
Trial = Callable[[], str | None]


@dataclass
class Trials:
    """What became of mutants, and what is known for those to come.

    Attributes:
        reach: which tests run what.
        jobs: how many mutants are tried at the same time.
        patience: the seconds of tests that a mutant may take, as they usually do.
        explained: those that are not tried.
        fates: how many mutants came to which end.
        killers: by file, by its parts and by its lines, the tests that killed mutants there, the
            latest one last.
    """

    reach: runs.Reach
    jobs: int
    patience: float
    explained: Explained
    fates: dict[str, int] = field(default_factory=dict)
    killers: dict[tuple[object, ...], dict[str, None]] = field(default_factory=dict)

    def all(self, chosen: Sequence[Mutant], tests: Sequence[str]) -> None:
        """Try mutants, of functions first; raises `SystemExit` where no mutant can be judged."""
        covered = [self.explained.covers(mutant.part.path, mutant.change) for mutant in chosen]
        self.fates[EXPLAINED] = self.fates.get(EXPLAINED, 0) + sum(covered)
        chosen = [mutant for mutant, known in zip(chosen, covered, strict=True) if not known]
        self.fates, self.killers, others = forks.apart(lambda: self._of_functions(chosen, tests))
        self._judge(self._of_imports([chosen[index] for index in others]))

    def _of_functions(self, chosen: Sequence[Mutant], tests: Sequence[str]) -> object:
        """What becomes of mutants of functions; and the places of the others, which are left."""
        others: list[int] = []

        def work(items: list[pytest.Item]) -> None:
            runs.import_all()
            functions = Functions()
            named = {item.nodeid: item for item in items}

            def trial(names: list[str], codes: dict[CodeType, CodeType]) -> Trial:
                def tried() -> str | None:
                    functions.swap(codes)
                    return runs.first_failure([named[name] for name in names], self.reach.seconds)

                return tried

            def trials() -> Iterator[tuple[Mutant, Trial]]:
                for index, mutant in enumerate(chosen):
                    codes, names = self._codes(mutant), self._reaching(mutant)
                    if codes is None or not functions.known(next(iter(codes))):
                        others.append(index)
                    elif names:
                        yield mutant, trial(names, codes)
                    else:
                        self._tell(mutant, UNTESTED)

            self._control(trial(self._reaching(mutant), {}) for mutant in chosen[:3])
            self._judge(trials())

        runs.collected(tests, work)
        return self.fates, self.killers, others

    def _of_imports(self, chosen: Sequence[Mutant]) -> Iterator[tuple[Mutant, Trial]]:
        """The trials of mutants of what runs when a module is imported."""

        def trial(mutant: Mutant, text: str, names: list[str]) -> Trial:
            def run(items: list[pytest.Item]) -> str | None:
                named = {item.nodeid: item for item in items}
                chosen = [named[name] for name in names if name in named]
                return runs.first_failure(chosen, self.reach.seconds)

            def tried() -> str | None:
                runs.import_changed(mutant.part, text)
                # File by file: to collect tests takes longer than to run most of them.
                files = dict.fromkeys(name.partition("::")[0] for name in names)
                found = (runs.collected([file], run) for file in files)
                return next((name for name in found if name is not None), None)

            return tried

        reached = [mutant for mutant in chosen if self._reaching(mutant)]
        self._control(
            trial(mutant, mutant.part.text, self._reaching(mutant)) for mutant in reached[:3]
        )
        for mutant in chosen:
            if names := self._reaching(mutant):
                yield mutant, trial(mutant, mutant.text, names)
            else:
                self._tell(mutant, UNTESTED)

    def _control(self, trials: Iterable[Trial]) -> None:
        """Raise `SystemExit` unless tests pass where nothing is changed."""
        for name, found in forks.each(enumerate(trials), 1):
            if found is not None:
                raise SystemExit(f"tests fail where nothing is changed: {name} {found}")

    def _codes(self, mutant: Mutant) -> dict[CodeType, CodeType] | None:
        """New code of functions by the old one; None where something ran on import."""
        codes = outermost(mutant.part.code, mutant.part.compiled(mutant.text))
        for code in codes or ():
            inside = {line for *_, line in code.co_lines() if line} - {code.co_firstlineno}
            if any((mutant.part.path, line) in self.reach.imported for line in inside):
                return None
        return codes

    def _reaching(self, mutant: Mutant) -> list[str]:
        """The tests that run what is changed; all tests where it runs on import."""
        path, known = mutant.part.path, self.reach.tests
        names = {name for line in mutant.lines for name in known.get((path, line), ())}
        nearby = {name for (file, _), some in known.items() if file == path for name in some}
        if any((path, line) in self.reach.imported for line in mutant.lines):
            names = {*self.reach.seconds}
        killers = [name for place in _places(mutant) for name in self.killers.get(place, ())]
        order = in_order(names or nearby, self.reach.seconds, killers, nearby)
        return list(within(order, self.reach.seconds, self.patience))

    def _judge(self, trials: Iterable[tuple[Mutant, Trial]]) -> None:
        """Note what becomes of mutants."""
        for mutant, killer in forks.each(trials, self.jobs):
            for place in _places(mutant) if isinstance(killer, str) else ():
                killers = self.killers.setdefault(place, {})
                killers.pop(killer, None)
                killers[killer] = None
            self._tell(mutant, SURVIVED if killer is None else KILLED)

    def _tell(self, mutant: Mutant, fate: str) -> None:
        """Count what became of a mutant, and print it unless it was killed."""
        self.fates[fate] = self.fates.get(fate, 0) + 1
        if fate != KILLED:
            shown = "\n".join(mutant.change)
            print(f"{mutant.name}: {fate}\n{shown}\n", flush=True)


def _places(mutant: Mutant) -> list[tuple[object, ...]]:
    """Where it is, each place within the one before."""
    path = mutant.part.path
    return [(path,), (path, "part", mutant.part.first), (path, "line", mutant.line)]
