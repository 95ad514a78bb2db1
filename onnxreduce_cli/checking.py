"""Conversions check themselves: every distinct site, before against after."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from onnxreduce_cli.conversion import Conversion
from onnxreduce_cli.errors import CheckError

if TYPE_CHECKING:
    from onnxreduce_cli.verification.site_report import SiteReport


def check(conversion: Conversion) -> SiteReport | None:
    """Run every distinct site of a conversion that is not applied yet.

    Returns:
        what was found; None where the conversion rewrites no node.

    Raises:
        CheckError: a site does not compute the same; what reproduces it is kept in a new folder.
    """
    if not any(site.words for site in conversion.sites if site.blocked is None):
        return None
    # Imported late: this brings ONNX Runtime.
    from onnxreduce_cli.verification.sites import check_sites

    report = check_sites(conversion)
    if report.ok:
        return report
    folder = tempfile.mkdtemp(prefix="onnxreduce-failure-")
    for number, failure in enumerate(report.failures):
        failure.save(os.path.join(folder, str(number)))
    lines = [
        "what would replace these nodes does not compute the same, so nothing was converted:",
        *(str(failure) for failure in report.failures),
        f"This is a bug in onnxreduce; please report it with what is kept in {folder}",
    ]
    raise CheckError("\n".join(lines), folder)
