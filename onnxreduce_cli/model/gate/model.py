"""The check of a whole model: its imports, graphs, functions and nodes."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    OperatorSetIdProto,
)

from onnxreduce_cli import schemas
from onnxreduce_cli.errors import Blocker, InvalidModelError
from onnxreduce_cli.model.gate import attribute_ranges, attributes, bodies, functions, tensors
from onnxreduce_cli.model.gate.equations import Equations
from onnxreduce_cli.model.gate.functions import References
from onnxreduce_cli.model.gate.text import first_no_text
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, FunctionKey, Scope
from onnxreduce_cli.text import quoted

#: The latest opset version that onnx can look up.
_LATEST = (1 << 31) - 1


def check_model(model: ModelProto, found: Sequence[Scope]) -> None:
    """Check a model, in time proportional to its size.

    Args:
        model: the model.
        found: its scopes.

    Raises:
        InvalidModelError: what is wrong with it, and where.
    """
    if model.ir_version < 0:
        raise InvalidModelError(
            f"its IR version is {model.ir_version}; mend the model: set its ir_version, such as 8"
        )
    bodies = functions.by_key(found)
    _check_imports(model, "")
    known: dict[FunctionKey, FunctionProto] = {}
    for key, scope in bodies.items():
        assert isinstance(scope.container, FunctionProto)
        known[key] = scope.container
        _check_imports(scope.container, f"{scope.label}: ")
    nodes = _NodeChecks(model, known, Equations(found, known))
    for scope in found:
        if isinstance(scope.container, GraphProto):
            _check_graph(scope, scope.container)
        # A function with an equal body is valid if the first one is.
        if scope.root.body is scope.root:
            nodes.check(scope)
    if known:
        functions.check_recursion(found, known)


def _check_imports(owner: ModelProto | FunctionProto, place: str) -> None:
    wrong = first_no_text(entry.domain for entry in owner.opset_import)
    if wrong is not None:
        raise InvalidModelError(f"{place}the imported domain {quoted(wrong)} is not UTF-8")
    for entry in owner.opset_import:
        if abs(entry.version) > _LATEST:
            domain = quoted(entry.domain or "ai.onnx")
            raise InvalidModelError(
                f"{place}opset {entry.version} of domain {domain} is no opset: it has more than "
                "32 bits; mend the model: import the opset that it was written for"
            )


def _check_graph(scope: Scope, graph: GraphProto) -> None:
    """Refuse a graph with invalid inputs, outputs or initializers."""
    place = f"{scope.label}: " if scope.label else ""
    names = [value.name for value in (*graph.input, *graph.output)]
    wrong = first_no_text((graph.name, *names))
    if wrong is not None:
        raise InvalidModelError(f"{place}the name {quoted(wrong)} is not UTF-8")
    for tensor in graph.initializer:
        problem = tensors.tensor_problem(tensor)
        if problem is not None:
            raise InvalidModelError(
                f"{place}initializer {quoted(tensor.name)} {problem}; {_MEND_TENSOR}"
            )
    for sparse in graph.sparse_initializer:
        problem = tensors.sparse_tensor_problem(sparse)
        if problem is not None:
            raise InvalidModelError(
                f"{place}sparse initializer {quoted(sparse.values.name)} {problem}; {_MEND_TENSOR}"
            )


_MEND_TENSOR = "mend the model: write this tensor again, by onnx.numpy_helper.from_array"

#: What to do about a node, by a part of the reason why it is invalid; at last of all others.
_REMEDIES = (
    ("'roi' is missing", "add one; an empty float tensor will do, but for tf_crop_and_resize"),
    ("is missing", "add it"),
    ("does not define", "remove it, or import an opset that has it"),
    ("which is not UTF-8", "write it in UTF-8"),
    ("does not allow", "change that, or import an opset that allows it"),
    ("", "change that in the node"),
)


#: Operators whose nodes are valid or not by the names of their values as well.
_OF_NAMES = GRAPH_OPERATORS | {"Einsum"}


#: The largest node of which it is kept that it is valid, in bytes: larger ones hold weights.
_LARGEST = 4096


class _NodeChecks:
    """Checks the nodes of one model.

    Attributes:
        functions: the model's own functions, which nodes call by name.
    """

    def __init__(
        self,
        model: ModelProto,
        functions: Mapping[FunctionKey, FunctionProto],
        equations: Equations,
    ) -> None:
        self._model, self._functions = model, functions
        self._equations, self._references = equations, References()
        #: What was found to be valid of nodes, beside their names.
        self._valid: set[Hashable] = set()

    def check(self, scope: Scope) -> None:
        """Refuse invalid nodes of a scope."""
        imports = {entry.domain: entry.version for entry in self._imports(scope)}
        for node, op_type in zip(scope.nodes, scope.op_types, strict=True):
            problem = self._problem(node, op_type, scope.opset, imports)
            if problem is not None:
                name = str(node.name) if first_no_text([node.name]) else scope.describe(node)
                opset, operator = scope.opset or 0, str(op_type)
                if not is_default(node.domain):
                    opset, operator = imports.get(node.domain, 0), f"{node.domain}.{op_type}"
                where = (name, operator, opset, scope.label)
                remedy = next(text for part, text in _REMEDIES if part in problem)
                raise InvalidModelError(str(Blocker(*where, problem, f"mend the model: {remedy}")))

    def _imports(self, scope: Scope) -> Iterable[OperatorSetIdProto]:
        return (scope.function or self._model).opset_import

    def _problem(
        self, node: NodeProto, op_type: str, opset: int | None, imports: Mapping[str, int]
    ) -> str | None:
        """Return what is wrong with a node; None if nothing is."""
        domain, overload = node.domain, node.overload
        inputs, outputs, given = node.input[:], node.output[:], node.attribute[:]
        wrong = first_no_text((node.name, op_type, domain, overload, *inputs, *outputs))
        if wrong is not None:
            return f"the name {quoted(wrong)} is not UTF-8"
        function = self._functions.get((domain, op_type, overload)) if self._functions else None
        # One with graphs or a function reads other names.
        key: Hashable = None
        if function is None and op_type not in _OF_NAMES and node.ByteSize() <= _LARGEST:
            absent = [index for index, name in enumerate(inputs) if not name]
            texts = [item.SerializeToString() for item in given]
            read_at = opset if is_default(domain) else imports.get(domain)
            key = (op_type, domain, read_at, len(inputs), len(outputs), *absent, *texts)
            if key in self._valid:
                return None
        problem = self._problem_beside_names(node, op_type, opset, imports, function, given)
        if problem is None and key is not None:
            self._valid.add(key)
        return problem

    def _problem_beside_names(
        self,
        node: NodeProto,
        op_type: str,
        opset: int | None,
        imports: Mapping[str, int],
        function: FunctionProto | None,
        given: Sequence[AttributeProto],
    ) -> str | None:
        domain = node.domain
        default = is_default(domain)
        found = attributes.attribute_problem(given, texts=default or function is not None)
        if found is not None:
            return found
        if function is not None:
            return (
                functions.misfit(node, function, self._functions)
                or self._references.call_problem(node, function)
                or self._equations.call_problem(node, function)
            )
        read_at = opset if default else imports.get(domain)
        if read_at is None:
            return None
        found = schemas.invalid(node, read_at, "" if default else domain)
        if found is None and default and op_type in GRAPH_OPERATORS:
            found = bodies.subgraph_problem(node, op_type, read_at)
        if found is None and default:
            found = attribute_ranges.range_problem(node)
        if found is None and default and op_type == "Einsum":
            found = self._equations.problem(node)
        return found
