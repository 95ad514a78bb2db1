"""Kernels of onnx.reference, for operators that it computes as their definition says.

onnx.reference has one or a few implementations for each operator, and uses them at opsets
whose definition means something else too. So the table below names the since-versions for
which its implementation was compared with the definition. Everything else is unsupported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, NodeProto

from onnxreduce_cli.executor.dtypes import RuntimeValue, to_dtype, wider
from onnxreduce_cli.executor.errors import Invalid
from onnxreduce_cli.executor.graph import NodeLocation
from onnxreduce_cli.executor.registry import Call, Kernel, OperatorDefinition

_RIGHT: dict[str, frozenset[int]] = {
    op: frozenset(versions)
    for op, versions in {
        "BitCast": (26,),
        "Col2Im": (18,),
        "DFT": (17, 20),
        "GridSample": (16, 20, 22),
        "MaxUnpool": (9, 11, 22),
        "MelWeightMatrix": (17,),
        "NonMaxSuppression": (10, 11),
        "RegexFullMatch": (20,),
        "RoiAlign": (10, 16, 22),
        "STFT": (17,),
        "StringConcat": (20,),
        "StringSplit": (20,),
        "TensorScatter": (24,),
    }.items()
}


_GRID_SAMPLE_16_MODES = {b"bilinear": b"linear", b"bicubic": b"cubic"}

#: The exceptions of onnx.reference for inputs that do not fit, beside `FAILURES`.
_UNCHECKED = (AssertionError, AttributeError, NameError)


def is_right(op: str, since: int) -> bool:
    """Return whether onnx.reference is right for a definition of an ai.onnx operator."""
    return since in _RIGHT.get(op, ())


def _as_defined_at(
    node: NodeProto, found: OperatorDefinition, attributes: list[AttributeProto]
) -> NodeProto:
    """Copy a node with the defaults of its own definition written out.

    onnx.reference would fill in those of the newest definition.
    """
    copy = NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    copy.attribute.extend(attributes)
    given = {attribute.name for attribute in attributes}
    for name in found.defaults:
        if name not in given:
            copy.attribute.append(found.schema.attributes[name].default_value)
    if found.since == 16 and node.op_type == "GridSample":
        # GridSample 20 renamed the modes.
        for attribute in copy.attribute:
            if attribute.name == "mode":
                attribute.s = _GRID_SAMPLE_16_MODES.get(attribute.s, attribute.s)
    if found.since == 10 and node.op_type == "RoiAlign":
        # RoiAlign 10 has no such attribute and does this; 16 has another default.
        mode = onnx.helper.make_attribute("coordinate_transformation_mode", "output_half_pixel")
        copy.attribute.append(mode)
    return copy


def reference_kernel(
    node: NodeProto,
    found: OperatorDefinition,
    attributes: list[AttributeProto],
    place: NodeLocation,
) -> Kernel:
    """Return a kernel that runs onnx.reference's implementation of this node.

    Raises UnsupportedError unless that is known to compute the node's definition.
    """
    if node.domain not in {"", "ai.onnx"} or not is_right(node.op_type, found.since):
        if found.deprecated:
            raise place.invalid(f"{node.op_type} {found.since} is deprecated")
        raise place.unsupported(f"{node.op_type} {found.since} is not implemented")
    # Imported late, as that takes longer than everything else here together.
    from onnx.reference.ops import load_op

    run_params: dict[str, Any] = {
        "log": _ignore,
        "opsets": {"": place.opset},
        "verbose": 0,
        "new_ops": None,
    }
    implementation = load_op("", node.op_type, place.opset)
    operator = implementation(_as_defined_at(node, found, attributes), run_params)
    if node.op_type == "GridSample":
        operator._gs_denormalize_coordinates = partial(_grid_positions, operator._gs_denormalize)
    compute: Callable[..., Any] = operator.run

    def run(call: Call, *inputs: RuntimeValue) -> tuple[RuntimeValue, ...]:
        _require_fit(node.op_type, *inputs[:3])
        if node.op_type == "NonMaxSuppression":
            if any(value is not None and np.size(value) != 1 for value in inputs[2:]):
                raise Invalid("its limits must hold one number each")
            # The limits are scalars, which may be absent; onnx.reference takes them in lists.
            limits = [None if value is None else np.reshape(value, -1) for value in inputs[2:]]
            limits += [None] * (3 - len(limits))
            defaults = (np.zeros(1, np.int64), np.zeros(1, np.float32), None)
            pairs = zip(limits, defaults, strict=True)
            inputs = (*inputs[:2], *(other if value is None else value for value, other in pairs))
        if node.op_type == "GridSample":
            data, grid = map(np.asarray, inputs)
            # onnx.reference rounds all in between to 16 bits.
            inputs = (wider(data), _with_finite_positions(wider(grid)))
        signal = inputs[0]
        if node.op_type == "STFT" and isinstance(signal, np.ndarray) and signal.ndim == 2:
            # Runtimes take it for real numbers; onnx.reference wants the dimension of 1.
            inputs = (signal[:, :, None], *inputs[1:])
        try:
            results = compute(*inputs)
        except _UNCHECKED as error:
            raise Invalid(f"the inputs do not fit: {error!r}") from error
        if results is None:
            raise Invalid("the implementation gives nothing")
        if node.op_type == "GridSample":
            return (to_dtype(results[0], data.dtype),)
        return tuple(results)

    return run


def _require_fit(op_type: str, *values: RuntimeValue) -> None:
    """Raise Invalid for shapes that do not fit, where onnx.reference would ignore elements."""
    if op_type not in _FIT:
        return
    shapes = [() if value is None else np.shape(value) for value in values]
    if not _FIT[op_type](shapes):
        raise Invalid(
            f"inputs of shapes {', '.join(str(list(dims)) for dims in shapes)} do not fit"
        )


def _grid_positions(
    position: Callable[..., Any], n: Any, dims: Sequence[int], align_corners: bool
) -> Any:
    """Return positions in the data, in the dtype of the grid where onnx.reference has float."""
    found = [position(item, dim, align_corners) for item, dim in zip(n, dims, strict=False)]
    return np.array(found, np.result_type(np.asarray(n), np.float32))


def _with_finite_positions(grid: Any) -> Any:
    """Return a grid with -1 for what is no finite number: the definition does not say."""
    return np.where(np.isfinite(grid), grid, grid.dtype.type(-1))


def _is_grid_of_data(shapes: Sequence[tuple[int, ...]]) -> bool:
    data, grid = shapes[:2]
    return 3 <= len(data) == len(grid) and (data[0], len(data) - 2) == (grid[0], grid[-1])


def _are_indices_of_data(shapes: Sequence[tuple[int, ...]]) -> bool:
    return shapes[0] == shapes[1]


def _are_boxes_of_scores(shapes: Sequence[tuple[int, ...]]) -> bool:
    boxes, scores = shapes[:2]
    return len(boxes) == len(scores) == 3 and boxes[2] == 4 and boxes[:2] == scores[::2]


def _are_regions_of_data(shapes: Sequence[tuple[int, ...]]) -> bool:
    data, regions, images = shapes
    return len(data) == 4 and regions == (*images, 4) and len(images) == 1


def _is_signal(shapes: Sequence[tuple[int, ...]]) -> bool:
    """Return whether shapes are of batches of real numbers, or of complex numbers as pairs."""
    signal = shapes[0]
    return len(signal) == 2 or (len(signal) == 3 and signal[2] in (1, 2))


def _is_update_of_cache(shapes: Sequence[tuple[int, ...]]) -> bool:
    cache, update, *indices = shapes
    fit = all(item in ((), cache[:1]) for item in indices)
    return len(cache) == len(update) and cache[:1] == update[:1] and fit


_FIT: dict[str, Callable[[Sequence[tuple[int, ...]]], bool]] = {
    "GridSample": _is_grid_of_data,
    "MaxUnpool": _are_indices_of_data,
    "NonMaxSuppression": _are_boxes_of_scores,
    "RoiAlign": _are_regions_of_data,
    "STFT": _is_signal,
    "TensorScatter": _is_update_of_cache,
}


def _ignore(pattern: str, *args: Any) -> None:
    """Discard the log lines of onnx.reference."""
