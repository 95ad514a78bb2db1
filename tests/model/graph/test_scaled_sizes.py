"""Sizes of Resize and Upsample by scales, which onnx multiplies exactly and runtimes in float32."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import ModelProto, helper

import onnxreduce_cli
from onnxreduce_cli.model.graph.values import Dims
from tests.model.types.known import facts_of
from tests.support import assert_same, model, run

#: Sizes of data, scales and results: onnx infers one less.
UNEVEN = [(23, 20 / 23, 20), (9, 41 / 9, 41), (30, 3.6, 108), (44, 25 / 44, 25)]

NODES = {
    7: "p = Upsample<mode = \"nearest\", scales = [1.0, 1.0, {scale!r}]>(x)",
    9: "p = Upsample<mode = \"nearest\">(x, k)",
    10: "p = Resize<mode = \"linear\">(x, k)",
    11: "p = Resize<mode = \"nearest\">(x, none, k)",
    13: "p = Resize<mode = \"linear\">(x, \"\", k)",
    18: "p = Resize<mode = \"nearest\", axes = [-1]>(x, \"\", last)",
    19: "c = Constant<value_floats = [1.0, 1.0, {scale!r}]>() p = Resize(x, \"\", c)",
}  # fmt: skip


def resized(
    opset: int, size: int | str, scale: float, reader: str = "y = Identity(p)"
) -> ModelProto:
    scale = float(np.float32(scale))
    scales = f"float[3] k = {{1, 1, {scale!r}}}, float[1] last = {{{scale!r}}}"
    return model(f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[1, 2, {size}] x) => (float[?, ?, ?] y) <{scales}, float[0] none = {{}}> {{
            {NODES[opset].format(scale=scale)} {reader}
        }}""")


def known_dims(source: ModelProto, name: str) -> Dims | None:
    facts, scopes = facts_of(source)
    known = next(facts.type(scope, name) for scope in scopes if name in scope.producers)
    return None if known is None else known.dims


def data(size: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(size).random((1, 2, size)).astype(np.float32)}


@pytest.mark.newest
@pytest.mark.parametrize("opset", NODES)
@pytest.mark.parametrize(("size", "scale", "expected"), UNEVEN)
def test_sizes_are_those_of_onnxruntime(opset: int, size: int, scale: float, expected: int) -> None:
    if scale < 1 and opset < 10:
        scale, expected = 47 / 46, 47
        size = 46
    source = resized(opset, size, scale)
    assert known_dims(source, "y") == (1, 2, expected)
    assert run(source, data(size))["y"].shape == (1, 2, expected)


@pytest.mark.newest
def test_random_scales() -> None:
    rng, uneven = np.random.default_rng(0), 0
    for _ in range(200):
        size = int(rng.integers(1, 300))
        scale = rng.integers(1, 300) / size if rng.random() < 0.7 else rng.uniform(0.1, 4)
        source = resized(13, size, scale)
        expected = run(source, data(size))["y"].shape
        assert known_dims(source, "y") == expected
        inferred = onnx.shape_inference.infer_shapes(source).graph.value_info[0]
        uneven += inferred.type.tensor_type.shape.dim[2].dim_value != expected[2]
    assert uneven > 5


@pytest.mark.parametrize("opset", [9, 11])
@pytest.mark.parametrize("reader", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("stated", ["", "by onnx", "right"])
def test_results_run(opset: int, reader: str, stated: str) -> None:
    size, scale, expected = UNEVEN[1]
    source = resized(opset, size, scale, f"y = {reader}<axis = 1>(p)")
    if stated == "by onnx":
        source = onnx.shape_inference.infer_shapes(source)
    elif stated:
        source.graph.value_info.append(helper.make_tensor_value_info("p", 1, [1, 2, expected]))
    for target in (13, 18):
        result = onnxreduce_cli.convert(source, target)
        if stated != "right":  # By onnx the source is invalid, too.
            onnx.checker.check_model(result, full_check=True)
        feeds = data(size)
        assert_same(run(source, feeds)["y"], run(result, feeds)["y"])
        optimized = ort.InferenceSession(result.SerializeToString()).run(None, feeds)
        assert_same(run(source, feeds)["y"], optimized[0])


def test_fixed_dimensions() -> None:
    size, scale, expected = UNEVEN[0]
    source = resized(11, "H", scale, "y = Softmax<axis = 1>(p)")
    result = onnxreduce_cli.convert(source, 13, dims={"H": size})
    onnx.checker.check_model(result, full_check=True)
    found = run(result, data(size))["y"]
    assert found.shape == (1, 2, expected)
    assert_same(run(source, data(size))["y"], found)


def test_what_follows_from_them() -> None:
    size, scale, _ = UNEVEN[0]
    again = 'q = Abs(p) r = Resize<mode = "nearest">(q, "", k) y = Concat<axis = 2>(r, p)'
    source = resized(13, size, scale, again)
    assert known_dims(source, "y") == run(source, data(size))["y"].shape


@pytest.mark.newest
@pytest.mark.parametrize(("length", "followed"), [(9, True), (40, False)])
def test_some_in_a_row_are_followed_and_nothing_is_claimed_behind_them(
    length: int, followed: bool
) -> None:
    size, scale, _ = UNEVEN[0]
    chain = f"q0 = Abs(p) u = Constant<value_floats = [1.0, 1.0, {float(np.float32(23 / 20))!r}]>()"
    for index in range(length):
        scales = ("u", "k")[index % 2]
        chain += f' q{index + 1} = Resize<mode = "nearest">(q{index}, "", {scales})'
    source = resized(13, size, scale, f"{chain} y = Neg(q{length})")
    # ONNX Runtime shares memory by the sizes that onnx infers, and stops.
    expected = run(source, data(size), in_numpy=True)["y"].shape
    known = known_dims(source, "y")
    assert known == (expected if followed else (None, None, None))


def test_within_graphs_and_functions() -> None:
    size, scale, expected = UNEVEN[0]
    k = f"k = Constant<value_floats = [1.0, 1.0, {float(np.float32(scale))!r}]>()"
    inner = f'{k} p = Resize<mode = "nearest">(x, "", k)'
    branch = model(f"""<ir_version: 8, opset_import: ["" : 13]>
        g (float[1,2,{size}] x, bool c) => (float[?,?,?] y) {{
            y = If (c) <
                then_branch = a () => (t) {{ {inner} t = Neg(p) }},
                else_branch = b () => (e) {{ e = Neg(x) }}
            >
        }}""")
    assert known_dims(branch, "t") == (1, 2, expected)
    call = model(f"""<ir_version: 8, opset_import: ["" : 13, "local" : 1]>
        g (float[1,2,{size}] x) => (float[?,?,?] y) {{ n = Neg(x) y = local.F(n) }}
        <domain: "local", opset_import: ["" : 13]> F (x) => (b) {{ {inner} b = Neg(p) }}""")
    assert known_dims(call, "b") == (1, 2, expected)


@pytest.mark.parametrize("scale", [2.0, 0.5, 1.5, 3.0])
def test_even_scales_leave_stated_shapes(scale: float) -> None:
    source = resized(11, "H", scale, "y = Softmax<axis = 1>(p)")
    source.graph.value_info.append(helper.make_tensor_value_info("p", 1, [1, 2, 12]))
    assert known_dims(source, "p") == (1, 2, 12)
