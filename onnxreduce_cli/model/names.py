"""Names of values and nodes: fresh ones, and the empty ones of inputs that are absent."""

from collections.abc import Iterable

from onnx import GraphProto

from onnxreduce_cli.model.scope import Scope


class Names:
    """The names taken in one tree of scopes, and fresh ones beside them.

    A name is fresh in the whole tree, so that no generated value shadows one of an inner or an
    outer graph. The same requests in the same order give the same names.
    """

    def __init__(self, tree: Iterable[Scope]) -> None:
        """Take every name that the given scopes use."""
        taken = self._taken = set[str]()
        #: The last number tried for each base: all below it are taken, and stay so.
        self._counts: dict[str, int] = {}
        for scope in tree:
            taken.update([node.name for node in scope.nodes])
            taken.update(scope.producers, scope.inputs, scope.outputs, scope.initializers)
            # What is said of values that are not there would be said of generated ones.
            taken.update([info.name for info in scope.container.value_info])
            if isinstance(scope.container, GraphProto):
                taken.update(sparse.values.name for sparse in scope.container.sparse_initializer)
                taken.update(item.tensor_name for item in scope.container.quantization_annotation)

    def fresh(self, base: str) -> str:
        """`base`, or `base_1`, `base_2`, ... where that is taken; the result becomes taken."""
        count = self._counts.get(base, 0)
        name = f"{base}_{count}" if count else base
        while name in self._taken:
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
