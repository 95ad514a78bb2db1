"""The topological order of a graph's nodes: each node after the nodes that compute its inputs.

Checking every name of a large graph takes as long as reading its file. But tools that leave nodes
out of order add them at the end. So a graph is checked in full only if some of its last nodes are
out of order, or make values that no later node reads and that are no outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from onnx import AttributeProto, GraphProto, NodeProto

from onnxreduce_cli.errors import InvalidModelError

#: The number of last nodes that are checked first.
_LAST = 64


def misplaced(nodes: Sequence[NodeProto], outputs: Collection[str]) -> NodeProto | None:
    """Return the first node that reads an output of a later one; None if there is none.

    Args:
        nodes: the nodes of a graph.
        outputs: the names of the graph's outputs.
    """
    # First without subgraphs: nested graphs would be read once for each graph around them.
    suspect = _is_suspect(nodes, outputs, _inputs) and _is_suspect(nodes, outputs, _reads)
    return _first_early(nodes) if suspect else None


def _is_suspect(
    nodes: Sequence[NodeProto], outputs: Collection[str], reads: Callable[[NodeProto], set[str]]
) -> bool:
    read, made = set(outputs), set[str]()
    for node in reversed(nodes[-_LAST:]):
        given, needed = node.output[:], reads(node)
        made.update(given)
        if read.isdisjoint(given) or not made.isdisjoint(needed):
            return True
        read.update(needed)
    return False


def _first_early(nodes: Sequence[NodeProto]) -> NodeProto | None:
    readers: dict[str, int] = {}
    early = len(nodes)
    for index, node in enumerate(nodes):
        for name in _reads(node) if node.attribute else node.input[:]:
            readers.setdefault(name, index)
        for name in node.output[:]:
            if name and readers.get(name, early) < early:
                early = readers[name]
    return nodes[early] if early < len(nodes) else None


def in_order(nodes: Sequence[NodeProto]) -> list[NodeProto]:
    """Return nodes in topological order; one that comes too late is put right before its reader.

    Raises:
        InvalidModelError: there is a cycle.
    """
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    found: list[NodeProto] = []
    begun, done = set[int](), set[int]()
    waiting = list(reversed(range(len(nodes))))
    while waiting:
        index = waiting[-1]
        if index in done:
            waiting.pop()
            continue
        needed = {makers[name] for name in _reads(nodes[index]) if name in makers} - done
        if not needed:
            done.add(waiting.pop())
            found.append(nodes[index])
            continue
        begun.add(index)
        if not needed.isdisjoint(begun):
            name = next(name for name in nodes[index].output if name)
            raise InvalidModelError(
                f"the node that makes {name!r} needs its own result, by way of others; mend the "
                "model"
            )
        waiting += sorted(needed, reverse=True)
    return found


def _inputs(node: NodeProto) -> set[str]:
    return {name for name in node.input if name}


def _reads(node: NodeProto) -> set[str]:
    """Return the names that a node and its graphs read from the scope of the node.

    No recursion: graphs may nest as deep as the file format allows.
    """
    found = set(node.input)
    #: Each graph with the names that it and those around it, within the node, define.
    waiting = [(graph, frozenset[str]()) for graph in _graphs(node)]
    while waiting:
        graph, outer = waiting.pop()
        own = {value.name for value in graph.input} | {tensor.name for tensor in graph.initializer}
        own.update(name for item in graph.node for name in item.output)
        known = outer | own
        for item in graph.node:
            found.update(name for name in item.input if name not in known)
            waiting += [(inner, known) for inner in _graphs(item)]
    found.discard("")
    return found


def _graphs(node: NodeProto) -> list[GraphProto]:
    return [
        graph
        for item in node.attribute
        for graph in ([item.g] if item.type == AttributeProto.GRAPH else item.graphs)
    ]
