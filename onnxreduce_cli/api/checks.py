"""Checks of a conversion: each distinct site is run, before and after.

The modules that import ONNX Runtime are imported where they are used: a model without changes needs
none of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from time import perf_counter
from typing import TYPE_CHECKING

from onnxreduce_cli.errors import UncheckedError

if TYPE_CHECKING:
    from onnx import ModelProto
    from onnx_ir import Model

    from onnxreduce_cli.engine.catalogue import Pass
    from onnxreduce_cli.engine.conversion import Conversion
    from onnxreduce_cli.engine.options import Options
    from onnxreduce_cli.engine.pairs.pair import DistinctSite
    from onnxreduce_cli.model.file.document import Document
    from onnxreduce_cli.verification.sites.pair_check import PairResult
    from onnxreduce_cli.verification.sites.report import SiteReport

    #: The results of checks by the keys of the pairs, to check none twice.
    CheckedSites = dict[tuple[bytes, ...], PairResult]

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


def runtime_problem(*, strict: bool) -> str:
    """Return why NumPy alone can check, after "ONNX Runtime"; empty if ONNX Runtime can, too.

    Args:
        strict: whether ONNX Runtime must check, too.

    Raises:
        UncheckedError: it cannot, with `strict`.
    """
    from onnxreduce_cli.verification.running import isolated

    problem = isolated.runtime_problem()
    if problem and strict:
        raise UncheckedError(
            f"nothing was converted, as a strict check needs ONNX Runtime, which {problem}"
        )
    return problem


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

    A contraction that differs from its nodes, or cannot be checked, is taken out of the conversion.

    Args:
        conversion: the conversion.
        strict: whether every site must be checked.

    Raises:
        CheckError: a replacement does not compute the same.
        UncheckedError: a site could not be checked, with `strict`.
    """
    if not conversion.rewrites_nodes or conversion.blockers:
        return None
    from onnxreduce_cli.verification.sites import checking

    results: CheckedSites = {}
    remarks: list[str] = []
    while conversion.options.contract and not conversion.blockers:
        contracted = _checked(conversion, results, contracted=True)
        reasons, lines = checking.refused_contractions(contracted)
        if not reasons:
            break
        conversion.leave_uncontracted(reasons)
        remarks += lines
    if conversion.blockers:
        return None
    report = checking.report_on(_checked(conversion, results))
    report = replace(report, remarks=(*remarks, *report.remarks))
    checking.refuse_failures(report, strict=strict)
    return report


def check_sites(conversion: Conversion, *, seed: int = 0) -> SiteReport:
    """Check each distinct site of a conversion, and report on all.

    Args:
        conversion: the conversion, which is not applied yet.
        seed: of the inputs that are drawn.
    """
    from onnxreduce_cli.verification.sites.checking import report_on

    return report_on(_checked(conversion, {}, seed=seed))


def _checked(
    conversion: Conversion, results: CheckedSites, *, seed: int = 0, contracted: bool = False
) -> Iterator[tuple[DistinctSite, PairResult]]:
    """Yield each distinct site with the result of its check.

    Args:
        conversion: the conversion, which is not applied yet.
        results: the results so far; new ones are added.
        seed: of the inputs that are drawn.
        contracted: whether only contractions are checked.
    """
    from onnxreduce_cli.engine.pairs.distinct import DistinctSites
    from onnxreduce_cli.verification.inputs.profiles import constant_drawer
    from onnxreduce_cli.verification.sites.checking import check_site

    distinct = DistinctSites(conversion, constant_drawer())
    for site in distinct.with_small_tensors(contracted=contracted):
        result = results.get(site.key)
        if result is None:
            begun = perf_counter()
            result = check_site(site, seed)
            if not result.decides:
                result = check_site(distinct.with_true_tensors(site), seed)
            result.seconds = perf_counter() - begun
        if site.pairs:
            results[site.key] = result
        yield site, result


def check_whole(
    document: Document,
    given: ModelProto | Model | str | os.PathLike[str],
    options: Options,
    passes: Sequence[Pass],
) -> tuple[str, ...]:
    """Check a whole model in memory that passes have changed, and return warnings.

    Args:
        document: the model as it is now.
        given: the model as it was.
        options: the options of the conversion.
        passes: the passes that changed it.

    Raises:
        CheckError: it is invalid, does not load, or does not compute the same.
        UncheckedError: it could not be compared, with ``strict``.
    """
    from onnxreduce_cli.api.ir_models import from_ir, is_ir_model
    from onnxreduce_cli.verification.running.source import ModelSource
    from onnxreduce_cli.verification.whole.passes import PassedChanges, check_passes

    def opened() -> ModelSource:
        return ModelSource(from_ir(given).whole() if is_ir_model(given) else given, "the model")

    result = ModelSource(
        document.whole(), "the converted model", base_dir=document.base_dir, generated=True
    )
    changes = PassedChanges.of(passes, options)
    return check_passes(opened, result, changes, strict=options.strict).warnings
