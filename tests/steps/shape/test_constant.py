"""Constant: every form of it down to where only a float tensor was allowed."""

from __future__ import annotations

import copy

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import onnxreduce_cli
from onnxreduce_cli.engine.conversion import Conversion
from tests.support import blockers, converts, model, op_types, run

FORMS = {
    "value = float[2] {1, 2}": "float[2]",
    "value = double[2] {1, 2}": "double[2]",
    "value = int64[2] {1, 2}": "int64[2]",
    "value = bool[2] {1, 0}": "bool[2]",
    "value_int = 3": "int64",
    "value_ints = [1, 2, 3]": "int64[3]",
    "value_float = 1.5": "float",
    "value_floats = [1.5, 2.5]": "float[2]",
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("target", [12, 11, 10, 9, 8, 5, 1])
def test_every_form_in_a_graph(form: str, target: int) -> None:
    source = model(f"""<ir_version: 7, opset_import: ["" : 13]>
        g () => ({FORMS[form]} y) {{ [n] y = Constant<{form}>() }}""")
    result = converts(source, target, {}, exact=True, in_numpy=True)
    integers = FORMS[form].startswith(("int", "bool"))
    assert op_types(result) == (["Constant", "Cast"] if integers and target < 9 else ["Constant"])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("target", [12, 11, 9, 8, 6])
def test_every_form_in_a_function(form: str, target: int) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 13, "local" : 1]>
        g () => ({FORMS[form]} y) {{ y = local.F() }}
        <domain: "local", opset_import: ["" : 13]>
        F () => (b) {{ [n] b = Constant<{form}>() }}""")
    converts(source, target, {}, exact=True, in_numpy=True)


@pytest.mark.parametrize("text", ['value_string = "a"', 'value_strings = ["a", "b"]'])
def test_strings(text: str) -> None:
    shape = "string" if "strings" not in text else "string[2]"
    source = model(f"""<ir_version: 7, opset_import: ["" : 13]>
        g () => ({shape} y) {{ [n] y = Constant<{text}>() }}""")
    for target in (11, 9, 8):
        converts(source, target, {}, exact=True, in_numpy=True)
        result = onnxreduce_cli.convert(source, 8)
        assert result.ir_version == 3
        assert [value.name for value in result.graph.input] == ["y"]
        assert [tensor.name for tensor in result.graph.initializer] == ["y"]


def test_strings_within_a_graph() -> None:
    source = model("""<ir_version: 4, opset_import: ["" : 9]>
        g (bool c, string[1] x) => (string[1] y) {
            y = If (c) <
                then_branch = t () => (string[1] a) { [n] a = Constant<value = string[1] {"a"}>() },
                else_branch = e () => (string[1] b) { b = Identity(x) }
            >
        }""")
    (blocker, *_) = blockers(source, 8)
    assert blocker.reason.startswith("before opset 9 only an initializer holds string")


def sparse(dims: list[int], indices: list[list[int]] | list[int]) -> ModelProto:
    values = helper.make_tensor("", 1, [len(indices)], [float(i + 1) for i in range(len(indices))])
    places = numpy_helper.from_array(np.array(indices, np.int64))
    node = helper.make_node(
        "Constant", [], ["y"], sparse_value=helper.make_sparse_tensor(values, places, dims)
    )
    graph = helper.make_graph([node], "g", [], [helper.make_tensor_value_info("y", 1, dims)])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)


@pytest.mark.parametrize(
    ("dims", "indices"), [([5], [1, 3]), ([2, 3], [1, 5]), ([2, 3], [[0, 1], [1, 2]]), ([4], [])]
)
def test_sparse_becomes_dense(dims: list[int], indices: list[int]) -> None:
    source = sparse(dims, indices)
    result = onnxreduce_cli.convert(source, 10)
    onnx.checker.check_model(result, full_check=True)
    expected = np.zeros(dims, np.float32)
    for number, place in enumerate(indices, 1):
        expected[np.unravel_index(place, dims) if isinstance(place, int) else tuple(place)] = number
    np.testing.assert_array_equal(run(result, {})["y"], expected)
    assert onnxreduce_cli.convert(source, 11).graph == source.graph


@pytest.mark.parametrize("indices", [[5, 999_999], [[0, 5], [999, 999]], []])
def test_a_large_sparse_constant(indices: list[int]) -> None:
    source = sparse([1000, 1000], indices)
    for target in (10, 9):
        assert converts(source, target, {}, exact=True, in_numpy=True).ByteSize() < 10_000
    # What scatters came with opset 9.
    assert converts(source, 7, {}, exact=True, in_numpy=True).ByteSize() > 8_000_000


def test_a_sparse_constant_of_too_many_values_blocks() -> None:
    (blocker,) = blockers(sparse([1000, 1000], list(range(70_000))), 10)
    assert "its attribute 'sparse_value' came later" in blocker.reason


def test_integers_at_ir_version_3() -> None:
    source = model("""<ir_version: 7, opset_import: ["" : 13]>
        g (float[2,3] x) => (float[3,2] y) {
            s = Constant<value_ints = [3, 2]>()
            y = Reshape(x, s)
        }""")
    copied = copy.deepcopy(source)
    Conversion(copied, 8).apply()
    assert copied.ir_version == 3
    onnx.checker.check_model(copied, full_check=True)
    assert op_types(copied) == ["Constant", "Cast", "Reshape"]
    x = {"x": np.arange(6, dtype=np.float32).reshape(2, 3)}
    np.testing.assert_array_equal(run(copied, x)["y"], run(source, x)["y"])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", ["int64", "uint64"])
def test_integers_that_double_cannot_hold_at_ir_version_3(kind: str) -> None:
    limits = np.iinfo(kind)
    numbers = [limits.min, limits.max, limits.max - 1, 2**53 + 1, 0, 5]
    values = ", ".join(map(str, numbers))
    source = model(f"""<ir_version: 7, opset_import: ["" : 13]>
        g () => ({kind}[6] y) {{ y = Constant<value = {kind}[6] {{{values}}}>() }}""")
    copied = copy.deepcopy(source)
    Conversion(copied, 8).apply()
    onnx.checker.check_model(copied, full_check=True)
    assert copied.ir_version == 3
    assert run(copied, {})["y"].tolist() == numbers
    converts(source, 8, {}, exact=True, in_numpy=True)


def test_a_reference_that_calls_set_differently() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 13, "local" : 1]>
        g () => (int64[n] y, int64[m] z) { y = local.F<v = [1]>() z = local.F<v = [2]>() }
        <domain: "local", opset_import: ["" : 13]>
        F <v> () => (b) { b = Constant<value_ints : ints = @v>() }""")
    result = converts(source, 11, {})
    assert [len(function.node) for function in result.functions] == [1, 1]


