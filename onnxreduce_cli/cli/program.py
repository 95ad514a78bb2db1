"""The command line as a program of its own: how its process starts and ends."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from contextlib import suppress

#: New objects after which the garbage collector looks for cycles among them; usually 700. To
#: convert 100,000 nodes makes 300,000, which live until the program ends.
COLLECTED_AFTER = 1_000_000


def program() -> None:
    """Run the command line as a program of its own, which starts and ends quickly.

    The interpreter would free what is left object by object, some seconds' work after a model of
    a million nodes, and the collector would look through everything that is imported many times.
    """
    gc.set_threshold(COLLECTED_AFTER)
    # SIGTERM ends it as an exception does: temporary files are removed, processes stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        # Not above: to import it makes objects too, and may be interrupted.
        from onnxreduce_cli.cli.main import main

        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except KeyboardInterrupt:
        code = 130
    except OSError:
        code = 2  # Standard error takes nothing: not even what is wrong can be told.
    atexit._run_exitfuncs()
    os._exit(_flushed(code))


def _flushed(code: int) -> int:
    """Write what the standard streams still hold; return the exit code, 2 if that cannot be.

    What could not be written before, and was told, is still there, and cannot be now.
    """
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (BrokenPipeError, ValueError):
            continue  # Its reader has stopped, which is no fault, or it is closed.
        except OSError as error:
            if not code:
                code = 2
                from onnxreduce_cli.cli.streams import say

                with suppress(OSError):
                    say(f"Error: standard output: {error.strerror}", err=True)
    return code
