"""The start and the end of the process of the command line."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress

#: The number of new objects after which the garbage collector runs; by default 700. Converting
#: 100,000 nodes makes 300,000 objects, which live until the program ends.
COLLECTED_AFTER = 1_000_000


def program() -> None:
    """Run the command line as a program that starts and ends quickly.

    The interpreter would free all objects one by one at its end, which takes some seconds after a
    model of a million nodes, and the collector would scan all imported modules many times.
    """
    gc.set_threshold(COLLECTED_AFTER)
    # SIGTERM ends it like an exception: temporary files are removed, processes are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        # Not at the top: the import makes objects too, and may be interrupted.
        from onnxreduce_cli.cli.main import main

        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:
        code = 130
    except OSError:
        code = 2  # Standard error cannot be written, so the error cannot be printed.
    atexit._run_exitfuncs()
    os._exit(_flushed(code))


def _flushed(code: int) -> int:
    """Flush the standard streams, and return the exit code: 2 if it was 0 and flushing fails.

    Text that could not be written before, with an error, is still buffered, and fails again.
    """
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            continue  # Its reader has stopped, which is no error, or it is closed.
        except OSError as error:
            if not code:
                code = 2
                from onnxreduce_cli.cli.streams import say

                with suppress(OSError):
                    say(f"Error: standard output: {error.strerror}", err=True)
    return code
