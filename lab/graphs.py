"""Models of several Reduce and Softmax nodes, drawn at random: nobody has measured them before."""

from __future__ import annotations

import random

import numpy as np
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, shape_inference

from onnxreduce_cli.schemas import REDUCE, SOFTMAX

_OPSETS = (11, 12, 13, 17, 18, 20)
_SHAPE = (1, 3, 4, 5)
_RANK = len(_SHAPE)


def graph(seed: int) -> ModelProto:
    """A model of two to four branches of one or two nodes, each with an output of its own.

    Args:
        seed: the same gives the same model.
    """
    drawn = _Drawn(random.Random(seed))
    branches = drawn.random.randint(2, 4)
    for index in range(branches):
        first = drawn.node("x", f"y{index}")
        if drawn.keeps_rank(first) and drawn.random.random() < 0.5:
            first.name = first.output[0] = f"inner{index}"
            drawn.node(f"inner{index}", f"y{index}")
    made = helper.make_graph(
        drawn.nodes,
        f"graph_{seed}",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, _SHAPE)],
        [helper.make_empty_tensor_value_info(f"y{index}") for index in range(branches)],
        drawn.tensors,
    )
    imports = [helper.make_opsetid("", drawn.opset)]
    found = helper.make_model(made, opset_imports=imports, ir_version=7)
    return shape_inference.infer_shapes(found, strict_mode=True)


class _Drawn:
    """The nodes and the initializers of one model."""

    def __init__(self, drawing: random.Random) -> None:
        self.random = drawing
        self.opset = drawing.choice(_OPSETS)
        self.nodes: list[NodeProto] = []
        self.tensors: list[TensorProto] = []

    def node(self, given: str, output: str) -> NodeProto:
        """Add a node of the family that reads one value."""
        if self.random.random() < 0.35:
            axis = self.random.randrange(-_RANK, _RANK)
            name = self.random.choice(SOFTMAX)
            made = helper.make_node(name, [given], [output], output, axis=axis)
        else:
            made = self._reduction(given, output)
        self.nodes.append(made)
        return made

    def keeps_rank(self, node: NodeProto) -> bool:
        """Return whether its output is of its input's rank."""
        return all(item.name != "keepdims" or item.i for item in node.attribute)

    def _reduction(self, given: str, output: str) -> NodeProto:
        # Of numbers that may be negative there is no logarithm.
        known = REDUCE if given == "x" else [name for name in REDUCE if name != "ReduceLogSum"]
        name = self.random.choice(known)
        keepdims = self.random.choice((0, 1, 1))
        as_input = self.opset >= (13 if name == "ReduceSum" else 18)
        if as_input and self.random.random() < 0.2:
            attributes = {"keepdims": keepdims, "noop_with_empty_axes": 1}
            return helper.make_node(name, [given], [output], output, **attributes)
        axes = self.random.sample(range(1, _RANK), self.random.choice((1, 1, 2)))
        if self.random.random() < 0.3:
            axes = [axis - _RANK for axis in axes]
        if not as_input:
            attributes = {"keepdims": keepdims, "axes": sorted(axes)}
            return helper.make_node(name, [given], [output], output, **attributes)
        held = f"{output}_axes{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.array(sorted(axes), np.int64), held))
        return helper.make_node(name, [given, held], [output], output, keepdims=keepdims)
