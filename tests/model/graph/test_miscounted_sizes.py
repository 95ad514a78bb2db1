"""Sizes of pools whose last window may begin in the padding behind the data."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.parser
import onnxruntime as ort
import pytest

import onnxreduce_cli
from onnxreduce_cli.model.graph.miscounted_sizes import correct_sizes
from tests.model.types.known import facts_of
from tests.support import assert_same, model, run, run_ort

POOL = "kernel_shape = [2], strides = [2], ceil_mode = 1, pads = [0, 1]"
GEOMETRIES = [
    (POOL, [6]),
    (POOL, [5]),
    (POOL.replace("[0, 1]", "[1, 1]"), [5]),
    ("kernel_shape = [2], strides = [2], ceil_mode = 1", [5]),
    ("kernel_shape = [2], strides = [4], ceil_mode = 1", [7]),
    ("kernel_shape = [1], strides = [3], ceil_mode = 1, auto_pad = \"VALID\"", [5]),
    ("kernel_shape = [2], strides = [2], ceil_mode = 1, auto_pad = \"SAME_UPPER\"", [6]),
    ("kernel_shape = [2], strides = [3], ceil_mode = 1, pads = [0, 1], dilations = [2]", [6]),
    ("kernel_shape = [2, 3], strides = [2, 1], ceil_mode = 1, pads = [0, 0, 1, 1]", [6, 5]),
]  # fmt: skip


def shapes(nodes: str, size: int = 6, more: str = "", opset: int = 19) -> dict[str, object]:
    """The dimensions of values that nodes make of x, of [1, 2, size]."""
    source = model(f"""<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]>
        g (float[1,2,{size}] x, bool c) => (float[?,?,?] y) {{ {nodes} }} {more}""")
    facts, scopes = facts_of(source)
    names = [(scope, name) for scope in scopes for name in scope.producers if name]
    types = {name: facts.type(scope, name) for scope, name in names}
    return {name: known.dims for name, known in types.items() if known is not None}


@pytest.mark.parametrize("op_type", ["AveragePool", "LpPool", "MaxPool"])
@pytest.mark.parametrize(("attributes", "spatial"), GEOMETRIES)
def test_sizes_are_those_of_onnxruntime(op_type: str, attributes: str, spatial: list[int]) -> None:
    dims = ", ".join("?" for _ in (1, 2, *spatial))
    source = model(f"""<ir_version: 8, opset_import: ["" : 19]>
        g (float[1, 2, {", ".join(map(str, spatial))}] x) => (float[{dims}] y) {{
            y = {op_type}<{attributes}>(x)
        }}""")
    facts, scopes = facts_of(source)
    expected = run(source, {"x": np.ones((1, 2, *spatial), np.float32)})["y"].shape
    known = facts.type(scopes[0], "y")
    assert known is not None
    assert known.dims == expected


def test_what_follows_from_them() -> None:
    pool = f"p = MaxPool<{POOL}>(x)"
    assert shapes(f"{pool} y = Concat<axis = 2>(p, x)")["y"] == (1, 2, 9)
    inside = f"t = {pool[4:]}"
    branches = (
        f"then_branch = a () => (t) {{ {inside} }}, else_branch = b () => (e) {{ e = Neg(x) }}"
    )
    known = shapes(f"y = If (c) <{branches}>")
    assert known["t"] == (1, 2, 3)


def test_within_functions() -> None:
    imports = '<domain: "local", opset_import: ["" : 19]>'
    function = f"{imports} F (a) => (b) {{ p = MaxPool<{POOL}>(a) b = Neg(p) }}"
    known = shapes("n = Neg(x) y = local.F(n)", more=function)
    assert (known["p"], known["b"], known["y"]) == ((1, 2, 3),) * 3
    referring = function.replace("F (a)", "F <k> (a)").replace("kernel_shape", "kernel_shape: ints")
    referring = referring.replace("= [2]", "= @k", 1)
    call = "y = local.F<k = [2]>(x)"
    known = shapes(call, more=referring)
    assert known["b"] == (1, 2, 3)
    assert known["y"] == (None, None, None)  # As far as is stated.


def test_functions_with_attributes_convert() -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 12, "local" : 1]>
        g (float[1,2,6] x) => (float[?,?,?] y) {{ y = local.F<k = [2]>(x) }}
        <domain: "local", opset_import: ["" : 12]> F <k> (a) => (b) {{
            p = MaxPool<{POOL.replace("kernel_shape = [2]", "kernel_shape: ints = @k")}>(a)
            b = Softmax<axis = 1>(p)
        }}""")
    result = onnxreduce_cli.convert(source, 13)
    feeds = {"x": np.random.default_rng(0).random((1, 2, 6)).astype(np.float32)}
    assert_same(run(source, feeds)["y"], run(result, feeds)["y"])


