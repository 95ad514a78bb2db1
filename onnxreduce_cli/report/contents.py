"""What a model holds beside its nodes: inputs, outputs, weights, metadata, external data."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass

from onnx import TensorProto

from onnxreduce_cli.diffing.models import type_text
from onnxreduce_cli.model.file.document import STREAM, Document
from onnxreduce_cli.model.file.external import data_files
from onnxreduce_cli.model.graph.scope import function_label
from onnxreduce_cli.model.graph.values import dtype_name
from onnxreduce_cli.report.table import table
from onnxreduce_cli.text import as_text, count, joined, listed, quoted, shortened, size_text

#: How many inputs, or outputs, are shown at most.
_SHOWN = 20


@dataclass(frozen=True, slots=True)
class GraphValue:
    """An input or output.

    Attributes:
        name: its name.
        type: its type, as ``float[N,3,224]``.
        default: whether it has a default value, so that callers may leave it out.
    """

    name: str
    type: str
    default: bool = False


@dataclass(frozen=True, slots=True)
class ExternalFile:
    """A file with weights beside the model's own.

    Attributes:
        location: what the model calls it.
        size: its size in bytes; null where the file does not exist.
    """

    location: str
    size: int | None


@dataclass(frozen=True, slots=True)
class ModelContents:
    """What a model holds beside its nodes.

    Attributes:
        size: the size of its file in bytes; null where it comes from no file.
        producer: the tool that wrote it, with its version; may be empty.
        metadata: the model's own metadata, long values cut.
        noted_nodes: how many nodes have metadata.
        inputs: its inputs.
        outputs: its outputs.
        weights: by dtype, the number of the main graph's initializers and of their elements.
        functions: its functions, each with its number of nodes.
        external: the files with its external data.
    """

    size: int | None
    producer: str
    metadata: dict[str, str]
    noted_nodes: int
    inputs: tuple[GraphValue, ...]
    outputs: tuple[GraphValue, ...]
    weights: dict[str, tuple[int, int]]
    functions: dict[str, int]
    external: tuple[ExternalFile, ...]


def contents(document: Document, path: str) -> ModelContents:
    """Return what a model holds, without reading its weights.

    Args:
        document: the model.
        path: its path as it was given; or what else it is called.
    """
    model = document.model
    graph = model.graph
    weights: dict[str, tuple[int, int]] = {}
    for tensor in graph.initializer:
        known = tensor.data_type in TensorProto.DataType.values()
        name = dtype_name(tensor.data_type) if known else f"dtype {tensor.data_type}"
        number, elements = weights.get(name, (0, 0))
        weights[name] = number + 1, elements + math.prod(tensor.dims)
    stored = {tensor.name for tensor in graph.initializer}
    files = data_files(document, allow_outside=True) if document.base_dir else []
    return ModelContents(
        os.path.getsize(path) if path != STREAM and os.path.isfile(path) else None,
        " ".join(filter(None, map(as_text, (model.producer_name, model.producer_version)))),
        {as_text(entry.key): shortened(as_text(entry.value)) for entry in model.metadata_props},
        sum(bool(node.metadata_props) for node in graph.node),
        tuple(
            GraphValue(item.name, type_text(item.type), item.name in stored) for item in graph.input
        ),
        tuple(GraphValue(item.name, type_text(item.type)) for item in graph.output),
        weights,
        {function_label(function): len(function.node) for function in model.functions},
        tuple(ExternalFile(file.location, _size(file.path)) for file in files),
    )


def _size(path: str) -> int | None:
    return os.path.getsize(path) if os.path.isfile(path) else None


def contents_text(found: ModelContents) -> str:
    """Describe what a model holds, a line or a small table for each kind of thing."""
    return "\n".join(_parts(found))


def _parts(found: ModelContents) -> Iterator[str]:
    rows = [*_values("input", found.inputs), *_values("output", found.outputs)]
    if rows:
        yield table(rows)
    elements = sum(each for _, each in found.weights.values())
    if found.weights:
        kinds = ", ".join(f"{number:,} {name}" for name, (number, _) in found.weights.items())
        yield joined([f"weights: {kinds}; {count(elements, 'element')}"])
    facts = [] if found.size is None else [f"file: {size_text(found.size)}"]
    facts += [f"written by {shortened(found.producer)}"] if found.producer else []
    if facts:
        yield joined(["; ".join(facts)])
    for file in found.external:
        size = "not there" if file.size is None else size_text(file.size)
        yield joined([f"external data: {quoted(file.location)}, {size}"])
    noted = [f"{key}={shortened(value, 60)}" for key, value in found.metadata.items()]
    if found.noted_nodes:
        noted.append(f"of {count(found.noted_nodes, 'node')}")
    if noted:
        yield joined([f"metadata: {listed(noted)}"])


def _values(what: str, values: tuple[GraphValue, ...]) -> Iterator[tuple[str, str, str]]:
    for item in values[:_SHOWN]:
        default = " (has a default)" if item.default else ""
        yield what, item.name, f"{item.type}{default}"
    if len(values) > _SHOWN:
        yield what, f"and {len(values) - _SHOWN:,} more", ""
