"""Checks of a conversion: each distinct site is run, before and after.

The modules that import ONNX Runtime are imported where they are used: a model without changes needs
none of them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxreduce_cli.engine.conversion import Conversion
    from onnxreduce_cli.verification.sites.report import SiteReport

#: The variable with the number of threads of OpenBLAS, which is NumPy's linear algebra.
BLAS_THREADS = "OPENBLAS_NUM_THREADS"


def prepare_checks(*, verify: bool = True) -> None:
    """Let the worker import ONNX Runtime while this process reads and plans.

    Args:
        verify: whether whole models may run in it too, with linear algebra on all processors.
    """
    from onnxreduce_cli.worker.process import current_worker

    modules = ("onnxruntime", "onnxreduce_cli.verification.running.sessions")
    with suppress(OSError):  # It is raised again where the worker is used.
        current_worker(modules, None if verify else {BLAS_THREADS: "1"})


def import_numpy() -> None:
    """Import NumPy without the threads of its linear algebra, which are busy waiting at first.

    What a conversion computes in this process is small; processes that it starts have their own.
    """
    if BLAS_THREADS in os.environ:
        return
    os.environ[BLAS_THREADS] = "1"
    try:
        import numpy  # noqa: F401 - it reads the variable while it is imported
    finally:
        del os.environ[BLAS_THREADS]


def check_conversion(conversion: Conversion, *, strict: bool) -> SiteReport | None:
    """Check each distinct site; None if the conversion is blocked, or rewrites no node.

    Args:
        conversion: the conversion.
        strict: whether every site must be checked.

    Raises:
        CheckError: a replacement does not compute the same.
        UncheckedError: a site could not be checked, with `strict`.
    """
    if not conversion.rewrites_nodes or conversion.blockers:
        return None
    from onnxreduce_cli.verification.sites.checking import refuse_failures

    report = check_sites(conversion)
    refuse_failures(report, strict=strict)
    return report


def check_sites(conversion: Conversion, *, seed: int = 0) -> SiteReport:
    """Check each distinct site of a conversion, and report on all.

    Args:
        conversion: the conversion, which is not applied yet.
        seed: of the inputs that are drawn.
    """
    from onnxreduce_cli.engine.pairs.distinct import DistinctSites
    from onnxreduce_cli.verification.inputs.profiles import constant_drawer
    from onnxreduce_cli.verification.sites.checking import check_site, report_on

    distinct = DistinctSites(conversion, constant_drawer())
    results = []
    for site in distinct.with_small_tensors():
        result = check_site(site, seed)
        if not result.decides:
            result = check_site(distinct.with_true_tensors(site), seed)
        results.append((site, result))
    return report_on(results)
