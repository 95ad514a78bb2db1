"""A process that checks pairs while this one does something else.

It is a copy of this one, made early: it imports what checks while this one imports what plans, and
this one needs that only for what the copy has not answered.
"""

from __future__ import annotations

import pickle
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from onnxreduce_cli.verification.copying import Copy, at_once
from onnxreduce_cli.verification.process import ends_with

if TYPE_CHECKING:
    from onnxreduce_cli.engine.pairs.pair import Pair
    from onnxreduce_cli.verification.pair_shares import Request
    from onnxreduce_cli.verification.sites.pair_result import PairResult

#: So many pairs are sent together for each process; while they are checked, more are made.
_TOGETHER = 16


class PairProcess:
    """A copy of this process that checks pairs, in the order in which it is given them.

    ONNX Runtime may end it. Whatever does, the pairs that it has not answered are checked by this
    process, with ONNX Runtime in one of its own.
    """

    def __init__(self) -> None:
        """Start it.

        Raises:
            OSError: the system starts no process.
        """
        self._copy = Copy(_serve)
        self._end = ends_with(self, self._copy)
        self._together = _TOGETHER * at_once()
        self._unsent: list[Request] = []
        self._awaited: deque[int] = deque()
        self._found: dict[int, PairResult] = {}

    def begin(self, pair: Pair, seed: int) -> None:
        """Let it check a pair, which `check` is asked for later, together with others."""
        self._unsent.append((pair, seed, None))
        if len(self._unsent) == self._together:
            self.send()

    def send(self) -> None:
        """Let it check what it has to check, even if that is little."""
        if not self._unsent:
            return
        while self._awaited:  # Else each may wait for the other to read.
            self._receive()
        requests, self._unsent = self._unsent, []
        if not self._end.alive:
            return
        self._awaited += [id(pair) for pair, _, _ in requests]
        try:
            pickle.dump(requests, self._copy.stdin)
            self._copy.stdin.flush()
        except OSError:
            self.end()

    def check(self, pair: Pair, seed: int, most: int | None = None) -> PairResult:
        """Check a pair: see `pair_check.check_pair`."""
        self.send()
        if id(pair) not in self._found and id(pair) not in self._awaited:
            self._unsent.append((pair, seed, most))
            self.send()
        while id(pair) in self._awaited:
            self._receive()
        if id(pair) in self._found:
            return self._found.pop(id(pair))
        return check_here(pair, seed, most)

    def end(self) -> None:
        """End it; what it has not answered is checked by this process."""
        self._unsent.clear()
        self._awaited.clear()
        self._end()

    def _receive(self) -> None:
        try:
            found = pickle.load(self._copy.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            self.end()
        else:
            self._found[self._awaited.popleft()] = found


def check_here(pair: Pair, seed: int, most: int | None = None) -> PairResult:
    """Check a pair in this process."""
    from onnxreduce_cli.verification.sites.pair_check import check_pair

    return check_pair(pair, seed, most)


#: The one of the command line, if there is one.
_prepared: list[PairProcess] = []


def prepare() -> None:
    """Let one start, for a process of one thread that will check what it plans."""
    with suppress(OSError):  # Then this process checks.
        _prepared.append(PairProcess())


def prepared() -> PairProcess | None:
    """The one that was prepared."""
    return _prepared[0] if _prepared else None


def end() -> None:
    """End the one that was prepared."""
    while _prepared:
        _prepared.pop().end()


def _serve() -> None:
    """Answer each request, a list of pairs, with what checking each finds."""
    from select import select

    from onnxreduce_cli.verification.pair_shares import answer, check_all, run_here
    from onnxreduce_cli.verification.serving import streams

    requests, replies = streams()
    run_here()
    if not select([requests], [], [], 0)[0]:
        _try_out()
    while True:
        try:
            asked = pickle.load(requests)
        except EOFError:
            return
        answer(check_all(asked), replies)


def _try_out() -> None:
    """Check a pair while there is time: that imports what is imported where it is used."""
    from onnx.parser import parse_model

    from onnxreduce_cli.engine.pairs.pair import Pair

    trial = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> site (float[N] i0) => (o0) { o0 = Exp (i0) }'
    )
    check_here(Pair(trial, trial, moved=False, full=False, promised={}, sizes={}), 0)
