"""A report as JUnit XML: a case for each model, each output and each distinct node that changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from onnxreduce_cli.errors import node_in_scope
from onnxreduce_cli.text import joined, shortened

#: The characters that XML 1.0 does not allow, not even escaped.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, slots=True)
class JUnitCase:
    """A test case: a model, an output or a site that a command judged.

    Attributes:
        suite: the model that it belongs to; the command where no model was read.
        kind: ``model``, ``output`` or ``site``, or ``command`` where it failed as a whole.
        name: its name.
        failure: what is wrong, in brief on the first line; empty if nothing is.
        skipped: why it was not judged; empty if it was.
        seconds: how long it took, without the others of its suite.
    """

    suite: str
    kind: str
    name: str
    failure: str = ""
    skipped: str = ""
    seconds: float = 0.0


def junit(report: Mapping[str, Any]) -> str:
    """Return a report as JUnit XML, with a test suite for each model.

    Args:
        report: a report, as plain data.
    """
    found = list(cases(report))
    root = Element("testsuites", _counts("onnxreduce", found))
    # The schema that CI systems follow has this attribute on suites only.
    del root.attrib["skipped"]
    started = report["call"]["started"].partition("+")[0]
    for suite in dict.fromkeys(case.suite for case in found):
        members = [case for case in found if case.suite == suite]
        parent = SubElement(root, "testsuite", _counts(suite, members), timestamp=started)
        for case in members:
            item = SubElement(
                parent,
                "testcase",
                classname=_text(f"onnxreduce.{report['command']}.{case.kind}"),
                name=_text(case.name),
                time=f"{case.seconds:.3f}",
            )
            for tag, message in (("failure", case.failure), ("skipped", case.skipped)):
                if message:
                    first = shortened(message.split("\n")[0])
                    SubElement(item, tag, message=_text(first)).text = _text(message)
    indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{tostring(root, encoding="unicode")}\n'


def _counts(name: str, members: Sequence[JUnitCase]) -> dict[str, str]:
    return {
        "name": _text(name),
        "tests": str(len(members)),
        "failures": str(sum(bool(case.failure) for case in members)),
        "errors": "0",
        "skipped": str(sum(bool(case.skipped) for case in members)),
        "time": f"{sum(case.seconds for case in members):.3f}",
    }


def _text(text: str) -> str:
    return _NO_XML.sub("?", joined(text.split("\n")))


def cases(report: Mapping[str, Any]) -> Iterator[JUnitCase]:
    """Yield the test cases of a report, which is plain data."""
    problem, seconds = report["problem"], report["call"]["seconds"]
    if problem is not None:
        name = report["command"]
        yield JUnitCase(name, "command", name, problem["message"], seconds=seconds)
    elif report["command"] == "convert":
        for model in report["models"]:
            yield from _model(model)
    elif report["command"] == "verify":
        yield from _outputs(report, report["a"])
    elif report["command"] == "diff":
        differs = f"{report['b']} differs; onnxreduce diff says in what" * report["differs"]
        name = f"the same graph as {report['b']}"
        yield JUnitCase(report["a"], "model", name, differs, seconds=seconds)


def _model(model: Mapping[str, Any]) -> Iterator[JUnitCase]:
    suite, checks = model["source"], (model["checks"] or {"each": ()})["each"]
    apart = sum(site["seconds"] for site in checks)
    apart += model["verified"]["seconds"] if model["verified"] is not None else 0
    seconds = max(0.0, model["seconds"] - apart)
    yield JUnitCase(suite, "model", suite, _whole(model["problem"]), seconds=seconds)
    for site in checks:
        where = node_in_scope(site["node"], site["scope"])
        more = f" and {site['sites'] - 1:,} more" if site["sites"] > 1 else ""
        name = f"{site['op_type']}: {where}{more}"
        failed = site["verdict"] == "failed"
        unchecked = site["verdict"] == "not checked"
        reason = site["reason"] or site["verdict"]
        verdict = reason * failed, reason * unchecked
        yield JUnitCase(suite, "site", name, *verdict, site["seconds"])
    if model["verified"] is not None:
        yield from _outputs(model["verified"], suite)


def _whole(problem: Mapping[str, Any] | None) -> str:
    """Return what is wrong with a model, with all blockers."""
    if problem is None:
        return ""
    lines = [
        f"{item['op_type']} node {node_in_scope(item['node'], item['scope'])}: {item['reason']}"
        for item in problem["blockers"]
    ]
    first = problem["message"].split("\n")[0] if lines else problem["message"]
    return "\n".join([first, *lines])


def _outputs(verified: Mapping[str, Any], suite: str) -> Iterator[JUnitCase]:
    """Yield a case for each output, which were compared together, or one if none could be."""
    found = list(_compared(verified, suite))
    for case in found:
        yield replace(case, seconds=verified["seconds"] / len(found))


def _compared(verified: Mapping[str, Any], suite: str) -> Iterator[JUnitCase]:
    """Yield the cases of the outputs, without times."""
    failing, pair = verified["equivalent"] is False, verified["b"] is not None
    named: dict[str, list[str]] = {}
    for found in verified["comparisons"]:
        wrong = named.setdefault(found["output"], [])
        between = f"{' in '.join(found['first'])} and {' in '.join(found['second'])}"
        # Where two models are compared, executors that differ on one of them do not count.
        counts = failing and pair == (found["first"][0] != found["second"][0])
        if counts and not found["agree"]:
            errors = found["errors"]
            what = errors["problem"] or (
                f"{errors['mismatches']} of {errors['count']} elements differ, by up to "
                f"{errors['max_abs']}"
            )
            wrong.append(f"{between}: {what}")
    for output, wrong in named.items():
        yield JUnitCase(suite, "output", output, "\n".join(wrong))
    if verified["equivalent"] is None:
        yield JUnitCase(suite, "output", "all outputs", "", "nothing could compare them")
    elif failing and not any(named.values()):
        reasons = [*verified["interface"], *verified["warnings"]]
        yield JUnitCase(suite, "output", "all outputs", "\n".join(reasons) or "they differ")
