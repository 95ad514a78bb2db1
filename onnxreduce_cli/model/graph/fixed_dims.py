"""Sizes for the symbolic dimensions of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from onnx import GraphProto, ModelProto, TypeProto, ValueInfoProto

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.graph.scope import Scope, scopes
from onnxreduce_cli.text import nearest, quoted

#: The most dimensions that a message lists.
_LISTED = 20


def fix_dims(model: ModelProto, dims: Mapping[str, int]) -> int:
    """Give symbolic dimensions a size wherever a graph of the model states them, in place.

    Dimensions in functions stay: one of the same name may be another size there.

    Args:
        model: the model.
        dims: sizes by the dimensions' names; one without a name is ``input[axis]``.

    Returns:
        how many values have such a dimension.

    Raises:
        UsageError: there is no such dimension, or no size is below 1.
    """
    infos = [info for scope in scopes(model) for info in _stated(scope)]
    named = {dim.dim_param: None for info in infos for dim in _dims(info.type) if _is_open(dim)}
    places = dict(_nameless(model.graph))
    for name, size in dims.items():
        if not 1 <= size < 2**63:
            raise UsageError(f"--dim {name}={size}: a size is 1 or more, and below 2^63")
        if name not in named and name not in places:
            known = [*(item for item in named if item), *places]
            problem = f"--dim {name}: the model has no such dimension"
            raise UsageError(f"{problem}; {_known(name, known)}")
    for name, dim in places.items():
        if name in dims:
            dim.dim_value = dims[name]
    fixed = len({name.partition("[")[0] for name in places if name in dims})
    for info in infos:
        found = [dim for dim in _dims(info.type) if _is_open(dim) and dim.dim_param in dims]
        for dim in found:
            dim.dim_value = dims[dim.dim_param]
        fixed += bool(found)
    return fixed


def _known(name: str, known: list[str]) -> str:
    if not known:
        return "all dimensions that it states have sizes"
    near = nearest(name, known, 1)
    hint = f"did you mean {quoted(near[0])}? " if near else ""
    more = f" and {len(known) - _LISTED} more" if len(known) > _LISTED else ""
    return f"{hint}it has {', '.join(map(quoted, known[:_LISTED]))}{more}"


def _stated(scope: Scope) -> Iterator[ValueInfoProto]:
    container = scope.container
    if isinstance(container, GraphProto):
        yield from (*container.input, *container.output, *container.value_info)


def _dims(proto: TypeProto) -> Iterator[Any]:
    """Yield the dimensions of a tensor, or of the tensors in a sequence, an optional or a map."""
    kind = proto.WhichOneof("value")
    while kind in ("sequence_type", "optional_type", "map_type"):
        inner = getattr(proto, kind)
        proto = inner.value_type if kind == "map_type" else inner.elem_type
        kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        yield from getattr(proto, kind).shape.dim


def _is_open(dim: Any) -> bool:
    # A name that is not UTF-8 cannot be typed.
    return not dim.HasField("dim_value") and isinstance(dim.dim_param, str)


def _nameless(graph: GraphProto) -> Iterator[tuple[str, Any]]:
    """Yield the dimensions of inputs that have neither a size nor a name, as ``input[axis]``."""
    initialized = {tensor.name for tensor in graph.initializer}
    for info in graph.input:
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            unknown = dim.HasField("dim_value") and dim.dim_value < 0
            if info.name not in initialized and (
                unknown or not (dim.HasField("dim_value") or dim.dim_param)
            ):
                yield f"{info.name}[{axis}]", dim
