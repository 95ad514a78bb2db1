"""Names of values and nodes: unused ones, and the empty names of absent inputs."""

from collections.abc import Iterable
from functools import cached_property

from onnxreduce_cli.model.graph.scope import Scope


class Names:
    """The names used in one tree of scopes, from which fresh ones are derived.

    A name is fresh in the whole tree, so that no generated value shadows one of an inner or an
    outer graph. The same requests in the same order give the same names.

    Attributes:
        taken: the fresh names.
    """

    def __init__(self, tree: Iterable[Scope]) -> None:
        """Prepare for a tree of scopes; their names are read when the first fresh one is needed."""
        self._tree = tree
        self.taken: set[str] = set()
        #: The last number tried for each base; all names with smaller numbers are taken.
        self._counts: dict[str, int] = {}

    @cached_property
    def _given(self) -> frozenset[str]:
        """The names of the scopes, which many conversions share."""
        found = [scope.names for scope in self._tree]
        return found[0] if len(found) == 1 else frozenset[str]().union(*found)

    def fresh(self, base: str) -> str:
        """Take and return `base`, or the first of `base_1`, `base_2`, ... that is free."""
        count = self._counts.get(base, 0)
        name = f"{base}_{count}" if count else base
        while name in self.taken or name in self._given:
            count += 1
            name = f"{base}_{count}"
        self._counts[base] = count
        self.taken.add(name)
        return name


def without_absent_last(inputs: Iterable[str]) -> list[str]:
    """Return the inputs of a node without absent ones at the end, which mean nothing.

    Args:
        inputs: their names; the name of an absent input is empty.
    """
    found = list(inputs)
    while found and not found[-1]:
        found.pop()
    return found
