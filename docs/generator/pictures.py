"""Small graphs as SVG that takes the colours of the page around it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import escape

import numpy as np
import onnx
from onnx import GraphProto, ModelProto, NodeProto, numpy_helper

#: Pixels: of a character, of a line of text, around text, and between boxes.
CHARACTER, LINE, PADDING, GAP, RISE = 7.2, 17, 9, 18, 30

#: Of the first line of a box, and of the others.
_CLASSES = ('"title"', '"detail"')

#: Tensors with more elements are shown by their shape.
MOST_SHOWN = 8


@dataclass
class Box:
    """A node, an input or an output.

    Attributes:
        lines: what stands in it; the first is its title.
        kind: ``node``, or ``end`` for inputs and outputs.
        parents: the boxes whose values it reads.
    """

    lines: list[str]
    kind: str
    parents: list[Box] = field(default_factory=list)
    layer: int = 0
    x: float = 0
    y: float = 0

    @property
    def width(self) -> float:
        """Pixels from left to right."""
        return max(len(line) for line in self.lines) * CHARACTER + 2 * PADDING

    @property
    def height(self) -> float:
        """Pixels from top to bottom."""
        return len(self.lines) * LINE + PADDING

    @property
    def middle(self) -> float:
        """Where edges begin and end."""
        return self.x + self.width / 2


def picture(model: ModelProto) -> str:
    """Draw the main graph of a model: inputs above, outputs below, constants within their nodes."""
    boxes = _boxes(model.graph)
    layers = _layers(boxes)
    width, height = _place(layers)
    body = [*_edges(boxes), *(_drawn(box) for box in boxes)]
    label = escape(", ".join(node.op_type for node in model.graph.node))
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return f'<svg class="graph" role="img" aria-label="{label}" {size}>{"".join(body)}</svg>'


def _boxes(graph: GraphProto) -> list[Box]:
    """What is drawn, each after what it reads."""
    constants = {item.name: _tensor(numpy_helper.to_array(item)) for item in graph.initializer}
    made: dict[str, Box] = {}
    boxes = []
    for given in graph.input:
        if given.name not in constants:
            box = Box([given.name, _type(given)], "end")
            made[given.name] = box
            boxes.append(box)
    for node in graph.node:
        if node.op_type == "Constant":
            constants[node.output[0]] = _constant(node)
            continue
        box = Box([node.op_type, *_details(node, constants)], "node")
        box.parents = [made[name] for name in dict.fromkeys(_reads(node)) if name in made]
        made |= dict.fromkeys(node.output, box)
        boxes.append(box)
    for given in graph.output:
        boxes.append(Box([given.name, _type(given)], "end", [made[given.name]]))
    return boxes


def _reads(node: NodeProto) -> Iterator[str]:
    """The values that a node reads, its subgraphs' too."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            for inner in attribute.g.node:
                yield from _reads(inner)


def _details(node: NodeProto, constants: dict[str, str]) -> Iterator[str]:
    """A node's attributes and constant inputs."""
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.GRAPH:
            made = [item.op_type for item in attribute.g.node if item.op_type != "Constant"]
            yield f"{attribute.name}: {_short(', '.join(made) or 'what is given')}"
        elif attribute.name == "to":
            yield f"to={onnx.TensorProto.DataType.Name(attribute.i).lower()}"
        else:
            yield f"{attribute.name}={_value(attribute)}"
    names = _input_names(node)
    for name, value in zip(names, node.input, strict=False):
        if value in constants:
            yield f"{name}: {constants[value]}"


def _input_names(node: NodeProto) -> list[str]:
    """What the definition calls the inputs."""
    formal = [item.name for item in onnx.defs.get_schema(node.op_type).inputs]
    return formal + [formal[-1]] * (len(node.input) - len(formal)) if formal else []


def _value(attribute: onnx.AttributeProto) -> str:
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, onnx.TensorProto):
        return _tensor(numpy_helper.to_array(value))
    if isinstance(value, bytes):
        return value.decode()
    return str(list(value)) if isinstance(value, Sequence) else f"{value:g}"


def _constant(node: NodeProto) -> str:
    return _value(node.attribute[0])


def _tensor(array: np.ndarray) -> str:
    if array.size > MOST_SHOWN:
        return f"{array.dtype} {list(array.shape)}"
    return _short(np.array2string(array, separator=", ", precision=4).replace("\n", ""))


def _short(text: str) -> str:
    return text if len(text) <= 28 else text[:27] + "…"


def _type(given: onnx.ValueInfoProto) -> str:
    tensor = given.type.tensor_type
    name = onnx.TensorProto.DataType.Name(tensor.elem_type).lower()
    if not tensor.HasField("shape"):
        return f"{name}, any rank"
    dims = [dim.dim_param or str(dim.dim_value) for dim in tensor.shape.dim]
    return f"{name}[{', '.join(dims)}]"


def _layers(boxes: list[Box]) -> list[list[Box]]:
    """Boxes by the longest way that leads to them."""
    for box in boxes:
        box.layer = max((parent.layer + 1 for parent in box.parents), default=0)
    layers: list[list[Box]] = [[] for _ in range(max(box.layer for box in boxes) + 1)]
    for box in boxes:
        layers[box.layer].append(box)
    return layers


def _place(layers: list[list[Box]]) -> tuple[float, float]:
    """Give each box its place, below the middle of its parents; return the size of it all."""
    y = 1.0
    for layer in layers:
        if layer[0].parents:
            layer.sort(key=_wished)
        x = 0.0
        for box in layer:
            box.x, box.y = max(x, _wished(box) - box.width / 2), y
            x = box.x + box.width + GAP
        y += max(box.height for box in layer) + RISE
    boxes = [box for layer in layers for box in layer]
    left = min(box.x for box in boxes) - 1
    for box in boxes:
        box.x -= left
    return max(box.x + box.width for box in boxes) + 1, y - RISE + 1


def _wished(box: Box) -> float:
    if not box.parents:
        return 0
    return sum(parent.middle for parent in box.parents) / len(box.parents)


def _edges(boxes: list[Box]) -> Iterator[str]:
    for box in boxes:
        for parent in box.parents:
            top, bottom = parent.y + parent.height, box.y
            turn = min(RISE, (bottom - top) / 2)
            yield (
                f'<path d="M{parent.middle:.1f} {top:.1f}'
                f"C{parent.middle:.1f} {top + turn:.1f} {box.middle:.1f} {bottom - turn:.1f} "
                f'{box.middle:.1f} {bottom:.1f}"/>'
            )


def _drawn(box: Box) -> str:
    lines = [
        f'<text x="{box.middle:.1f}" y="{box.y + PADDING / 2 + LINE * (place + 0.75):.1f}" '
        f"class={_CLASSES[min(place, 1)]}>{escape(line)}</text>"
        for place, line in enumerate(box.lines)
    ]
    radius = 5 if box.kind == "node" else box.height / 2
    return (
        f'<g class="{box.kind}"><rect x="{box.x:.1f}" y="{box.y:.1f}" width="{box.width:.1f}" '
        f'height="{box.height:.1f}" rx="{radius:.1f}"/>{"".join(lines)}</g>'
    )
