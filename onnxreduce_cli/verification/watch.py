"""What ends a process that runs models: its parent's end, and the limits of a request.

A run may be native code that never gives control back, so the system itself ends it where it can.
"""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

from onnxreduce_cli.model.memory import RESIDENT, counted, limit_data

#: The exit code of a process that takes more memory than it may, where it has to look itself.
TOO_LARGE = 75

#: The seconds between two looks at the parent, and at the memory.
_PAUSE = 0.2

_WINDOWS = sys.platform == "win32"
_LINUX = sys.platform == "linux"


class Watch:
    """Ends this process once its parent has ended, or a request goes beyond its limits."""

    def __init__(self, parent: int) -> None:
        """Begin to look whether the process with the number `parent` is still there."""
        self._memory: int | None = None
        threading.Thread(target=self._look, args=[parent], daemon=True).start()

    def begin(self, seconds: float | None, memory: int | None) -> None:
        """Limit what follows: its time, and the memory of the process; None for no limit."""
        self._memory = memory
        limit_data(memory)
        if seconds is None:
            return
        if hasattr(signal, "setitimer"):
            # Nobody handles SIGALRM, so it ends the process, whatever runs.
            signal.setitimer(signal.ITIMER_REAL, seconds)
        else:
            faulthandler.dump_traceback_later(seconds, exit=True)

    def end(self) -> None:
        """Lift the limits."""
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)
        else:
            faulthandler.cancel_dump_traceback_later()
        self._memory = None
        limit_data(None)

    def _look(self, parent: int) -> None:
        has_ended = _parent(parent)
        while not has_ended():
            if self._memory is not None and not _LINUX and _used() > self._memory:
                os._exit(TOO_LARGE)
            time.sleep(_PAUSE)
        os._exit(1)


def _parent(number: int) -> Callable[[], bool]:
    """Return whether the process that started this one has ended, to be asked again and again."""
    if not _WINDOWS:
        return lambda: os.getppid() != number
    import ctypes

    # Only there; and only a handle tells, as the number may be another process's by then.
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    kernel.OpenProcess.restype = ctypes.c_void_p
    synchronize = 0x100000
    handle = ctypes.c_void_p(kernel.OpenProcess(synchronize, False, number))
    return lambda: kernel.WaitForSingleObject(handle, 0) == 0


def resident() -> int:
    """The bytes of memory that this process has; where only the system knows, or has had."""
    found = counted(RESIDENT)
    return _used() if found is None else found


def _used() -> int:
    """The bytes of memory that this process has, or has had."""
    if _WINDOWS:
        return _used_on_windows()
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def _used_on_windows() -> int:
    import ctypes
    from ctypes import wintypes

    class Counters(ctypes.Structure):
        """PROCESS_MEMORY_COUNTERS of the Windows API."""

        _fields_ = (
            ("size", wintypes.DWORD),
            ("page_faults", wintypes.DWORD),
            *((f"field_{number}", ctypes.c_size_t) for number in range(6)),
            ("committed", ctypes.c_size_t),
            ("most_committed", ctypes.c_size_t),
        )

    counters = Counters(size=ctypes.sizeof(Counters))
    kernel = ctypes.windll.kernel32  # type: ignore[attr-defined]
    kernel.GetCurrentProcess.restype = ctypes.c_void_p
    kernel.K32GetProcessMemoryInfo(
        ctypes.c_void_p(kernel.GetCurrentProcess()), ctypes.byref(counters), counters.size
    )
    return int(counters.committed)
