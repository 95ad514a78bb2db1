"""The worker's own side: the main loop of its process.

This module imports little, so that the process starts quickly.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
from contextlib import suppress
from importlib import import_module
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from onnxreduce_cli.worker.process import Call

#: The seconds that a call may take to clean up once the caller has ended.
_PATIENCE = 5


def serve() -> None:
    """Make the calls that arrive on standard input, and answer each on standard output.

    The arguments of the command are modules to import first, which the first answer confirms. A
    request is a list of calls; only the last one is answered.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # As an exception, so that temporary files are removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # Not `sys.stdin`, which the interpreter would wait for at exit.
    requests, answers = os.fdopen(0, "rb", closefd=False), os.fdopen(os.dup(1), "wb")
    # Native code may print to standard output, which must not mix with the answers.
    os.dup2(2, 1)
    for name in sys.argv[1:]:
        with suppress(ImportError):  # It is raised again by the call that needs it.
            import_module(name)
    waiting: SimpleQueue[list[Call] | None] = SimpleQueue()
    # Not before: a request names functions, whose modules two threads must not import at once.
    threading.Thread(target=_receive, args=(requests, waiting), daemon=True).start()
    answer: tuple[Any, Exception | None] = (None, None)
    with suppress(OSError):  # The caller has ended.
        while True:
            pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
            answers.flush()
            del answer  # The answer and the calls may be large.
            calls = waiting.get()
            if calls is None:
                return
            answer = _answer(calls)
            del calls


def _answer(calls: list[Call]) -> tuple[Any, Exception | None]:
    """Make calls, and return the last result, or the exception of the one that failed."""
    found = None
    try:
        for function, arguments in calls:
            found = function(*arguments)
    except Exception as error:  # It is raised where the call came from.
        return None, _portable(error)
    return found, None


def _portable(error: Exception) -> Exception:
    """Return an exception that can be pickled."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # Pickling runs code of its class, which may raise anything.
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


def _receive(requests: IO[bytes], waiting: SimpleQueue[list[Call] | None]) -> None:
    """Receive calls; once the caller has ended, end this process, whatever it is doing."""
    try:
        with suppress(EOFError, OSError):
            while True:
                waiting.put(pickle.load(requests))
    finally:
        # If the signal came just before the wait for a call, the wait would not end.
        waiting.put(None)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(_PATIENCE)
        os._exit(1)
