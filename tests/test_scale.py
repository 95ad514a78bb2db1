"""Work that grows with a model's size and no faster, counted rather than timed."""

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, SimpleNamespace
from typing import Any

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.engine import inspection, node_converter
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.conversion_request import ConversionInput
from onnxreduce_cli.engine.passes import inlining
from onnxreduce_cli.engine.passes.inlining import inline_functions
from onnxreduce_cli.errors import ConversionError
from onnxreduce_cli.executor import ExecutionError, Executor
from onnxreduce_cli.model.graph.order import misplaced
from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.types import called_types, shape_inference, specialisation
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.skeleton import call_skeleton
from onnxreduce_cli.model.types.specialisation import Specialisation
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole.randomness import random_outputs
from tests.engine.pairs.test_bodies import nested as nested_apart
from tests.support import conversions


def operations(work: Callable[[], object]) -> int:
    """How many bytecode instructions of the package are executed."""
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if event == "call":
            if "onnxreduce_cli" not in frame.f_code.co_filename:
                return None
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
        count += event == "opcode"
        return trace

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(None)
    return count


def graph(nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4])
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    last = helper.make_empty_tensor_value_info(nodes[-1].output[0])
    return helper.make_graph(nodes, "g", [x, c], [last])


def model(nodes: list[onnx.NodeProto], functions: list[onnx.FunctionProto]) -> ModelProto:
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("f", 1)]
    return helper.make_model(graph(nodes), functions=functions, opset_imports=opsets, ir_version=9)


def chain(count: int) -> ModelProto:
    """Nodes in a row: some alike, some not, some that steps ask facts for."""
    nodes, value = [], "x"
    for index in range(count):
        op_type = ("ReduceMean", "Softmax", "Add", "ReduceMax")[index % 4]
        values: dict[str, Any] = {"axes": [1]} if "Reduce" in op_type else {}
        inputs = [value, "x"] if op_type == "Add" else [value]
        nodes.append(helper.make_node(op_type, inputs, [f"v{index}"], name=f"n{index}", **values))
        value = f"v{index}"
    return model(nodes, [])


def functions(count: int) -> ModelProto:
    """Functions, each called once."""
    made, calls = [], []
    for index in range(count):
        body = [
            helper.make_node("ReduceMean", ["a"], ["b"], axes=[1]),
            helper.make_node("Softmax", ["b"], ["c"], axis=1),
        ]
        opset = [helper.make_opsetid("", 13)]
        made.append(helper.make_function("f", f"F{index}", ["a"], ["c"], body, opset))
        calls.append(helper.make_node(f"F{index}", ["x"], [f"y{index}"], domain="f"))
    return model(calls, made)


def branches(count: int) -> ModelProto:
    """Ifs side by side."""
    nodes = []
    for index in range(count):
        arms = {}
        for arm in ("then", "else"):
            inner = helper.make_node("ReduceMean", ["x"], [f"{arm}{index}"], axes=[1])
            info = helper.make_empty_tensor_value_info(f"{arm}{index}")
            arms[f"{arm}_branch"] = helper.make_graph([inner], arm, [], [info])
        nodes.append(helper.make_node("If", ["c"], [f"y{index}"], name=f"if{index}", **arms))
    return model(nodes, [])


def of_one_name(count: int) -> ModelProto:
    """Nodes that all have one name, from which the names of what replaces them derive."""
    nodes = [
        helper.make_node("Softmax", ["x"], [f"y{index}"], name="n", axis=0)
        for index in range(count)
    ]
    return model(nodes, [])


def function(index: int, nodes: list[onnx.NodeProto], **more: Any) -> onnx.FunctionProto:
    """The function ``f.F<index>(a) => (b)``."""
    opsets = [helper.make_opsetid("", 13), helper.make_opsetid("f", 1)]
    return helper.make_function("f", f"F{index}", ["a"], ["b"], nodes, opsets, **more)


def call_of(index: int, source: str, result: str, **values: Any) -> onnx.NodeProto:
    return helper.make_node(f"F{index}", [source], [result], domain="f", **values)


