"""Initializers that a caller overrides: no constants, nor is any shape that follows from them."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper

from onnxreduce_cli.model.graph.overridable import DECIDING
from onnxreduce_cli.model.graph.values import from_proto
from tests.model.types.known import facts_of
from tests.node_cases import collected
from tests.support import converts, model

X = np.arange(24, dtype=np.float32)
SHAPES = [np.array(shape) for shape in ((2, 3, 4), (4, 1, 6))]

#: What reads a value `r` whose shape follows from an initializer: for some opsets the nodes that
#: compute `q` of it, and the opsets to reach.
READERS = {
    "Softmax": [(12, "q = Softmax(r)", (13,)), (13, "q = Softmax<axis = 1>(r)", (12, 9))],
    "LogSoftmax": [(11, "q = LogSoftmax(r)", (13,)), (13, "q = LogSoftmax(r)", (10,))],
    "Hardmax": [(12, "q = Hardmax<axis = -2>(r)", (13,)), (13, "q = Hardmax(r)", (8,))],
    "ArgMax": [(13, "p = ArgMax<axis = -1>(r) q = Cast<to = 1>(p)", (8,))],
    "Flatten": [(13, "q = Flatten<axis = -1>(r)", (10,))],
    "Concat": [(13, "q = Concat<axis = -1>(r, r)", (10,))],
    "Gather": [(13, "q = Gather<axis = -1>(r, zero)", (10,))],
    "Squeeze": [(13, "o = Unsqueeze(r, least) q = Squeeze(o, least)", (10,))],
    "Slice": [(13, "q = Slice(r, zero, one, least)", (10, 9))],
    "TopK": [(11, "q, i = TopK<axis = -1>(r, one)", (10, 9))],
    "Pad": [(13, "q = Pad(r, pads)", (10,))],
    "Size": [(18, "o = Size(r) p = Cast<to = 1>(o) q = Unsqueeze(p, zero)", (10,))],
    "Shape": [(18, "o = Shape<start = -2>(r) q = Cast<to = 1>(o)", (10,))],
    "LayerNormalization": [(17, "q = LayerNormalization(r, scale)", (13,))],
    "ReduceSum": [(13, "q = ReduceSum(r, least)", (10,))],
    **{
        f"Reduce{name}": [
            (18, f"q = Reduce{name}(r, least)", (11, 10)),
            (11, f"q = Reduce{name}<axes = [-1]>(r)", (10, 18)),
        ]
        for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "SumSquare")
    },
}
MODEL = """<ir_version: 8, opset_import: ["" : {opset}]>
g (float[24] x, int64[3] s) => (float[n] y)
<int64[3] s = {{1, 24, 1}}, int64[1] flat = {{-1}}, int64[1] least = {{-1}}, int64[1] zero = {{0}},
 int64[1] one = {{1}}, int64[6] pads = {{0, 0, 1, 0, 0, 0}}, float[1] scale = {{1}}> {{
    r = Reshape(x, s)
    {reader}
    y = Reshape(q, flat)
}}"""


def stated(found: ModelProto) -> ModelProto:
    """The model with the shapes in its value_info that inference derives from the default."""
    result = onnx.shape_inference.infer_shapes(found, data_prop=True)
    (known,) = [from_proto(info.type) for info in result.graph.value_info if info.name == "r"]
    assert known is not None
    assert known.dims == (1, 24, 1)
    return result


@pytest.mark.parametrize("says", [False, True], ids=["", "stated"])
@pytest.mark.parametrize(
    "op_type",
    # Older versions of ONNX Runtime do not broadcast its scale.
    [
        pytest.param(n, marks=pytest.mark.newest) if n == "LayerNormalization" else n
        for n in READERS
    ],
)
def test_a_shape_that_a_caller_overrides(op_type: str, says: bool) -> None:
    for opset, reader, targets in READERS[op_type]:
        source = model(MODEL.format(opset=opset, reader=reader))
        if says:
            source = stated(source)
        for target in targets:
            result = converts(source, target, *({"x": X, "s": shape} for shape in SHAPES))
            # ONNX Runtime would plan its memory by it.
            assert "r" not in {
                info.name
                for info in result.graph.value_info
                if info.type.tensor_type.HasField("shape")
            }


#: Values shaped by an overridable initializer `s`, which then has another value.
SHAPED = {
    "ConstantOfShape": ("int64[2] s = {1, 4}", [2, 3], "r = ConstantOfShape(s)"),
    "Expand": ("int64[2] s = {1, 4}", [2, 4], "o = Reshape(x, row) r = Expand(o, s)"),
    "Pad": ("int64[4] s = {0, 1, 0, 0}", [1, 0, 0, 0], "o = Reshape(x, row) r = Pad(o, s)"),
    "Range": ("int64 s = {1}", 3, "o = Range(nil, s, by) p = Cast<to = 1>(o) r = Reshape(p, row)"),
    "ReduceSum": ("int64[1] s = {0}", [1], "o = Reshape(x, square) r = ReduceSum(o, s)"),
    "Resize": ("int64[2] s = {1, 8}", [2, 4], "o = Reshape(x, row) r = Resize(o, , , s)"),
    "Scales": ("float[2] s = {1, 2}", [2, 1], "o = Reshape(x, row) r = Resize(o, , s)"),
    "Slice": ("int64[1] s = {1}", [3], "o = Slice(x, zero, s) r = Unsqueeze(o, zero)"),
    "Split": ("int64[2] s = {1, 3}", [2, 2], "o, p = Split(x, s) r = Unsqueeze(o, zero)"),
    "Tile": ("int64[2] s = {1, 2}", [3, 1], "o = Reshape(x, row) r = Tile(o, s)"),
    "TopK": ("int64[1] s = {1}", [3], "o, p = TopK(x, s) r = Unsqueeze(o, zero)"),
    "computed": (
        "int64[1] s = {1}",
        [2],
        "a = Concat<axis = 0>(s, minus) b = Mul(a, a) c = Div(b, a) r = Reshape(x, c)",
    ),
    "If": (
        "int64[2] s = {1, 4}",
        [2, 2],
        """t = Greater(x, x) c = ReduceMax<keepdims = 0>(t)
        r = If (c) <then_branch = t () => (float[a, b] o) { o = Reshape(x, row) },
            else_branch = e () => (float[c, d] o) { o = Reshape(x, s) }>""",
    ),
    "Loop": (
        "int64[2] s = {1, 4}",
        [2, 2],
        """o = Reshape(x, row)
        r = Loop (by, , o) <body = b (int64 i, bool c, float[a, b] v)
            => (bool d, float[e, f] w) { d = Identity(c) w = Reshape(v, s) }>""",
    ),
    "function": ("int64[2] s = {1, 4}", [2, 2], "r = local.F(x, s)"),
}
SHAPED_MODEL = """<ir_version: 10, opset_import: ["" : 20, "local" : 1]>
g (float[4] x, {kind} s) => (float[n] y)
<{default}, int64[1] flat = {{-1}}, int64[1] zero = {{0}}, int64[1] minus = {{-1}},
 int64 by = {{1}}, int64 nil = {{0}}, int64[2] row = {{1, -1}}, int64[2] square = {{2, 2}}> {{
    {shaped}
    q = Softmax<axis = 0>(r)
    m = ReduceMean(r, minus)
    v = Shape(r)
    w = Cast<to = 1>(v)
    a1 = Reshape(q, flat)
    a2 = Reshape(m, flat)
    y = Concat<axis = 0>(a1, a2, w)
}}
<domain: "local", opset_import: ["" : 20]>
F (a, b) => (c) {{ c = Reshape(a, b) }}"""


@pytest.mark.parametrize("how", SHAPED)
def test_what_shapes_a_value_is_overridden(how: str) -> None:
    default, value, shaped = SHAPED[how]
    text = SHAPED_MODEL.format(kind=default.split(" s ")[0], default=default, shaped=shaped)
    other = np.array(value, np.float32 if default.startswith("float") else np.int64)
    source = model(text)
    for said in (source, onnx.shape_inference.infer_shapes(source, data_prop=True)):
        for target in (17, 12, 10):
            converts(said, target, {"x": X[:4], "s": other})


def overridable(ir_version: int) -> ModelProto:
    """A Reshape by an initializer of a model of an IR version."""
    return model(f"""<ir_version: {ir_version}, opset_import: ["" : 11]>
        g (float[24] x, int64[3] s) => (float[a, b, c] y) <int64[3] s = {{1, 24, 1}}> {{
            r = Reshape(x, s)
            y = Neg(r)
        }}""")


def test_no_override_before_ir_version_4() -> None:
    for ir, dims in ((3, (1, 24, 1)), (4, (None, None, None))):
        facts, (main,) = facts_of(overridable(ir))
        known = facts.type(main, "r")
        assert known is not None
        assert known.dims == dims


def test_a_stated_shape_that_no_default_decides_counts() -> None:
    facts, (main,) = facts_of(
        onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 13, "custom" : 1]>
        g (float[2] x, float[2] w) => (float[n] y)
        <float[2] w = {1, 2}, float[3] a, float[4] b> {
            v = Mul(x, w)
            a = custom.Op(v)
            u = Cast<to = 7>(w)
            b = Expand(x, u)
            y = Concat<axis = 0>(a, b)
        }""")
    )
    known = [facts.type(main, name) for name in "vab"]
    first, second, third = [item and item.dims for item in known]
    assert (first, second) == ((2,), (3,))
    assert third is not None
    assert not isinstance(third[0], int)


