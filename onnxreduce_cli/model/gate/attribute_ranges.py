"""Attributes of nodes whose numbers onnx takes as they are: on some its inference ends the process.

It counts in 32 bits, asks for dimensions before the first, and makes as many parts as are said.
"""

from __future__ import annotations

from onnx import AttributeProto, NodeProto

from onnxreduce_cli.model.graph.attributes import find

#: What fits 32 bits, and the most parts that are made one by one.
_LARGEST, _MOST = (1 << 31) - 1, 1 << 20

#: The least and the most that an attribute may be, of whichever operator of ai.onnx.
_RANGES = {
    "axis": (-_LARGEST, _LARGEST),
    "batch_dims": (0, _LARGEST),
    "blocksize": (1, _LARGEST),
    "group": (1, _LARGEST),
    "hidden_size": (1, _LARGEST),
    "kv_num_heads": (1, _MOST),
    "num_groups": (1, _LARGEST),
    "num_outputs": (1, _MOST),
    "offset_group": (1, _LARGEST),
    "q_num_heads": (1, _MOST),
}

#: Operators on which inference ends the process for some value of an attribute: where that is one
#: of the function's, only each call tells.
ENDING = {"GatherND": "batch_dims", "Split": "num_outputs"}


def problem(node: NodeProto) -> str | None:
    """Return which number of a node of ai.onnx cannot be, in words for users; None if all can.

    What refers to an attribute of a function is not known here, and is passed over.
    """
    for attribute in node.attribute:
        name, number = attribute.name, attribute.i
        if attribute.type != AttributeProto.INT or name not in _RANGES or attribute.ref_attr_name:
            continue
        least, most = _RANGES[name]
        if number < least:
            return f"its attribute {name!r} must be at least {least}, and it is {number}"
        if number > most:
            return f"its attribute {name!r} must be at most {most}, and it is {number}"
        if name == "num_outputs" and number < len(node.output):
            return f"its attribute {name!r} is {number}, and it has {len(node.output)} outputs"
    return None


def may_end(node: NodeProto) -> bool:
    """Return whether onnx's inference of a node of ai.onnx may end the process.

    What a reference to an attribute of a function stands for is not known here: it may.
    """
    if node.op_type not in ENDING:
        return False
    attribute = find(node, ENDING[node.op_type])
    return attribute is not None and (bool(attribute.ref_attr_name) or problem(node) is not None)
