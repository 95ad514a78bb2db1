"""A report in GitLab's Code Quality format, which merge requests show.

GitLab documents it as the "Code Quality report format", a part of Code Climate's.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

from onnxreduce_cli.report.junit import JUnitCase, cases
from onnxreduce_cli.text import joined, printable


def code_quality(report: Mapping[str, Any]) -> str:
    """Return a report in Code Quality format: entries for what failed or was not checked.

    Args:
        report: a report, as plain data.
    """
    return json.dumps(list(_entries(report)), indent=2)


def _entries(report: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for case in cases(report):
        if case.failure:
            yield _entry(case, "critical", case.failure)
        elif case.skipped:
            yield _entry(case, "minor", f"not checked: {case.skipped}")


def _entry(case: JUnitCase, severity: str, message: str) -> dict[str, Any]:
    # GitLab recognises earlier entries by it, so the message, whose numbers may vary, is no part.
    known = "\0".join((case.suite, case.kind, case.name))
    first = message.split("\n")[0]
    return {
        "description": joined([f"{case.name}: {first}"]),
        "check_name": f"onnxreduce.{case.kind}",
        "fingerprint": hashlib.sha256(known.encode()).hexdigest(),
        "severity": severity,
        "location": {"path": printable(_within(case.suite)), "lines": {"begin": 1}},
    }


def _within(path: str) -> str:
    """Return a path relative to the project, where jobs run, without ``./`` before it."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # On Windows, of another drive.
        relative = path
    outside = relative.split(os.sep)[0] == os.pardir
    return (path if outside else relative).replace(os.sep, "/")
