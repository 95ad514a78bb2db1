"""Fixing of dimensions, with the shapes and constants that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from onnx import GraphProto, ModelProto, NodeProto

from onnxreduce_cli.engine.changes import Change
from onnxreduce_cli.engine.conversion_request import ConversionInput
from onnxreduce_cli.engine.passes.folding import fold
from onnxreduce_cli.errors import ConversionError
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.fixed_dims import fix_dims
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import ValueType, from_proto
from onnxreduce_cli.model.types.dead_branches import is_dead
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.skeleton import without_weights
from onnxreduce_cli.model.types.stated_shapes import FalseShape, mend_shapes
from onnxreduce_cli.text import count


@dataclass(frozen=True, slots=True)
class StaticShapes:
    """The changes of a model whose dimensions were fixed.

    Attributes:
        lines: a description of each change, in one line.
        changes: the nodes that constants replaced, and the Ifs that a branch did.
        removed: names of the values that nothing reads any more.
    """

    lines: tuple[str, ...]
    changes: tuple[Change, ...]
    removed: tuple[str, ...]


def fix_dimensions(model: ModelProto, dims: Mapping[str, int], base_dir: str) -> StaticShapes:
    """Fix dimensions of a model, in place.

    Requires: a model that passed the gate.

    Guarantees: the model computes what it did, on inputs of these sizes only; values that depend on
    shapes alone, and are known now, are constants; the stated shapes are as complete as inference
    can make them.

    Args:
        model: the model.
        dims: sizes by the names of dimensions.
        base_dir: the folder that external data is relative to.

    Raises:
        UsageError: the model has no such dimension.
        ConversionError: with these sizes a node cannot run, or its shape is not the stated one.
    """
    false = set(_false_shapes(model))
    values = fix_dims(model, dims)
    said = ", ".join(f"{name} = {size}" for name, size in dims.items())
    _check(model, base_dir, false, said)
    lines = [f"dimensions fixed: {said}, in the shapes of {count(values, 'value')}"]
    folded = fold(model, base_dir, of_shapes=True)
    _refuse(folded.mended, said)
    _state_shapes(ConversionInput.of(model, base_dir))
    return StaticShapes(tuple(lines), tuple(folded.changes), tuple(folded.removed))


def _false_shapes(model: ModelProto) -> tuple[FalseShape, ...]:
    return mend_shapes(without_weights(model))


def _refuse(found: Sequence[FalseShape], said: str) -> None:
    """Refuse sizes with which a stated shape is false."""
    for item in found:
        raise ConversionError(
            f"with {said} the model states {item.name!r} to have shape {list(item.stated)}, "
            f"but what computes it gives {list(item.inferred)}: another size is right"
        )


def _check(model: ModelProto, base_dir: str, false: set[FalseShape], said: str) -> None:
    """Refuse sizes that contradict the model's computations."""
    _refuse([item for item in _false_shapes(model) if item not in false], said)
    facts = (model_input := ConversionInput.of(model, base_dir)).facts
    for scope in model_input.scopes:
        if scope.opset is None or is_dead(facts, scope):
            continue
        for node in scope.nodes:
            if not is_default(node.domain) or facts.calls.function_of(node) is not None:
                problem = _of_call(facts, scope, node)
            else:
                problem = facts.contradiction(scope, node)
                if problem is None and scope.function is not None:
                    # What a function states was not compared with what its calls make of it yet.
                    problem = facts.contradiction_of_sizes(scope, node)
            if problem is not None:
                where = f" in {scope.label}" if scope.label else ""
                raise ConversionError(
                    f"with {said} {node.op_type} node {scope.describe(node)}{where} cannot run: "
                    f"{problem}; give another size, or mend the model: change this node"
                )


def _of_call(facts: Facts, scope: Scope, node: NodeProto) -> str | None:
    """Return which input a function states with another shape than a call gives it."""
    function = facts.calls.function_of(node)
    if function is None:
        return None
    stated = {info.name: from_proto(info.type) for info in function.value_info}
    for name, given in zip(function.input, node.input, strict=False):
        wanted, known = stated.get(name), facts.type(scope, given) if given else None
        if wanted is not None and known is not None and wanted.contradicts(known):
            return (
                f"the function states its input {name!r} to have shape {list(wanted.dims or ())}, "
                f"and {given!r} has {list(known.dims or ())}"
            )
    return None


def _state_shapes(model_input: ConversionInput) -> None:
    """Complete the shapes that the model states in part with the sizes known now, in place."""
    for scope in model_input.scopes:
        graph = scope.container
        if not isinstance(graph, GraphProto):
            continue
        for info in (*graph.output, *graph.value_info):
            stated = from_proto(info.type) if info.HasField("type") else None
            known = model_input.facts.type(scope, info.name)
            if model_input.facts.stated.follows(scope, info.name):
                continue  # onnx may count it otherwise, and would refuse it.
            if stated is None or known is None or stated.dims is None or known.dims is None:
                continue
            if len(stated.dims) == len(known.dims) and stated.dims != known.dims:
                dims = tuple(
                    real if isinstance(real, int) else dim
                    for dim, real in zip(stated.dims, known.dims, strict=True)
                )
                info.type.CopyFrom(ValueType(stated.kind, stated.elem_type, dims).to_proto())
