"""The one-node models of `measured.json`, built anew from what it says of their forms.

Data are float of shape [1, 3, 4, 5] unless the operator wants something else. What `measured.json`
leaves open (the form "f": which sizes, which attributes beside the operator's new ones) is chosen
so that the model needs what its opset brought.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference

_SHAPE = (1, 3, 4, 5)

_REDUCE: dict[str, dict[str, Any]] = {
    "a2k": {"axes": [2], "keepdims": 1},
    "am1": {"axes": [-1], "keepdims": 0},
    "c2k": {"axes": [2], "keepdims": 1},
    "all": {"keepdims": 1},
    "noop": {"keepdims": 1, "noop_with_empty_axes": 1},
}
_SOFTMAX = {"ax2": 2, "axm1": -1, "old1": 1, "old3": 3}


def _floats(*dims: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(dims)), dtype=np.float32).reshape(dims)


def _ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


_NOTHING = np.array([], np.float32)
_FACTORS = np.array([1, 1, 0.5, 0.6], np.float32)
_DOUBLE = np.array([1, 1, 2, 2], np.float32)
_LIMITS = (np.array(-0.5, np.float32), np.array(0.5, np.float32))

#: Beside the family: what the operator gets after its data, and its attributes.
_OTHERS: dict[str, tuple[Sequence[np.ndarray], dict[str, Any]]] = {
    "Clip_f": (_LIMITS, {}),
    "Gelu_f": ((), {}),
    "Gelu_tanh": ((), {"approximate": "tanh"}),
    "GroupNormalization_f": ((_floats(2), _floats(2)), {"num_groups": 2}),
    "GroupNormalization_g21": ((_floats(4), _floats(4)), {"num_groups": 2}),
    "HardSwish_f": ((), {}),
    "LayerNormalization_f": ((_floats(5), _floats(5)), {"axis": -1}),
    "Mish_f": ((), {}),
    "Pad_f": ((_ints(1, 1, 1, 1), np.array(0, np.float32), _ints(2, 3)), {"mode": "constant"}),
    "RMSNormalization_f": ((_floats(5),), {"axis": -1}),
    "Resize_f": ((_NOTHING, _FACTORS), {"mode": "linear", "antialias": 1}),
    "Resize_lin2": ((_NOTHING, _DOUBLE), {"mode": "linear"}),
    "ScatterND_f": ((_ints(0).reshape(1, 1), _floats(*_SHAPE)), {}),
    "ScatterND_add": ((_ints(0).reshape(1, 1), _floats(*_SHAPE)), {"reduction": "add"}),
    "Split_f": ((), {"axis": 2, "num_outputs": 2}),
    "Squeeze_f": ((_ints(0),), {}),
    "TopK_f": ((_ints(2),), {"axis": -1}),
    "Unsqueeze_f": ((_ints(1),), {}),
}
_SHAPES = {"GroupNormalization_f": (1, 4, 4, 5), "GroupNormalization_g21": (1, 4, 4, 5)}
_OUTPUTS = {"Split": ("y", "rest"), "TopK": ("y", "places")}


def model(name: str, opset: int) -> ModelProto:
    """The model of a source, such as ``ReduceL1_a2k``, at the opset that it is exported at.

    Args:
        name: the source's name, the operator and its form.
        opset: the opset.
    """
    op_type, _, form = name.partition("_")
    if op_type.startswith("Reduce"):
        attributes = dict(_REDUCE[form])
        axes = attributes.pop("axes", None)
        inputs = [] if axes is None else [_ints(*axes)]
        return _model(name, op_type, opset, inputs, attributes, constant_node=form == "c2k")
    if form in _SOFTMAX:
        return _model(name, op_type, opset, (), {"axis": _SOFTMAX[form]})
    if op_type in _SEVERAL_INPUTS:
        shapes, attributes = _SEVERAL_INPUTS[op_type]
        names = ["x", *(f"x{index}" for index in range(1, len(shapes)))]
        node = helper.make_node(op_type, names, ["y"], "node", **attributes)
        return _of([node], name, opset, dict(zip(names, shapes, strict=True)), [])
    given, attributes = _OTHERS[name]
    return _model(name, op_type, opset, given, attributes)


#: Operators of several data inputs: their shapes, and attributes.
_SEVERAL_INPUTS: dict[str, tuple[Sequence[Sequence[int]], dict[str, Any]]] = {
    "Attention": (((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4)), {}),
    "GridSample": ((_SHAPE, (1, 3, 3, 2)), {"mode": "linear"}),
}


def _model(
    name: str,
    op_type: str,
    opset: int,
    inputs: Sequence[np.ndarray],
    attributes: dict[str, Any],
    *,
    constant_node: bool = False,
) -> ModelProto:
    outputs = _OUTPUTS.get(op_type, ("y",))
    names = [f"c{index}" if array.size else "" for index, array in enumerate(inputs)]
    node = helper.make_node(op_type, ["x", *names], outputs, "node", **attributes)
    tensors = [
        numpy_helper.from_array(array, given)
        for given, array in zip(names, inputs, strict=True)
        if given
    ]
    nodes = [node]
    if constant_node:
        nodes.insert(0, helper.make_node("Constant", [], ["c0"], value=tensors.pop()))
    return _of(nodes, name, opset, {"x": _SHAPES.get(name, _SHAPE)}, tensors)


def _of(
    nodes: Sequence[NodeProto],
    name: str,
    opset: int,
    inputs: dict[str, Sequence[int]],
    tensors: Sequence[TensorProto],
) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        name,
        [
            helper.make_tensor_value_info(given, TensorProto.FLOAT, dims)
            for given, dims in inputs.items()
        ],
        [helper.make_empty_tensor_value_info(output) for output in nodes[-1].output],
        tensors,
    )
    imports = [helper.make_opsetid("", opset)]
    least = helper.find_min_ir_version_for(imports)
    found = helper.make_model(graph, opset_imports=imports, ir_version=least)
    found = shape_inference.infer_shapes(found, strict_mode=True)
    for output in found.graph.output:
        if not output.type.WhichOneof("value"):  # No inference for GroupNormalization-18.
            output.type.CopyFrom(found.graph.input[0].type)
    return found
