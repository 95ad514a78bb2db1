"""Making prepared graphs from protos: names are resolved, attributes read, kernels found.

Everything that is wrong whatever the inputs are is reported here: unknown operators and
attributes, names that nothing defines, nodes that no kernel computes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto, defs

from onnxreduce_cli.executor.checks import check_call, check_signature
from onnxreduce_cli.executor.dtypes import (
    Array,
    RuntimeValue,
    dtype_of_number,
    sparse_to_array,
    to_array,
)
from onnxreduce_cli.executor.errors import ExecutionError
from onnxreduce_cli.executor.graph import (
    FunctionStep,
    KernelStep,
    NodeLocation,
    PreparedGraph,
    PreparedStep,
    TypedFunctionStep,
)
from onnxreduce_cli.executor.reference import reference_kernel
from onnxreduce_cli.executor.registry import (
    Call,
    OperatorDefinition,
    RegisteredKernel,
    attribute_value,
    definition,
    find_kernel,
)

FunctionKey = tuple[str, str, str]
_GRAPHS = (AttributeProto.GRAPH, AttributeProto.GRAPHS)


def plain_domain(domain: str) -> str:
    """Return a domain, which is the empty string for ai.onnx."""
    return "" if domain == "ai.onnx" else domain


class DefinedNames:
    """The names defined so far in a scope and the scopes around it."""

    __slots__ = ("_known", "_outer")

    def __init__(self, known: Iterable[str], outer: DefinedNames | None = None) -> None:
        """Start with the names `known`."""
        self._known = set(known)
        self._outer = outer

    def __contains__(self, name: str) -> bool:
        """Return whether `name` is defined here or in a scope around."""
        return name in self._known or (self._outer is not None and name in self._outer)

    def add(self, name: str) -> None:
        """Define `name` in this scope."""
        self._known.add(name)


@dataclass(slots=True)
class PreparationContext:
    """The facts that hold for all nodes of a model's graph or of a function body.

    `opsets` are its imports by domain, `bindings` the values of the attributes that its
    nodes may refer to. `bodies` and `open_calls` are shared by the whole model: bodies
    already prepared, and the calls being prepared, to notice recursion.
    """

    opsets: dict[str, int]
    functions: Mapping[FunctionKey, FunctionProto]
    bindings: Mapping[str, AttributeProto] = field(default_factory=dict)
    in_function: bool = False
    bodies: dict[tuple[FunctionKey, tuple[bytes, ...]], PreparedGraph] = field(default_factory=dict)
    open_calls: list[FunctionKey] = field(default_factory=list)

    def inside(
        self, function: FunctionProto, bindings: Mapping[str, AttributeProto]
    ) -> PreparationContext:
        """Return the context of a function body."""
        return PreparationContext(
            read_opsets(function.opset_import),
            self.functions,
            bindings,
            True,
            self.bodies,
            self.open_calls,
        )


def read_opsets(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Return opset imports by domain; an old model without any imports opset 1."""
    opsets = {plain_domain(entry.domain): int(entry.version) for entry in imports}
    return opsets or {"": 1}


def prepare_graph(
    graph: GraphProto, context: PreparationContext, outer: DefinedNames | None = None
) -> PreparedGraph:
    """Prepare a model's graph, or a subgraph that may read the names in `outer`."""
    constants: dict[str, RuntimeValue] = {}
    for tensor in graph.initializer:
        constants[tensor.name] = _initializer(tensor)
    for sparse in graph.sparse_initializer:
        constants[sparse.values.name] = _sparse_initializer(sparse)
    prepared = _prepare(
        tuple(value.name for value in graph.input),
        tuple(value.name for value in graph.output),
        constants,
        graph.node,
        context,
        outer,
    )
    if outer is not None:
        prepared.empty = tuple(_empty(value.type.tensor_type) for value in graph.output)
        prepared.input_ranks = tuple(len(value.type.tensor_type.shape.dim) for value in graph.input)
    return prepared


def _empty(declared: onnx.TypeProto.Tensor) -> Array | None:
    if not declared.elem_type or not declared.HasField("shape"):
        return None
    dims = [dim.dim_value for dim in declared.shape.dim if dim.HasField("dim_value")]
    if len(dims) != len(declared.shape.dim):
        return None
    try:
        return np.empty((0, *dims), dtype=dtype_of_number(declared.elem_type))
    except ValueError as error:
        raise ExecutionError(f"a subgraph's output type is unreadable: {error}") from None


