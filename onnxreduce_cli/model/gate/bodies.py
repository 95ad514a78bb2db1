"""The check of graphs within nodes: their numbers of inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping

from onnx import AttributeProto, GraphProto, NodeProto

from onnxreduce_cli import schemas

#: The attributes that hold the graphs of each operator.
_GRAPHS = {
    "If": ("then_branch", "else_branch"),
    "Loop": ("body",),
    "Scan": ("body",),
    "SequenceMap": ("body",),
}

#: From this opset on Scan has no input for the lengths of sequences, and no batches.
_SCAN_WITHOUT_LENGTHS = 9


def subgraph_problem(node: NodeProto, op_type: str, opset: int) -> str | None:
    """Return what is wrong with the graphs of a node; None if nothing is.

    Args:
        node: a node whose number of inputs and outputs, and whose attributes, its operator allows.
        op_type: its operator.
        opset: the opset that it is read by.
    """
    if not schemas.exists(op_type, opset):
        return None  # What the node must have is not known, and nothing is made of it.
    attributes = {attribute.name: attribute for attribute in node.attribute}
    for name in _GRAPHS[op_type]:
        if attributes[name].ref_attr_name:
            continue  # Each call may give another.
        graph = attributes[name].g
        wanted = _wanted(node, op_type, opset, attributes)
        if isinstance(wanted, str):
            return wanted
        found = (_given(graph), len(graph.output))
        for side, given, has in zip(("inputs", "outputs"), wanted, found, strict=True):
            if given != has:
                return f"its graph {name!r} has {has} {side}, and the node gives it {given}"
    return None


def _given(graph: GraphProto) -> int:
    """Return the number of inputs without initializers, which before IR version 4 are inputs."""
    names = [value.name for value in graph.input]
    initializers = {tensor.name for tensor in graph.initializer}
    while names and names[-1] in initializers:
        del names[-1]
    return len(names)


def _wanted(
    node: NodeProto, op_type: str, opset: int, attributes: Mapping[str, AttributeProto]
) -> tuple[int, int] | str:
    """Return the numbers of inputs and outputs that a node's graphs must have, or what is wrong."""
    inputs, outputs = len(node.input), len(node.output)
    if op_type == "If":
        return 0, outputs
    if op_type == "Loop":
        # The number of the iteration and the condition, then the values that are carried on.
        return inputs, outputs + 1
    if op_type == "Scan":
        given = inputs if opset >= _SCAN_WITHOUT_LENGTHS else inputs - 1
        scanned = attributes["num_scan_inputs"]
        if not scanned.ref_attr_name and not 1 <= scanned.i <= given:
            return f"its attribute 'num_scan_inputs' is {scanned.i}, and it has {given} inputs"
        carried = given - scanned.i
        if carried > outputs and not scanned.ref_attr_name:
            return f"it carries {carried} values on, and has {outputs} outputs"
        return given, outputs
    return inputs, outputs
