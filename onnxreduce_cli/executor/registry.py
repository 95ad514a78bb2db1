"""The kernels of operators, by name and exact since-version.

A since-version that is not registered has no kernel: when a new onnx release changes an
operator, the executor reports that it does not know it instead of guessing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias

from onnx import AttributeProto, defs

from onnxreduce_cli.executor.dtypes import Array, RuntimeValue, sparse_to_array, to_array

Kernel: TypeAlias = Callable[..., Any]
Check: TypeAlias = "Callable[[Call], None]"


class Subgraph(Protocol):
    """A subgraph attribute as control-flow kernels see it.

    `empty` has an array for each output that is declared as a tensor of known shape, of that
    type with a first dimension of 0: the scan output of no rounds. `input_ranks` are the ranks
    that the inputs are declared with, 0 where there is none.
    """

    n_inputs: int
    n_outputs: int
    empty: tuple[Array | None, ...]
    input_ranks: tuple[int, ...]


class SubgraphRunner(Protocol):
    """Runs subgraphs with the values that their node sees."""

    def run(self, graph: Subgraph, values: list[RuntimeValue]) -> list[RuntimeValue]:
        """Run `graph` on positional `values` and return its outputs in order."""


@dataclass(slots=True)
class Call:
    """A node as its kernel sees it.

    `attrs` has the attributes by name, with defaults filled in: int, float, str, tuples of them,
    arrays (tensor, sparse tensor), TypeProto, or Subgraph. An attribute without value and
    default is absent. `outputs` are the names of the outputs, empty for absent ones.
    """

    op: str
    domain: str
    since: int
    opset: int
    attrs: dict[str, Any]
    outputs: tuple[str, ...]
    n_inputs: int

    def wants(self, index: int) -> bool:
        """Return whether the node has an output at `index`."""
        return index < len(self.outputs) and bool(self.outputs[index])


class RegisteredKernel(NamedTuple):
    """A kernel, its check when a node is prepared, and whether it runs subgraphs."""

    kernel: Kernel
    check: Check | None
    scoped: bool


#: The module of each kernel, written by ``python -m onnxreduce_cli.report.operators``.
INDEX = Path(__file__).with_name("index.json")

_KERNELS: dict[tuple[str, int], RegisteredKernel] = {}


def kernel(
    op: str, *since: int, check: Check | None = None, scoped: bool = False
) -> Callable[[Kernel], Kernel]:
    """Register a kernel for an ai.onnx operator's definitions that began at `since`.

    The kernel is called `f(call, *inputs)` (`f(call, scope, *inputs)` when `scoped`), an
    omitted input is None; it returns one value, or a tuple of values for several outputs.
    `check(call)` runs once when a node is prepared and raises Invalid or NotSupported.
    """

    def register(function: Kernel) -> Kernel:
        for version in since:
            if (op, version) in _KERNELS:
                raise ValueError(f"{op} {version} has two kernels")
            _KERNELS[op, version] = RegisteredKernel(function, check, scoped)
        return function

    return register


def find_kernel(op: str, since: int) -> RegisteredKernel | None:
    """Return the kernel for a definition of an ai.onnx operator, or None."""
    name = _modules().get(op)
    if name is not None:
        import_module(f"{__package__}.{name}")
    elif (op, since) not in _KERNELS:
        _load_all()  # A kernel that is new is not in the index yet.
    return _KERNELS.get((op, since))


def registered() -> list[tuple[str, int]]:
    """Return the (operator, since-version) pairs that have a kernel."""
    _load_all()
    return sorted(_KERNELS)


@cache
def _load_all() -> None:
    """Import every module of the executor."""
    import pkgutil

    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        import_module(f"{__package__}.{module.name}")


@cache
def _modules() -> Mapping[str, str]:
    """Return the module with the kernels of each operator, so that only those are imported."""
    found: dict[str, list[str]] = json.loads(INDEX.read_text(encoding="utf-8"))
    return {op: name for name, ops in found.items() for op in ops}


def index_text() -> str:
    """Return the text of the index: for each module, the operators that it has kernels for."""
    found: dict[str, set[str]] = {}
    for key in registered():
        name = _KERNELS[key].kernel.__module__.removeprefix(f"{__package__}.")
        found.setdefault(name, set()).add(key[0])
    lines = [f'  "{name}": {json.dumps(sorted(ops))}' for name, ops in sorted(found.items())]
    return "{\n" + ",\n".join(lines) + "\n}\n"


class FormalParameter(NamedTuple):
    """A formal input or output of a schema: its name, type variable and allowed types."""

    name: str
    variable: str
    types: frozenset[str]
    homogeneous: bool
    optional: bool


class OperatorDefinition(NamedTuple):
    """The facts of a schema that the executor needs, read once from `onnx.defs`."""

    schema: Any  # defs.OpSchema, whose stubs leave out its function bodies
    since: int
    deprecated: bool
    min_inputs: int
    max_inputs: int
    min_outputs: int
    max_outputs: int
    inputs: tuple[FormalParameter, ...]
    outputs: tuple[FormalParameter, ...]
    variadic_input: bool
    attributes: dict[str, int]
    required: frozenset[str]
    defaults: dict[str, Any]

    def input_formal(self, index: int) -> FormalParameter:
        """Return the formal input at `index`; the last one repeats when it is variadic."""
        return self.inputs[min(index, len(self.inputs) - 1)]

    def output_formal(self, index: int) -> FormalParameter:
        """Return the formal output at `index`; the last one repeats when it is variadic."""
        return self.outputs[min(index, len(self.outputs) - 1)]


_OPTIONAL = defs.OpSchema.FormalParameterOption.Optional
_VARIADIC = defs.OpSchema.FormalParameterOption.Variadic


def _formal(parameter: defs.OpSchema.FormalParameter) -> FormalParameter:
    return FormalParameter(
        parameter.name,
        parameter.type_str,
        frozenset(parameter.types),
        parameter.is_homogeneous,
        parameter.option == _OPTIONAL,
    )


@cache
def definition(op: str, opset: int, domain: str) -> OperatorDefinition | None:
    """Return the definition of an operator at `opset`, or None if there is none."""
    try:
        schema = defs.get_schema(op, opset, domain)
    except (defs.SchemaError, TypeError):
        # protobuf gives bytes, not str, for an operator's name that is not UTF-8.
        return None
    inputs = list(schema.inputs)
    attributes = schema.attributes
    defaults: dict[str, Any] = {}
    for name, attribute in attributes.items():
        default = attribute.default_value
        if default.type != AttributeProto.UNDEFINED and not (
            default.type == AttributeProto.TENSOR and default.t.data_type == 0
        ):
            defaults[name] = attribute_value(default)
    return OperatorDefinition(
        schema=schema,
        since=schema.since_version,
        deprecated=schema.deprecated,
        min_inputs=schema.min_input,
        max_inputs=schema.max_input,
        min_outputs=schema.min_output,
        max_outputs=schema.max_output,
        inputs=tuple(_formal(p) for p in inputs),
        outputs=tuple(_formal(p) for p in schema.outputs),
        variadic_input=bool(inputs) and inputs[-1].option == _VARIADIC,
        attributes={
            name: int(a.type.value)  # type: ignore[attr-defined]
            for name, a in attributes.items()
        },
        required=frozenset(name for name, a in attributes.items() if a.required),
        defaults=defaults,
    )


_READERS: dict[int, Callable[[AttributeProto], Any]] = {
    AttributeProto.INT: lambda a: a.i,
    AttributeProto.INTS: lambda a: tuple(a.ints),
    AttributeProto.FLOAT: lambda a: a.f,
    AttributeProto.FLOATS: lambda a: tuple(a.floats),
    AttributeProto.STRING: lambda a: a.s.decode("utf-8"),
    AttributeProto.STRINGS: lambda a: tuple(s.decode("utf-8") for s in a.strings),
    AttributeProto.TENSOR: lambda a: to_array(a.t),
    AttributeProto.TENSORS: lambda a: tuple(to_array(t) for t in a.tensors),
    AttributeProto.SPARSE_TENSOR: lambda a: sparse_to_array(a.sparse_tensor),
    AttributeProto.TYPE_PROTO: lambda a: a.tp,
}


def attribute_value(attribute: AttributeProto) -> Any:
    """Return the value of an attribute that is no graph; raise ValueError for unknown types."""
    reader = _READERS.get(attribute.type)
    if reader is None:
        raise ValueError(f"attribute {attribute.name!r} has an unreadable type {attribute.type}")
    return reader(attribute)
