"""Running what a conversion changes, before against after.

What brings ONNX Runtime is imported where it is called: a model that nothing changes needs none.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from onnxreduce_cli.engine.conversion import Conversion
    from onnxreduce_cli.verification.sites.report import SiteReport


def prepare_checks() -> None:
    """Let the worker import ONNX Runtime while this process reads and plans."""
    from onnxreduce_cli.worker.process import current

    with suppress(OSError):  # Whoever needs it is told.
        current(("onnxruntime", "onnxreduce_cli.verification.running.sessions"))


def check_conversion(conversion: Conversion, *, strict: bool) -> SiteReport | None:
    """Run each distinct site; None where the conversion rewrites no node, or some block it.

    Args:
        conversion: the conversion.
        strict: whether every site must be checked.

    Raises:
        CheckError: a site does not compute the same.
        UncheckedError: one could not be checked, with `strict`.
    """
    if not conversion.rewrites_nodes or conversion.blockers:
        return None
    from onnxreduce_cli.engine.pairs.distinct import distinct_sites
    from onnxreduce_cli.verification.inputs.profiles import constant_drawer
    from onnxreduce_cli.verification.sites.checking import check_conversion

    return check_conversion(distinct_sites(conversion, constant_drawer()), strict=strict)
