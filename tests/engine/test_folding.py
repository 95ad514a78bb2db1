"""Folding of what is the same in every run."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import ModelProto, TensorProto, parser

import onnxreduce_cli
from onnxreduce_cli.errors import ConversionError
from onnxreduce_cli.model.graph.scope import subgraphs
from tests.support import op_types


def run(model: ModelProto, **inputs: np.ndarray) -> list[np.ndarray]:
    """Run a model in ONNX Runtime."""
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    found: list[np.ndarray] = session.run(None, inputs)
    return found


def fold(text: str, **options: object) -> tuple[ModelProto, ModelProto, list[str]]:
    """Return a model before and after it is folded, and the lines that say what was done."""
    model = parser.parse_model(text)
    lines = list(onnxreduce_cli.plan(model, fold=True, **options).prepared)
    made = onnxreduce_cli.convert(model, fold=True, **options)
    onnx.checker.check_model(made, full_check=True)
    again = onnxreduce_cli.convert(made, fold=True, **options)
    assert again == made
    return model, made, lines


#: What torch.onnx.export writes of x.squeeze(1): the Squeeze cannot run at the sizes there are.
SQUEEZE = """
<ir_version: 8, opset_import: ["": 13]>
g (float[2, 3, N] x) => (float[A, B, C] y) {
  shape = Shape (x)
  one = Constant <value = int64[1] {1}> ()
  size = Gather <axis = 0> (shape, one)
  condition = Equal (size, one)
  y0 = If (condition) <
    then_branch = a () => (then) { then = Squeeze (x, one) },
    else_branch = b () => (same) { same = Identity (x) }
  >
  y = Relu (y0)
}
"""


def test_the_squeeze_of_pytorch() -> None:
    _, made, lines = fold(SQUEEZE)
    assert op_types(made) == ["Identity", "Relu"]
    assert lines == ["folded: 1 If became its else_branch"]
    x = np.random.default_rng(0).standard_normal((2, 3, 5), np.float32)
    # The model itself is not loaded: ONNX Runtime infers the shapes of the other branch, too.
    np.testing.assert_array_equal(run(made, x=x)[0], np.maximum(x, 0))


def test_the_squeeze_of_pytorch_at_its_right_size() -> None:
    dynamic = SQUEEZE.replace("float[2, 3, N] x", "float[2, M, N] x")
    model = parser.parse_model(dynamic)
    model.graph.output[0].type.tensor_type.ClearField("shape")
    made = onnxreduce_cli.convert(model, dims={"M": 3, "N": 4})
    assert op_types(made) == ["Identity", "Relu"]
    made = onnxreduce_cli.convert(model, dims={"M": 1, "N": 4})
    assert op_types(made) == ["Constant", "Squeeze", "Relu"]
    # The rank is stated that the size of 3 gives.
    with pytest.raises(onnxreduce_cli.ConversionError, match=r"'y' to have shape .*, but what"):
        onnxreduce_cli.convert(parser.parse_model(dynamic), dims={"M": 1, "N": 4})


def test_a_false_rank_of_an_output_is_refused() -> None:
    model = parser.parse_model(SQUEEZE.replace("(float[A, B, C] y)", "(float[2, N] y)"))
    with pytest.raises(onnxreduce_cli.ConversionError, match=r"output 'y' .*leave fold=True out"):
        onnxreduce_cli.convert(model, fold=True)


def test_constants_of_any_operator() -> None:
    model, made, lines = fold(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[N] x) => (float[N] y)
        <float half = {0.5}, int64[3] sizes = {2, 3, 4}> {
          root = Sqrt (half)
          size = ReduceProd <keepdims = 0> (sizes)
          number = Cast <to = 1> (size)
          factor = Pow (number, root)
          y = Mul (x, factor)
        }
        """
    )
    assert op_types(made) == ["Mul"]
    assert lines == ["folded: 4 nodes became 1 constant"]
    assert [item.name for item in made.graph.initializer] == ["factor"]
    x = np.array([1, np.inf, -np.inf, np.nan, 0], np.float32)
    np.testing.assert_allclose(run(made, x=x)[0], run(model, x=x)[0], rtol=1e-6)