def function_chain(count: int) -> ModelProto:
    """Functions that each call the next one."""
    made = []
    for index in range(count):
        nodes = [helper.make_node("Softmax", ["a"], ["t"], axis=0)]
        nodes.append(call_of(index + 1, "t", "b"))
        made.append(function(index, nodes))
    made.append(function(count, [helper.make_node("Softmax", ["a"], ["b"], axis=0)]))
    return model([call_of(0, "x", "y")], made)


def doubling(count: int) -> ModelProto:
    """Functions that each call the next one twice: the last is called 2 ** `count` times."""
    made = [
        function(index, [call_of(index + 1, "a", "t"), call_of(index + 1, "t", "b")])
        for index in range(count)
    ]
    made.append(function(count, [helper.make_node("Softmax", ["a"], ["b"], axis=0)]))
    return model([call_of(0, "x", "y")], made)


def doubling_references(count: int) -> ModelProto:
    """The same with an attribute that is handed on, or set anew, from call to call."""
    made = []
    for index in range(count):
        nodes = [call_of(index + 1, "a", "t"), call_of(index + 1, "t", "b", axis=index % 2)]
        nodes[0].attribute.append(reference())
        made.append(function(index, nodes, attributes=["axis"]))
    last = helper.make_node("Softmax", ["a"], ["b"])
    last.attribute.append(reference())
    made.append(function(count, [last], attributes=["axis"]))
    return model([call_of(0, "x", "y", axis=0)], made)


def reference() -> onnx.AttributeProto:
    return onnx.AttributeProto(name="axis", ref_attr_name="axis", type=onnx.AttributeProto.INT)


def convert(found: ModelProto, target: int) -> Conversion:
    conversion = Conversion(found, target)
    conversion.plan()
    conversion.apply()
    return conversion


@pytest.mark.parametrize(
    "make", [of_one_name, function_chain, doubling, doubling_references], ids=lambda f: f.__name__
)
def test_twice_a_hostile_model_is_twice_the_work(
    make: Callable[[int], ModelProto], monkeypatch: pytest.MonkeyPatch
) -> None:
    # So few functions are left to onnx otherwise.
    monkeypatch.setattr(called_types, "LIMIT", 0)
    convert(make(5), 12)
    small, large = (operations(lambda n=n: convert(make(n), 12)) for n in (16, 32))
    assert large < 2.3 * small


def test_twice_the_depth_of_graphs_is_little_more_than_twice_the_work() -> None:
    convert(nested_apart(5), 8)
    small, large = (operations(lambda n=n: convert(nested_apart(n), 8)) for n in (14, 28))
    assert large < 2.2 * small


def test_types_reach_the_last_of_doubling_functions() -> None:
    converted = convert(doubling(40), 12).model
    last = converted.functions[-1]
    assert [node.op_type for node in last.node] == ["Transpose", "Softmax", "Transpose"]


@pytest.mark.parametrize("target", [18, 12])
@pytest.mark.parametrize("make", [chain, functions, branches])
def test_four_times_the_model_is_four_times_the_work(
    make: Callable[[int], ModelProto], target: int
) -> None:
    small, large = make(75), make(300)
    convert(make(5), target)  # What is computed once for all models, such as schemas.
    assert operations(lambda: convert(large, target)) < 4.3 * operations(
        lambda: convert(small, target)
    )


@pytest.mark.parametrize("make", [chain, functions, branches])
def test_inspection_of_four_times_the_model_is_four_times_the_work(
    make: Callable[[int], ModelProto],
) -> None:
    small, large = make(20), make(80)
    inspection.inspect(make(5))
    assert operations(lambda: inspection.inspect(large)) < 4.3 * operations(
        lambda: inspection.inspect(small)
    )


