"""Small models that a real runtime gets wrong or refuses, and what is written for it instead.

They stay at their own opset, whichever would be chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

import onnxreduce_cli
from lab.installing import NoProgramError, install
from lab.running import told
from onnxreduce_cli.verification.whole.equivalence import verify
from tests.support import op_types

RNG = np.random.default_rng(28)


class Case(NamedTuple):
    """A model, and what becomes of it for some runtimes.

    Attributes:
        name: what it is.
        graph: its graph as text, ``(inputs) => (outputs) { nodes }``.
        opset: its opset.
        constants: its initializers.
        written: the operators that it has for a runtime, without Constants.
        runtimes: the runtimes that get it wrong, or refuse it.
        taken: runtimes that take it as it is.
    """

    name: str
    graph: str
    opset: int
    constants: dict[str, Any]
    written: list[str]
    runtimes: Sequence[str]
    taken: Sequence[str] = ()

    def model(self) -> ModelProto:
        """The model."""
        found = onnx.parser.parse_model(
            f'<ir_version: 7, opset_import: ["" : {self.opset}]> g {self.graph}'
        )
        for name, value in self.constants.items():
            found.graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        return found


def weights(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


CASES = [
    Case(
        "a convolution that leaves its kernel to its weights",
        "(float[1,3,6,6] x) => (float[1,8,3,3] y){ y = Conv<pads=[1,1,1,1], strides=[2,2]>(x, w) }",
        11,
        {"w": weights(8, 3, 3, 3)},
        ["Conv"],
        ["opencv==4.6.0", "opencv==4.12.0"],
        ["opencv==5.0.0", "mnn==3.6.1"],
    ),
    Case(
        "a transposed one",
        "(float[1,3,4,4] x) => (float[1,8,5,5] y) { y = ConvTranspose(x, w) }",
        11,
        {"w": weights(3, 8, 2, 2)},
        ["ConvTranspose"],
        ["opencv==4.6.0", "opencv==4.12.0"],
        ["mnn==3.6.1"],
    ),
    Case(
        "one over three dimensions",
        "(float[1,3,6,6,6] x) => (float[1,8,4,4,4] y) { y = Conv(x, w) }",
        13,
        {"w": weights(8, 3, 3, 3, 3)},
        ["Conv"],
        ["opencv==4.6.0", "mnn==3.6.1"],
    ),
    Case(
        "a Constant that is a number",
        "(float[1,3,4,4] x) => (float[1,3,4,4] y){ c = Constant<value_float=1.5>() y = Mul(x, c) }",
        13,
        {},
        ["Mul"],
        ["opencv==4.6.0", "opencv==4.12.0"],
        ["onnxruntime==1.8.1", "opencv==5.0.0"],
    ),
    Case(
        "a Constant that is a list",
        "(float[2,3] x) => (float[6] y){ c = Constant<value_ints=[6]>() y = Reshape(x, c) }",
        13,
        {},
        ["Reshape"],
        ["onnxruntime==1.8.1", "opencv==4.12.0"],
        ["onnxruntime==1.14.1"],
    ),
    Case(
        "start and end of a Shape whose sizes are known",
        "(float[2,3,4,4] x) => (float[2,48] y)"
        "{ r = Relu(x) s = Shape<start=0, end=1>(r) t = Concat<axis=0>(s, m) y = Reshape(r, t) }",
        17,
        {"m": np.array([-1])},
        ["Relu", "Concat", "Reshape"],
        ["opencv==4.6.0", "opencv==4.12.0", "openvino==2022.1.0"],
        ["openvino==2026.4.1", "mnn==3.6.1"],
    ),
    Case(
        "start and end of a Shape whose sizes are not known",
        "(float[n,3,4] x) => (float[n,12] y)"
        "{ s = Shape<start=0, end=-2>(x) t = Concat<axis=0>(s, m) y = Reshape(x, t) }",
        17,
        {"m": np.array([-1])},
        ["Shape", "Slice", "Concat", "Reshape"],
        ["openvino==2022.1.0", "openvino==2023.3.0"],
        ["openvino==2026.4.1", "mnn==3.6.1"],
    ),
    Case(
        "what looks like a Gelu to OpenCV",
        "(float[2,8] x) => (float[2,8] y)"
        "{ d = Div(x, r) e = Erf(d) a = Add(e, one) q = Mul(half, a) y = Mul(x, q) }",
        13,
        {"r": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)},
        ["Div", "Erf", "Sub", "Mul", "Mul"],
        ["opencv==4.10.0", "opencv==5.0.0"],
        ["opencv==4.7.0", "opencv==4.8.1"],
    ),
    Case(
        "what looks like a Gelu but is of another value",
        "(float[2,8] x) => (float[2,8] y) { v = Relu(x) d = Div(v, r) e = Erf(d)"
        " a = Add(e, one) q = Mul(x, a) y = Mul(q, half) }",
        13,
        {"r": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)},
        ["Relu", "Div", "Erf", "Sub", "Mul", "Mul"],
        ["opencv==4.8.1", "opencv==4.12.0"],
        ["opencv==4.7.0"],
    ),
    Case(
        "a Resize of height and width that are not the last dimensions",
        '(float[1,8,8,3] x) => (float[1,4,4,3] y){ y = Resize<mode="nearest">(x, "", s) }',
        13,
        {"s": np.float32([1, 0.5, 0.5, 1])},
        ["Transpose", "Resize", "Transpose"],
        ["opencv==4.6.0", "opencv==4.10.0", "opencv==5.0.0"],
        ["mnn==3.6.1"],
    ),
    Case(
        "a Resize of three dimensions",
        "(float[3,4,4] x) => (float[3,8,6] y)"
        '{ y = Resize<mode="linear", coordinate_transformation_mode="half_pixel">(x, "", "", s) }',
        13,
        {"s": np.array([3, 8, 6])},
        ["Unsqueeze", "Resize", "Squeeze"],
        ["opencv==4.12.0", "opencv==5.0.0"],
        ["mnn==3.6.1"],
    ),
    Case(
        "a Reshape with a dimension that is left open beside allowzero",
        "(float[n,4,6] x) => (float[1,k,2,3] y) { y = Reshape<allowzero=1>(x, s) }",
        14,
        {"s": np.array([1, -1, 2, 3])},
        ["Reshape"],
        ["onnxruntime==1.8.1", "onnxruntime==1.10.0"],
        ["onnxruntime==1.14.1", "openvino==2026.4.1", "mnn==3.6.1"],
    ),
    Case(
        "a number that a Cast to bool makes 1",
        "(int32[2,3] x) => (int32[2,3] y) { b = Cast<to=9>(x) y = Cast<to=6>(b) }",
        11,
        {},
        ["Equal", "Not", "Cast"],
        ["mnn==3.6.1", "openvino==2022.1.0", "openvino==2023.3.0"],
        ["openvino==2026.4.1"],
    ),
    Case(
        "a Clip with an infinite bound",
        "(float[2,3] x) => (float[2,3] y) { y = Clip(x, least, most) }",
        13,
        {"least": np.float32(0.1), "most": np.float32(np.inf)},
        ["Clip"],
        ["openvino==2023.3.0"],
        ["openvino==2022.1.0", "openvino==2026.4.1"],
    ),
    Case(
        "a convolution of each channel of a row",
        "(float[1,4,1,5] x) => (float[1,4,1,5] y) { y = Conv<group=4, pads=[1,1,1,1]>(x, w) }",
        13,
        {"w": weights(4, 1, 3, 3)},
        ["Pad", "Conv"],
        ["opencv==4.7.0", "opencv==4.12.0"],
        ["opencv==5.0.0"],
    ),
    Case(
        "a convolution of each channel of a pixel",
        "(float[2,4,1,1] x) => (float[2,4,1,1] y)"
        '{ y = Conv<group=4, auto_pad="SAME_UPPER", strides=[2,2]>(x, w, b) }',
        13,
        {"w": weights(4, 1, 3, 3), "b": weights(4)},
        ["Pad", "Conv"],
        ["opencv==4.8.1", "opencv==4.12.0"],
        ["opencv==5.0.0"],
    ),
    Case(
        "a Softmax that is quantized",
        "(float[2,8] x) => (float[2,8] y)"
        "{ q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)"
        " a = Softmax(d) p = QuantizeLinear(a, t, z) y = DequantizeLinear(p, t, z) }",
        13,
        {"s": np.float32(0.02), "t": np.float32(0.004), "z": np.uint8(0)},
        [
            *("QuantizeLinear", "DequantizeLinear", "Max", "Softmax"),
            *("QuantizeLinear", "DequantizeLinear"),
        ],
        ["tract==0.23.9"],
        ["openvino==2026.4.1"],
    ),
    Case(
        "a list that is dequantized by one scale",
        "(float[2,3] x) => (float[2,3] y) { d = DequantizeLinear(b, s) y = Add(x, d) }",
        13,
        {"b": np.int32([1, 2, 3]), "s": np.float32(0.5)},
        ["DequantizeLinear", "Add"],
        ["openvino==2022.1.0"],
        ["openvino==2023.3.0", "onnxruntime==1.14.1"],
    ),
    Case(
        "sizes that are joined along an axis counted from the end",
        "(float[n,4,1,1] x) => (float[a,b] y) { s = Shape(x) t = Slice(s, zero, one)"
        " u = Concat<axis=-1>(t, m) y = Reshape(x, u) }",
        13,
        {"zero": np.array([0]), "one": np.array([1]), "m": np.array([-1])},
        ["Shape", "Slice", "Concat", "Reshape"],
        ["openvino==2022.1.0"],
        ["openvino==2023.3.0"],
    ),
    Case(
        "a mean of channels that is subtracted",
        "(float[2,7,16] x) => (float[2,7,16] y) { m = ReduceMean<axes=[1]>(x) y = Sub(x, m) }",
        13,
        {},
        ["ReduceMean", "Unsqueeze", "Sub"],
        ["openvino==2022.1.0"],
        ["openvino==2022.3.0", "openvino==2023.3.0"],
    ),
    Case(
        "a mean over the batch that is shifted after a Relu",
        "(float[2,7,6,3] x) => (float[7,3] y)"
        "{ m = ReduceMean<axes=[0,2], keepdims=0>(x) r = Relu(m) y = Add(r, half) }",
        13,
        {"half": np.float32(0.5)},
        ["ReduceMean", "Squeeze", "Relu", "Add"],
        ["openvino==2022.1.0"],
        ["openvino==2022.3.0"],
    ),
    Case(
        "a quantization that leaves out its zero point",
        "(float[1,3,4,4] x) => (float[1,3,4,4] y)"
        "{ q = QuantizeLinear(x, s) y = DequantizeLinear(q, s) }",
        13,
        {"s": np.float32(0.03125)},
        ["QuantizeLinear", "DequantizeLinear"],
        ["opencv==4.8.1", "opencv==4.12.0", "openvino==2022.1.0", "openvino==2024.6.0"],
        ["opencv==5.0.0", "openvino==2025.4.0", "openvino==2026.4.1"],
    ),
    Case(
        "a Split by number into parts of two sizes",
        "(float[2,7] x) => (float[2,4] y, float[2,3] z)"
        "{ a, b = Split<axis=1, num_outputs=2>(x) y = Relu(a) z = Neg(b) }",
        18,
        {},
        ["Split", "Relu", "Neg"],
        [
            "opencv==4.8.1",
            "opencv==4.12.0",
            "openvino==2022.1.0",
            "openvino==2024.6.0",
            "mnn==3.0.0",
            "mnn==3.6.1",
        ],
        ["opencv==5.0.0", "openvino==2025.4.0", "onnxruntime==1.14.1"],
    ),
    Case(
        "a Split by sizes that are an input",
        "(float[2,6] x) => (float[2,2] y, float[2,4] z)"
        "{ a, b = Split<axis=-1>(x, s) y = Relu(a) z = Neg(b) }",
        13,
        {"s": np.array([2, 4])},
        ["Slice", "Slice", "Relu", "Neg"],
        ["opencv==4.6.0", "opencv==4.7.0"],
        ["opencv==4.8.1", "opencv==5.0.0"],
    ),
    Case(
        "a Relu of an output",
        "(float[2,3] x) => (float[2,3] c, float[2,3] y) { c = Add(x, half) y = Relu(c) }",
        13,
        {"half": np.float32(0.5)},
        ["Add", "Max", "Relu"],
        ["mnn==3.0.0", "mnn==3.6.1"],
        ["opencv==4.12.0", "openvino==2026.4.1"],
    ),
    Case(
        "a Tanh of an output that is reshaped",
        "(float[1,2,3] x) => (float[2,3] c, float[2,3] y)"
        "{ t = Add(x, half) c = Reshape(t, s) y = Tanh(c) }",
        13,
        {"half": np.float32(0.5), "s": np.array([2, 3])},
        ["Add", "Reshape", "Max", "Tanh"],
        ["mnn==3.0.0", "mnn==3.6.1"],
        ["opencv==4.12.0", "openvino==2026.4.1"],
    ),
    Case(
        "a mean that is an output of the normalisation, too",
        "(float[2,3,5] x) => (float[2,3,5] y, float[2,1,1] m)"
        "{ y, m = LayerNormalization<axis=1>(x, w) }",
        17,
        {"w": np.ones((3, 5), np.float32)},
        [
            "ReduceMean",
            "Unsqueeze",
            "Sub",
            "Pow",
            "ReduceMean",
            "Unsqueeze",
            "Add",
            "Sqrt",
            "Div",
            "Mul",
        ],
        ["openvino==2022.1.0"],
    ),
    Case(
        "boxes that a node reads",
        "(float[1,1,4] s, float[4,4] x) => (float[k,4] y) { p = Abs(s)"
        " n = NonMaxSuppression(b, p, most, half) g = Gather<axis=1>(n, two) y = GatherND(x, g) }",
        13,
        {
            "b": np.float32([[[0, 0, 4, 4], [0, 0, 4, 5], [5, 5, 9, 9], [6, 5, 9, 9]]]),
            "most": np.array([9]),
            "half": np.float32([0.5]),
            "two": np.array([2]),
        },
        [
            "Abs",
            "NonMaxSuppression",
            "Gather",
            "Less",
            "Not",
            "Cast",
            "NonZero",
            "Squeeze",
            "Gather",
            "Gather",
            "GatherND",
        ],
        ["openvino==2022.1.0", "openvino==2022.3.0"],
        ["openvino==2023.3.0", "openvino==2026.4.1"],
    ),
    Case(
        "a LeakyRelu after a Conv and a Relu",
        "(float[1,2,4,4] x) => (float[1,2,4,4] y)"
        "{ c = Conv(x, w) r = Relu(c) d = Sub(r, half) y = LeakyRelu<alpha=0.2>(d) }",
        13,
        {"w": weights(2, 2, 1, 1), "half": np.float32(0.5)},
        ["Conv", "Relu", "Sub", "Neg", "Relu", "Mul", "Relu", "Sub"],
        ["openvino==2022.1.0"],
        ["openvino==2023.3.0"],
    ),
    Case(
        "a comparison of integers that are neither int32 nor int64",
        "(int16[2,3] x, int16[2,3] z) => (bool[2,3] y) { y = Less(x, z) }",
        13,
        {},
        ["Cast", "Cast", "Less"],
        ["onnxruntime==1.8.1", "onnxruntime==1.14.1"],
        ["openvino==2026.4.1"],
    ),
    Case(
        "a convolution of int8",
        "(int8[1,3,4,4] x) => (int8[1,2,2,2] y)"
        "{ y = QLinearConv<kernel_shape=[3,3]>(x, s, z, w, s, z, s, z) }",
        13,
        {"s": np.float32(0.5), "z": np.int8(0), "w": RNG.integers(-3, 4, (2, 3, 3, 3), np.int8)},
        [
            *("Cast", "Cast", "Conv", "Cast", "Mul", "Div", "Cast", "Mul", "Round", "Cast", "Add"),
            *("Clip", "Greater", "Where", "Cast"),
        ],
        ["onnxruntime==1.8.1"],
        ["onnxruntime==1.14.1"],
    ),
]


def with_runtimes(attribute: str) -> Any:
    """Each case with each of some of its runtimes."""
    pairs = [(case, runtime) for case in CASES for runtime in getattr(case, attribute)]
    ids = [f"{case.name}, {runtime}" for case, runtime in pairs]
    return pytest.mark.parametrize(("case", "runtime"), pairs, ids=ids)


@with_runtimes("runtimes")
def test_it_is_written_in_another_way(case: Case, runtime: str) -> None:
    source = case.model()
    made = onnxreduce_cli.convert(source, case.opset, runtime=runtime)
    onnx.checker.check_model(made, full_check=True)
    assert made.graph.node != source.graph.node
    assert [name for name in op_types(made) if name != "Constant"] == case.written
    assert verify(source, made, trials=2).exit_code == 0
    assert onnxreduce_cli.convert(made, case.opset, runtime=runtime).graph.node == made.graph.node


@with_runtimes("taken")
def test_it_stays_where_it_is_taken(case: Case, runtime: str) -> None:
    source = case.model()
    assert (
        onnxreduce_cli.convert(source, case.opset, runtime=runtime).graph.node == source.graph.node
    )


def feeds_of(found: ModelProto) -> dict[str, Any]:
    """Inputs of a model, dimensions that are not known being of size 2."""
    held = {tensor.name for tensor in found.graph.initializer}
    feeds = {}
    for item in found.graph.input:
        shape = [dim.dim_value or 2 for dim in item.type.tensor_type.shape.dim]
        values = RNG.uniform(-2, 2, shape)
        if item.type.tensor_type.elem_type != TensorProto.FLOAT:
            values = RNG.integers(-3, 4, shape)
        if item.name not in held:
            elem_type = item.type.tensor_type.elem_type
            feeds[item.name] = values.astype(onnx.helper.tensor_dtype_to_np_dtype(elem_type))
    return feeds


def verdict(runtime: str, found: ModelProto, feeds: dict[str, Any], right: list[Any]) -> str:
    """What a runtime's own wheel makes of a model."""
    try:
        installed = install(*runtime.split("=="))
    except NoProgramError as error:
        pytest.skip(str(error))
    return told(installed, found, feeds, right).verdict


@pytest.mark.runtimes
@with_runtimes("runtimes")
def test_the_runtime_itself_takes_what_is_written_alone(case: Case, runtime: str) -> None:
    source = case.model()
    feeds = feeds_of(source)
    right = list(onnxreduce_cli.run(source, feeds, executor="onnxruntime").values())
    assert verdict(runtime, source, feeds, right) != "right"
    made = onnxreduce_cli.convert(source, case.opset, runtime=runtime)
    assert verdict(runtime, made, feeds, right) == "right"


@pytest.mark.runtimes
@with_runtimes("taken")
def test_the_runtime_itself_takes_it_as_it_is(case: Case, runtime: str) -> None:
    source = case.model()
    feeds = feeds_of(source)
    right = list(onnxreduce_cli.run(source, feeds, executor="onnxruntime").values())
    assert verdict(runtime, source, feeds, right) == "right"