def test_weights_are_not_touched() -> None:
    _, made, lines = fold(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[2, 40] x) => (float[2, 40] y) {
          shape = Constant <value = int64[2] {40, 40}> ()
          w = ConstantOfShape <value = float[1] {2.0}> (shape)
          turned = Transpose (w)
          y = MatMul (x, turned)
        }
        """
    )
    # What is computed here is known; a weight of the file of this size is none of these.
    assert lines == ["folded: 2 nodes became 1 constant"]
    weight = onnx.numpy_helper.from_array(np.ones((40, 40), np.float32), "w")
    model = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[2, 40] x) => (float[2, 40] y) {
          turned = Transpose (w)
          y = MatMul (x, turned)
        }
        """
    )
    model.graph.initializer.append(weight)
    kept = onnxreduce_cli.convert(model, fold=True)
    assert kept.graph == model.graph
    assert op_types(made) == ["MatMul"]


@pytest.mark.parametrize("size", [500, 501])
def test_nothing_over_a_megabyte_is_written(size: int) -> None:
    _, made, _ = fold(
        f"""
        <ir_version: 8, opset_import: ["": 13]>
        g (float[{size}, 500] x) => (float[{size}, 500] y) {{
          shape = Constant <value = int64[2] {{{size}, 500}}> ()
          number = Constant <value = float[1] {{3.0}}> ()
          wide = Expand (number, shape)
          y = Add (x, wide)
        }}
        """
    )
    left = ["Add"] if size == 500 else ["Constant", "Constant", "Expand", "Add"]
    assert op_types(made) == left


def test_random_numbers_and_quantizing_nodes_stay() -> None:
    _, made, lines = fold(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[2] x) => (float[2] y, float[2] z)
        <float[2] w = {1, 2}, float scale = {0.1}, int8 zero = {0}> {
          r = RandomNormal <shape = [2]> ()
          y = Add (x, r)
          q = QuantizeLinear (w, scale, zero)
          d = DequantizeLinear (q, scale, zero)
          z = Mul (x, d)
        }
        """
    )
    assert op_types(made) == ["RandomNormal", "Add", "QuantizeLinear", "DequantizeLinear", "Mul"]
    assert lines == ["folded: nothing"]


def test_a_default_of_an_input_is_no_constant() -> None:
    _, made, _ = fold(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[2] x, float[1] a = {4}) => (float[2] y) {
          b = Sqrt (a)
          y = Mul (x, b)
        }
        """
    )
    assert op_types(made) == ["Sqrt", "Mul"]


def test_ifs_within_ifs_and_their_initializers() -> None:
    model, made, lines = fold(
        """
        <ir_version: 8, opset_import: ["": 16]>
        g (float[2] x) => (float[2] y, float[2] z)
        <bool yes = {1}, bool no = {0}, float[1] w = {7}> {
          v = Mul (x, w)
          y, z = If (yes) <
            then_branch = a () => (t, u) {
              u = Identity (v)
              t = If (no) <
                then_branch = c () => (s) { s = Relu (x) },
                else_branch = d () => (s) <float[1] k = {3}> { s = Mul (x, k) }
              >
            },
            else_branch = b () => (e, f) { e = Identity (x) f = Identity (x) }
          >
        }
        """
    )
    assert sorted(op_types(made)) == ["Identity", "Mul", "Mul"]
    assert lines == ["folded: 1 If became its then_branch, 1 If became its else_branch"]
    assert sorted(item.name for item in made.graph.initializer if item.name != "w") == ["y_k"]
    x = np.array([-1, np.nan], np.float32)
    for before, after in zip(run(model, x=x), run(made, x=x), strict=True):
        np.testing.assert_array_equal(before, after)


