"""What goes once its value has moved into an attribute, and what must stay."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import onnxreduce_cli
from tests.support import converts, model, op_types

X = {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4)}
OPSET_18 = '<ir_version: 8, opset_import: ["" : 18]>'


def left(found: ModelProto) -> list[str]:
    return [tensor.name for tensor in found.graph.initializer]


def test_an_initializer_that_only_replaced_nodes_read_goes() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x) => (float[2,1,4] y, float[2,1,4] z) <int64[1] axes = {{1}}> {{
            y = ReduceMax(x, axes)
            z = ReduceMin(x, axes)
        }}""")
    result = converts(source, 13, X, exact=True)
    assert left(result) == []
    assert onnxreduce_cli.plan(source, 13).removed == ("axes",)


def test_one_that_an_unchanged_node_reads_stays() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x) => (float[2,1,4] y, float[2,1,3,4] z) <int64[1] axes = {{1}}> {{
            y = ReduceMax(x, axes)
            z = Unsqueeze(x, axes)
        }}""")
    assert left(converts(source, 13, X, exact=True)) == ["axes"]
    # Below 13 Unsqueeze has them as an attribute too.
    assert left(converts(source, 11, X, exact=True)) == []


def test_one_that_another_node_needs_as_data_stays() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x) => (float[2,1,4] y, int64[1] z) <int64[1] axes = {{1}}> {{
            y = ReduceMax(x, axes)
            z = Neg(axes)
        }}""")
    assert left(converts(source, 9, X, exact=True)) == ["axes"]


@pytest.mark.parametrize("alike", [1, 2, 3, 60])
@pytest.mark.parametrize("readers", [0, 1, 2])
def test_what_many_nodes_read_no_longer_stays_while_another_reads_it(
    alike: int, readers: int
) -> None:
    nodes = "".join(f"r{i} = ReduceMax(x, axes) " for i in range(alike))
    nodes += "".join(f"n{i} = Neg(axes) " for i in range(readers))
    outputs = [f"float[2,1,4] r{i}" for i in range(alike)]
    outputs += [f"int64[1] n{i}" for i in range(readers)]
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x) => ({", ".join(outputs)}) <int64[1] axes = {{1}}> {{ {nodes} }}""")
    assert left(converts(source, 13, X, exact=True)) == (["axes"] if readers else [])


def test_a_graph_output_stays() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x) => (float[2,1,4] y, int64[1] axes) {{
            axes = Constant<value = int64[1] {{1}}>()
            y = ReduceMax(x, axes)
        }}""")
    assert op_types(converts(source, 13, X, exact=True)) == ["Constant", "ReduceMax"]


def test_an_initializer_that_is_a_graph_output_stays() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x) => (float[2,1,4] y, int64[1] axes) <int64[1] axes = {{1}}> {{
            y = ReduceMax(x, axes)
        }}""")
    assert left(converts(source, 13, X, exact=True)) == ["axes"]


def test_an_unread_initializer_of_the_users_own_stays() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x) => (float[2,1,4] y)
        <int64[1] axes = {{1}}, int64[1] unread = {{1}}> {{
            y = ReduceMax(x, axes)
        }}""")
    assert left(converts(source, 13, X, exact=True)) == ["unread"]


def test_a_whole_chain_of_computation_goes() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x) => (float[2,3] y) <int64[1] one = {{1}}, int64 zero = {{0}}> {{
            shape = Shape(x)
            rank = Shape(shape)
            last = Sub(rank, one)
            scalar = Squeeze(last)
            first = Constant<value_ints = [0]>()
            axes = Unsqueeze(scalar, first)
            y = ReduceMax<keepdims = 0>(x, axes)
        }}""")
    # From 12 down nodes of the chain would be rewritten themselves; they go all the same.
    for target in (17, 12, 11, 8, 5):
        result = converts(source, target, X, exact=True)
        assert op_types(result) == ["ReduceMax"], target
        assert left(result) == ["zero"], "unread from the start"


@pytest.mark.parametrize("target", [13, 12, 11, 10, 9, 8, 7, 5])
def test_a_constant_that_would_be_rewritten_goes(target: int) -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x) => (float[2,3] y) {{
            axes = Constant<value_ints = [-1]>()
            y = ReduceMax<keepdims = 0>(x, axes)
        }}""")
    result = converts(source, target, X, exact=True)
    assert op_types(result) == ["ReduceMax"]
    assert left(result) == []


