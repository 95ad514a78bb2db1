"""Where two models differ first."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper

from onnxreduce_cli.verification.compare.values import Tolerance
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole import divergence
from onnxreduce_cli.verification.whole.divergence import first_divergence
from onnxreduce_cli.verification.whole.equivalence import verify
from tests.support import model


def chain(length: int, wrong: int = -1, branch: int = 0) -> ModelProto:
    """A long chain, joined at its end by a branch; at `wrong` another operator."""
    nodes: list[NodeProto] = []
    for index in range(length):
        op_type = "Neg" if index == wrong else "Identity"
        read = f"v{index - 1}" if index else "x"
        nodes.append(helper.make_node(op_type, [read], [f"v{index}"], f"n{index}"))
    for index in range(branch):
        nodes.append(
            helper.make_node("Identity", [f"b{index - 1}" if index else "x"], [f"b{index}"])
        )
    last = [f"v{length - 1}", f"b{branch - 1}" if branch else "x"]
    nodes.append(helper.make_node("Add", last, ["y"], "join"))
    return helper.make_model(
        helper.make_graph(
            nodes,
            "g",
            [helper.make_tensor_value_info("x", 1, ["N"])],
            [helper.make_tensor_value_info("y", 1, ["N"])],
        ),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )


@pytest.mark.parametrize("wrong", [0, 1, 7, 150, 299])
@pytest.mark.parametrize("branch", [0, 200])
def test_the_first_of_many_is_found_by_bisection(
    wrong: int, branch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []
    real = divergence.open_isolated

    def counting(*args, **kwargs):  # type: ignore[no-untyped-def]
        opened.append(kwargs.get("extra", ()))
        return real(*args, **kwargs)

    monkeypatch.setattr(divergence, "open_isolated", counting)
    report = verify(chain(300, branch=branch), chain(300, wrong, branch), trials=1)
    assert report.divergence is not None
    assert report.divergence.value == f"v{wrong}"
    assert report.divergence.first_nodes == (f"n{wrong} (Identity)",)
    assert report.divergence.second_nodes == (f"n{wrong} (Neg)",)
    assert len(opened) < 24
    assert max(len(names) for names in opened) <= 48


def test_small_models_are_looked_at_at_once() -> None:
    report = verify(chain(20), chain(20, 4), trials=1)
    assert report.divergence is not None
    assert report.divergence.value == "v4"


def test_differences_that_an_operator_hides_do_not_mislead() -> None:
    def build(op_type: str) -> ModelProto:
        # v differs; `hidden` does not show it, `shown` does.
        nodes = [helper.make_node(op_type, ["x"], ["v"], "the_node")]
        nodes += [helper.make_node("Abs", ["v"], ["hidden"])]
        previous = "hidden"
        for index in range(120):
            nodes.append(helper.make_node("Identity", [previous], [f"h{index}"]))
            previous = f"h{index}"
        nodes += [helper.make_node("Add", ["v", previous], ["y"])]
        return helper.make_model(
            helper.make_graph(
                nodes,
                "g",
                [helper.make_tensor_value_info("x", 1, ["N"])],
                [helper.make_tensor_value_info("y", 1, ["N"])],
            ),
            opset_imports=[helper.make_opsetid("", 13)],
            ir_version=8,
        )

    report = verify(build("Identity"), build("Neg"), trials=1)
    assert report.divergence is not None
    assert report.divergence.value == "v"


def test_nodes_without_shared_values_are_all_named() -> None:
    def build(names: tuple[str, str], op_type: str) -> ModelProto:
        nodes = [
            helper.make_node("Relu", ["x"], ["shared"], "same"),
            helper.make_node(op_type, ["shared"], [names[0]], "first"),
            helper.make_node("Neg", [names[0]], [names[1]], "second"),
        ]
        return helper.make_model(
            helper.make_graph(
                nodes,
                "g",
                [helper.make_tensor_value_info("x", 1, ["N"])],
                [helper.make_tensor_value_info("y", 1, ["N"])],
            ),
            opset_imports=[helper.make_opsetid("", 13)],
            ir_version=8,
        )

    report = verify(build(("p", "y"), "Exp"), build(("q", "y"), "Relu"))
    assert report.divergence is not None
    assert report.divergence.value == "y"
    assert report.divergence.first_nodes == ("first (Exp)", "second (Neg)")
    assert report.divergence.second_nodes == ("first (Relu)", "second (Neg)")


def test_in_either_executor_and_between_them() -> None:
    first, second = ModelSource(chain(60), "a"), ModelSource(chain(60, 30), "b")
    feeds = {"x": np.ones(2, np.float32)}
    for executors in (("numpy", "numpy"), ("onnxruntime", "numpy")):
        sides = [(s, e) for s, e in zip((first, second), executors, strict=True)]
        found = first_divergence(sides[0], sides[1], "y", feeds, Tolerance())
        assert found is not None
        assert found.value == "v30"


def test_values_inside_a_subgraph_are_told_by_their_node() -> None:
    def build(op_type: str) -> ModelProto:
        text = (
            '<ir_version: 8, opset_import: ["": 13]> g (float[N] x, bool c) => (float[N] y) '
            "{ t = Relu(x) \n u = If(c) <then_branch = a () => (float[N] p) { p = OP(t) }, "
            "else_branch = b () => (float[N] q) { q = OP(t) }> \n y = Abs(u) }"
        )
        return model(text.replace("OP", op_type))

    report = verify(build("Exp"), build("Sqrt"))
    assert report.divergence is not None
    assert report.divergence.value == "u"
    assert report.divergence.first_nodes == ("u (If)",)
