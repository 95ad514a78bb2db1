"""Models with more weights than nodes: in the model's file, and in another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

_WIDTH = 2048
_SIZE = 4 * _WIDTH * _WIDTH


def inline(path: str, megabytes: int) -> None:
    """Layers of 16 MB: MatMul, Softmax and ReduceMean at opset 13."""
    values = np.random.default_rng(0).standard_normal((_WIDTH, _WIDTH)).astype(np.float32)
    count = megabytes * 1_000_000 // _SIZE
    _save(path, [numpy_helper.from_array(values, f"w{layer}") for layer in range(count)])


def external(path: str, gigabytes: int) -> None:
    """The same with the weights in a file that is all hole, which takes no disk."""
    weights = []
    for layer in range(gigabytes * 1_000_000_000 // _SIZE):
        tensor = TensorProto(name=f"w{layer}", dims=[_WIDTH, _WIDTH], data_type=TensorProto.FLOAT)
        tensor.data_location = TensorProto.EXTERNAL
        entries = {"location": "weights.bin", "offset": layer * _SIZE, "length": _SIZE}
        for key, value in entries.items():
            tensor.external_data.add(key=key, value=str(value))
        weights.append(tensor)
    with Path(path).with_name("weights.bin").open("wb") as file:
        file.truncate(len(weights) * _SIZE)
    _save(path, weights)


def tables(path: str, gigabytes: int, files: int = 40) -> None:
    """So many tables, each in a file of its own that is all hole; what is looked up is averaged."""
    rows = gigabytes * 1_000_000_000 // files // (4 * _WIDTH)
    weights, nodes, value = [], [], ""
    for table in range(files):
        tensor = TensorProto(name=f"w{table}", dims=[rows, _WIDTH], data_type=TensorProto.FLOAT)
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value=f"table{table}.bin")
        tensor.external_data.add(key="length", value=str(4 * rows * _WIDTH))
        weights.append(tensor)
        with Path(path).with_name(f"table{table}.bin").open("wb") as file:
            file.truncate(4 * rows * _WIDTH)
        row, mean, total = f"row{table}", f"mean{table}", f"sum{table}"
        nodes.append(helper.make_node("Gather", [tensor.name, "ids"], [row], name=row))
        nodes.append(helper.make_node("ReduceMean", [row], [mean], name=mean, axes=[1]))
        if value:
            nodes.append(helper.make_node("Add", [value, mean], [total], name=total))
        value = total if value else mean
    graph = helper.make_graph(
        nodes,
        "tables",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["batch"])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, ["batch", 1])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    Path(path).write_bytes(model.SerializeToString())


def _save(path: str, weights: list[TensorProto]) -> None:
    nodes: list[NodeProto] = []
    value = "x"
    for layer, weight in enumerate(weights):
        names = [f"{kind}{layer}" for kind in ("product", "softmax", "mean", "out")]
        product, softmax, mean, out = names
        nodes += [
            helper.make_node("MatMul", [value, weight.name], [product], name=product),
            helper.make_node("Softmax", [product], [softmax], name=softmax, axis=-1),
            helper.make_node("ReduceMean", [softmax], [mean], name=mean, axes=[1]),
            helper.make_node("Sub", [softmax, mean], [out], name=out),
        ]
        value = out
    graph = helper.make_graph(
        nodes,
        "layers",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", _WIDTH])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, ["batch", _WIDTH])],
        weights,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    Path(path).write_bytes(model.SerializeToString())
