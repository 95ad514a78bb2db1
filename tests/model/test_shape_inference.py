"""onnx's shape inference: without weights, and with shapes that follow from computed constants."""

from __future__ import annotations

import numpy as np
import onnx

from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.scope import scopes
from onnxreduce_cli.model.values import tensor_type
from tests.model.known import facts_of
from tests.support import model

FLOAT = 1

PADS = """<ir_version: {ir}, opset_import: ["": 11]>
g (float[1, 3, 4, 5] x) => (float[a, b, c, d] y)
<int64[4] given = {{1, 2, 0, 0}}, int64[1] four = {{4}}, int64[2] pairs = {{-1, 2}},
 int64[1] flat = {{-1}}, int64[1] last = {{-1}}, int64[1] least = {{-9}}, int64[1] zero = {{0}}> {{
  zeros = ConstantOfShape<value = int64[1] {{0}}>(four)
  all = Concat<axis = 0>(given, zeros)
  table = Reshape(all, pairs)
  turned = Slice(table, last, least, zero, last)
  columns = Transpose<perm = [1, 0]>(turned)
  long = Reshape(columns, flat)
  pads = Cast<to = 7>(long)
  padded = Pad(x, pads)
  y = Relu(padded)
}}"""


def test_pads_that_an_exporter_computes() -> None:
    for ir in (3, 7):
        source = model(PADS.format(ir=7))
        source.ir_version = ir
        found = scopes(source)
        facts = Facts(source, found)
        pads = facts.constant(found[0], "pads")
        assert pads is not None
        assert pads.tolist() == [0, 0, 0, 1, 0, 0, 0, 2]
        known = facts.type(found[0], "padded")
        assert known is not None
        assert known.dims == (1, 3, 4, 8)


def test_the_model_is_not_touched() -> None:
    source = model(PADS.format(ir=7))
    before = source.SerializeToString()
    found = scopes(source)
    Facts(source, found).type(found[0], "padded")
    assert source.SerializeToString() == before
    onnx.checker.check_model(source, full_check=True)


def test_what_shape_inference_refuses_leaves_what_is_declared() -> None:
    found = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] x) => (float[1,3] y) {
            bad = Concat<axis = 9>(x, x)
            y = Neg(x)
        }""")
    facts, (main,) = facts_of(found)
    assert facts.type(main, "x") == tensor_type(FLOAT, (2, 3))
    assert facts.type(main, "bad") in (None, tensor_type(FLOAT, None))


def test_shapes_with_large_weights_are_inferred_without_their_data() -> None:
    found = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[N,64] x) => (float[N,64] y) { y = Neg(x) }""")
    weight = onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "weight")
    found.graph.initializer.append(weight)
    found.graph.node.append(onnx.helper.make_node("MatMul", ["x", "weight"], ["m"]))
    content = found.SerializeToString()
    facts, (main,) = facts_of(found)
    assert facts.type(main, "m") == tensor_type(FLOAT, ("N", 64))
    assert found.SerializeToString() == content