def sizes_apart(count: int) -> ModelProto:
    """Functions that each call the next one with two sizes: the last with 2 ** `count`."""
    made = []
    for index in range(count):
        nodes = [
            helper.make_node("Concat", ["a", "a"], ["double"], axis=0),
            helper.make_node("Constant", [], ["one"], value_floats=[0.0]),
            helper.make_node("Concat", ["a", "one"], ["more"], axis=0),
            call_of(index + 1, "double", "s"),
            call_of(index + 1, "more", "t"),
            helper.make_node("Concat", ["s", "t"], ["b"], axis=0),
        ]
        made.append(function(index, nodes))
    made.append(function(count, [helper.make_node("Softmax", ["a"], ["b"])]))
    found = model([call_of(0, "v", "y")], made)
    found.graph.input.append(helper.make_tensor_value_info("v", TensorProto.FLOAT, [2]))
    return found


def test_bodies_are_not_gone_through_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(called_types, "LIMIT", 0)
    monkeypatch.setattr(called_types, "BODIES", 0)
    bodies: list[Any] = []
    monkeypatch.setattr(
        called_types, "call_skeleton", lambda *call: bodies.append(call) or call_skeleton(*call)
    )
    found = sizes_apart(7)
    facts = Facts(found, scopes(found))
    known = facts.type(facts.scopes[0], "y")
    assert known is not None
    assert known.dims is None
    assert len(bodies) == 10 * len(found.functions)


def test_functions_that_have_no_end_of_copies_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialisation, "MOST_NODES", 50)
    monkeypatch.setattr(inlining, "MOST_INLINED_NODES", 50)
    found = sizes_apart(7)
    facts = Facts(found, scopes(found))
    copies = Specialisation(found, facts.scopes, found.functions[-1:], facts)
    assert sum(len(scope.nodes) for scope in copies.scopes) < 150
    given = ConversionInput.of(found, "")
    blocked: Any = SimpleNamespace(blocked_functions=found.functions[-1:])
    assert list(inline_functions(given, blocked)) == []


def einsum(count: int) -> ModelProto:
    """One Einsum of many operands."""
    equation = ",".join(["ijk"] * count) + "->k"
    node = helper.make_node("Einsum", ["x"] * count, ["y"], equation=equation)
    return model([node], [])


def test_twice_the_operands_are_twice_the_work() -> None:
    convert(einsum(2), 11)
    small, large = (operations(lambda n=n: convert(einsum(n), 11)) for n in (50, 100))
    assert large < 2.2 * small


def test_more_operands_than_anybody_writes_block() -> None:
    with pytest.raises(ConversionError, match="it has 101 operands, and no more than 100"):
        convert(einsum(101), 11)


