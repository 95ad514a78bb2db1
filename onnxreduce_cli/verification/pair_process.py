"""A process that checks pairs while this one does something else.

It is a copy of this one, made early: it imports what checks while this one imports what plans, and
this one needs that only for what the copy has not answered.
"""

from __future__ import annotations

import pickle
import sys
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from onnxreduce_cli.verification.copying import Copy
from onnxreduce_cli.verification.process import ends_with, use
from onnxreduce_cli.verification.watch import Watch

if TYPE_CHECKING:
    from onnxreduce_cli.verification.site_pair import Found, Pair


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
        self._awaited: deque[int] = deque()
        self._found: dict[int, Found] = {}

    def begin(self, pairs: Iterable[Pair], seed: int) -> None:
        """Let it check pairs, which `check` is asked for later."""
        self._send([(pair, seed, None) for pair in pairs])

    def check(self, pair: Pair, seed: int, most: int | None = None) -> Found:
        """Check a pair: see `pair_check.check_pair`."""
        if id(pair) not in self._found and id(pair) not in self._awaited:
            while self._awaited:  # Else each may wait for the other to read.
                self._receive()
            self._send([(pair, seed, most)])
        while id(pair) in self._awaited:
            self._receive()
        if id(pair) in self._found:
            return self._found.pop(id(pair))
        return check_here(pair, seed, most)

    def end(self) -> None:
        """End it; what it has not answered is checked by this process."""
        self._awaited.clear()
        self._end()

    def _send(self, requests: list[tuple[Pair, int, int | None]]) -> None:
        if not self._end.alive:
            return
        self._awaited += [id(pair) for pair, _, _ in requests]
        try:
            pickle.dump(requests, self._copy.stdin)
            self._copy.stdin.flush()
        except OSError:
            self.end()

    def _receive(self) -> None:
        try:
            found = pickle.load(self._copy.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            self.end()
        else:
            self._found[self._awaited.popleft()] = found


def check_here(pair: Pair, seed: int, most: int | None = None) -> Found:
    """Check a pair in this process."""
    from onnxreduce_cli.verification.pair_check import check_pair

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
    from onnx.parser import parse_model

    from onnxreduce_cli.verification.process_here import ProcessHere
    from onnxreduce_cli.verification.serving import streams
    from onnxreduce_cli.verification.site_pair import Pair

    requests, replies = streams()
    use("onnxruntime", ProcessHere(Watch(int(sys.argv[1]))))
    # What is imported where it is used is so before the first pair that counts.
    trial = parse_model(
        '<ir_version: 8, opset_import: ["": 13]> site (float[N] i0) => (o0) { o0 = Exp (i0) }'
    )
    check_here(Pair(trial, trial, moved=False, full=False, promised={}, sizes={}), 0)
    while True:
        try:
            pairs = pickle.load(requests)
        except EOFError:
            return
        for pair, seed, most in pairs:
            pickle.dump(check_here(pair, seed, most), replies)
            replies.flush()
