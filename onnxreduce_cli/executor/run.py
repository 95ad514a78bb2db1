"""The executor's two entry points, which run models."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TypeProto

from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.executor.dtypes import STRING, RuntimeValue, dtype_of_number
from onnxreduce_cli.executor.errors import ExecutionError
from onnxreduce_cli.executor.prepare import (
    PreparationContext,
    plain_domain,
    prepare_graph,
    read_opsets,
)
from onnxreduce_cli.model.file.document import load
from onnxreduce_cli.model.file.weights import mappable

_TOO_DEEP = "the model's subgraphs or functions nest too deeply"


class Executor:
    """A model that is ready to run on NumPy arrays, any number of times.

    Raises UnsupportedError when the executor cannot run some node correctly at the model's
    opset, ExecutionError when the model is invalid.
    """

    def __init__(self, model: ModelProto | str | os.PathLike[str]) -> None:
        """Prepare a model, or the model in a file with its external data."""
        proto = model if isinstance(model, ModelProto) else _load(model)
        try:
            functions = {
                (plain_domain(f.domain), f.name, getattr(f, "overload", "")): f
                for f in proto.functions
            }
            context = PreparationContext(read_opsets(proto.opset_import), functions)
            self._graph = prepare_graph(proto.graph, context)
            self._types = {value.name: value.type for value in proto.graph.input}
        except UnicodeDecodeError as error:
            raise ExecutionError(f"the model has a text that is not UTF-8: {error}") from error
        except RecursionError:
            raise ExecutionError(_TOO_DEEP) from None

    @property
    def input_names(self) -> list[str]:
        """The graph's inputs in order, those with a default included."""
        return list(self._graph.inputs)

    def subgraphs_not_run(self) -> list[tuple[str, str]]:
        """Return the subgraphs that no run so far has needed, as node's name and attribute.

        What is in one of them is left out.
        """
        return list(dict.fromkeys(self._graph.subgraphs_not_run()))

    def run(
        self, inputs: Mapping[str, Any], *, outputs: Sequence[str] | None = None
    ) -> dict[str, RuntimeValue]:
        """Run the model.

        `inputs` maps the names of graph inputs to arrays (lists of arrays for sequences,
        None for an empty optional); an input that is also an initializer may be left out.
        `outputs` names the values wanted, any value of the main graph; without it, the
        graph's outputs in order. Tensors come as arrays of the dtype that the
        specification says, rank 0 included. Raises ExecutionError.
        """
        graph = self._graph
        env = dict(graph.constants)
        for name, value in inputs.items():
            if name not in self._types:
                raise ExecutionError(f"the model has no input {name!r}")
            env[name] = _checked(name, value, self._types[name])
        for name in graph.inputs:
            if name not in env:
                raise ExecutionError(f"input {name!r} is missing")
        wanted = graph.outputs if outputs is None else tuple(outputs)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            # NumPy's warning about the mean of nothing is not covered by `errstate`.
            warnings.simplefilter("ignore", RuntimeWarning)
            try:
                graph.run_in(env, keep_all=not set(wanted) <= set(graph.outputs))
            except RecursionError:
                raise ExecutionError(_TOO_DEEP) from None
        for name in wanted:
            if name not in env:
                raise ExecutionError(f"the model's graph has no value {name!r}")
        return {name: env[name] for name in wanted}


def run(
    model: ModelProto | str | os.PathLike[str],
    inputs: Mapping[str, Any],
    *,
    outputs: Sequence[str] | None = None,
) -> dict[str, RuntimeValue]:
    """Run a model or a model file once; see `Executor` and `Executor.run`."""
    return Executor(model).run(inputs, outputs=outputs)


def _load(path: str | os.PathLike[str]) -> ModelProto:
    try:
        return mappable(load(path))
    except InvalidModelError as error:
        raise ExecutionError(str(error)) from error
    except OSError as error:
        raise ExecutionError(f"{error.filename!r} cannot be read: {error.strerror}") from error


def _checked(name: str, value: Any, declared: TypeProto) -> RuntimeValue:
    kind = declared.WhichOneof("value")
    if kind == "optional_type":
        if value is None:
            return None
        return _checked(name, value, declared.optional_type.elem_type)
    if kind == "sequence_type":
        if not isinstance(value, (list, tuple)):
            raise ExecutionError(f"input {name!r} is a sequence, {type(value).__name__} is given")
        if declared.sequence_type.elem_type.HasField("sequence_type"):
            raise ExecutionError(f"input {name!r} holds sequences of sequences, which none takes")
        return [_checked(name, item, declared.sequence_type.elem_type) for item in value]
    array = np.asarray(value)
    if kind == "tensor_type" and declared.tensor_type.elem_type:
        try:
            expected = dtype_of_number(declared.tensor_type.elem_type)
        except ValueError as error:
            raise ExecutionError(f"input {name!r}: {error}") from None
        if expected == STRING and array.dtype.kind in "US":
            array = array.astype(object)
        if array.dtype != expected:
            raise ExecutionError(f"input {name!r} is {expected}, {array.dtype} is given")
    return array
