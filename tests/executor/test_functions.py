"""Model-local functions: attributes, opsets, overloads, optional inputs and outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import AttributeProto, FunctionProto, helper

from onnxreduce_cli.executor import ExecutionError, run
from tests.executor.models import graph, model, value

X = np.arange(6, dtype=np.float32).reshape(1, 2, 3)


def reference(name: str, to: str, kind: int) -> AttributeProto:
    attribute = AttributeProto()
    attribute.name, attribute.ref_attr_name, attribute.type = name, to, kind
    return attribute


def function(
    nodes: list[Any],
    inputs: list[str],
    outputs: list[str],
    opset: int = 13,
    name: str = "f",
    attributes: tuple[str, ...] = (),
    defaults: tuple[AttributeProto, ...] = (),
    **more: Any,
) -> FunctionProto:
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    made = helper.make_function(
        "local", name, inputs, outputs, nodes, imports, list(attributes), list(defaults), **more
    )
    return made


def call(inputs: list[str], outputs: list[str], name: str = "f", **attrs: Any) -> Any:
    return helper.make_node(name, inputs, outputs, domain="local", **attrs)


def with_functions(nodes: list[Any], functions: list[Any], opset: int = 13, **more: Any) -> Any:
    return model(
        nodes, [value("x")], ["y"], opset, functions=functions, domains={"local": 1}, **more
    )


def sum_axes() -> FunctionProto:
    node = helper.make_node("ReduceMean", ["a"], ["b"], keepdims=0)
    node.attribute.append(reference("axes", "along", AttributeProto.INTS))
    return function([node], ["a"], ["b"], attributes=("along",))


def test_attribute_references_take_the_callers_value() -> None:
    built = with_functions([call(["x"], ["y"], along=[1])], [sum_axes()])
    np.testing.assert_array_equal(run(built, {"x": X})["y"], X.mean(axis=1))


def test_a_reference_without_value_and_default_is_an_attribute_left_out() -> None:
    built = with_functions([call(["x"], ["y"])], [sum_axes()])
    np.testing.assert_array_equal(run(built, {"x": X})["y"], X.mean())


def test_default_values_hold_until_the_caller_gives_one() -> None:
    node = helper.make_node("ReduceSum", ["a"], ["b"])
    node.attribute.append(reference("keepdims", "keep", AttributeProto.INT))
    made = function([node], ["a"], ["b"], defaults=(helper.make_attribute("keep", 0),))
    assert run(with_functions([call(["x"], ["y"])], [made]), {"x": X})["y"].shape == ()
    kept = with_functions([call(["x"], ["y"], keep=1)], [made])
    assert run(kept, {"x": X})["y"].shape == (1, 1, 1)


def test_references_reach_into_subgraphs_and_through_calls() -> None:
    softmax = helper.make_node("Softmax", ["a"], ["s"])
    softmax.attribute.append(reference("axis", "axis", AttributeProto.INT))
    branch = graph([softmax], [], ["s"])
    inner = function(
        [
            helper.make_node("Constant", [], ["c"], value=helper.make_tensor("c", 9, [], [True])),
            helper.make_node("If", ["c"], ["b"], then_branch=branch, else_branch=branch),
        ],
        ["a"],
        ["b"],
        name="inner",
        attributes=("axis",),
    )
    pass_on = call(["a"], ["b"], name="inner")
    pass_on.attribute.append(reference("axis", "which", AttributeProto.INT))
    outer = function([pass_on], ["a"], ["b"], attributes=("which",))
    for axis in (1, 2):
        got = run(with_functions([call(["x"], ["y"], which=axis)], [inner, outer]), {"x": X})["y"]
        np.testing.assert_allclose(got.sum(axis=axis), 1, rtol=1e-6)


@pytest.mark.parametrize(("body_opset", "model_opset"), [(11, 13), (13, 11)])
def test_a_body_runs_by_its_own_opset(body_opset: int, model_opset: int) -> None:
    made = function([helper.make_node("Softmax", ["a"], ["b"], axis=1)], ["a"], ["b"], body_opset)
    built = with_functions([call(["x"], ["y"])], [made], opset=model_opset)
    got = run(built, {"x": X})["y"]
    over = (1, 2) if body_opset == 11 else 1
    np.testing.assert_allclose(got.sum(axis=over), 1, rtol=1e-6)


def test_overloads_are_told_apart() -> None:
    plain = function([helper.make_node("Neg", ["a"], ["b"])], ["a"], ["b"])
    other = function([helper.make_node("Abs", ["a"], ["b"])], ["a"], ["b"], overload="two")
    built = with_functions([call(["x"], ["y"], overload="two")], [plain, other])
    np.testing.assert_array_equal(run(built, {"x": -X})["y"], X)


def test_omitted_inputs_and_outputs() -> None:
    made = function(
        [
            helper.make_node("Clip", ["a", "low", "high"], ["b"]),
            helper.make_node("Neg", ["a"], ["c"]),
        ],
        ["a", "low", "high"],
        ["c", "b"],
    )
    built = with_functions([call(["x", "", "x2"], ["", "y"])], [made])
    built.graph.input.append(value("x2", np.float32, []))
    got = run(built, {"x": X, "x2": np.array(2, np.float32)})["y"]
    np.testing.assert_array_equal(got, np.minimum(X, 2))
    short = with_functions([call(["x"], ["", "y"])], [made])
    np.testing.assert_array_equal(run(short, {"x": X})["y"], X)


def test_a_required_operator_input_that_the_caller_omits_is_an_error() -> None:
    made = function([helper.make_node("Add", ["a", "d"], ["b"])], ["a", "d"], ["b"])
    with pytest.raises(ExecutionError, match=r"Add, opset 13.*'B' is missing"):
        run(with_functions([call(["x"], ["y"])], [made]), {"x": X})


def test_recursion_is_an_error() -> None:
    made = function([call(["a"], ["b"])], ["a"], ["b"])
    with pytest.raises(ExecutionError, match=r"local\.f.*calls itself"):
        run(with_functions([call(["x"], ["y"])], [made]), {"x": X})


def test_unknown_attributes_and_too_many_inputs_are_errors() -> None:
    made = function([helper.make_node("Neg", ["a"], ["b"])], ["a"], ["b"])
    with pytest.raises(ExecutionError, match="no attribute 'extra'"):
        run(with_functions([call(["x"], ["y"], extra=1)], [made]), {"x": X})
    with pytest.raises(ExecutionError, match="2 inputs"):
        run(with_functions([call(["x", "x"], ["y"])], [made]), {"x": X})


def test_a_function_goes_before_the_operator_of_the_same_name() -> None:
    made = function([helper.make_node("Abs", ["a"], ["b"])], ["a"], ["b"], name="Neg")
    made.domain = ""
    built = model([helper.make_node("Neg", ["x"], ["y"])], [value("x")], ["y"], 13)
    built.functions.append(made)
    np.testing.assert_array_equal(run(built, {"x": X})["y"], X)


def test_bodies_called_often_are_prepared_once() -> None:
    level = function([helper.make_node("Neg", ["a"], ["b"])], ["a"], ["b"], name="f0")
    functions = [level]
    for depth in range(1, 40):
        nodes = [
            call(["a"], ["m"], name=f"f{depth - 1}"),
            call(["m"], ["n"], name=f"f{depth - 1}"),
            helper.make_node("Identity", ["a"], ["b"]),
        ]
        functions.append(function(nodes, ["a"], ["b"], name=f"f{depth}"))
    from onnxreduce_cli.executor import Executor

    # 2 ** 39 calls when unfolded: preparing must share them.
    built = with_functions([call(["x"], ["y"], name="f39")], functions)
    assert Executor(built).input_names == ["x"]
