"""Values of a model that are beyond the range of the dtype that a conversion gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, helper

from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.graph.values import dtype_name, finfo, is_float, numpy_dtype
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.text import listed
from onnxreduce_cli.verification.compare.in_double import ChangedDtypes
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole.divergence import inner_values
from onnxreduce_cli.verification.whole.value_graph import ValueGraph

#: How many nodes messages name.
_NAMED = 3


class Overflow(NamedTuple):
    """A value that is beyond the range of its new dtype.

    Attributes:
        value: its name.
        node: the name of the node that computes it; empty if it has none.
        op_type: the operator; empty of an input.
        largest: the largest finite magnitude in it.
        dtype: the new dtype.
    """

    value: str
    node: str
    op_type: str
    largest: float
    dtype: str

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
    after = scopes(second[0].skeleton)
    facts = Facts(second[0].skeleton, after)
    beyond = {name: facts.kind(after[0], name) for name in (*feeds, *graph.order)}
    reduced = {f"tensor({dtype_name(item)})" for item in changed.values()}
    names = [name for name in graph.order if beyond[name] in reduced]
    values = {**feeds, **inner_values(first, names, feeds)}
    found = []
    for name in (*feeds, *names):
        value = values.get(name)
        if not isinstance(value, np.ndarray) or not is_float(value.dtype):
            continue
        new = changed.get(helper.np_dtype_to_tensor_dtype(value.dtype))
        if new is None or beyond[name] != f"tensor({dtype_name(new)})":
            continue
        largest = _largest(value)
        if largest > float(finfo(numpy_dtype(new)).max):
            node = graph.producers.get(name)
            named = ("", "") if node is None else (node.name, node.op_type)
            found.append(Overflow(name, *named, largest, dtype_name(new)))
    return found


def _largest(array: npt.NDArray[Any]) -> float:
    """Return the largest finite magnitude; 0 where there is none."""
    magnitudes = np.abs(array.astype(np.float64))
    return float(np.max(magnitudes, where=np.isfinite(magnitudes), initial=0.0))


def said_of(found: Sequence[Overflow]) -> str:
    """Return which values overflow, in one line."""
    limit = float(finfo(numpy_dtype(TensorProto.DataType.Value(found[0].dtype.upper()))).max)
    more = len(found) - _NAMED
    names = [str(item) for item in found[:_NAMED]] + ([f"{more} more"] if more > 0 else [])
    return f"values are beyond the range of {found[0].dtype}, {limit:.6g}: {listed(names)}"