def test_no_other_pool_is_replaced() -> None:
    for attributes in ("", ", ceil_mode = 1", ", ceil_mode = 1, pads = [1, 0]"):
        source = model(f"""<ir_version: 8, opset_import: ["" : 19]>
            g (float[1,2,6] x) => (float[?,?,?] y) {{
                y = MaxPool<kernel_shape = [2], strides = [2]{attributes}>(x) }}""")
        copy = onnx.ModelProto.FromString(source.SerializeToString())
        correct_sizes(copy)
        assert copy == source


@pytest.mark.parametrize("op_type", ["AveragePool", "MaxPool"])
@pytest.mark.parametrize("reader", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("stated", [False, True])
def test_results_run(op_type: str, reader: str, axes: int, stated: bool) -> None:
    attributes = ", ".join(
        f"{name} = {values * axes}"
        for name, values in {"kernel_shape": [2], "strides": [2]}.items()
    )
    pads = [0] * axes + [1] * axes
    open_dims = ", ".join("?" * (2 + axes))
    source = model(f"""<ir_version: 6, opset_import: ["" : 11]>
        g (float[1, 2{", 6" * axes}] x) => (float[{open_dims}] y) {{
            p = {op_type}<{attributes}, ceil_mode = 1, pads = {pads}>(x)
            y = {reader}<axis = 1>(p)
        }}""")
    if stated:
        source = onnx.shape_inference.infer_shapes(source)
    result = onnxreduce_cli.convert(source, 13)
    onnx.checker.check_model(result, full_check=True)
    feeds = {"x": np.random.default_rng(0).random((1, 2, *[6] * axes)).astype(np.float32)}
    assert_same(run(source, feeds)["y"], run(result, feeds)["y"])
    optimized = ort.InferenceSession(result.SerializeToString()).run(None, feeds)
    assert_same(run(source, feeds)["y"], optimized[0])


@pytest.mark.parametrize("target", [13, 22])
def test_right_stated_shapes_stay(target: int) -> None:
    source = onnx.parser.parse_model(f"""<ir_version: 6, opset_import: ["" : 12]>
        g (float[1,2,6] x) => (float[1,2,3] y) {{ y = MaxPool<{POOL}>(x) }}""")
    result = onnxreduce_cli.convert(source, target)
    assert result.graph.output[0] == source.graph.output[0]


@pytest.mark.parametrize("op_type", ["AveragePool", "LpPool", "MaxPool"])
@pytest.mark.parametrize(("source", "target"), [(21, 9), (21, 17), (18, 21), (18, 22), (22, 18)])
def test_fixed_dimensions_state_no_miscounted_size(op_type: str, source: int, target: int) -> None:
    before = model(f"""<ir_version: 8, opset_import: ["" : {source}]>
        g (float[1,2,H] x) => (float[?,?,?] y, int64[3] s) {{
            p = {op_type}<{POOL}>(x)  y = Identity(p)  s = Shape(p)
        }}""")
    after = onnxreduce_cli.convert(before, target, dims={"H": 6})
    onnx.checker.check_model(after, full_check=True)
    feeds = {"x": np.random.default_rng(0).random((1, 2, 6)).astype(np.float32)}
    expected, found = run(before, feeds), run(after, feeds)
    assert expected["s"].tolist() == [1, 2, 3]
    for name in ("y", "s"):
        assert_same(expected[name], found[name])


def test_fixed_dimensions_state_no_miscounted_size_of_calls() -> None:
    before = model(f"""<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[1,2,H] x) => (float[?,?,?] y) {{ y = local.F(x) }}
        <domain: "local", opset_import: ["" : 18]> F (a) => (b) {{
            p = MaxPool<{POOL}>(a)  b = Neg(p)
        }}""")
    after = onnxreduce_cli.convert(before, 17, dims={"H": 6})
    onnx.checker.check_model(after, full_check=True)
    feeds = {"x": np.random.default_rng(0).random((1, 2, 6)).astype(np.float32)}
    assert_same(run(before, feeds)["y"], run(after, feeds)["y"])


@pytest.mark.parametrize("op_type", ["AveragePool", "LpPool", "MaxPool"])
@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("opset", [19, 22])
def test_padded_to_the_same_size(op_type: str, mode: str, opset: int) -> None:
    known_sizes = 0
    for size, kernel, stride, dilation, ceil in (
        *((51, 3, 1, 2, 0), (23, 4, 4, 2, 0), (14, 4, 3, 3, 0), (52, 3, 2, 3, 0)),
        *((11, 2, 3, 1, 1), (9, 1, 4, 1, 1), (10, 3, 2, 1, 1), (13, 3, 2, 2, 1), (56, 2, 3, 2, 0)),
    ):
        source = model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
            g (float[1, 1, {size}] x) => (float[?, ?, ?] y) {{
                y = {op_type}<kernel_shape = [{kernel}], strides = [{stride}],
                    dilations = [{dilation}], ceil_mode = {ceil}, auto_pad = "{mode}">(x)
            }}""")
        facts, scopes = facts_of(source)
        known = facts.type(scopes[0], "y")
        expected = ort_shape(source, {"x": np.ones((1, 1, size), np.float32)})
        if known is not None and known.dims not in (None, (None, None, None)):
            assert known.dims == expected
            known_sizes += 1
    assert known_sizes == 7  # The others depend on more than the attributes.


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
@pytest.mark.parametrize("stride", [1, 3, 4])
def test_transposed_convolutions(mode: str, kernel: int, stride: int) -> None:
    for added in range(stride):
        source = model(f"""<ir_version: 8, opset_import: ["" : 11]>
            g (float[1, 1, 12] x, float[1, 1, {kernel}] w) => (float[?, ?, ?] y) {{
                y = ConvTranspose<kernel_shape = [{kernel}], strides = [{stride}],
                    output_padding = [{added}], auto_pad = "{mode}">(x, w)
            }}""")
        facts, scopes = facts_of(source)
        known = facts.type(scopes[0], "y")
        assert known is not None
        feeds = {"x": np.ones((1, 1, 12), np.float32), "w": np.ones((1, 1, kernel), np.float32)}
        assert known.dims == ort_shape(source, feeds)


def ort_shape(source: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> tuple[int, ...]:
    """The shape that ONNX Runtime gives the output y."""
    shape: tuple[int, ...] = run_ort(source, feeds)[0].shape
    return shape


def test_a_squeeze_with_axes_that_are_not_in_order() -> None:
    """onnx overlooks the first of them below opset 11."""
    for opset in (9, 10, 11, 12):
        known = shapes(
            "u = Unsqueeze<axes = [0, 4]>(x) s = Squeeze<axes = [4, 0]>(u)"
            "f = local.F<axes = [4, 0]>(u) y = Neg(x)",
            more=f"""<domain: "local", opset_import: ["" : {opset}]>
            F <axes> (b) => (t) {{ t = Squeeze<axes: ints = @axes>(b) }}""",
            opset=opset,
        )
        assert known["s"] == known["t"] == (1, 2, 6)
        # What calls set is not known in the caller where it may decide how onnx counts.
        assert known.get("f") in ((1, 2, 6), None)


def test_what_reads_a_squeeze_with_axes_that_are_not_in_order() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 9]>
        g (float[1,4,1] x) => (float y) {
            s = Squeeze<axes = [2, 0]>(x)
            p = Softmax<axis = 0>(s)
            y = ReduceL2<keepdims = 0>(p)
        }""")
    moved = onnxreduce_cli.convert(source, 13)
    onnx.checker.check_model(moved, full_check=True)
    feeds = {"x": np.arange(4, dtype=np.float32).reshape(1, 4, 1)}
    assert_same(run(source, feeds), run(moved, feeds))
