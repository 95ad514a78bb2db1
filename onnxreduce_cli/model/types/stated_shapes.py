"""Repair of stated shapes that shape inference at a newer opset contradicts.

Some operators have shape inference, or more of it, only from some opset on. A model that states a
wrong shape is valid where nothing is inferred, and must not become invalid by moving to an opset
at which inference contradicts it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnx import GraphProto, ModelProto, NodeProto, ValueInfoProto

from onnxreduce_cli import schemas
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.overridable import (
    drop_defaults,
    has_miscounted_sizes,
    overridable,
)
from onnxreduce_cli.model.graph.scope import Scope, scopes
from onnxreduce_cli.model.graph.values import Dims, ValueType, from_proto
from onnxreduce_cli.model.types.run_time_sizes import infer_run_time_shapes
from onnxreduce_cli.model.types.safe_inference import infer_shapes
from onnxreduce_cli.model.types.skeleton import model_skeleton

#: From this opset on Reshape's inference gives a rank from the length of a computed shape.
_RESHAPE_INFERS = 14


@dataclass(frozen=True, slots=True)
class FalseShape:
    """A stated shape that was mended.

    Attributes:
        name: the value.
        stated: the dimensions that the model stated.
        inferred: the dimensions that shape inference gives.
    """

    name: str
    stated: Dims
    inferred: Dims

    def __str__(self) -> str:
        """One line: the value, and both shapes."""
        return (
            f"{self.name!r} was stated to have shape {_shown(self.stated)}, but what computes it "
            f"gives {_shown(self.inferred)}, which is stated now"
        )


def reveals(found: list[Scope], source: int, target: int) -> bool:
    """Return whether shape inference at `target` covers more of some node than at `source`.

    So it is too where a step may have gone by a size that runtimes give, and onnx counts otherwise:
    what is computed of it may have other sizes than stated.

    Args:
        found: the scopes of the model as it was.
        source: its opset.
        target: the opset that it is moved to.
    """
    if any(map(has_miscounted_sizes, found)):
        return True
    if target <= source:
        return False
    for scope in found:
        op_types = set(scope.op_types)
        if any(
            not schemas.infers_types(op_type, source) and schemas.infers_types(op_type, target)
            for op_type in op_types
        ):
            return True
        if (
            source < _RESHAPE_INFERS <= target
            and "Reshape" in op_types
            and any(_is_computed(scope, node) for node in scope.nodes)
        ):
            return True
    return False


def _is_computed(scope: Scope, node: NodeProto) -> bool:
    """Return whether a node is a Reshape to a shape that other nodes compute."""
    if node.op_type != "Reshape" or not is_default(node.domain) or len(node.input) < 2:
        return False
    owner = scope.resolve(node.input[1])
    producer = None if owner is None else owner.producers.get(node.input[1])
    return producer is not None and producer.op_type != "Constant"


def mend_shapes(model: ModelProto) -> tuple[FalseShape, ...]:
    """Replace, in place, the stated shapes that shape inference contradicts.

    Those stay with which it agrees once it gives the sizes that runtimes do.
    """
    skeleton = model_skeleton(model)
    drop_defaults(skeleton.graph, overridable(model))
    for scope in _graphs(skeleton):
        for info in _stated(scope):
            info.type.tensor_type.ClearField("shape")
    inferred = infer_shapes(skeleton, data_prop=False)
    if inferred is None:
        return ()  # Inference fails, so nothing contradicts the stated shapes.
    at_run_time = inferred
    if any(map(has_miscounted_sizes, _graphs(skeleton))):
        at_run_time = infer_run_time_shapes(skeleton, data_prop=False) or inferred
    found: dict[str, FalseShape] = {}
    for scope, *others in zip(_graphs(model), _graphs(inferred), _graphs(at_run_time), strict=True):
        known, right = (
            {info.name: from_proto(info.type) for info in _stated(other)} for other in others
        )
        for info in _stated(scope):
            stated, real = from_proto(info.type), known.get(info.name)
            if stated is None or stated.dims is None or real is None or real.dims is None:
                continue
            sizes = right.get(info.name)
            if sizes is not None and stated.dims == sizes.dims:
                continue
            if stated.contradicts(real):
                dims = tuple(None if _is_generated(dim) else dim for dim in real.dims)
                info.type.CopyFrom(ValueType(real.kind, real.elem_type, dims).to_proto())
                found[info.name] = FalseShape(info.name, stated.dims, dims)
    return tuple(found.values())


def _graphs(model: ModelProto) -> list[Scope]:
    return [scope for scope in scopes(model) if scope.function is None]


def _stated(scope: Scope) -> Iterator[ValueInfoProto]:
    """Yield the outputs and value_info of a graph with stated shapes of computed tensors."""
    graph = scope.container
    assert isinstance(graph, GraphProto)
    for info in (*graph.output, *graph.value_info):
        if info.name in scope.producers and info.type.tensor_type.HasField("shape"):
            yield info


def _is_generated(dim: int | str | None) -> bool:
    """Return whether a dimension's name was generated by shape inference."""
    return isinstance(dim, str) and dim.startswith("unk__")


def _shown(dims: Dims) -> str:
    return f"[{', '.join('?' if dim is None else str(dim) for dim in dims)}]"
