"""What CI systems read of JUnit XML: the elements and attributes of Jenkins's ``junit-10.xsd``.

That is the schema of its xUnit plugin, which GitLab and others follow.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree.ElementTree import Element


@dataclass(frozen=True)
class Kind:
    """What an element may have: attributes that it must have, others, and elements within it."""

    required: str
    others: str
    within: str


_SUITE = "group time skipped timestamp hostname id package file log url version"
_KINDS = {
    "testsuites": Kind("", "name time tests failures errors", "testsuite"),
    "testsuite": Kind(
        "name tests failures errors", _SUITE, "testsuite properties testcase system-out system-err"
    ),
    "testcase": Kind(
        "name", "time classname group", "skipped errors failure system-out system-err"
    ),
    "failure": Kind("", "type message", ""),
    "skipped": Kind("", "type message", ""),
}
_TIME = re.compile(r"([0-9]{0,3},)*[0-9]{0,3}(\.[0-9]{0,3})?")


def errors(element: Element, path: str = "") -> Iterator[str]:
    """Yield what is wrong with an element by the schema, and with its numbers of cases."""
    path, kind = f"{path}/{element.tag}", _KINDS[element.tag]
    given, required = set(element.attrib), set(kind.required.split())
    yield from (f"{path} has no {name}" for name in required - given)
    yield from (f"{path} may have no {name}" for name in given - required - {*kind.others.split()})
    if element.tag != "testcase" and not _TIME.fullmatch(element.get("time", "")):
        yield f"{path} takes {element.get('time')}"
    if kind.within and (element.text or "").strip():
        yield f"{path} may have no text"
    counted = {"tests": "testcase", "failures": "failure", "skipped": "skipped"}
    for name in given & set(counted):
        if element.get(name) != str(len([*element.iter(counted[name])])):
            yield f"{path} has another number of {name}"
    for item in element:
        if item.tag in kind.within.split():
            yield from errors(item, path)
        else:
            yield f"{path} may have no {item.tag} in it"
