"""A graph that grows node by node, every value of which is known while it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from hypothesis import strategies as st
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, ValueInfoProto, helper

from onnxreduce_cli import executor
from onnxreduce_cli.executor import ExecutorError
from tests.contract import reads
from tests.support import least_ir_version

Array = np.ndarray[Any, Any]

HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
FLOATS = (np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16))
INTEGERS = (np.dtype(np.int32), np.dtype(np.int64))

#: Names as exporters write them, as nobody would, and as steps name what they add.
ODD_NAMES = (
    "x", "x_1", "axes", "data", "reduced", "a b", "x:0", "/layer.0/Softmax_output_0", "日本",
    "%s", '"', "'", "<x>", "a=b", "[0]", "long" * 40, "\\", "e\u0301", "-1", "None",
)  # fmt: skip


@dataclass(frozen=True)
class Known:
    """A value of the graph.

    Attributes:
        name: its name.
        array: what it is on the inputs drawn.
        exact: whether no rounding went into it, so that what jumps (a comparison, an index) is
            the same however it is computed.
    """

    name: str
    array: Array
    exact: bool


@dataclass
class Drawing:
    """What is drawn of a model so far.

    Attributes:
        draw: hypothesis' way to choose.
        opset: the model's opset.
        pool: values that nodes may read, those of outer scopes too.
        nodes: the nodes of this graph.
        inputs: its inputs; none in a subgraph.
        initializers: its initializers.
        functions: the model's functions.
        feeds: what is fed by name; for initializers that are inputs too, what overrides them.
        names: all names that are taken.
        depth: how many graphs are around this one.
        ir_version: the model's.
    """

    draw: st.DrawFn
    opset: int
    ir_version: int
    pool: list[Known] = field(default_factory=list)
    nodes: list[NodeProto] = field(default_factory=list)
    inputs: list[ValueInfoProto] = field(default_factory=list)
    initializers: list[TensorProto] = field(default_factory=list)
    functions: list[FunctionProto] = field(default_factory=list)
    feeds: dict[str, Array] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    depth: int = 0

    def choose(self, options: Sequence[Any]) -> Any:
        """One of some options; the first is the simplest."""
        return self.draw(st.sampled_from(options))

    def number(self, least: int, most: int) -> int:
        """An integer, both bounds included."""
        return self.draw(st.integers(least, most))

    def chance(self) -> bool:
        """True or false; false is simpler."""
        return self.draw(st.booleans())

    def name(self) -> str:
        """A name that nothing has yet."""
        wanted = self.choose(ODD_NAMES)
        found, count = wanted, 0
        while found in self.names:
            count += 1
            found = f"{wanted}_{count}"
        self.names.add(found)
        return found

    def within(self) -> Drawing:
        """A drawing of a graph within a node of this one."""
        return Drawing(
            self.draw,
            self.opset,
            self.ir_version,
            pool=list(self.pool),
            functions=self.functions,
            names=self.names,
            depth=self.depth + 1,
        )

    def numbers(self, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
        """An array of quarters from -4 to 4, of integers, or of booleans."""
        rng = np.random.default_rng(self.number(0, 999))
        if dtype == np.bool_:
            return np.asarray(rng.integers(0, 2, shape), bool)
        low = 0 if dtype.kind == "u" else -4
        if dtype.kind in "iu":
            return np.asarray(rng.integers(low, 5, shape), dtype)
        return np.asarray(rng.integers(-16, 17, shape) / 4, dtype)

    def shape(self, ranks: Collection[int] = range(5)) -> tuple[int, ...]:
        """A shape of one of some ranks; a size may be 0."""
        rank = self.choose(sorted(ranks, key=lambda n: abs(n - 2)))
        return tuple(
            self.choose((2, 3, 1, 4, 0) if self.depth == 0 else (2, 3)) for _ in range(rank)
        )

    def value(
        self,
        dtypes: Collection[np.dtype[Any]] = FLOATS,
        *,
        ranks: Collection[int] = range(5),
        exact: bool = False,
        where: Callable[[Array], bool] = lambda array: True,
    ) -> Known:
        """A value of the graph that is as wanted, or a new input or initializer."""
        suiting = [
            known
            for known in self.pool
            if known.array.dtype in dtypes
            and known.array.ndim in ranks
            and (known.exact or not exact)
            and where(known.array)
        ]
        if suiting and not (self.depth == 0 and self.number(0, 5) == 0):
            return self.choose(suiting[::-1])
        array = self.numbers(self.choose(list(dtypes)), self.shape(ranks))
        if not where(array):
            raise UnsuitableError
        return self.given(array)

    def like(self, shape: Sequence[int], dtype: np.dtype[Any]) -> Known:
        """A value of a dtype and a shape."""
        return self.given(self.numbers(dtype, shape))

    def given(self, array: Array) -> Known:
        """A new value: an input of the graph, or a constant of any kind."""
        if self.depth or self.chance():
            return self.constant(array)
        name = self.name()
        dims = [self.choose((size, f"n{size}_{name[:9]}", None)) for size in array.shape]
        self.inputs.append(_value_info(name, array.dtype, dims))
        self.feeds[name] = array
        return self._known(name, array, exact=True)

    def constant(self, array: Array, *, fixed: bool = False) -> Known:
        """A constant: an initializer, or a Constant node; one that the caller may override too."""
        kinds = (
            ("initializer", "node") if fixed else ("initializer", "node", "overridden", "default")
        )
        kind = self.choose(kinds)
        name = self.name()
        if kind == "node":
            tensor = onnx.numpy_helper.from_array(array, name)
            self.nodes.append(helper.make_node("Constant", [], [name], value=tensor))
            return self._known(name, array, exact=True)
        if kind == "overridden" and not self.depth and array.dtype.kind not in "b":
            # Another value of the same shape, so that what is drawn from it here stays valid.
            self.feeds[name] = array
            other = array[..., ::-1].copy() if array.ndim else array
            self._initializer(name, other, overridable=True)
        else:
            self._initializer(name, array, overridable=kind == "default" and not self.depth)
        return self._known(name, array, exact=True)

    def ints(self, *numbers: int) -> Known:
        """A constant, or an input of run time, of int64 and rank 1."""
        array = np.array(numbers, np.int64)
        return self.given(array) if self.number(0, 3) == 3 else self.constant(array)

    def _initializer(self, name: str, array: Array, *, overridable: bool) -> None:
        self.initializers.append(onnx.numpy_helper.from_array(array, name))
        if (overridable or self.ir_version < 4) and not self.depth:
            self.inputs.append(_value_info(name, array.dtype, array.shape))

    def _known(self, name: str, array: Array, *, exact: bool) -> Known:
        known = Known(name, array, exact)
        self.pool.append(known)
        return known

    def node(
        self,
        op_type: str,
        inputs: Sequence[Known | None],
        *,
        outputs: int = 1,
        exact: bool = False,
        domain: str = "",
        **attributes: Any,
    ) -> tuple[Known, ...]:
        """Add a node, if its operator takes these inputs; what it gives.

        Args:
            op_type: the operator.
            inputs: None for one that is absent.
            outputs: how many it gives.
            exact: whether it computes without rounding.
            domain: the operator's domain.
            attributes: by name; None for those that are absent.

        Raises:
            UnsuitableError: the operator does not take them.
        """
        names = [known.name if known else "" for known in inputs]
        attributes = {name: value for name, value in attributes.items() if value is not None}
        made = [self.name() for _ in range(outputs)]
        label = self.name() if self.chance() else ""
        node = helper.make_node(op_type, names, made, name=label, domain=domain, **attributes)
        results = self._results(node)
        self.nodes.append(node)
        kept = exact and all(known.exact for known in inputs if known)
        return tuple(
            self._known(name, results[name], exact=kept and _is_small(results[name]))
            for name in made
        )

    def _results(self, node: NodeProto) -> Mapping[str, Array]:
        read = reads(node)
        known = {value.name: value.array for value in self.pool if value.name in read}
        graph = helper.make_graph(
            [node],
            "g",
            [_value_info(name, array.dtype, array.shape) for name, array in known.items()],
            [ValueInfoProto(name=name) for name in node.output],
        )
        model = model_of(graph, self.opset, self.functions, max(8, self.ir_version))
        try:
            with np.errstate(all="ignore"):
                found = executor.run(model, known)
        except ExecutorError as error:
            raise UnsuitableError from error
        if any(array.size > 4096 for array in found.values()):
            raise UnsuitableError
        return found


class UnsuitableError(Exception):
    """A node is not drawn after all: no value suits it, or its operator refuses those drawn."""


def model_of(
    graph: GraphProto, opset: int, functions: Sequence[FunctionProto] = (), ir_version: int = 0
) -> onnx.ModelProto:
    """A model of a graph and functions, all of whose opsets are the same."""
    imports = [helper.make_opsetid("", opset)]
    if functions:
        imports.append(helper.make_opsetid("own", 1))
    return helper.make_model(
        graph,
        opset_imports=imports,
        functions=list(functions),
        ir_version=ir_version or least_ir_version(opset),
    )


def _value_info(name: str, dtype: np.dtype[Any], dims: Sequence[Any]) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), dims)


def _is_small(array: Array) -> bool:
    """Whether further sums and products of these numbers are exact in every dtype drawn."""
    if array.dtype.kind in "biu":
        return bool(np.all(np.abs(array.astype(np.float64)) <= 64))
    doubles = array.astype(np.float64)
    return bool(np.all(np.abs(doubles) <= 64) and np.all(doubles * 4 == np.rint(doubles * 4)))