def test_what_only_a_dead_branch_reads_goes() -> None:
    _, made, _ = fold(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[2] x) => (float[2] y) <bool no = {0}, float[2] w = {1, 2}> {
          big = Exp (x)
          y = If (no) <
            then_branch = a () => (t) { t = Mul (big, w) },
            else_branch = b () => (e) { e = Neg (x) }
          >
        }
        """
    )
    assert op_types(made) == ["Neg"]
    assert not made.graph.initializer


def test_within_loops_and_functions() -> None:
    _, made, _ = fold(
        """
        <ir_version: 8, opset_import: ["": 13, "own": 1]>
        g (float[2] x, int64 n) => (float[2] y) <bool yes = {1}, float[1] four = {4}> {
          z = own.F (x)
          y = Loop (n, yes, z) <
            body = b (int64 i, bool c, float[2] s) => (bool c2, float[2] t) {
              c2 = Identity (c)
              two = Sqrt (four)
              t = Mul (s, two)
            }
          >
        }
        <domain: "own", opset_import: ["": 13]>
        F (a) => (b) {
          nine = Constant <value = float {9.0}> ()
          three = Sqrt (nine)
          b = Div (a, three)
        }
        """
    )
    (body,) = (graph for node in made.graph.node for _, graph in subgraphs(node))
    assert [node.op_type for node in body.node] == ["Identity", "Mul"]
    assert [node.op_type for node in made.functions[0].node] == ["Constant", "Div"]


def test_an_output_of_the_model_is_made_by_a_node() -> None:
    _, made, _ = fold(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[2] x) => (float[2] y, float[1] z) <float[1] a = {4}> {
          y = Relu (x)
          z = Sqrt (a)
        }
        """
    )
    assert op_types(made) == ["Relu", "Constant"]
    assert made.graph.output[1].type.tensor_type.elem_type == TensorProto.FLOAT


def test_a_node_that_cannot_run_stays() -> None:
    model = parser.parse_model(
        """
        <ir_version: 8, opset_import: ["": 13]>
        g (float[2] x) => (float[2] y) <int64 one = {1}, int64 zero = {0}> {
          q = Div (one, zero)
          f = Cast <to = 1> (q)
          y = Mul (x, f)
        }
        """
    )
    made = onnxreduce_cli.convert(model, fold=True)
    assert op_types(made) == ["Div", "Cast", "Mul"]


@pytest.mark.parametrize(
    "wanted", [{"runtime": "opencv==4.6"}, {"allow_ops": ["Identity", "Relu"]}]
)
def test_what_a_runtime_does_not_take_is_folded(wanted: dict[str, object]) -> None:
    model = parser.parse_model(SQUEEZE)
    before = model.SerializeToString()
    assert onnxreduce_cli.plan(model, **wanted).prepared == ("folded: 1 If became its else_branch",)
    made = onnxreduce_cli.convert(model, **wanted)
    assert op_types(made) == ["Identity", "Relu"]
    assert model.SerializeToString() == before
    assert onnxreduce_cli.convert(model, in_place=True, **wanted) is model
    assert model == made


def test_what_a_runtime_takes_is_not_folded() -> None:
    text = SQUEEZE.replace("[2, 3, N]", "[2, 1, N]").replace("y0 = If", "[if] y0 = If")
    allowed = ["Shape", "Constant", "Gather", "Equal", "If", "Squeeze", "Identity", "Relu"]
    model = parser.parse_model(text)
    assert onnxreduce_cli.convert(model, allow_ops=allowed) == model
    # What the caller gave stays as it was where folding is not enough, or shows a false shape.
    with pytest.raises(ConversionError, match=r"gives \[2, 'N'\]: state that shape in the model$"):
        onnxreduce_cli.convert(model, allow_ops=["Squeeze"], in_place=True)
    assert model == parser.parse_model(text)
    model = parser.parse_model(SQUEEZE)
    with pytest.raises(ConversionError, match="Relu node making 'y'"):
        onnxreduce_cli.convert(model, allow_ops=["Identity"], in_place=True)
    assert model == parser.parse_model(SQUEEZE)


def test_a_branch_that_cannot_run_blocks_with_what_to_type() -> None:
    with pytest.raises(ConversionError, match=r"never taken, and cannot run.*: add fold=True"):
        onnxreduce_cli.convert(parser.parse_model(SQUEEZE), 11)
