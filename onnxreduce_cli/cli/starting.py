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
            _prepare_checks(verify=options["verify"])
        command(**options)

    return call


def _prepare_checks(*, verify: bool) -> None:
    """Import NumPy, and let the processes start that check: each node, and whole models.

    Where this process can be copied, they are copies, which need not import NumPy again, and what
    checks nodes not onnx either.
    """
    from onnxreduce_cli.verification import pair_process
    from onnxreduce_cli.verification.copying import at_once, can_be_copied
    from onnxreduce_cli.verification.process import prepare

    # What others have imported, of a library or of tests, should not be copied.
    if "numpy" in sys.modules or _BLAS_THREADS in os.environ:
        prepare("onnxruntime")
        return
    import_numpy()
    copied = can_be_copied()
    alone = not copied or at_once() == 1
    if alone or verify:
        prepare("onnxruntime", copied=copied)
    if not alone:
        import onnx  # noqa: F401 - for both

        pair_process.prepare()


def end_prepared() -> None:
    """End the processes that would check."""
    from onnxreduce_cli.verification import pair_process, process

    pair_process.end()
    process.end_all()


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
