"""The models of a pair in double precision: what they compute but for rounding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import ModelProto, TensorProto, helper, numpy_helper

from onnxreduce_cli.engine.pairs.pair import Pair
from onnxreduce_cli.model.graph.values import is_float
from onnxreduce_cli.verification.compare.values import Tolerance, compare_values
from onnxreduce_cli.verification.errors import CannotRunError, RunFailedError
from onnxreduce_cli.verification.running.runtime import NumpyRunner

Array = npt.NDArray[Any]

#: Operators that round to a dtype, or read its bits: in double they compute something else.
_OF_A_DTYPE = frozenset({"BitCast", "Cast", "CastLike"})


def model_in_double(model: ModelProto) -> ModelProto:
    """Return a model with all floats as double; it has neither subgraphs nor Casts."""
    copy = ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        kind = value.type.tensor_type
        if kind.elem_type and is_float(helper.tensor_dtype_to_np_dtype(kind.elem_type)):
            kind.elem_type = TensorProto.DOUBLE
    for tensor in copy.graph.initializer:
        array = array_in_double(numpy_helper.to_array(tensor))
        tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    return copy


def array_in_double(array: Any) -> Any:
    """Return a tensor of floats as double; any other value as it is."""
    floats = isinstance(array, np.ndarray) and is_float(array.dtype)
    return array.astype(np.float64) if floats else array


def agrees_in_double(pair: Pair, feeds: Mapping[str, Any], name: str) -> bool:
    """Return whether both models of a pair compute the same in double.

    Then what they differ by is rounding, or the sign of a zero. It is false where the NumPy
    executor cannot tell.

    Args:
        pair: the pair; its nodes have no subgraphs.
        feeds: the inputs of both.
        name: the output to compare.
    """
    if any(node.op_type in _OF_A_DTYPE for node in pair.reference.graph.node):
        return False
    wide = {key: array_in_double(value) for key, value in feeds.items()}
    try:
        first, second = (
            NumpyRunner(model_in_double(side)).run(wide, [name])[name]
            for side in (pair.reference, pair.candidate)
        )
    except (CannotRunError, RunFailedError):
        return False
    return compare_values(first, second, Tolerance()).agree
