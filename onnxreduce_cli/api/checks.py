"""Checks of a conversion: each distinct site is run, before and after.

The modules that import ONNX Runtime are imported where they are used: a model without changes needs
none of them.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxreduce_cli.engine.conversion import Conversion
    from onnxreduce_cli.verification.sites.report import SiteReport


def prepare_checks() -> None:
    """Start the worker, which imports ONNX Runtime while this process reads and plans."""
    from onnxreduce_cli.worker.process import current_worker

    with suppress(OSError):  # It is raised again where the worker is used.
        current_worker(("onnxruntime", "onnxreduce_cli.verification.running.sessions"))


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
    from onnxreduce_cli.engine.pairs.distinct import distinct_sites
    from onnxreduce_cli.verification.inputs.profiles import constant_drawer
    from onnxreduce_cli.verification.sites.checking import check_conversion

    return check_conversion(distinct_sites(conversion, constant_drawer()), strict=strict)
