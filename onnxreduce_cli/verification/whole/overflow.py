"""Values of a model that are beyond the range of the dtype that a conversion gives them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from onnxreduce_cli.model.graph.dtype_change import keep_option
from onnxreduce_cli.model.graph.scope import called_key, function_key, scopes, subgraphs
from onnxreduce_cli.model.graph.values import dtype_name, finfo, is_float, numpy_dtype
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.text import listed
from onnxreduce_cli.verification.compare.in_double import ChangedDtypes
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole.divergence import inner_values
from onnxreduce_cli.verification.whole.value_graph import ValueGraph


class Overflow(NamedTuple):
    """A value that is beyond the range of its new dtype.

    Attributes:
        value: its name.
        node: the name of the node that computes it; empty if it has none.
        op_type: the operator; empty of an input.
        largest: the largest finite magnitude in it.
        dtype: the new dtype.
        keep: the names and operators of the nodes that must keep the old one: its own and those
            that read it, except for calls of functions and nodes with subgraphs; none if its own
            is such a one.
        outer: whether it is an input or output of the model.
    """

    value: str
    node: str
    op_type: str
    largest: float
    dtype: str
    keep: tuple[tuple[str, str], ...]
    outer: bool

    def __str__(self) -> str:
        """Return what is where, such as ``node 'pow' (Pow) computes 1.2e+06``."""
        if not self.op_type:
            return f"input {self.value!r} has {self.largest:.4g}"
        node = repr(self.node) if self.node else f"that makes {self.value!r}"
        return f"node {node} ({self.op_type}) computes {self.largest:.4g}"


def overflows(
    sides: Sequence[tuple[ModelSource, str]], feeds: Mapping[str, Any], changed: ChangedDtypes
) -> list[Overflow]:
    """Return the values of the main graph that overflow, those computed first before others.

    Args:
        sides: the model before and after the conversion, each with the executor that runs it.
        feeds: inputs of the model before.
        changed: the dtypes that changed, by the old ones.
    """
    first, second = sides
    graph = ValueGraph(first[0])
    narrow = _narrowed(second[0], changed)
    outputs = {item.name for item in first[0].skeleton.graph.output}
    calls = {function_key(function) for function in first[0].skeleton.functions}
    whole = [n for n in graph.nodes if not any(subgraphs(n)) and called_key(n) not in calls]
    names = [name for name in graph.order if name in narrow]
    values = {**feeds, **inner_values(first, names, feeds)}
    found = []
    for name in (*(item for item in feeds if item in narrow), *names):
        value = values.get(name)
        if not isinstance(value, np.ndarray) or not is_float(value.dtype):
            continue
        new = changed.get(helper.np_dtype_to_tensor_dtype(value.dtype))
        if new is None:
            continue
        largest = _largest(value)
        if largest > float(finfo(numpy_dtype(new)).max):
            node = graph.producers.get(name)
            named = ("", "") if node is None else (node.name, node.op_type)
            # A Cast of it to the new dtype would overflow, so those that read it must stay, too.
            ends = [n for n in whole if name in (*n.input, *n.output)]
            helps = node is None or any(item is node for item in ends)
            keep = tuple((n.name, n.op_type) for n in ends) if helps else ()
            outer = node is None or name in outputs
            found.append(Overflow(name, *named, largest, dtype_name(new), keep, outer))
    return found


def _narrowed(source: ModelSource, changed: ChangedDtypes) -> set[str]:
    """Return the values of the main graph that are of the new dtypes, or cast to or from these.

    Inputs and outputs that keep their dtype have such Casts.
    """
    tree = scopes(source.skeleton)
    facts, scope = Facts(source.skeleton, tree), tree[0]
    kinds = {f"tensor({dtype_name(item)})" for item in changed.values()}
    values = {*scope.inputs, *(name for node in scope.nodes for name in node.output)}
    found = {name for name in values if name and facts.kind(scope, name) in kinds}
    return found | {
        name
        for node in scope.nodes
        if node.op_type == "Cast" and not found.isdisjoint((*node.input, *node.output))
        for name in (*node.input, *node.output)
    }


def _largest(array: npt.NDArray[Any]) -> float:
    """Return the largest finite magnitude; 0 where there is none."""
    magnitudes = np.abs(array.astype(np.float64))
    return float(np.max(magnitudes, where=np.isfinite(magnitudes), initial=0.0))


def said_of(found: Sequence[Overflow]) -> str:
    """Return which values overflow, in one line."""
    limit = float(finfo(numpy_dtype(TensorProto.DataType.Value(found[0].dtype.upper()))).max)
    names = listed([str(item) for item in found])
    return f"values are beyond the range of {found[0].dtype}, {limit:.6g}: {names}"


def advice_on(found: Sequence[Overflow]) -> str:
    """Return what to type so that values do not overflow."""
    keep = [pair for item in found for pair in item.keep]
    options = ["--keep-interface"] if any(item.outer for item in found) else []
    return " ".join([*options, *([keep_option(keep)] if keep else [])]) or "leave out --dtype"


def merged(found: Iterable[Overflow]) -> list[Overflow]:
    """Return overflows on several inputs as one for each value, the largest of it."""
    largest: dict[str, Overflow] = {}
    for item in found:
        if item.value not in largest or item.largest > largest[item.value].largest:
            largest[item.value] = item
    return list(largest.values())
