"""Models to run, from memory or from a file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from onnx import ModelProto, TypeProto

from onnxreduce_cli.errors import errors_about
from onnxreduce_cli.model.file.document import load
from onnxreduce_cli.model.file.external import data_files
from onnxreduce_cli.model.file.weights import mappable
from onnxreduce_cli.model.gate.model import check_model
from onnxreduce_cli.model.graph.scope import scopes, with_inner
from onnxreduce_cli.model.graph.values import numpy_dtype
from onnxreduce_cli.model.types.skeleton import model_skeleton

ModelOrPath = ModelProto | str | os.PathLike[str]


class ModelSource:
    """A model in memory or in a file.

    Of a file only the model without its weights stays in memory; executors read the file, so that
    external data can be mapped.

    Attributes:
        label: what messages call it.
        model: the model, where it was given in memory.
        path: the file, where it is one that ONNX Runtime reads itself.
        base_dir: the folder that external data is relative to; empty if there is none.
        skeleton: the model without its large tensors.
        mapped: how many bytes its external data has, of a model in a file.
    """

    def __init__(
        self,
        given: ModelOrPath,
        label: str,
        *,
        called: str = "",
        base_dir: str = "",
        generated: bool = False,
    ) -> None:
        """Read what is needed of a model.

        Args:
            given: the model, or its path.
            label: what messages call a model in memory; a file goes by its path.
            called: what messages call either, where it is not empty.
            base_dir: the folder of the external data of a model in memory.
            generated: whether we wrote it, so that what is wrong with it is not the user's.

        Raises:
            InvalidModelError: the file cannot be read, or is no model, or the model contradicts
                itself.
        """
        self.label = called or label
        self.model: ModelProto | None = None
        self.path: str | None = None
        self.mapped = 0
        self.base_dir = base_dir
        self._large = False
        if isinstance(given, ModelProto):
            self.model = given
            if not generated:
                check_model(given, scopes(given))
            self.skeleton = model_skeleton(given)
            return
        document = load(given)
        # Absolute, as the worker may be in another folder.
        self.base_dir = os.path.abspath(document.base_dir) if document.base_dir else ""
        self.label = called or os.fspath(given)
        if not generated:
            with errors_about(self.label):
                check_model(document.model, scopes(document.model))
        self.skeleton = model_skeleton(document.model)
        if document.format == "protobuf" and _is_text(os.fspath(given)):
            self.path = os.path.abspath(given)
            self._large = bool(document.outline)
            files = data_files(document, allow_outside=True)
            self.mapped = sum(os.path.getsize(f.path) for f in files if os.path.isfile(f.path))
        else:
            self.model = document.model

    @cached_property
    def inputs(self) -> dict[str, TypeProto]:
        """The inputs that a caller must give: all without an initializer."""
        graph = self.skeleton.graph
        defaults = {tensor.name for tensor in graph.initializer}
        defaults |= {sparse.values.name for sparse in graph.sparse_initializer}
        return {value.name: value.type for value in graph.input if value.name not in defaults}

    @cached_property
    def outputs(self) -> dict[str, TypeProto]:
        """The outputs in the model's order."""
        return {value.name: value.type for value in self.skeleton.graph.output}

    @cached_property
    def loops(self) -> bool:
        """True if there is a Loop, in subgraphs and functions too: it may never end."""
        nodes = [node for function in self.skeleton.functions for node in function.node]
        nodes += self.skeleton.graph.node
        return any(node.op_type == "Loop" for node in with_inner(nodes))

    @cached_property
    def in_place(self) -> tuple[bytes, str] | None:
        """A large file's model that refers to that file for its weights, and the file's folder.

        None where the model has other external data, or weights that are no initializers of the
        main graph.
        """
        if self.path is None or not self._large:
            return None
        # ONNX Runtime follows no link that leads out of the folder.
        path = os.path.realpath(self.path)
        if not _is_text(path):
            return None
        document = load(path)
        outline, initializers = document.outline, document.model.graph.initializer
        held = sum(outline.of(tensor) is not None for tensor in initializers)
        if not held or held < len(outline) or data_files(document, allow_outside=True):
            return None
        folder = document.base_dir
        return mappable(document, folder).SerializeToString(), folder

    def whole(self) -> ModelProto:
        """Return a copy of the model; external data stays in its files."""
        if self.model is None:
            return load(self.path or "").whole()
        copy = ModelProto()
        copy.CopyFrom(self.model)
        return copy


def cast_values(values: Mapping[str, Any], types: Mapping[str, TypeProto]) -> dict[str, Any]:
    """Return arrays, by name, in the dtypes that a model takes or gives under these names."""
    found = dict(values)
    for name, value in values.items():
        number = types[name].tensor_type.elem_type if name in types else 0
        if number and isinstance(value, np.ndarray) and value.dtype != numpy_dtype(number):
            with np.errstate(all="ignore"):  # What does not fit is no mistake of the models.
                found[name] = value.astype(numpy_dtype(number))
    return found


def _is_text(path: str) -> bool:
    """Return whether a path is valid Unicode, as ONNX Runtime needs it; not all paths are."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
