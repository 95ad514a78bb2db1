"""Operators replaced by their function bodies."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from onnxreduce_cli import convert
from onnxreduce_cli.steps import function_operators
from tests.support import blockers, converts, model, one_node, op_types

RNG = np.random.default_rng(11)


def _floats(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape).astype(np.float32)


def _body_is_right() -> bool:
    """Return whether the installed onnx is one whose body minds is_causal where there is a mask.

    Such a one repeats heads of keys, and caps scores, as the definition says, too.
    """
    return tuple(map(int, onnx.__version__.split(".")[:2])) >= (1, 23)


ATTENTIONS: list[dict[str, Any]] = [
    {},
    {"is_causal": 1},
    {"scale": 0.3},
    {"softcap": 2.0},
]


@pytest.mark.parametrize("options", ATTENTIONS)
def test_attention(options: dict[str, Any]) -> None:
    inputs = {"q": _floats(2, 4, 3, 8), "k": _floats(2, 4, 5, 8), "v": _floats(2, 4, 5, 6)}
    masked = {**inputs, "mask": RNG.random((3, 5)) > 0.3}
    masked["mask"][:, 0] = True
    grouped = {**masked, "k": inputs["k"][:, :2], "v": inputs["v"][:, :2]}
    for given in (inputs, masked, grouped) if _body_is_right() else (inputs, masked):
        source = one_node("Attention", 23, given, **options)
        for target in (22, 18, 17, 14, 13):
            special = options.keys() & {"is_causal", "softcap"}
            if not _body_is_right() and special and "mask" in given:
                assert "that the installed onnx has" in blockers(source, target)[0].reason
                continue
            found = converts(source, target, given)
            assert "Attention" not in op_types(found)


@pytest.mark.parametrize("names", [("p", "q"), ("softcap", "scale")])
def test_attributes_that_refer_to_those_of_a_function(names: tuple[str, str]) -> None:
    """References have the names of the function's attributes, which are not the operator's."""
    scale, cap = names
    source = model(f"""<ir_version: 10, opset_import: ["" : 23, "local" : 1]>
        g (float[1,2,3,4] q, float[1,2,5,4] k, float[1,2,5,4] v) => (float[a,b,c,d] y) {{
            y = local.F<{scale} = 0.25, {cap} = 2.0>(q, k, v)
        }}
        <domain: "local", opset_import: ["" : 23]>
        F <{scale}, {cap}>(q, k, v) => (y) {{
            y = Attention<scale : float = @{scale}, softcap : float = @{cap}>(q, k, v)
        }}""")
    rng = np.random.default_rng(0)
    shapes = {"q": (1, 2, 3, 4), "k": (1, 2, 5, 4), "v": (1, 2, 5, 4)}
    feeds = {name: rng.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    for target in (22, 13):
        converts(source, target, feeds)


def test_attention_of_unknown_type() -> None:
    inputs = {"q": _floats(2, 4, 3, 8), "k": _floats(2, 4, 5, 8), "v": _floats(2, 4, 5, 8)}
    source = one_node("Attention", 23, inputs)
    producer = source.graph.node.add(op_type="Made", domain="elsewhere", output=["q2"])
    assert producer
    source.opset_import.add(domain="elsewhere", version=1)
    source.graph.node[0].input[0] = "q2"
    nodes = [source.graph.node[1], source.graph.node[0]]
    copies = [type(node).FromString(node.SerializeToString()) for node in nodes]
    del source.graph.node[:]
    source.graph.node.extend(copies)
    del source.graph.input[:]  # Nothing tells a type any more, not even the other inputs.
    assert "its mask and scale have it" in blockers(source, 22)[0].reason


@pytest.mark.parametrize("interleaved", [0, 1])
def test_rotary_embedding(interleaved: int) -> None:
    inputs = {
        "x": _floats(2, 4, 3, 8),
        "cos": _floats(10, 4),
        "sin": _floats(10, 4),
        "ids": RNG.integers(0, 10, (2, 3)),
    }
    source = one_node("RotaryEmbedding", 23, inputs, interleaved=interleaved)
    for target in (22, 17, 13, 11, 9):
        converts(source, target, inputs)


@pytest.mark.parametrize("op_type", ["HannWindow", "HammingWindow", "BlackmanWindow"])
def test_windows(op_type: str) -> None:
    inputs = {"n": np.array(9)}
    for periodic in (0, 1):
        source = one_node(op_type, 17, inputs, periodic=periodic, output_shapes=[[None]])
        for target in (16, 13, 9):
            converts(source, target, inputs)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("op_type", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
def test_losses(op_type: str, reduction: str) -> None:
    scores = _floats(3, 5, 2) * 50
    inputs = {"x": scores, "t": RNG.integers(0, 5, (3, 2)), "w": np.abs(_floats(5))}
    for given in (inputs, {"x": inputs["x"], "t": inputs["t"]}):
        for options in ({}, {"ignore_index": 1}):
            source = one_node(op_type, 13, given, reduction=reduction, **options)
            for target in (11, 9):
                converts(source, target, given)


def test_dynamic_quantize_linear() -> None:
    for x in (_floats(3, 4) * 9, np.array([1, 2, 3], np.float32), -np.ones(4, np.float32)):
        source = one_node("DynamicQuantizeLinear", 11, {"x": x}, outputs=3)
        converts(source, 10, {"x": x})


def test_center_crop_pad() -> None:
    inputs = {"x": _floats(4, 5, 6), "shape": np.array([6, 3, 6])}
    for initializers in ((), ("shape",)):
        source = one_node(
            "CenterCropPad",
            18,
            inputs,
            initializers=initializers,
            output_shapes=[[None, None, None]],
        )
        for target in (17, 13):
            converts(source, target, inputs)


@pytest.mark.newest
@pytest.mark.parametrize("activation", ["none", "silu"])
def test_causal_conv_with_state(activation: str) -> None:
    inputs = {"x": _floats(2, 3, 6), "w": _floats(3, 1, 4), "b": _floats(3), "s": _floats(2, 3, 3)}
    source = one_node("CausalConvWithState", 27, inputs, outputs=2, activation=activation)
    for target in (26, 18, 13, 9):
        found = converts(source, target, inputs, in_numpy=True)
        assert "CausalConvWithState" not in op_types(found)


def test_within_a_subgraph_and_a_function() -> None:
    source = model(
        """
        <ir_version: 8, opset_import: ["": 17, "f": 1]>
        g (float[2, 4] x, float[4] s, bool c) => (float[2, 4] y) {
            y = If (c) <
                then_branch = a () => (float[2, 4] t) { t = LayerNormalization (x, s) },
                else_branch = b () => (float[2, 4] e) { e = f.Norm <eps = 0.5> (x, s) }
            >
        }
        <domain: "f", opset_import: ["": 17]>
        Norm <eps> (x, s) => (y) {
            m = LayerNormalization <epsilon: float = @eps> (x, s)
            h = HardSwish (m)
            i = Trilu (h)
            y = CastLike (i, s)
        }
        """
    )
    inputs = {"x": _floats(2, 4), "s": _floats(4), "c": np.array(True)}
    for target in (16, 13, 11):
        converts(source, target, inputs, {**inputs, "c": np.array(False)})


def test_attention_whose_body_is_of_an_older_release(monkeypatch: pytest.MonkeyPatch) -> None:
    """Such a body repeats heads in another order, and caps scores last; here any is made one."""
    whole = function_operators._function_body

    def older(context: Any) -> Any:
        found = whole(context)
        found.node.add(op_type="Tile")
        if context.value("softcap", 0.0):
            found.node.add(op_type="Tanh")
            tanh = next(node for node in found.node if node.op_type == "Tanh")
            tanh.op_type = "Identity"
        return found

    inputs = {"q": _floats(2, 4, 3, 8), "k": _floats(2, 2, 5, 8), "v": _floats(2, 2, 5, 6)}
    same = {**inputs, "q": _floats(2, 2, 3, 8)}
    masked = {**same, "mask": _floats(3, 5)}
    monkeypatch.setattr(function_operators, "_function_body", older)
    (found,) = blockers(one_node("Attention", 23, inputs), 22)
    assert "repeats heads of keys and values in another order" in found.reason
    (found,) = blockers(one_node("Attention", 23, masked, softcap=2.0), 22)
    assert "caps scores after the mask is added" in found.reason
    for given, cap in ((same, 0.0), (same, 2.0), (masked, 0.0)):
        convert(one_node("Attention", 23, given, softcap=cap), 22, check=False)


def test_attention_whose_body_leaves_out_is_causal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Older releases of onnx have such a body; here it is made of any."""
    whole = function_operators._function_body

    def without(context: Any) -> Any:
        found = whole(context)
        for node in found.node:
            if node.op_type in ("Trilu", "Less"):
                node.op_type = "Identity"
        return found

    inputs = {"q": _floats(2, 4, 3, 8), "k": _floats(2, 2, 5, 8), "v": _floats(2, 2, 5, 6)}
    inputs["mask"] = _floats(3, 5)
    source = one_node("Attention", 23, inputs, is_causal=1)
    monkeypatch.setattr(function_operators, "_function_body", without)
    assert "leaves out is_causal" in blockers(source, 22)[0].reason
