"""Differences of indices that near-equal values explain.

Where two elements are nearly equal, rounding decides which of them is the largest, and all that
is computed from its index differs. So the first model is run with the second model's indices:

- The values that it picked them from must agree with the first model's.
- From exactly those values the first model's own node must pick exactly those indices. An index
  that is off by one, of another axis, or of the smallest in place of the largest, is not picked.
- The first model, given those indices, must come to outputs that agree with the second's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.graph.values import is_float, numpy_dtype
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.verification.compare.values import Tolerance, compare_values
from onnxreduce_cli.verification.running.single_node import input_info, single_node_model
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole.divergence import in_one_dtype, inner_values
from onnxreduce_cli.verification.whole.value_graph import ValueGraph

#: Operators that pick, by how many of their first inputs are what they pick from.
_PICKING = {
    "ArgMax": 1,
    "ArgMin": 1,
    "Hardmax": 1,
    "NonMaxSuppression": 2,
    "TopK": 1,
    "Unique": 1,
}

_EXACT = Tolerance(exact=True)


@dataclass(frozen=True, slots=True)
class _PickingNode:
    """A node that picks elements, and the second model's names for its values.

    Attributes:
        node: the first model's node.
        data: the inputs that it picks from: the first model's names, and the second's.
        picked: its outputs that are used: the first model's names, and the second's.
    """

    node: NodeProto
    data: dict[str, str]
    picked: dict[str, str]


def explained_outputs(
    first: tuple[ModelSource, str],
    second: tuple[ModelSource, str],
    outputs: Mapping[str, Any],
    feeds: Mapping[str, Any],
    near: Callable[[str, Any, Any], bool],
) -> set[str]:
    """Return the outputs that agree once near-equal values are picked in the same order.

    Args:
        first: the reference and the executor that runs it.
        second: the same model and another executor, or another model and its executor.
        outputs: the second model's outputs.
        feeds: the inputs.
        near: whether two values of a name of the first model agree but for rounding.
    """
    graph = ValueGraph(first[0])
    picks = list(_picks(graph, ValueGraph(second[0]), outputs))
    if not picks:
        return set()
    names = {name for pick in picks for name in (*pick.data.values(), *pick.picked.values())}
    known = {**inner_values(second, sorted(names - set(feeds)), feeds), **feeds}
    if not names <= set(known):
        return set()
    given = {mine: known[other] for pick in picks for mine, other in pick.picked.items()}
    own = scopes(first[0].skeleton)
    facts = Facts(first[0].skeleton, own)
    given = {name: _in_own_dtype(value, facts.kind(own[0], name)) for name, value in given.items()}
    cut = _without(first[0], [pick.node for pick in picks], given)
    wanted = {name for pick in picks for name in pick.node.input if name} | set(outputs)
    fed = {**feeds, **given}
    mine = {**inner_values((cut, first[1]), sorted(wanted - set(fed)), fed), **fed}
    right = [pick for pick in picks if _is_right(pick, first, mine, known, near)]
    good = {name for pick in right for name in pick.picked}
    bad = {name for pick in picks for name in pick.picked} - good
    return {
        name
        for name, value in outputs.items()
        if name in mine
        and near(name, mine[name], value)
        and bad.isdisjoint({name, *graph.ancestors(name)})
    }


def _picks(
    first: ValueGraph, second: ValueGraph, outputs: Mapping[str, Any]
) -> Iterator[_PickingNode]:
    """Yield the picking nodes that outputs of the first model depend on, with their counterparts.

    Values are found by their names where the second model has them, else by the position of the
    node among all of its operator.
    """
    behind = first.nodes_behind(outputs)
    read = {name for node in first.nodes for name in node.input} | set(outputs)
    counts: dict[str, int] = {}
    for position, node in enumerate(first.nodes):
        if node.op_type not in _PICKING or not is_default(node.domain):
            continue
        place = counts[node.op_type] = counts.get(node.op_type, -1) + 1
        if position not in behind:
            continue
        same = [item for item in second.nodes if item.op_type == node.op_type]
        other = same[place] if place < len(same) else None
        data = [name for name in node.input[: _PICKING[node.op_type]] if name]
        picked = [name for name in node.output if name in read]
        yield _PickingNode(
            node,
            _paired(data, node.input, () if other is None else other.input, second),
            _paired(picked, node.output, () if other is None else other.output, second),
        )


def _paired(
    names: Sequence[str], own: Sequence[str], others: Sequence[str], second: ValueGraph
) -> dict[str, str]:
    """Return the second model's names for values of a node: the same, or by their position."""
    found = {}
    for name in names:
        place = list(own).index(name)
        by_place = others[place] if place < len(others) and others[place] else name
        found[name] = name if name in second.producers else by_place
    return found


def _is_right(
    pick: _PickingNode,
    first: tuple[ModelSource, str],
    mine: Mapping[str, Any],
    known: Mapping[str, Any],
    near: Callable[[str, Any, Any], bool],
) -> bool:
    """Return whether the first model's node picks the same from the second model's values."""
    for name, other in pick.data.items():
        if name not in mine or not near(name, *in_one_dtype(mine[name], known[other])):
            return False
    given = {name: mine[name] for name in pick.node.input if name and name in mine}
    given |= {name: known[other] for name, other in pick.data.items()}
    if any(name and name not in given for name in pick.node.input):
        return False
    alone = ModelSource(
        single_node_model(pick.node, given, first[0].skeleton), first[0].label, generated=True
    )
    found = inner_values((alone, first[1]), list(pick.picked), given)
    return all(
        name in found and compare_values(found[name], known[other], _EXACT).agree
        for name, other in pick.picked.items()
    )


def _in_own_dtype(value: Any, kind: str | None) -> Any:
    """Return a value of the second model in the dtype that it has in the first."""
    if not isinstance(value, np.ndarray) or not is_float(value.dtype) or kind is None:
        return value
    number = TensorProto.DataType.Value(kind.removeprefix("tensor(").removesuffix(")").upper())
    return value.astype(numpy_dtype(number))


def _without(
    source: ModelSource, nodes: Sequence[NodeProto], given: Mapping[str, Any]
) -> ModelSource:
    """Return a model without some nodes, whose outputs become inputs."""
    model = source.whole()
    made = {name for node in nodes for name in node.output if name}
    kept = [node for node in model.graph.node if made.isdisjoint(node.output)]
    del model.graph.node[:]
    model.graph.node.extend(kept)
    model.graph.input.extend(input_info(name, value) for name, value in given.items())
    outputs = [value for value in model.graph.output if value.name not in made]
    del model.graph.output[:]
    model.graph.output.extend(outputs)
    return ModelSource(model, source.label, base_dir=source.base_dir, generated=True)