@pytest.mark.matrix
def test_the_inputs_that_decide_shapes_are_known() -> None:
    """Where shape inference knows more by the value of an input, that input is in the table."""
    found = defaultdict(set)
    for case in collected():
        nodes = case.model.graph.node
        if len(nodes) != 1 or nodes[0].domain or "Optional" in nodes[0].op_type:
            continue
        bare = ModelProto()
        bare.CopyFrom(case.model)  # The cases are shared by all tests of a process.
        for output in bare.graph.output:
            if output.type.HasField("tensor_type"):
                output.type.tensor_type.ClearField("shape")
        known = inferred(bare)
        feeds = zip(bare.graph.input, case.data_sets[0][0], strict=False)
        for name, array in [(item.name, array) for item, array in feeds]:
            if not isinstance(array, np.ndarray):
                continue
            with_value = ModelProto()
            with_value.CopyFrom(bare)
            with_value.graph.initializer.append(numpy_helper.from_array(array, name))
            if inferred(with_value) != known:
                found[nodes[0].op_type].add(list(nodes[0].input).index(name))
    assert len(found) > 25
    missing = {
        op_type: places
        for op_type, places in found.items()
        if not places <= set(DECIDING.get(op_type, ()) or places)
    }
    assert missing == {}


def inferred(found: ModelProto) -> list[bytes]:
    """The types of a model's outputs as shape inference finds them."""
    try:
        outputs = onnx.shape_inference.infer_shapes(found, data_prop=True).graph.output
    except onnx.shape_inference.InferenceError:
        return []
    return [output.type.SerializeToString() for output in outputs]
