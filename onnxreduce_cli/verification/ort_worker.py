"""The process that native code may end: it opens models and runs them for the one that started it.

Requests come on standard input and replies go to standard output, both pickled.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time

from onnxreduce_cli.verification.runtime import Runner, open_runner


def _end_with(parent: int) -> None:
    """End once the process that started this one has; a run may keep it from noticing otherwise."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def main() -> None:
    """Answer requests until there are none.

    A request is what to do, the key of a runner, the keys of runners to forget, and arguments:
    ``open`` a source in an executor with extra outputs, or ``run`` inputs for names.
    The reply is what that gives and the exception that it raises, one of them None.
    """
    # An interrupt ends native code too, which Python's own handler would wait for.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=[os.getppid()], daemon=True).start()
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    # What native code prints must not come between the replies.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    runners: dict[int, Runner] = {}
    while True:
        try:
            request, key, forgotten, *arguments = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        for old in forgotten:
            runners.pop(old, None)
        result, problem = None, None
        try:
            if request == "open":
                source, executor, extra = arguments
                runners[key] = open_runner(source, executor, extra=extra)
            else:
                feeds, names = arguments
                result = runners[key].run(feeds, names)
        except Exception as error:  # It is raised again where the request came from.
            problem = error
        pickle.dump((result, problem), replies, protocol=5)
        replies.flush()
