"""Checking many pairs at once, in the process that checks and in copies of it."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from onnxreduce_cli.engine.pairs.pair import Pair
from onnxreduce_cli.verification.copying import Copy, at_once
from onnxreduce_cli.verification.process import use
from onnxreduce_cli.verification.process_here import ProcessHere
from onnxreduce_cli.verification.serving import streams
from onnxreduce_cli.verification.sites.pair_check import check_pair
from onnxreduce_cli.verification.sites.pair_result import PairResult
from onnxreduce_cli.verification.watch import Watch

#: A pair, the seed of its inputs, and the elements that a run may compute: see `check_pair`.
Request = tuple[Pair, int, int | None]

#: Pairs for which a copy is worth making: to make and to end it takes as long as to check one.
_WORTH = 3


def run_here() -> None:
    """Let ONNX Runtime run in this process, which ends with the one that started it."""
    use("onnxruntime", ProcessHere(Watch(int(sys.argv[1]))))


def check_all(requests: Sequence[Request]) -> Iterator[PairResult]:
    """Check pairs, in as many processes as there are processors for, and as that is worth it.

    Yields:
        what checking each finds, in their order.

    Raises:
        EOFError: a copy has ended before it answered.
    """
    shares = _shares(requests, min(at_once(), len(requests) // _WORTH))
    for at, request in enumerate(requests):
        turn = at % (len(shares) + 1)
        yield shares[turn - 1].receive() if turn else check_pair(*request)
    for share in shares:
        share.wait()


def _shares(requests: Sequence[Request], count: int) -> Sequence[_Share]:
    """All shares of `count` but the first; none where the system starts no more processes."""
    try:
        return [_Share(requests[at::count]) for at in range(1, count)]
    except OSError:
        return ()


def answer(found: Iterable[PairResult], replies: IO[bytes]) -> None:
    """Send what checking pairs finds, each once it is known."""
    for item in found:
        pickle.dump(item, replies)
        replies.flush()


class _Share:
    """The pairs that a copy of this process checks.

    That has threads besides: one looks after its parent, another of ONNX Runtime's waits for work.
    Neither has a lock that a copy would miss.
    """

    def __init__(self, requests: Sequence[Request]) -> None:
        def main() -> None:
            _, replies = streams()
            run_here()
            answer((check_pair(*request) for request in requests), replies)

        self._copy = Copy(main)

    def receive(self) -> PairResult:
        """Wait for what checking the next of them finds."""
        found: PairResult = pickle.load(self._copy.stdout)
        return found

    def wait(self) -> None:
        """Wait for its end."""
        self._copy.wait()
