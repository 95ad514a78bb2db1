"""Inspection of a model: its opsets, functions and operators, and the opsets it can reach."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from onnx import FunctionProto, ModelProto, NodeProto

from onnxreduce_cli import schemas
from onnxreduce_cli.engine.reach import Reach
from onnxreduce_cli.engine.runtime_reach import Runtimes, runtimes_of
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.scope import Scope, function_label
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.schemas import REDUCE, SOFTMAX
from onnxreduce_cli.serializable import Serializable

#: The Reduce and Softmax family, which the tool is named for.
FAMILY = (*REDUCE, *SOFTMAX)


@dataclass(frozen=True, slots=True)
class FamilyNode:
    """One node of the Reduce or Softmax family.

    Attributes:
        node: its name, or a description by its first output.
        op_type: its operator.
        scope: where it is; empty for the main graph.
        axes: its axes or axis, and where they come from, as text.
    """

    node: str
    op_type: str
    scope: str
    axes: str


@dataclass(frozen=True)
class Inspection(Serializable):
    """The opsets, functions and operators of a model, and the opsets that it can reach.

    Attributes:
        ir_version: the IR version.
        opsets: the opset of each domain that is imported.
        functions: the opsets that each model-local function imports.
        operators: how many nodes there are of each operator, by domain and name.
        family: the nodes of the Reduce and Softmax family.
        reach: for every opset from 1 to the newest, its blockers; empty if there are none.
        runtimes: which runtimes take the model.
    """

    OMITTED_FIELDS: ClassVar = ("reach", "runtimes")

    ir_version: int
    opsets: dict[str, int]
    functions: dict[str, dict[str, int]]
    operators: dict[str, int]
    family: tuple[FamilyNode, ...]
    reach: dict[int, tuple[Blocker, ...]]
    runtimes: Runtimes


def inspect(model: ModelProto, base_dir: str = "") -> Inspection:
    """Inspect a model, and plan its conversion to every opset; the model is not edited."""
    reach = Reach(model, base_dir)
    facts = reach.facts
    outcomes = {opset: reach.to(opset) for opset in range(1, schemas.newest_opset() + 1)}
    operators = Counter[str]()
    for scope in facts.scopes:
        operators.update(map(_operator, scope.nodes))
    return Inspection(
        model.ir_version,
        _imports(model),
        {function_label(function): _imports(function) for function in model.functions},
        dict(sorted(operators.items())),
        tuple(node for scope in facts.scopes for node in _family_nodes(facts, scope)),
        {opset: outcome.blockers for opset, outcome in outcomes.items()},
        runtimes_of(reach, outcomes),
    )


def _imports(owner: ModelProto | FunctionProto) -> dict[str, int]:
    return {entry.domain or "ai.onnx": entry.version for entry in owner.opset_import}


def _operator(node: NodeProto) -> str:
    return node.op_type if is_default(node.domain) else f"{node.domain}.{node.op_type}"


def _family_nodes(facts: Facts, scope: Scope) -> Iterator[FamilyNode]:
    """Yield the Reduce and Softmax nodes of a scope, in its order."""
    for node, op_type in zip(scope.nodes, scope.op_types, strict=True):
        if op_type in FAMILY and is_default(node.domain):
            axes = _axes_of_attributes(node) or _axes_of_input(facts, scope, node)
            yield FamilyNode(scope.describe(node), op_type, scope.label, axes)


def _axes_of_attributes(node: NodeProto) -> str:
    """Return a Reduce or Softmax node's axes as text; empty if they are an input."""
    if node.op_type in SOFTMAX:
        axis = attributes.find(node, "axis")
        return "default axis" if axis is None else f"axis {axis.ref_attr_name or axis.i}"
    attribute = attributes.find(node, "axes")
    if attribute is not None:
        reference = attribute.ref_attr_name
        return f"attribute @{reference}" if reference else f"attribute {list(attribute.ints)}"
    return "" if len(node.input) > 1 and node.input[1] else "no axes"


def _axes_of_input(facts: Facts, scope: Scope, node: NodeProto) -> str:
    """Return the axes that a Reduce node reads, as text."""
    name = node.input[1]
    constant = facts.constant(scope, name)
    return "input, known at run time only" if constant is None else f"input {constant.tolist()}"
