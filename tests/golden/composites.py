"""The small models of composite operators: each form in which they are written out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from onnx import ModelProto, helper

from tests.golden.forms import info

Dims = tuple[int | str, ...] | None


@dataclass(frozen=True)
class Form:
    """One node.

    Attributes:
        text: what is special about it.
        inputs: the shape of each input, by name; None where not even the rank is known.
        attributes: its attributes.
        elem_type: the dtype of inputs, and of the output, that is not in `elem_types`.
        elem_types: the dtypes of others, by name.
        outputs: the names of its outputs.
    """

    text: str
    inputs: Mapping[str, Dims]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    elem_type: str = "float"
    elem_types: Mapping[str, str] = field(default_factory=dict)
    outputs: tuple[str, ...] = ("y",)


_X = {"x": ("N", 3, 4)}
_LAYER = {**_X, "scale": (4,), "bias": (4,)}
_RMS = {**_X, "scale": (4,)}
_GROUP = {"x": ("N", 4, "H", "W"), "scale": (4,), "bias": (4,)}
_ROTATED = {"x": (2, 4, 3, 8), "cos": (2, 3, 4), "sin": (2, 3, 4)}
_Q, _K, _V = (2, 4, 3, 8), (2, 4, 5, 8), (2, 4, 5, 6)
_ATTENTION = {"q": _Q, "k": _K, "v": _V}
_GROUPED = {"q": _Q, "k": (2, 2, 5, 8), "v": (2, 2, 5, 6)}
_FLAT = {"q": (2, 3, 32), "k": (2, 5, 32), "v": (2, 5, 24)}
_OPEN = {"q": ("N", 4, "L", 8), "k": ("N", 4, "S", 8), "v": ("N", 4, "S", 6)}
_PAST = {"mask": (3, 7), "past_key": (2, 4, 2, 8), "past_value": (2, 4, 2, 6)}
_HEADS = {"q_num_heads": 4, "kv_num_heads": 4}


#: By operator the opset at which its nodes are, the opsets they go to, and the forms.
_COMPOSITES: dict[str, tuple[int, tuple[int, ...], list[Form]]] = {
    "LayerNormalization": (
        17,
        (16, 12, 9),
        [
            Form("over the last axis", _LAYER),
            Form("without bias", _RMS),
            Form("over two axes", {**_X, "scale": (3, 4), "bias": (3, 4)}, {"axis": 1}),
            Form("of float16", _LAYER, elem_type="float16"),
            Form("of unknown rank", {**_LAYER, "x": None}),
            Form("its mean and deviation are read", _LAYER, outputs=("y", "mean", "deviation")),
        ],
    ),
    "RMSNormalization": (
        23,
        (22, 17, 12, 9),
        [
            Form("over the last axis", _RMS),
            Form("over two axes", {**_X, "scale": (3, 4)}, {"axis": 1}),
            Form("of float16", _RMS, elem_type="float16"),
        ],
    ),
    "GroupNormalization": (
        21,
        (20, 17, 12),
        [
            Form("in two groups", _GROUP, {"num_groups": 2}),
            Form("of float16", _GROUP, {"num_groups": 2}, "float16"),
        ],
    ),
    "Gelu": (
        20,
        (19, 12, 9),
        [
            Form("by erf", _X),
            Form("by tanh", _X, {"approximate": "tanh"}),
            Form("of float16", _X, elem_type="float16"),
        ],
    ),
    "Swish": (
        24,
        (23, 12),
        [
            Form("no alpha", _X),
            Form("alpha 1.5", _X, {"alpha": 1.5}),
            Form("of float16", _X, elem_type="float16"),
        ],
    ),
    "HardSwish": (14, (13, 9), [Form("of float", _X)]),
    "Mish": (18, (17, 9), [Form("of float", _X)]),
    "RotaryEmbedding": (
        23,
        (22, 12),
        [
            Form("halves side by side", _ROTATED),
            Form(
                "a part of each head",
                {**_ROTATED, "cos": (2, 3, 2), "sin": (2, 3, 2)},
                {"rotary_embedding_dim": 4, "num_heads": 4},
            ),
            Form(
                "of positions",
                {"x": (2, 4, 3, 8), "cos": (10, 4), "sin": (10, 4), "ids": (2, 3)},
                elem_types={"ids": "int64"},
            ),
            Form("interleaved", _ROTATED, {"interleaved": 1}),
            Form("of rank 3", {**_ROTATED, "x": (2, 3, 32)}, {"num_heads": 4}),
        ],
    ),
    "Attention": (
        23,
        (22, 12),
        [
            Form("plain", _ATTENTION),
            Form("open sizes", _OPEN),
            Form("of float16", _ATTENTION, elem_type="float16"),
            Form("a mask to add", {**_ATTENTION, "mask": (3, 5)}),
            Form("a mask of bool", {**_ATTENTION, "mask": (3, 5)}, elem_types={"mask": "bool"}),
            Form("is_causal", _ATTENTION, {"is_causal": 1}),
            Form("softcap", _ATTENTION, {"softcap": 2.0}),
            Form("half as many heads of keys", _GROUPED),
            Form("of rank 3", _FLAT, _HEADS),
            Form(
                "a past", {**_ATTENTION, **_PAST}, outputs=("y", "present_key", "present_value")
            ),
        ],
    ),
}  # fmt: skip

OPERATORS = tuple(_COMPOSITES)


def cases(op_type: str) -> Iterator[tuple[str, ModelProto, list[int]]]:
    """Each model of an operator: what it is, the model, and the opsets to convert it to."""
    opset, targets, forms = _COMPOSITES.get(op_type, (0, (), []))
    for form in forms:
        yield f"opset {opset}, {form.text}", _model(op_type, opset, form), [*targets]


def _model(op_type: str, opset: int, form: Form) -> ModelProto:
    """A model of one node."""
    node = helper.make_node(
        op_type, [*form.inputs], [*form.outputs], name="node", **dict(form.attributes)
    )
    inputs = [
        info(name, form.elem_types.get(name, form.elem_type), dims)
        for name, dims in form.inputs.items()
    ]
    elem_types = {"mean": "float", "deviation": "float"}
    outputs = [info(name, elem_types.get(name, form.elem_type), None) for name in form.outputs]
    graph = helper.make_graph([node], "g", inputs, outputs)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)
