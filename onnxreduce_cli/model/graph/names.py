"""Names of values and nodes: fresh ones, and the empty ones of inputs that are absent."""

from collections.abc import Iterable
from functools import cached_property

from onnxreduce_cli.model.graph.scope import Scope


class Names:
    """The names taken in one tree of scopes, and fresh ones beside them.

    A name is fresh in the whole tree, so that no generated value shadows one of an inner or an
    outer graph. The same requests in the same order give the same names.
    """

    def __init__(self, tree: Iterable[Scope]) -> None:
        """Take every name that the given scopes use: as they are when a fresh one is asked for."""
        self._tree = tree
        self._taken: set[str] = set()
        #: The last number tried for each base: all below it are taken, and stay so.
        self._counts: dict[str, int] = {}

    @cached_property
    def _given(self) -> frozenset[str]:
        """Those of the scopes, which many conversions share; others ask for no fresh one."""
        found = [scope.names for scope in self._tree]
        return found[0] if len(found) == 1 else frozenset[str]().union(*found)

    def fresh(self, base: str) -> str:
        """`base`, or `base_1`, `base_2`, ... where that is taken; the result becomes taken."""
        count = self._counts.get(base, 0)
        name = f"{base}_{count}" if count else base
        while name in self._taken or name in self._given:
            count += 1
            name = f"{base}_{count}"
        self._counts[base] = count
        self._taken.add(name)
        return name


def without_absent_last(inputs: Iterable[str]) -> list[str]:
    """The inputs of a node without those at the end that are absent: to have none means the same.

    Args:
        inputs: their names; those of absent ones are empty.
    """
    found = list(inputs)
    while found and not found[-1]:
        found.pop()
    return found
