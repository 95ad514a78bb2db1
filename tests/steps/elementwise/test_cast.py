"""Cast across its boundaries: what its target dtype is called, and what came with float8."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import onnxreduce_cli
from tests.support import blockers, converts, model, one_node, op_types

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
    assert "it has a tensor(float8" in blocker.reason


FNUZ = [TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ]
GIVEN = ["FLOAT", "DOUBLE", "FLOAT16", "BFLOAT16", "FLOAT8E5M2", "STRING", "INT32"]


def nasty(kind: str) -> Any:
    """Infinities, too large and ordinary numbers, in a dtype."""
    if kind == "STRING":
        return np.array(["INF", "-inf", "1e30", "3", "-0.0", "nan", "-57344"], object)
    dtype = helper.tensor_dtype_to_np_dtype(getattr(TensorProto, kind))
    numbers = [1e4, -1e4, 3, 0] if kind == "INT32" else [np.inf, -np.inf, 1e30, 3, -0.0, np.nan]
    with np.errstate(over="ignore"):
        return np.array(numbers).astype(dtype)


def through(node: onnx.NodeProto, opset: int, kind: str) -> onnx.ModelProto:
    """A model of one node that casts `x` to a float8, and back: as ONNX Runtime gives floats."""
    graph = helper.make_graph(
        [node, helper.make_node("Cast", ["z"], ["y"], to=TensorProto.FLOAT)],
        "graph",
        [helper.make_tensor_value_info("x", getattr(TensorProto, kind), ["n"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n"])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=11)


@pytest.mark.parametrize("op_type", ["Cast", "CastLike"])
@pytest.mark.parametrize("kind", GIVEN)
@pytest.mark.parametrize("to", FNUZ)
def test_infinities_of_fnuz(op_type: str, kind: str, to: int) -> None:
    x = nasty(kind)
    for source, target in ((23, 24), (24, 23), (24, 19)):
        if op_type == "Cast":
            model = through(helper.make_node("Cast", ["x"], ["z"], to=to), source, kind)
        else:
            model = through(helper.make_node("CastLike", ["x", "like"], ["z"]), source, kind)
            like = helper.make_tensor("like", to, [1], [1.0])
            model.graph.initializer.append(like)
        result = converts(model, target, {"x": x}, exact=True, in_numpy=True)
        assert ("Where" in op_types(result)) == (kind != "INT32")
        onnxreduce_cli.convert(model, target)  # By its own check too.


def test_infinities_stay_where_nothing_changed() -> None:
    for source, target in ((23, 24), (24, 23)):
        unsaturated = one_node("Cast", source, {"x": X}, to=FNUZ[0], saturate=0)
        assert onnxreduce_cli.convert(unsaturated, target).graph == unsaturated.graph
        converts(one_node("Cast", source, {"x": X}, to=TensorProto.DOUBLE), target, {"x": X})


def test_infinities_where_no_dtype_is_known() -> None:
    """An operator that onnx does not know hides it."""
    source = through(helper.make_node("CastLike", ["x", "hidden"], ["z"]), 23, "FLOAT")
    source.graph.input.append(helper.make_tensor_value_info("like", TensorProto.FLOAT, [1]))
    hide = helper.make_node("Hide", ["like"], ["hidden"], domain="custom")
    nodes = [hide, *source.graph.node]
    del source.graph.node[:]
    source.graph.node.extend(nodes)
    source.opset_import.append(helper.make_opsetid("custom", 1))
    (blocker,) = blockers(source, 24)
    assert "the type of 'hidden', which it gives as a node of domain 'custom'" in blocker.reason
    assert "(CastLike node making 'z')" in blocker.reason
    assert "--type hidden=" in blocker.advice


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
