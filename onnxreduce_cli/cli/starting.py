"""What lets a conversion start quickly."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import Any

#: How many threads OpenBLAS starts, which is NumPy's linear algebra.
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def prepared(command: Callable[..., None]) -> Callable[..., None]:
    """Let the process that checks start while this one imports what a command needs."""

    @wraps(command)
    def call(**options: Any) -> None:
        if not (options["no_check"] or (options["dry_run"] and not options["verify"])):
            from onnxreduce_cli.verification.process import prepare

            prepare("onnxruntime")
        import_numpy()
        command(**options)

    return call


def import_numpy() -> None:
    """Import NumPy without the threads of its linear algebra, which are busy waiting at first.

    What a conversion computes in this process is small. Processes that it starts have theirs.
    """
    if _BLAS_THREADS in os.environ:
        return
    os.environ[_BLAS_THREADS] = "1"
    try:
        import numpy  # noqa: F401 - it looks at the variable while it is imported
    finally:
        del os.environ[_BLAS_THREADS]
