"""Prepared graphs and their steps, which `prepare` makes and which run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

import numpy as np
from onnx import helper

from onnxreduce_cli.executor import limit
from onnxreduce_cli.executor.dtypes import Array, RuntimeValue, number_of, type_string
from onnxreduce_cli.executor.errors import (
    FAILURES,
    ExecutionError,
    ExecutorError,
    Invalid,
    NotSupported,
    UnsupportedError,
)
from onnxreduce_cli.executor.registry import (
    Call,
    FormalParameter,
    Kernel,
    OperatorDefinition,
    Subgraph,
)


class NodeLocation(NamedTuple):
    """The name, operator and opset of a node, for messages."""

    node: str
    operator: str
    opset: int | None

    def invalid(self, reason: str) -> ExecutionError:
        """Build the error for a node that breaks its operator's specification."""
        return ExecutionError(reason, node=self.node, operator=self.operator, opset=self.opset)

    def unsupported(self, reason: str) -> UnsupportedError:
        """Build the error for a node that the executor cannot run correctly."""
        return UnsupportedError(reason, node=self.node, operator=self.operator, opset=self.opset)


class PreparedStep(Protocol):
    """A node that is ready to run."""

    outputs: tuple[str, ...]
    release: tuple[str, ...]

    def uses(self) -> list[str]:
        """Return the names that this step reads from its scope."""

    def run(self, env: dict[str, RuntimeValue]) -> None:
        """Compute the outputs from the values in `env`, and add them to it."""


@dataclass(slots=True)
class PreparedGraph:
    """A graph, subgraph or function body that is ready to run.

    `constants` are its initializers, `captured` the outer-scope names that it reads, `ran` says
    whether it has been run as a subgraph or function. For `empty` and `input_ranks` see `Subgraph`.
    """

    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: dict[str, RuntimeValue]
    steps: list[PreparedStep] = field(default_factory=list)
    captured: tuple[str, ...] = ()
    empty: tuple[Array | None, ...] = ()
    input_ranks: tuple[int, ...] = ()
    ran: bool = False

    @property
    def n_inputs(self) -> int:
        """Number of formal inputs."""
        return len(self.inputs)

    @property
    def n_outputs(self) -> int:
        """Number of formal outputs."""
        return len(self.outputs)

    def subgraphs_not_run(self) -> Iterator[tuple[str, str]]:
        """Yield the outermost subgraphs in it that have not been run, as node and attribute."""
        for step in self.steps:
            if isinstance(step, FunctionStep):
                yield from step.body.subgraphs_not_run()
            elif isinstance(step, KernelStep):
                for name, value in step.call.attrs.items():
                    if not isinstance(value, PreparedGraph):
                        continue
                    if value.ran:
                        yield from value.subgraphs_not_run()
                    else:
                        yield step.place.node, name

    def finish(self) -> None:
        """Find the outer names that are read, and the step after which each value is released."""
        local = {*self.inputs, *self.constants}
        captured: dict[str, None] = {}
        last: dict[str, int] = {}
        for index, step in enumerate(self.steps):
            for name in step.uses():
                if name not in local:
                    captured[name] = None
                last[name] = index
            for name in step.outputs:
                local.add(name)
                last[name] = index
        for name in self.outputs:
            if name and name not in local:
                captured[name] = None
        self.captured = tuple(captured)
        keep = {*self.outputs, *self.constants, *captured, ""}
        releases: dict[int, list[str]] = {}
        for name, index in last.items():
            if name not in keep:
                releases.setdefault(index, []).append(name)
        for index, names in releases.items():
            self.steps[index].release = tuple(names)

    def run(
        self, values: Sequence[RuntimeValue], outer: Mapping[str, RuntimeValue]
    ) -> list[RuntimeValue]:
        """Run on positional `values`, with the outer-scope values `outer`."""
        self.ran = True
        env = dict(self.constants)
        for name in self.captured:
            env[name] = outer[name]
        env.update(zip(self.inputs, values, strict=False))
        self.run_in(env)
        return [env[name] if name else None for name in self.outputs]

    def run_in(self, env: dict[str, RuntimeValue], *, keep_all: bool = False) -> None:
        """Run every step on `env`; values are dropped after their last use unless `keep_all`."""
        end = limit.deadline()
        for step in self.steps:
            step.run(env)
            if end is not None and time.monotonic() > end:
                raise limit.too_late()
            if step.release and not keep_all:
                for name in step.release:
                    env.pop(name, None)


