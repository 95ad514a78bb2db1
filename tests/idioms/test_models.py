"""Models of composite operators, written out at older opsets and contracted again."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from onnx import ModelProto

import onnxreduce_cli
from benchmarks.composites import convnext, encoder, llama, quantized_encoder, vision_transformer
from tests.support import op_types

pytestmark = pytest.mark.newest

COMPOSITE = ("LayerNormalization", "RMSNormalization", "Gelu", "Swish", "Softmax")


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize(
    "make",
    [
        lambda: encoder(4, 24),
        lambda: vision_transformer(24, 2),
        lambda: llama(4, 16, 2),
        lambda: convnext(4),
        lambda: quantized_encoder(4, 8),
    ],
)
def test_as_many_composite_nodes_come_back(make: Callable[[], ModelProto], opset: int) -> None:
    source = make()
    lower = onnxreduce_cli.convert(source, opset)
    assert not {"LayerNormalization", "RMSNormalization", "Gelu", "Swish"} & {*op_types(lower)}
    back = onnxreduce_cli.convert(lower, 24, contract=["all"])
    # What the sources have around each Softmax is an Attention.
    found = [item.replace("Attention", "Softmax") for item in op_types(back)]
    for op_type in COMPOSITE:
        assert found.count(op_type) == op_types(source).count(op_type)
