"""Cast across its boundaries: what its target dtype is called, and what came with float8."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

import onnxreduce_cli
from onnxreduce_cli.schemas import newest_opset
from tests.support import blockers, converts, model, one_node

X = np.array([[1.5, -2.0, 0.0], [3.25, 100.0, -7.75]], np.float32)
KINDS = [
    TensorProto.DOUBLE,
    TensorProto.FLOAT16,
    TensorProto.INT32,
    TensorProto.INT64,
    TensorProto.INT8,
    TensorProto.BOOL,
]


@pytest.mark.parametrize("to", KINDS)
def test_number_to_name_and_back(to: int) -> None:
    source = one_node("Cast", 9, {"x": X}, to=to)
    down = converts(source, 5, {"x": X}, exact=True)
    assert down.graph.node[0].attribute[0].s.decode() == TensorProto.DataType.Name(to)
    up = converts(down, 13, {"x": X}, exact=True)
    assert up.graph.node[0].attribute[0].i == to


def test_a_name_in_small_letters() -> None:
    source = one_node("Cast", 5, {"x": X}, to="double", output_shapes=([2, 3],))
    source.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    assert converts(source, 6, {"x": X}).graph.node[0].attribute[0].i == TensorProto.DOUBLE


def test_a_name_of_no_dtype() -> None:
    source = one_node("Cast", 5, {"x": X}, to="quadruple", output_shapes=([2, 3],))
    (blocker,) = blockers(source, 6)
    assert blocker.reason == "its dtype 'QUADRUPLE' does not exist"


@pytest.mark.parametrize("saturate", [0, 1])
def test_saturate_goes_below_19(saturate: int) -> None:
    source = one_node("Cast", 19, {"x": X}, to=TensorProto.DOUBLE, saturate=saturate)
    down = converts(source, 18, {"x": X}, exact=True, in_numpy=True)
    assert [a.name for a in down.graph.node[0].attribute] == ["to"]


@pytest.mark.parametrize("to", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2])
def test_float8_below_19_blocks(to: int) -> None:
    source = one_node("Cast", 19, {"x": X}, to=to)
    (blocker,) = blockers(source, 18)
    assert "does not take tensor(float8" in blocker.reason


def test_infinities_of_fnuz() -> None:
    fnuz = TensorProto.FLOAT8E4M3FNUZ
    assert newest_opset() >= 24
    for source, target in ((23, 24), (24, 23)):
        (blocker,) = blockers(one_node("Cast", source, {"x": X}, to=fnuz), target)
        assert "what becomes of an infinity changed at opset 24" in blocker.reason
        unsaturated = one_node("Cast", source, {"x": X}, to=fnuz, saturate=0)
        assert onnxreduce_cli.convert(unsaturated, target).graph == unsaturated.graph
        converts(one_node("Cast", source, {"x": X}, to=TensorProto.DOUBLE), target, {"x": X})


def test_round_mode_goes_below_24() -> None:
    source = one_node("Cast", 24, {"x": X}, to=TensorProto.DOUBLE, round_mode="up")
    down = converts(source, 23, {"x": X}, exact=True, in_numpy=True)
    assert [a.name for a in down.graph.node[0].attribute] == ["to"]


def test_a_dtype_that_callers_set_differently() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 6, "local" : 1]>
        g (float[2,3] x) => (double[2,3] y, int32[2,3] z) {
            y = local.F<kind = 11>(x)
            z = local.F<kind = 6>(x)
        }
        <domain: "local", opset_import: ["" : 6]>
        F <kind> (a) => (b) { b = Cast<to : int = @kind>(a) }""")
    converts(source, 5, {"x": X}, exact=True)
    converts(source, 13, {"x": X}, exact=True)