def _initializer(tensor: TensorProto) -> RuntimeValue:
    try:
        return to_array(tensor)
    except (ValueError, TypeError, KeyError, UnicodeDecodeError) as error:
        raise ExecutionError(f"initializer {tensor.name!r} is unreadable: {error}") from error


def _sparse_initializer(sparse: onnx.SparseTensorProto) -> RuntimeValue:
    try:
        return sparse_to_array(sparse)
    except (ValueError, TypeError, KeyError, IndexError) as error:
        raise ExecutionError(
            f"sparse initializer {sparse.values.name!r} is unreadable: {error}"
        ) from error


def _prepare(
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    constants: dict[str, RuntimeValue],
    nodes: Iterable[NodeProto],
    context: PreparationContext,
    outer: DefinedNames | None,
    *,
    function: bool = False,
) -> PreparedGraph:
    names = DefinedNames((*inputs, *constants), outer)
    prepared = PreparedGraph(inputs, outputs, constants)
    undefined: set[str] = set()
    for node in nodes:
        prepared.steps.append(_prepare_node(node, context, names))
        for name in node.output:
            if name:
                names.add(name)
    for name in prepared.outputs:
        if name and name not in names:
            if not function:
                raise ExecutionError(f"output {name!r} is not defined by any node")
            undefined.add(name)
    # A function may leave an optional output undefined, which calls must not name.
    prepared.outputs = tuple("" if name in undefined else name for name in outputs)
    prepared.finish()
    return prepared


def _prepare_node(
    node: NodeProto, context: PreparationContext, names: DefinedNames
) -> PreparedStep:
    domain = plain_domain(node.domain)
    opset = context.opsets.get(domain)
    place = NodeLocation(
        node.name or next((name for name in node.output if name), ""),
        f"{domain}.{node.op_type}" if domain else node.op_type,
        opset,
    )
    for name in node.input:
        if name and name not in names:
            raise place.invalid(f"input {name!r} is not defined before the node")
    attributes = _resolve(node, context)
    key = (domain, node.op_type, getattr(node, "overload", ""))
    function = context.functions.get(key)
    if function is not None:
        if len(node.input) > len(function.input) or len(node.output) > len(function.output):
            raise place.invalid(
                f"{len(node.input)} inputs and {len(node.output)} outputs are named, the "
                f"function has {len(function.input)} and {len(function.output)}"
            )
        body = _function_body(function, key, attributes, context, place)
        return FunctionStep(place, body, tuple(node.input), tuple(node.output))
    if opset is None:
        raise place.invalid(f"domain {domain!r} is not among the opset imports")
    if not 0 < opset < 2**31:
        raise place.invalid("the imported version is out of range")
    if not domain and opset > defs.onnx_opset_version():
        raise place.unsupported(
            f"onnx {onnx.__version__} knows opsets up to {defs.onnx_opset_version()}"
        )
    found = definition(node.op_type, opset, domain)
    if found is None:
        if domain:
            raise place.unsupported("the operator has no schema and no model-local function")
        raise place.invalid("the operator does not exist at this opset")
    return _operator_step(node, found, attributes, place, context, names)


def _resolve(node: NodeProto, context: PreparationContext) -> list[AttributeProto]:
    """Return a node's attributes, with the values of attributes of the function for references.

    A reference to an attribute that is not set and has no default is left out.
    """
    if not context.in_function:
        return list(node.attribute)
    resolved = []
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            resolved.append(attribute)
            continue
        bound = context.bindings.get(attribute.ref_attr_name)
        if bound is not None:
            copy = AttributeProto()
            copy.CopyFrom(bound)
            copy.name = attribute.name
            resolved.append(copy)
    return resolved


def _function_body(
    function: FunctionProto,
    key: FunctionKey,
    attributes: list[AttributeProto],
    context: PreparationContext,
    place: NodeLocation,
) -> PreparedGraph:
    bindings = {attribute.name: attribute for attribute in function.attribute_proto}
    known = {*function.attribute, *bindings}
    for attribute in attributes:
        if attribute.name not in known:
            raise place.invalid(f"the function has no attribute {attribute.name!r}")
        bindings[attribute.name] = attribute
    if key in context.open_calls:
        raise place.invalid("the function calls itself")
    memo = (key, tuple(bindings[n].SerializeToString(deterministic=True) for n in sorted(bindings)))
    body = context.bodies.get(memo)
    if body is None:
        context.open_calls.append(key)
        try:
            body = _prepare_function(function, bindings, context)
        finally:
            context.open_calls.pop()
        context.bodies[memo] = body
    return body


