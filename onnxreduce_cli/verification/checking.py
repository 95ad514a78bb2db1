"""Conversions check themselves: every distinct site, before against after."""

from __future__ import annotations

import os
import tempfile

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.errors import CheckError, UncheckedError
from onnxreduce_cli.verification.site_report import SiteReport
from onnxreduce_cli.verification.sites import check_sites


def check(conversion: Conversion, *, strict: bool = False) -> SiteReport:
    """Run every distinct site of a conversion that is not applied yet.

    Args:
        conversion: the conversion.
        strict: whether every site must be checked.

    Returns:
        what was found.

    Raises:
        CheckError: a site does not compute the same; what reproduces it is kept in a new folder.
        UncheckedError: a site could not be checked, and the check is strict.
    """
    report = check_sites(conversion)
    if report.ok and strict and report.unchecked:
        head = "nothing was converted, as these nodes could not be checked:"
        unchecked = UncheckedError("\n".join([head, *map(str, report.unchecked)]))
        unchecked.report = report
        raise unchecked
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
    raise CheckError(lines, folder, report)
