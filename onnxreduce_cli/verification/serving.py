"""The main loop of a process that runs models for another one.

It imports NumPy and nothing that takes longer, so that the process starts quickly.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from onnxreduce_cli.verification import messages
from onnxreduce_cli.verification.messages import Restore
from onnxreduce_cli.verification.watch import Watch, resident

#: The characters of a message: where it is all that is told, a reply fits into any pipe.
_LONGEST = 1000

#: The values that a step gives, or the kind of an error (see `process`) and what is wrong.
Result = Sequence[Any] | tuple[str, str]

#: Takes one step of a request, opening a model or running some, with its values.
Answer = Callable[[Mapping[str, Any], Sequence[Any]], list[Result]]


def serve(prepare: Callable[[], Answer], restore: Restore) -> None:
    """Answer requests from standard input on standard output until there are none.

    The first argument of the command is the number of the process that asks. A request has
    ``steps``, which get so many of its values as their ``count`` says; it limits the ``seconds``
    that each takes and the ``memory`` of the process. The reply says of each result how many
    values it has, or what is wrong, and by how many bytes the process has ``grown``.

    Args:
        prepare: imports what answers; from then on nothing that it prints is seen.
        restore: see `messages.read`.
    """
    # An interrupt goes to all processes of a terminal: who started this one ends it then.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, replies = streams()
    watch = Watch(int(sys.argv[1]))
    answer = prepare()
    began = resident()
    while True:
        try:
            header, values = messages.read(requests, restore)
        except EOFError:
            return
        told, found = answered(header, values, answer, watch)
        # What was read may be a model: nothing holds it while this process waits.
        del header, values
        try:
            messages.write(replies, {"results": told, "grown": resident() - began}, found)
        except OSError:
            return
        del told, found


def streams() -> tuple[IO[bytes], IO[bytes]]:
    """Where requests come from and replies go to; what native code prints does not come between."""
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return sys.stdin.buffer, replies


def answered(
    header: Mapping[str, Any], values: Sequence[Any], answer: Answer, watch: Watch
) -> tuple[list[Any], list[Any]]:
    """Take the steps of a request; return what a reply says of the results, and their values.

    Args:
        header: that of the request.
        values: its values.
        answer: takes each step.
        watch: ends this process where a step goes beyond its limits.
    """
    told: list[Any] = []
    found: list[Any] = []
    start = 0
    for step in header["steps"]:
        end = start + step["count"]
        watch.begin(header["seconds"], header["memory"])
        for result in answer(step, values[start:end]):
            if isinstance(result, tuple):
                told.append((result[0], result[1][:_LONGEST]))
            else:
                told.append(len(result))
                found += result
        watch.end()
        start = end
    return told, found
