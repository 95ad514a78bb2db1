"""What is said of a node by comparing it with what takes its place."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto

import onnxreduce_cli
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.model.graph.scope import scopes
from tests.golden.forms import cases

SAMPLES = Path(__file__).parents[2] / "samples"

AXES = "<int64[1] a = {-1}>"


def graph(opset: int, node: str, inputs: str = "float[2,3,4] x", constants: str = "") -> ModelProto:
    """A model of one node, of which no shape is known."""
    found = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g ({inputs}) => (float y) {constants} {{ [n] y = {node} }}"""
    )
    found.graph.output[0].type.tensor_type.ClearField("shape")
    return found


@pytest.mark.parametrize(
    ("given", "target", "edits"),
    [
        (graph(18, "ReduceMean(x, a)", constants=AXES), 13, ("axes [-1] → attribute",)),
        (graph(18, "ReduceMean(x, a)", constants=AXES), 9, ("axes [2] → attribute",)),
        (graph(13, "ReduceMean<axes = [1]>(x)"), 18, ("axes [1] → input",)),
        (graph(11, "ReduceMean<axes = [-1]>(x)"), 9, ("axes [-1] → [2]",)),
        (graph(14, "Reshape<allowzero = 0>(x, a)", constants=AXES), 13, ("allowzero=0 dropped",)),
        (graph(9, "Add(x, s)", constants="<float[1] s = {1}>"), 6, ("broadcast=1 added",)),
        (
            graph(9, "Add(s, x)", constants="<float[1] s = {1}>"),
            6,
            ("broadcast=1 added", "inputs in another order"),
        ),
        (graph(11, "Clip(x, l)", constants="<float l = {0}>"), 10, ("min 0 → attribute",)),
        (graph(9, "Clip<max = 6.0>(x)"), 11, ("max 6 → input",)),
        (graph(18, "Pad(x, p, , a)", constants=f"<int64[2] p = {{0, 1}}, {AXES[1:]}"), 17,
         ("input axes dropped", "input pads → [0, 0, 0, 0, 0, 1]")),
        (
            graph(20, 'GridSample<mode = "linear">(x, v)', "float[1,1,4,4] x, float[1,2,2,2] v"),
            19,
            ('mode "linear" → "bilinear"',),
        ),
        (graph(10, "Dropout<ratio = 0.25>(x)"), 12, ("ratio 0.25 → input",)),
        (graph(9, "Slice<starts = [0], ends = [9223372036854775807]>(x)"), 10,
         ("starts [0] → input", "ends [9223372036854775807] → input")),
        (graph(18, "Mish(x)"), 17, ()),
    ],
)  # fmt: skip
def test_each_difference_is_named(given: ModelProto, target: int, edits: tuple[str, ...]) -> None:
    (change,) = onnxreduce_cli.plan(given, target).changes
    assert change.edits == edits


def test_a_node_that_is_as_it_was_is_no_change() -> None:
    """An empty list of axes at 18 is that of 13 as well: nothing is dropped, nothing said."""
    assert not onnxreduce_cli.plan(graph(18, "ReduceMean(x)"), 13).changes


SCATTER = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[4] x, int64[4] i, float[4] u, bool c) => (float[4] y) {
        [n] s = ScatterElements<reduction = "min">(x, i, u)
        y = If(c) <then_branch = t () => (float[4] a) <float[1] one = {1}> { a = Add(s, one) },
            else_branch = e () => (float[4] b) { b = ThresholdedRelu(s) }>
    }"""


@pytest.mark.parametrize("target", [7, 8, 9, 12, 17, 21])
def test_how_many_nodes_there_will_be(target: int) -> None:
    """In graphs within, in functions, and at IR version 3, where constants within are nodes."""
    given = [onnx.parser.parse_model(SCATTER)]
    given += [onnx.load(path) for path in sorted(SAMPLES.glob("*.onnx"))]
    given += [built for op in ("ReduceMax", "Softmax") for _, built, _ in cases(op)]
    for item in given:
        plan = (conversion := Conversion(item, target, Options(emulate=True))).plan()
        before = sum(len(scope.nodes) for scope in scopes(item))
        conversion.apply()
        after = sum(len(scope.nodes) for scope in scopes(item))
        assert (before, after) == (plan.nodes, plan.target_nodes)
