"""RNN, GRU and LSTM across their boundaries."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from onnxreduce_cli import convert
from tests.support import assert_same, blockers, converts, one_node, op_types, run

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
SEQUENCE, BATCH, INPUT, HIDDEN = 4, 3, 2, 5


def recurrent(op_type: str, opset: int, outputs: int, **attributes: Any) -> tuple[ModelProto, Any]:
    """A model, and inputs for it; a bidirectional one, with an initial state."""
    rng = np.random.default_rng(3)
    gates, shape = GATES[op_type], [SEQUENCE, BATCH, INPUT]
    state = [2, BATCH, HIDDEN]
    if attributes.get("layout"):
        shape, state = [BATCH, SEQUENCE, INPUT], [BATCH, 2, HIDDEN]
    inputs: dict[str, np.ndarray | None] = {
        "x": rng.standard_normal(shape).astype(np.float32),
        "w": rng.standard_normal((2, gates * HIDDEN, INPUT)).astype(np.float32),
        "r": rng.standard_normal((2, gates * HIDDEN, HIDDEN)).astype(np.float32),
        "b": None,
        "lengths": None,
        "h": rng.standard_normal(state).astype(np.float32),
    }
    if op_type == "LSTM":
        inputs["c"] = rng.standard_normal(state).astype(np.float32)
    found = one_node(
        op_type,
        opset,
        inputs,
        outputs=outputs,
        initializers=("w", "r"),
        hidden_size=HIDDEN,
        direction="bidirectional",
        output_shapes=[[None] * 4, [None] * 3, [None] * 3],
        **attributes,
    )
    return found, {name: array for name, array in inputs.items() if array is not None}


@pytest.mark.parametrize("op_type", GATES)
def test_sequence_first_stays(op_type: str) -> None:
    source, feeds = recurrent(op_type, 22, 3 if op_type == "LSTM" else 2, layout=0)
    for opset in (14, 13, 7):
        assert op_types(converts(source, opset, feeds)) == [op_type]
    older = convert(source, 3)
    assert "output_sequence" in {a.name for a in older.graph.node[0].attribute}
    onnx.checker.check_model(older)
    again = converts(convert(older, 7), 21, feeds)
    assert "output_sequence" not in {a.name for a in again.graph.node[0].attribute}


@pytest.mark.parametrize("op_type", GATES)
@pytest.mark.parametrize("outputs", [1, 2])
def test_batch_first(op_type: str, outputs: int) -> None:
    """ONNX Runtime has no kernel for it: the truth is the same node with the sequence first."""
    source, feeds = recurrent(op_type, 14, outputs, layout=1)
    result = convert(source, 13)
    onnx.checker.check_model(result, full_check=True)
    assert op_types(result).count("Transpose") == len(feeds) - 2 + outputs
    truth, _ = recurrent(op_type, 14, outputs)
    turned = {
        name: array if name in "wr" else array.transpose(1, 0, 2) for name, array in feeds.items()
    }
    expected, actual = run(truth, turned), run(result, feeds)
    assert_same(expected["y0"].transpose(2, 0, 1, 3), actual["y0"])
    for name in list(expected)[1:]:
        assert_same(expected[name].transpose(1, 0, 2), actual[name])


def test_only_the_last_state() -> None:
    source, _ = recurrent("GRU", 14, 2)
    source.graph.node[0].output[0] = ""
    del source.graph.output[0]
    assert "output_sequence" not in str(convert(source, 6).graph.node[0])


def test_gru_before_3() -> None:
    source, inputs = recurrent("GRU", 7, 1)
    (node,) = converts(source, 1, inputs, in_numpy=True).graph.node
    assert len(node.output) == 2
    assert node.output[1]
    source, _ = recurrent("GRU", 7, 1, linear_before_reset=1)
    (blocker,) = blockers(source, 1)
    assert "linear_before_reset" in blocker.reason
