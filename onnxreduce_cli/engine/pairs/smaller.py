"""A smaller pair for a site that is too large to run: the node on smaller tensors, converted too.

The sizes may be in constants of the replacement: strides, matrices, indices. The same steps then
give the replacement for smaller sizes, and a mistake in them shows there as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import numpy as np
from onnx import (
    GraphProto,
    ModelProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
    helper,
    numpy_helper,
)

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.pairs.pair import Pair, UncheckableError
from onnxreduce_cli.engine.pairs.types import Array, fixed_dims, keeps_value, mentioned_integers
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import OnnxreduceError

#: Draws a constant of a shape and of a `TensorProto.DataType`.
Draw = Callable[[tuple[int, ...], int], Array]

#: Sizes up to this in constants stay as they are.
_SMALL = 64


#: Bounds that the smaller sizes begin above, tried in turn: steps may treat large tensors in
#: another way.
_BEGINNINGS = (4, 60, 730, 5000, 70_000)


def smaller_pair(pair: Pair, site: Site, conversion: Conversion, draw: Draw) -> Pair:
    """Return a site's pair with the smallest tensors for which the same operators result.

    Args:
        pair: the site's own pair, of its true sizes.
        site: the site.
        conversion: the conversion that it is from.
        draw: draws constants in place of large ones.

    Raises:
        UncheckableError: no size can be made smaller, or other operators replace smaller nodes.
    """
    wanted = [node.op_type for node in site.result]
    reason = "the node itself says how large they are"
    for begin in _BEGINNINGS:
        before, sizes = _smaller_reference(pair, begin, draw)
        if before.SerializeToString() == pair.reference.SerializeToString():
            break
        after, made = _convert_again(before, conversion)
        if made == wanted:
            known = {
                name: tuple(sizes.get(item, item) if isinstance(item, int) else item for item in of)
                for name, of in pair.sizes.items()
            }
            return pair._replace(
                reference=before, candidate=after, promised={}, sizes=known, constants=()
            )
        reason = "something else replaces the node where they are smaller"
    raise UncheckableError(reason)


def _convert_again(before: ModelProto, conversion: Conversion) -> tuple[ModelProto, list[str]]:
    """Convert a model of one node as the source model, and return it with the new operators."""
    after = ModelProto()
    after.CopyFrom(before)
    try:
        options = Options(expand=conversion.options.expand, emulate=True)
        converted = Conversion(after, conversion.target, options)
        made = [node.op_type for item in converted.sites for node in item.result]
        converted.apply()
    except OnnxreduceError as error:
        raise UncheckableError(f"a smaller node is refused: {error}") from error
    return after, made


def _smaller_reference(pair: Pair, begin: int, draw: Draw) -> tuple[ModelProto, dict[int, int]]:
    """Return the reference on smaller tensors, and the smaller size for each larger one."""
    model = ModelProto()
    model.CopyFrom(pair.reference)
    graph = model.graph
    arrays = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    sizes = _sizes(graph, [array for array in arrays.values() if keeps_value(array)], begin)
    del graph.initializer[:]
    for name, array in arrays.items():
        elem_type = helper.np_dtype_to_tensor_dtype(array.dtype)
        if not keeps_value(array):
            graph.initializer.append(_drawn_constant(name, elem_type, array.shape, sizes, draw))
        elif _is_list(array):
            listed = [sizes.get(int(item), int(item)) for item in array.reshape(-1)]
            array = np.array(listed, np.int64).reshape(array.shape)
            graph.initializer.append(numpy_helper.from_array(array, name))
        else:
            graph.initializer.append(numpy_helper.from_array(array, name))
    values = list(graph.input)
    del graph.input[:]
    for value in values:
        kind = value.type.tensor_type
        if value.name in pair.constants:
            dims = [dim.dim_value for dim in kind.shape.dim]
            graph.initializer.append(_drawn_constant(value.name, kind.elem_type, dims, sizes, draw))
        else:
            graph.input.append(_smaller_value(value, sizes))
    return model, sizes


def _sizes(graph: GraphProto, kept: list[Array], begin: int) -> dict[int, int]:
    """Return a smaller size for each larger one, of tensors and in lists of integers.

    The order of sizes is kept: one may be an index into the other, or beyond its end.
    """
    lists = [array for array in kept if _is_list(array)]
    listed = {int(item) for array in lists for item in array.reshape(-1)}
    dims = {dim for value in graph.input for dim in fixed_dims(value.type)}
    dims |= {dim for tensor in graph.initializer for dim in tensor.dims}
    pinned = mentioned_integers(list(graph.node), [array for array in kept if not _is_list(array)])
    pinned |= {item for item in listed if item <= _SMALL}
    last = max([begin, *(item for item in pinned if item <= _SMALL)])
    found: dict[int, int] = {}
    for item in sorted(dims | listed):
        if item > 8 and item not in pinned:
            last = next(size for size in count(last + 1) if size not in pinned)
            found[item] = min(item, last)
    return found


def _is_list(array: Array) -> bool:
    """Return whether a constant may hold sizes."""
    return array.dtype == np.int64 and array.ndim < 2


def _drawn_constant(
    name: str, elem_type: int, dims: Sequence[int], sizes: dict[int, int], draw: Draw
) -> TensorProto:
    """Return a drawn constant of smaller size in place of a large one."""
    shape = tuple(sizes.get(dim, dim) for dim in dims)
    return numpy_helper.from_array(draw(shape, elem_type), name)


def _smaller_value(value: ValueInfoProto, sizes: dict[int, int]) -> ValueInfoProto:
    """Return an input with smaller dimensions where they are known."""
    kind = value.type.tensor_type
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        return value
    dims = [
        sizes.get(dim.dim_value, dim.dim_value)
        if dim.HasField("dim_value")
        else dim.dim_param or None
        for dim in kind.shape.dim
    ]
    made: TypeProto = helper.make_tensor_type_proto(kind.elem_type, dims)
    return helper.make_value_info(value.name, made)
