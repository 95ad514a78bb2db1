"""Running what a conversion changes, before against after.

What brings ONNX Runtime is imported where it is called: a model that nothing changes needs none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from onnxreduce_cli.engine.conversion import Conversion

if TYPE_CHECKING:
    from onnxreduce_cli.verification.sites.report import SiteReport


def prepare_checks() -> None:
    """Let a process that checks start while this one reads and plans, if none has."""
    from onnxreduce_cli.verification.pair_process import prepared
    from onnxreduce_cli.verification.process import prepare

    if prepared() is None:
        prepare("onnxruntime")


def check_conversion(
    conversion: Conversion, *, strict: bool, meanwhile: Callable[[], object] | None = None
) -> SiteReport | None:
    """Run each distinct site; None where the conversion rewrites no node, or some block it.

    Args:
        conversion: the conversion.
        strict: whether every site must be checked.
        meanwhile: is called while another process checks, if one does.

    Raises:
        CheckError: a site does not compute the same.
        UncheckedError: one could not be checked, with `strict`.
    """
    if not conversion.rewrites_nodes or conversion.blockers:
        return None
    from onnxreduce_cli.engine.pairs.distinct import distinct_sites
    from onnxreduce_cli.verification.inputs.profiles import constant_drawer
    from onnxreduce_cli.verification.sites.checking import check

    return check(distinct_sites(conversion, constant_drawer()), strict=strict, meanwhile=meanwhile)