def test_a_chain_that_cannot_be_converted_is_no_obstacle() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x) => (float[2] y)
        <int64 one = {{1}}, int64 three = {{3}}> {{
            axes = Range(one, three, one)
            y = ReduceMax<keepdims = 0>(x, axes)
        }}""")
    result = converts(source, 9, X, exact=True)
    assert op_types(result) == ["ReduceMax"]
    assert left(result) == []


def test_a_node_with_another_output_in_use_stays() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x, int64[2] both) => (float[2,3] y, int64[1] other)
        <int64[1] one = {{1}}> {{
            axes, other = TopK<axis = 0>(both, one)
            y = ReduceSum<keepdims = 0>(x, axes)
        }}""")
    feeds = X | {"both": np.array([1, 2])}
    assert op_types(converts(source, 13, feeds, exact=True))[0] == "TopK"


def test_what_a_branch_reads_stays() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x, bool c) => (float[2,1,4] y, int64[1] z) <int64[1] axes = {{1}}> {{
            y = ReduceMax(x, axes)
            z = If (c) <
                then_branch = t () => (int64[1] a) {{ a = Identity(axes) }},
                else_branch = e () => (int64[1] b) {{ b = Neg(axes) }}
            >
        }}""")
    result = converts(source, 13, X | {"c": np.array(True)}, X | {"c": np.array(False)}, exact=True)
    assert left(result) == ["axes"]


def test_axes_of_an_outer_scope_go_when_both_branches_have_theirs() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x, bool c) => (float[2,1,4] y) <int64[1] axes = {{1}}> {{
            y = If (c) <
                then_branch = t () => (float[2,1,4] a) {{ a = ReduceMax(x, axes) }},
                else_branch = e () => (float[2,1,4] a) {{ a = ReduceMin(x, axes) }}
            >
        }}""")
    result = converts(source, 13, X | {"c": np.array(True)}, X | {"c": np.array(False)}, exact=True)
    assert left(result) == []


def test_what_the_training_graphs_read_stays() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x) => (float[2,1,4] y) <int64[1] axes = {{1}}> {{
            y = ReduceMax(x, axes)
        }}""")
    algorithm = onnx.parser.parse_graph("algorithm () => (int64[1] z) { z = Neg(axes) }")
    source.training_info.add().algorithm.CopyFrom(algorithm)
    assert left(onnxreduce_cli.convert(source, 13)) == ["axes"]


def test_what_a_training_binding_names_stays() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x) => (float[2,1,4] y) <int64[1] axes = {{1}}> {{
            y = ReduceMax(x, axes)
        }}""")
    training = source.training_info.add()
    training.initialization_binding.add(key="axes", value="start")
    assert left(onnxreduce_cli.convert(source, 13)) == ["axes"]


def test_what_is_said_of_a_value_that_goes_goes_with_it() -> None:
    source = model(f"""{OPSET_18}
        g (float[2,3,4] x) => (float[2,1,4] y) <int64[1] axes_1 = {{1}}, float[2,1,4] top> {{
            axes = Identity(axes_1)
            top = ReduceMax(x, axes)
            y = Neg(top)
        }}""")
    source.graph.value_info.append(onnx.helper.make_tensor_value_info("axes", 7, [1]))
    result = converts(source, 13, X, exact=True)
    assert [info.name for info in result.graph.value_info] == ["top"]


def test_a_constant_in_a_function_goes() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[2,3,4] x) => (float[2,1,4] y) { y = local.F(x) }
        <domain: "local", opset_import: ["" : 18]>
        F (a) => (b) {
            axes = Constant<value_ints = [1]>()
            b = ReduceMax(a, axes)
        }""")
    result = converts(source, 13, X, exact=True)
    assert [node.op_type for node in result.functions[0].node] == ["ReduceMax"]
