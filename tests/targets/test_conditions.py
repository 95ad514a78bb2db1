"""Each question of a condition, asked of nodes that meet it, miss it, or leave it open."""

from __future__ import annotations

import onnx
import pytest

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.targets.conditions import ASKS, condition_of_table
from onnxreduce_cli.targets.verdict import default_domain_nodes

#: Models by a name; the last node is asked.
NODES = {
    "pool": "(float[1,3,8,8] x) => (y) { y = MaxPool<kernel_shape = [2, 2]>(x) }",
    "dilated": "(float[1,3,8,8] x) => (y) { y = MaxPool<kernel_shape = [2, 2], "
    "dilations = [1, 2]>(x) }",
    "indices": "(float[1,3,8,8] x) => (y) { y, i = MaxPool<kernel_shape = [2, 2]>(x) }",
    "unknown": "(x) => (y) { y = MaxPool<kernel_shape = [2, 2]>(x) }",
    "squeeze": "(float[1,3] x, int64[1] a) => (y) { y = Squeeze(x, a) }",
    "squeezed": "(float[1,3] x) => (y) { a = Constant<value_ints = [0]>() y = Squeeze(x, a) }",
    "all": "(float[1,3] x) => (y) { y = Squeeze(x) }",
    "by shape": "(float[1,3] x, float[N] z) => (y) { s = Shape(z) a = Sub(s, s) "
    "y = Squeeze(x, a) }",
    "softmax": "(float[1,3] x) => (y) { y = Softmax<axis = 1>(x) }",
    "first": "(float16[1,3] x) => (y) { y = Softmax<axis = 0>(x) }",
    "dynamic": "(double[N,3] x) => (y) { y = Softmax(x) }",
    "resize": '(float[1,1,2,2] x, float[4] s) => (y) { y = Resize<mode = "linear">(x, , s) }',
    "elu": "(float[3] x) => (y) { y = Elu<alpha = 0.5>(x) }",
    "dequantized": "(float[1,1,4,4] x) => (y) { q = Constant<value = int8[1,1,1,1] {1}>() "
    "s = Constant<value_float = 0.5>() w = DequantizeLinear(q, s) y = Conv(x, w) }",
}


def node(name: str) -> NodeFacts:
    """The last node of a model."""
    text = f'<ir_version: 8, opset_import: ["": 13]> g {NODES[name]}'
    *_, found = default_domain_nodes(admit(onnx.parser.parse_model(text)))
    return found


QUESTIONS = [
    ("rank 0 = 4-5", "pool", True),
    ("rank 0 = 2 3", "pool", False),
    ("rank 0 = 4", "unknown", None),
    ("constant 1", "squeeze", False),
    ("constant 1", "squeezed", True),
    ("constant 1", "all", True),
    ("constant 1", "by shape", None),
    ("constant 1", "dequantized", True),
    ("constant 0", "dequantized", False),
    ("absent 1", "all", True),
    ("absent 1", "squeeze", False),
    ("inputs = 2", "squeeze", True),
    ("inputs = 2", "all", False),
    ("outputs = 1", "pool", True),
    ("outputs = 1", "indices", False),
    ("dtype 0 = float16 float", "softmax", True),
    ("dtype 0 = float16 float", "dynamic", False),
    ("dtype 0 = float16 float", "unknown", None),
    ("dtype 1 = int64", "all", True),
    ("attribute dilations = 1 absent", "pool", True),
    ("attribute dilations = 1", "pool", False),
    ("attribute dilations = 1 absent", "dilated", False),
    ("attribute dilations = 1-2", "dilated", True),
    ("attribute storage_order = 0", "pool", True),
    ("attribute mode = linear nearest", "resize", True),
    ("attribute mode = cubic", "resize", False),
    ("attribute nearest_mode = round_prefer_floor", "resize", True),
    ("attribute axis = last", "softmax", True),
    ("attribute axis = last", "first", False),
    ("attribute axis = last", "dynamic", True),
    ("attribute axis = 0 last", "first", True),
    ("attribute alpha = 0.5", "elu", True),
    ("attribute alpha = 1 absent", "elu", False),
    ("elements 1 = 0-", "squeezed", True),
    ("elements 1 = 1-", "squeezed", False),
    ("elements 1 = 0-", "squeeze", None),
    ("elements 1 = 5", "all", True),
    ("static 0", "softmax", True),
    ("static 0", "dynamic", False),
    ("static 0", "unknown", None),
    ("unless rank 0 = 4", "pool", True),
    ("unless rank 0 = 5", "pool", None),
    ("unless rank 0 = 5\nconstant 0", "pool", False),
    ("rank 0 = 4\noutputs = 1", "indices", False),
    ("rank 0 = 4\noutputs = 1", "unknown", None),
    ("", "pool", None),
]


@pytest.mark.parametrize(("ask", "name", "holds"), QUESTIONS)
def test_a_question(ask: str, name: str, holds: bool | None) -> None:
    assert condition_of_table("c", {"text": "words", "ask": ask}).holds(node(name)) is holds


def test_each_question_is_asked() -> None:
    words = {
        line.removeprefix("unless ").split()[0]
        for ask, *_ in QUESTIONS
        if ask
        for line in ask.splitlines()
    }
    assert words == set(ASKS)


def test_an_attribute_that_calls_of_a_function_set_differently_is_not_known() -> None:
    text = """<ir_version: 8, opset_import: ["": 13, "own": 1]>
    g (float[1,3] x) => (y, z) { y = own.f<axis = 0>(x) z = own.f<axis = 1>(x) }
    <domain: "own", opset_import: ["": 13]>
    f <axis> (a) => (b) { b = Softmax<axis: int = @axis>(a) }"""
    (found,) = default_domain_nodes(admit(onnx.parser.parse_model(text)))
    asked = condition_of_table("c", {"text": "words", "ask": "attribute axis = 1"})
    assert asked.holds(found) is None
