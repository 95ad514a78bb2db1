"""The small models: each operator of the family, in each form, on each side of its boundaries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper

from onnxreduce_cli.schemas import REDUCE, SOFTMAX

#: The opsets at which what the family means changed; from each a model goes to all others.
SIDES = (1, 11, 13, 18)

#: The boundaries of dtypes: the operators, the opset, and the dtypes that it brought or took.
DTYPES = [
    (("ReduceMax", "ReduceMin"), 12, ("int8", "uint8")),
    (("ReduceMax", "ReduceMin"), 20, ("bool",)),
    (("ReduceLogSum", "ReduceLogSumExp"), 28, ("int32", "uint64")),
]


@dataclass(frozen=True)
class Form:
    """One way to write a node.

    Attributes:
        text: what is special about it.
        attributes: those beside the axes.
        axes: those that it reduces over; None for none given.
        given: whether the axes are an attribute, an initializer, or only known at run time.
        elem_type: the dtype of the data.
        dims: the shape of the data; None where not even the rank is known.
        in_function: whether the node is in a function, whose attribute the axes or the axis are.
    """

    text: str
    attributes: dict[str, Any] = field(default_factory=dict)
    axes: tuple[int, ...] | None = None
    given: str = "attribute"
    elem_type: str = "float"
    dims: tuple[int | str, ...] | None = (2, "N", 4)
    in_function: bool = False


def forms(op_type: str, opset: int) -> Iterator[Form]:
    """The forms of an operator at an opset."""
    if op_type in SOFTMAX:
        yield from _softmax_forms(opset)
        return
    as_input = opset >= (13 if op_type == "ReduceSum" else 18)
    given = "initializer" if as_input else "attribute"
    yield Form("no axes")
    yield Form("no axes, keepdims=0", {"keepdims": 0})
    yield Form(f"axes [1] as {given}", axes=(1,), given=given)
    yield Form(f"axes [0, 2] as {given}, keepdims=0", {"keepdims": 0}, (0, 2), given)
    yield Form(f"axes [1] as {given}, of unknown rank", axes=(1,), given=given, dims=None)
    if opset >= 11:
        yield Form(f"axes [-1] as {given}", axes=(-1,), given=given)
        yield Form(f"axes [-1] as {given}, of unknown rank", axes=(-1,), given=given, dims=None)
    if as_input:
        yield Form("axes [1] at run time", axes=(1,), given="input")
        yield Form("noop_with_empty_axes=1, no axes", {"noop_with_empty_axes": 1})
        yield Form("noop_with_empty_axes=1, axes []", {"noop_with_empty_axes": 1}, (), given)
        yield Form("noop_with_empty_axes=1, axes [1]", {"noop_with_empty_axes": 1}, (1,), given)
    else:
        yield Form("axes of the function's attribute", axes=(1,), in_function=True)


def _softmax_forms(opset: int) -> Iterator[Form]:
    yield Form("no axis")
    yield Form("axis 1", {"axis": 1})
    yield Form("axis 2", {"axis": 2})
    yield Form("axis 1, of unknown rank", {"axis": 1}, dims=None)
    yield Form("axis 1, no other size than 1 behind", {"axis": 1}, dims=(2, "N", 1))
    yield Form("axis 0, rank 1", {"axis": 0}, dims=("N",))
    yield Form("axis of the function's attribute", {"axis": 1}, in_function=True)
    if opset >= 11:
        yield Form("axis -1", {"axis": -1})
        yield Form("axis -2", {"axis": -2})
        yield Form("axis -1, of unknown rank", {"axis": -1}, dims=None)


def cases(op_type: str) -> Iterator[tuple[str, ModelProto, list[int]]]:
    """Each model of an operator: what it is, the model, and the opsets to convert it to."""
    last = 13 if op_type in SOFTMAX else 18
    sides = [opset for opset in SIDES if opset <= last]
    for source in sides:
        targets = [opset for opset in sides if opset != source]
        for form in forms(op_type, source):
            yield f"opset {source}, {form.text}", model(op_type, source, form), targets
    for operators, boundary, dtypes in DTYPES:
        for dtype in dtypes if op_type in operators else ():
            up = boundary == 28
            source, target = (boundary - 1, boundary) if up else (boundary, boundary - 1)
            given = "initializer" if source >= 18 else "attribute"
            form = Form(f"of {dtype}", axes=(1,), given=given, elem_type=dtype)
            yield f"opset {source}, {form.text}", model(op_type, source, form), [target]


def model(op_type: str, opset: int, form: Form) -> ModelProto:
    """A model of one node, which reads x and gives y."""
    node = helper.make_node(op_type, ["x"], ["y"], name="node", **form.attributes)
    inputs = [info("x", form.elem_type, form.dims)]
    initializers = []
    if form.axes is not None:
        if form.given == "attribute":
            node.attribute.append(helper.make_attribute("axes", form.axes))
        else:
            node.input.append("axes")
        if form.given == "initializer":
            initializers.append(
                helper.make_tensor("axes", TensorProto.INT64, [len(form.axes)], form.axes)
            )
        elif form.given == "input":
            inputs.append(info("axes", "int64", (len(form.axes),)))
    functions = []
    if form.in_function:
        node, function = _as_function(node, opset)
        functions.append(function)
    graph = helper.make_graph([node], "g", inputs, [info("y", form.elem_type, None)], initializers)
    opsets = [helper.make_opsetid("", opset)]
    opsets += [helper.make_opsetid("local", 1) for _ in functions]
    return helper.make_model(graph, opset_imports=opsets, functions=functions, ir_version=10)


def _as_function(node: NodeProto, opset: int) -> tuple[NodeProto, FunctionProto]:
    """A call of a function that holds the node; its axes or axis are the function's attribute."""
    (given,) = node.attribute
    call = helper.make_node("F", ["x"], ["y"], name="call", domain="local")
    call.attribute.append(helper.make_attribute(given.name, helper.get_attribute_value(given)))
    kind, name = given.type, given.name
    given.Clear()
    given.name, given.type, given.ref_attr_name = name, kind, name
    opsets = [helper.make_opsetid("", opset)]
    return call, helper.make_function("local", "F", ["x"], ["y"], [node], opsets, [name])


def info(name: str, dtype: str, dims: tuple[int | str, ...] | None) -> ValueInfoProto:
    """A value of a dtype, such as ``float``, and a shape; None for none."""
    elem_type = TensorProto.DataType.Value(dtype.upper())
    return helper.make_tensor_value_info(name, elem_type, dims)


OPERATORS = (*REDUCE, *SOFTMAX)
