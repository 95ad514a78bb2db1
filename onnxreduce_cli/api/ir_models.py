"""Conversion from and to models of the onnx-ir package, if the caller uses it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.file.document import Document

if TYPE_CHECKING:
    from onnx_ir import Model
    from typing_extensions import TypeIs


def is_ir_model(given: object) -> TypeIs[Model]:
    """Return whether an object is an `onnx_ir.Model`, without importing that package."""
    package = sys.modules.get("onnx_ir")
    return package is not None and isinstance(given, package.Model)


def from_ir(model: Model) -> Document:
    """Return a copy of a model, whose external data stays where it is.

    Raises:
        UsageError: its external data is relative to several folders, but a file has only one.
    """
    from onnx_ir import ExternalTensor, to_proto

    tensors = [value.const_value for graph in model.graphs() for value in _initializers(graph)]
    folders = {str(item.base_dir) for item in tensors if isinstance(item, ExternalTensor)}
    if len(folders) > 1:
        raise UsageError(
            f"the model's external data is relative to {len(folders)} folders; read it first: "
            "onnx_ir.external_data.load_to_model(model)"
        )
    return Document(to_proto(model), base_dir=next(iter(folders), ""))


def to_ir(document: Document) -> Model:
    """Return a document as a model of onnx-ir."""
    from onnx_ir import external_data, from_proto

    model = from_proto(document.whole())
    for graph in model.graphs():
        external_data.set_base_dir(graph, document.base_dir)
    return model


def _initializers(graph: Any) -> Any:
    return graph.initializers.values()
