"""The ranges of integer attributes that onnx's inference does not check, and may crash on.

It computes in 32 bits, indexes dimensions before the first, and makes as many parts as it is given.
"""

from __future__ import annotations

from onnx import AttributeProto, NodeProto

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


def range_problem(node: NodeProto) -> str | None:
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