class BoundSubgraphRunner:
    """Runs a node's subgraphs with the values that the node sees."""

    __slots__ = ("_env",)

    def __init__(self, env: Mapping[str, RuntimeValue]) -> None:
        """Bind to the values of the scope around."""
        self._env = env

    def run(self, graph: Subgraph, values: list[RuntimeValue]) -> list[RuntimeValue]:
        """Run `graph` on positional `values` and return its outputs in order."""
        if len(values) != graph.n_inputs:
            raise Invalid(f"a subgraph takes {graph.n_inputs} inputs, {len(values)} are given")
        if not isinstance(graph, PreparedGraph):
            raise TypeError("a subgraph is a prepared Graph")
        return graph.run(values, self._env)


def _allowed(formal: FormalParameter, kind: str) -> bool:
    return kind in formal.types or f"optional({kind})" in formal.types


def check_types(
    formals: Sequence[FormalParameter],
    values: Sequence[RuntimeValue],
    bound: dict[str, str],
    what: str,
) -> None:
    """Raise Invalid unless tensors have types that a schema allows.

    `bound` collects the types of type variables.
    """
    for formal, value in zip(formals, values, strict=False):
        if isinstance(value, list) and not any("seq(" in kind for kind in formal.types):
            raise Invalid(f"{what} {formal.name!r} is a sequence, which is not allowed here")
        if value is None or isinstance(value, list):
            continue
        kind = type_string(value)
        if not _allowed(formal, kind):
            raise Invalid(f"{what} {formal.name!r} has type {kind}, which is not allowed here")
        if formal.homogeneous and bound.setdefault(formal.variable, kind) != kind:
            raise Invalid(
                f"{what} {formal.name!r} has type {kind}, but {formal.variable} is "
                f"{bound[formal.variable]} elsewhere"
            )


def _as_value(result: Any) -> RuntimeValue:
    if result is None or isinstance(result, list):
        return result
    array = np.asarray(result)
    return array.astype(object) if array.dtype.kind in "US" else array


@dataclass(slots=True)
class KernelStep:
    """A node that a kernel computes."""

    place: NodeLocation
    call: Call
    kernel: Kernel
    scoped: bool
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    input_formals: tuple[FormalParameter, ...]
    output_formals: tuple[FormalParameter, ...]
    captured: tuple[str, ...]
    release: tuple[str, ...] = ()

    def uses(self) -> list[str]:
        """Return the names that this step reads: its inputs, and captures of its subgraphs."""
        return [*(name for name in self.inputs if name), *self.captured]

    def run(self, env: dict[str, RuntimeValue]) -> None:
        """Check the inputs' types, call the kernel, check and keep the outputs."""
        args = [env[name] if name else None for name in self.inputs]
        try:
            bound: dict[str, str] = {}
            self._check_present(args)
            check_types(self.input_formals, args, bound, "input")
            if self.scoped:
                result = self.kernel(self.call, BoundSubgraphRunner(env), *args)
            else:
                result = self.kernel(self.call, *args)
            results = (
                [_as_value(r) for r in result] if isinstance(result, tuple) else [_as_value(result)]
            )
            check_types(self.output_formals, results, bound, "output")
            if len(results) < len(self.outputs):
                raise Invalid(
                    f"{len(self.outputs)} outputs are named, the operator gives {len(results)}"
                )
        except (ExecutorError, MemoryError):
            raise
        except Invalid as error:
            raise self.place.invalid(str(error)) from None
        except NotSupported as error:
            raise self.place.unsupported(str(error)) from None
        except FAILURES as error:
            # NumPy says what is wrong with shapes or values; callers get one type of exception
            # for all.
            raise self.place.invalid(f"{type(error).__name__}: {error}") from error
        for name, value in zip(self.outputs, results, strict=False):
            if name:
                env[name] = value

    def _check_present(self, args: Sequence[RuntimeValue]) -> None:
        for formal, value in zip(self.input_formals, args, strict=False):
            if (
                value is None
                and not formal.optional
                and not any(kind.startswith("optional(") for kind in formal.types)
            ):
                raise Invalid(f"required input {formal.name!r} is missing")


