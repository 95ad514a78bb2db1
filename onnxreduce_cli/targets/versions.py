"""Versions and ranges of them, compared as pip compares them (PEP 440)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

_VERSION = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<early>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?P<nth>\d*))?"
    r"(?:[-_.]?(?P<post>post|rev|r)[-_.]?(?P<later>\d*))?"
    r"(?:[-_.]?dev[-_.]?(?P<dev>\d*))?"
    r"(?:\+[a-z0-9.]+)?",
    re.IGNORECASE,
)
_CONDITION = re.compile(r"(==|!=|>=|<=|~=|>|<)\s*([^\s,<>=!~]+)")

#: The order of the pre-releases.
_EARLY = {"a": 0, "alpha": 0, "b": 1, "beta": 1}


@dataclass(frozen=True, order=True, slots=True)
class Version:
    """A version, such as ``1.14.1`` or ``0.27.0.post1``.

    Attributes:
        text: the text that it was read from.
        numbers: the numbers of its release.
        key: the key for comparisons: the release without trailing zeros, and the stage before or
            after the release.
    """

    text: str = field(compare=False)
    numbers: tuple[int, ...] = field(compare=False)
    key: tuple[tuple[int, ...], tuple[int, ...]]

    @staticmethod
    def of(text: str) -> Version:
        """Read a version.

        Raises:
            ValueError: the text is no version.
        """
        found = _VERSION.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r} is no version")
        numbers = tuple(map(int, found["release"].split(".")))
        dev = -1 if found["dev"] is not None else 0
        if found["early"] is not None:
            stage = (-1, _EARLY.get(found["early"].lower(), 2), int(found["nth"] or 0), dev)
        elif found["post"] is not None:
            stage = (1, int(found["later"] or 0), 0, dev)
        else:
            # A development version comes before all others of its release.
            stage = (-2, 0, 0, 0) if dev else (0, 0, 0, 0)
        release = numbers
        while len(release) > 1 and not release[-1]:
            release = release[:-1]
        return Version(text.strip(), numbers, (release, stage))

    def __str__(self) -> str:
        """Return the version as it was written."""
        return self.text

    def is_of(self, series: Version) -> bool:
        """Return whether the version is in a series: 1.14.1 is in 1.14, and in 1."""
        count = len(series.numbers)
        padded = (*self.numbers, *(0,) * count)
        return padded[:count] == series.numbers


@dataclass(frozen=True, slots=True)
class VersionCondition:
    """One condition on a version, such as ``>=1.8``.

    Attributes:
        sign: the operator of the comparison.
        version: the version to compare with.
        series: whether the whole series is meant, as by ``==1.14.*``.
    """

    sign: str
    version: Version
    series: bool = False

    def allows(self, version: Version) -> bool:
        """Return whether a version meets the condition."""
        if self.series:
            return version.is_of(self.version) == (self.sign == "==")
        if self.sign == "~=":
            numbers = self.version.text.split(".")[:-1]
            return version >= self.version and version.is_of(Version.of(".".join(numbers)))
        return _COMPARE[self.sign](version, self.version)


_COMPARE: dict[str, Callable[[Version, Version], bool]] = {
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    ">=": lambda a, b: a >= b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    "<": lambda a, b: a < b,
}


def version_conditions(text: str) -> tuple[VersionCondition, ...]:
    """Read conditions separated by commas, ``>=1.8,<1.12``; an empty text has none.

    Raises:
        ValueError: a part is no condition.
    """
    found = []
    for part in text.split(",") if text.strip() else ():
        match = _CONDITION.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part.strip()!r} is no condition on a version")
        sign, version = match.groups()
        series = version.endswith(".*") and sign in ("==", "!=")
        number = Version.of(version.removesuffix(".*") if series else version)
        if sign == "~=" and "." not in version:
            raise ValueError(f"{part.strip()!r} names no series; say ~={version}.0")
        found.append(VersionCondition(sign, number, series))
    return tuple(found)


def meets_all(version: Version, conditions: tuple[VersionCondition, ...]) -> bool:
    """Return whether a version meets all conditions."""
    return all(clause.allows(version) for clause in conditions)
