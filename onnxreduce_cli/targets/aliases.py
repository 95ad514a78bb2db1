"""Names that people give instead of a runtime's: products that have one in them.

`data/aliases.toml` has a table for each: its title, the runtime, other names, and for each source
the versions of the runtime with the versions of the product that have them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from onnxreduce_cli.targets.reading import parse_toml
from onnxreduce_cli.targets.rows import Source
from onnxreduce_cli.targets.versions import Version, meets_all, version_conditions

_FILE = Path(__file__).with_name("data") / "aliases.toml"


@dataclass(frozen=True, slots=True)
class Release:
    """One version of a product.

    Attributes:
        text: the version, as people write it: ``4.6`` or ``windows11``.
        runtime_version: the version of the runtime in it.
        source: the source of this.
    """

    text: str
    runtime_version: Version
    source: Source

    @property
    def version(self) -> Version | None:
        """Return the version; None where it is a name."""
        try:
            return Version.of(self.text)
        except ValueError:
            return None


class Chosen(NamedTuple):
    """The versions of a product that a requirement names.

    Attributes:
        releases: the versions, the oldest first; none if none meets it.
        remark: a remark for the user; may be empty.
    """

    releases: Sequence[Release]
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Alias:
    """A product that has a runtime in it.

    Attributes:
        name: its name.
        title: its full name.
        runtime: the name of the runtime.
        names: other names of it.
        releases: its versions, in the order of the file.
    """

    name: str
    title: str
    runtime: str
    names: Sequence[str]
    releases: Sequence[Release]

    def choose(self, conditions: str) -> Chosen:
        """Return the versions that conditions name: those of a runtime, or a version's name.

        Raises:
            ValueError: a part is no condition.
        """
        if not conditions:
            return Chosen(self.releases[-1:])
        sign, _, text = conditions.rpartition("==")
        named = [release for release in self.releases if release.text == text.strip().lower()]
        if named and not sign:
            return Chosen(named)
        wanted = version_conditions(conditions)
        numbered = [release for release in self.releases if release.version is not None]
        if len(wanted) == 1 and wanted[0].sign == "==" and not wanted[0].series:
            return _nearest(self.name, wanted[0].version, numbered)
        return Chosen(
            [item for item in numbered if item.version and meets_all(item.version, wanted)]
        )


def _nearest(name: str, version: Version, releases: Sequence[Release]) -> Chosen:
    """Return the newest release of a version's series, or else the nearest older one."""
    same = [item for item in releases if item.version == version]
    of_series = same or [item for item in releases if item.version and item.version.is_of(version)]
    if of_series:
        return Chosen(of_series[-1:])
    older = [
        item
        for item in releases
        if item.version and (item.version <= version or version.is_of(item.version))
    ]
    if not older:
        return Chosen([])
    found = older[-1]
    if version.is_of(found.version or version):
        return Chosen([found])
    return Chosen([found], f"nothing is known of {name} {version}: taken for {found.text}")


@cache
def aliases() -> Mapping[str, Alias]:
    """Return the products by their names."""
    tables = parse_toml("aliases", _FILE.read_text(encoding="utf-8"))
    return {
        name: Alias(
            name,
            table["title"],
            table["runtime"],
            table.get("names", ()),
            [
                Release(text, Version.of(version), Source("document", part["where"], part["date"]))
                for part in table["read"]
                for version, texts in part["versions"].items()
                for text in texts.split()
            ],
        )
        for name, table in tables.items()
    }