def test_what_bodies_hold_is_inferred_once_for_all_opsets(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[bytes] = Counter()

    def infer(skeleton: ModelProto) -> ModelProto | None:
        counts[skeleton.SerializeToString(deterministic=True)] += 1
        return onnx.shape_inference.infer_shapes(skeleton, data_prop=True)

    monkeypatch.setattr(shape_inference, "_infer_by_onnx", infer)
    body = [helper.make_node("Softmax", ["a"], ["b"], axis=0)]
    made = helper.make_function("f", "F", ["a"], ["b"], body, [helper.make_opsetid("", 13)])
    calls = [helper.make_node("F", [f"x{rank}"], [f"y{rank}"], domain="f") for rank in range(2, 9)]
    found = model(calls, [made])
    for rank in range(2, 9):
        info = helper.make_tensor_value_info(f"x{rank}", TensorProto.FLOAT, [2] * rank)
        found.graph.input.append(info)
    reach = conversions(found)
    # To 12 and below, the function is specialised.
    assert not any(conversion.blockers for conversion in reach)
    assert len(reach[11].plan().specialised) == 1
    assert set(counts.values()) == {1}
    # The graph states all that its calls read: it is not gone through.
    assert len(counts) == 7


def test_onnx_does_not_take_all_names_along_to_each_of_many_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[int] = []

    def infer(skeleton: ModelProto) -> ModelProto | None:
        given.append(len(skeleton.functions))
        return onnx.shape_inference.infer_shapes(skeleton, data_prop=True)

    monkeypatch.setattr(shape_inference, "_infer_by_onnx", infer)
    for names, most in ((100, 10), (99, 0)):
        monkeypatch.setattr(called_types, "NAMES", names)
        found = functions(10)
        facts = Facts(found, scopes(found))
        known = facts.type(facts.scopes[0], "y9")
        assert known is not None
        assert known.dims == (2, 1, 4)
        assert max(given) == most
        given.clear()


def of_rank(rank: int) -> ModelProto:
    """A ReduceSum over data of distinct sizes."""
    info = helper.make_tensor_value_info
    node = helper.make_node("ReduceSum", ["x"], ["y"], axes=[0])
    dims = range(100, 100 + rank)
    inputs, output = [info("x", TensorProto.FLOAT, dims)], [info("y", TensorProto.FLOAT, None)]
    opset = [helper.make_opsetid("", 11)]
    graph = helper.make_graph([node], "g", inputs, output)
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def test_twice_the_rank_is_twice_the_work_of_a_check() -> None:
    def check(rank: int) -> None:
        report = check_sites(Conversion(of_rank(rank), 13))
        assert report.sites == 1

    check(5)
    small, large = (operations(lambda n=n: check(n)) for n in (1200, 2400))
    assert large < 2.3 * small


def test_axes_of_data_of_high_rank_are_not_gone_through_one_by_one() -> None:
    info = helper.make_tensor_value_info
    inputs = [info("x", TensorProto.FLOAT, [1] * 101), info("axes", TensorProto.INT64, [1])]
    node = helper.make_node("ReduceMax", ["x", "axes"], ["y"])
    found = helper.make_graph([node], "g", inputs, [info("y", TensorProto.FLOAT, None)])
    opset = [helper.make_opsetid("", 18)]
    given = helper.make_model(found, opset_imports=opset, ir_version=8)
    assert len(convert(given, 13).model.graph.node) < 100


def test_no_node_becomes_more_than_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_converter, "MOST_EMITTED_NODES", 50)
    info = helper.make_tensor_value_info
    inputs = [info("x", TensorProto.FLOAT, [1] * 30), info("axes", TensorProto.INT64, [1])]
    node = helper.make_node("ReduceMax", ["x", "axes"], ["y"])
    found = helper.make_graph([node], "g", inputs, [info("y", TensorProto.FLOAT, None)])
    opset = [helper.make_opsetid("", 18)]
    with pytest.raises(ConversionError, match="it would become more than 50 nodes"):
        convert(helper.make_model(found, opset_imports=opset, ir_version=8), 13)


@pytest.mark.parametrize("kind", ["undefined", "custom"])
def test_steps_of_a_node_come_to_an_end(kind: str) -> None:
    """A DFT of a signal of which neither rank nor dtype is known."""
    nodes = [helper.make_node("Made", ["x"], ["signal"], domain="f")] if kind == "custom" else []
    nodes.append(helper.make_node("DFT", ["signal"], ["y"], axis=1))
    found = model(nodes, [])
    found.opset_import[0].version = 19
    with pytest.raises(ConversionError, match="DFT node making 'y'"):
        convert(found, 13)


def nested(depth: int) -> ModelProto:
    """Ifs in Ifs."""
    inner = [helper.make_node("Softmax", ["x"], ["y"], name="n", axis=1)]
    for level in range(depth):
        graphs = {}
        for arm in ("then_branch", "else_branch"):
            nodes = inner if arm == "then_branch" else [helper.make_node("Identity", ["x"], ["y"])]
            out = helper.make_empty_tensor_value_info("y")
            graphs[arm] = helper.make_graph(nodes, f"{arm}{level}", [], [out])
        inner = [helper.make_node("If", ["c"], ["y"], **graphs)]
    return model(inner, [])


def test_graphs_within_graphs_are_no_recursion() -> None:
    found = nested(25)
    with recursion(20):
        assert random_outputs(ModelSource(found, "it")) == set()
        assert misplaced([found.graph.node[0]], ["y"]) is None
    with recursion(60), pytest.raises(ExecutionError, match="nest too deeply"):
        Executor(found)


@contextmanager
def recursion(depth: int) -> Iterator[None]:
    """Let no call go deeper than some more frames."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + depth)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)