def _prepare_function(
    function: FunctionProto, bindings: Mapping[str, AttributeProto], context: PreparationContext
) -> PreparedGraph:
    return _prepare(
        tuple(function.input),
        tuple(function.output),
        {},
        function.node,
        context.inside(function, bindings),
        None,
        function=True,
    )


def _operator_step(
    node: NodeProto,
    found: OperatorDefinition,
    attributes: list[AttributeProto],
    place: NodeLocation,
    context: PreparationContext,
    names: DefinedNames,
) -> PreparedStep:
    check_signature(node, found, attributes, place)
    domain = plain_domain(node.domain)
    # No operator of ai.onnx.ml has the name of one of ai.onnx.
    own = domain in ("", "ai.onnx.ml")
    registered = find_kernel(node.op_type, found.since) if own else None
    if registered is None:
        step = _schema_function_step(node, found, attributes, place, context)
        if step is not None:
            return step
        registered = RegisteredKernel(reference_kernel(node, found, attributes, place), None, False)
    values, captured = _attribute_values(found, attributes, place, context, names)
    call = Call(
        node.op_type,
        domain,
        found.since,
        context.opsets[domain],
        values,
        tuple(node.output),
        len(node.input),
    )
    check_call(registered, call, place)
    return KernelStep(
        place,
        call,
        registered.kernel,
        registered.scoped,
        tuple(node.input),
        tuple(node.output),
        tuple(found.input_formal(i) for i in range(len(node.input))),
        tuple(found.output_formal(i) for i in range(len(node.output))),
        captured,
    )


def _attribute_values(
    found: OperatorDefinition,
    attributes: list[AttributeProto],
    place: NodeLocation,
    context: PreparationContext,
    names: DefinedNames,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the attributes by name, with prepared graphs, and the outer names that these read."""
    values = dict(found.defaults)
    captured: dict[str, None] = {}
    for attribute in attributes:
        if attribute.type == AttributeProto.GRAPH:
            subgraph = prepare_graph(attribute.g, context, names)
            captured.update(dict.fromkeys(subgraph.captured))
            values[attribute.name] = subgraph
            continue
        try:
            values[attribute.name] = attribute_value(attribute)
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise place.invalid(f"attribute {attribute.name!r} is unreadable: {error}") from error
    return values, tuple(captured)


def _schema_function_step(
    node: NodeProto,
    found: OperatorDefinition,
    attributes: list[AttributeProto],
    place: NodeLocation,
    context: PreparationContext,
) -> PreparedStep | None:
    """Return a step that runs the function body in the schema; None if there is no body."""
    schema = found.schema
    # Bodies of other domains' schemas do not always import what they use.
    if node.domain not in {"", "ai.onnx"} or any(a.type in _GRAPHS for a in attributes):
        return None
    bindings = {
        name: attribute.default_value
        for name, attribute in schema.attributes.items()
        if name in found.defaults
    }
    bindings.update((attribute.name, attribute) for attribute in attributes)
    inputs, outputs = tuple(node.input), tuple(node.output)
    if schema.has_function:
        function = schema.function_body
        return FunctionStep(place, _prepare_function(function, bindings, context), inputs, outputs)
    if not schema.has_context_dependent_function:
        return None
    resolved = NodeProto()
    resolved.CopyFrom(node)
    del resolved.attribute[:]
    resolved.attribute.extend(attributes)
    serialized = resolved.SerializeToString()

    def build(types: tuple[bytes, ...]) -> PreparedGraph:
        version = max(v for v in schema.context_dependent_function_opset_versions)
        text = schema.get_context_dependent_function_with_opset_version(
            version, serialized, list(types)
        )
        function = FunctionProto.FromString(text)
        if not function.node:
            raise place.unsupported("the schema gives no function body for these input types")
        return _prepare_function(function, bindings, context)

    return TypedFunctionStep(place, found, build, inputs, outputs)