@pytest.mark.newest  # NumPy 1 has no ranks above 32.
@pytest.mark.parametrize("target", [8, 7])
def test_a_rank_that_numpy_does_not_iterate_over(target: int) -> None:
    source = model("""<ir_version: 7, opset_import: ["" : 13]>
        g (int64 x) => (int64 z) { y = Constant<value_int = 3>() z = Add(x, y) }""")
    source.graph.output[0].ClearField("type")
    tensor = helper.make_tensor("", TensorProto.INT64, [1] * 41, [3])
    source.graph.node[0].attribute[0].CopyFrom(helper.make_attribute("value", tensor))
    converted = onnxreduce_cli.convert(source, target, check=False)
    assert op_types(converted) == ["Constant", "Cast", "Add"]


def test_identity_of_a_constant_where_a_runtime_refuses_it() -> None:
    source = model("""<ir_version: 7, opset_import: ["" : 11]>
        g (float[2, 3, 4, 5] x) => (float[2, 3, 4, 5] y)
        <float[3, 1, 1] c = {1, 2, 3}> {
            d = Identity(c) [n] y = Mul(x, d)
        }""")
    x = np.random.default_rng(0).standard_normal((2, 3, 4, 5)).astype(np.float32)
    result = converts(source, 11, {"x": x}, exact=True, emulate=False, runtime="opencv==4.6")
    assert op_types(result) == ["Mul"]


def test_identity_of_a_constant_in_a_function_where_a_runtime_refuses_it() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 11, "local" : 1]>
        g (float[3] x) => (float[3] y) { y = local.F(x) }
        <domain: "local", opset_import: ["" : 11]>
        F (a) => (b) {
            c = Constant<value = float[3] {1, 2, 3}>() d = Identity(c) b = Mul(a, d)
        }""")
    plan = onnxreduce_cli.plan(source, runtime="opencv==4.6")
    assert not plan.blockers


def test_identity_of_a_constant_that_a_caller_may_override() -> None:
    source = model("""<ir_version: 7, opset_import: ["" : 11]>
        g (float[2, 3] x, float[2, 3] c) => (float[2, 3] y)
        <float[2, 3] c = {1, 2, 3, 4, 5, 6}> {
            [n] d = Identity(c) y = Mul(x, d)
        }""")
    (blocker,) = onnxreduce_cli.plan(source, runtime="opencv==4.6").blockers
    assert blocker.reason.endswith("a caller may override the constant")


def test_an_output_that_is_constant_where_a_runtime_gives_none() -> None:
    source = model("""<ir_version: 7, opset_import: ["" : 11]>
        g (float[1, 2] x, float[1, 2] u) => (float[1, 2] y) <int64[1, 1] i = {0},
        float[1, 2] c = {1, 2}> { [n] y = ScatterND(x, i, c) }""")
    (blocker,) = onnxreduce_cli.plan(source, runtime="opencv==4.6").blockers
    assert "the output of the model is the same in every run" in blocker.reason
