"""What lets a conversion start quickly."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

#: How many threads OpenBLAS starts, which is NumPy's linear algebra.
_BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def prepared(command: Callable[..., None]) -> Callable[..., None]:
    """Let the process that checks start while this one imports what a command needs."""

    @wraps(command)
    def call(**options: Any) -> None:
        if options["no_check"] or (options["dry_run"] and not options["verify"]):
            import_numpy()
        else:
            _prepare_checks()
        command(**options)

    return call


def _prepare_checks() -> None:
    """Import NumPy, and let the process start that runs ONNX Runtime.

    Where this process can be copied, that is a copy, which needs not import NumPy again.
    """
    from onnxreduce_cli.verification.copying import can_be_copied
    from onnxreduce_cli.verification.process import prepare

    # What others have imported, of a library or of tests, should not be copied.
    if "numpy" not in sys.modules and _BLAS_THREADS not in os.environ:
        import_numpy()
        prepare("onnxruntime", copied=can_be_copied())
    else:
        prepare("onnxruntime")


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