@dataclass(slots=True)
class FunctionStep:
    """A node that a function body computes, of a model-local function or a schema."""

    place: NodeLocation
    body: PreparedGraph
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    release: tuple[str, ...] = ()

    def uses(self) -> list[str]:
        """List the names this step reads."""
        return [name for name in self.inputs if name]

    def run(self, env: dict[str, RuntimeValue]) -> None:
        """Run the body in a scope of its own; absent inputs are None there."""
        args: list[RuntimeValue] = [env[name] if name else None for name in self.inputs]
        _run_body(self.place, self.body, args, self.outputs, env)


@dataclass(slots=True)
class TypedFunctionStep:
    """A node whose schema gives a function body that depends on the input types."""

    place: NodeLocation
    definition: OperatorDefinition
    build: Callable[[tuple[bytes, ...]], PreparedGraph]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    release: tuple[str, ...] = ()
    bodies: dict[tuple[bytes, ...], PreparedGraph] = field(default_factory=dict)

    def uses(self) -> list[str]:
        """List the names this step reads."""
        return [name for name in self.inputs if name]

    def run(self, env: dict[str, RuntimeValue]) -> None:
        """Run the body for these input types, which is built once for each."""
        args: list[RuntimeValue] = [env[name] if name else None for name in self.inputs]
        formals = [self.definition.input_formal(i) for i in range(len(args))]
        bound: dict[str, str] = {}
        try:
            check_types(formals, args, bound, "input")
            if self.place.operator == "Attention":
                _check_keys(args)
        except Invalid as error:
            raise self.place.invalid(str(error)) from None
        types = tuple(_type_bytes(value) for value in args)
        body = self.bodies.get(types)
        if body is None:
            body = self.bodies[types] = self.build(types)
        try:
            results = _run_body(self.place, body, args, self.outputs, env)
        except ExecutionError as error:
            if any(isinstance(value, np.ndarray) and not value.size for value in args):
                # The Reshapes of the body take a size of 0 as one to copy; the text does not.
                reason = f"the function body that onnx has fails on tensors of size 0: {error}"
                raise self.place.unsupported(reason) from error
            raise
        outputs = [self.definition.output_formal(i) for i in range(len(results))]
        try:
            check_types(outputs, results, bound, "output")
        except Invalid as error:
            raise self.place.invalid(str(error)) from None


def _check_keys(args: Sequence[RuntimeValue]) -> None:
    """Raise Invalid unless there are as many keys as values, as long as queries: bodies repeat."""
    query, key = (value.shape for value in args[:2] if isinstance(value, np.ndarray))
    if len(query) == 4 and (*query[:1], *query[3:]) != (*key[:1], *key[3:]):
        raise Invalid(f"keys of shape {key} do not fit queries of shape {query}")
    for first in (1, 4):
        pair = [value.shape for value in args[first : first + 2] if isinstance(value, np.ndarray)]
        if len(pair) == 2 and pair[0][:-1] != pair[1][:-1]:
            raise Invalid(f"keys of shape {pair[0]} have no values of shape {pair[1]}")


def _run_body(
    place: NodeLocation,
    body: PreparedGraph,
    args: list[RuntimeValue],
    outputs: tuple[str, ...],
    env: dict[str, RuntimeValue],
) -> list[RuntimeValue]:
    """Run a function body in a scope of its own, and add the outputs that have names to `env`."""
    for name, defined in zip(outputs, body.outputs, strict=False):
        if name and not defined:
            raise place.invalid(f"the function's body does not define output {name!r}")
    results = body.run(args + [None] * (body.n_inputs - len(args)), {})
    for name, value in zip(outputs, results, strict=False):
        if name:
            env[name] = value
    return results


def _type_bytes(value: RuntimeValue) -> bytes:
    if value is None:
        return b""
    if isinstance(value, list):
        kinds: set[int] = {number_of(item.dtype) for item in value}
        if len(kinds) != 1:
            return b""
        tensor = helper.make_tensor_type_proto(kinds.pop(), None)
        return helper.make_sequence_type_proto(tensor).SerializeToString()
    array: Array = value
    # Some bodies depend on the dimensions too, not only on the type and rank.
    return helper.make_tensor_type_proto(number_of(array.dtype), array.shape).SerializeToString()
