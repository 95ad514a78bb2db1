"""Nodes that cannot be there with the inputs that they have."""

from collections.abc import Iterable

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser

from onnxreduce_cli import convert
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.types import node_inference, run_time_sizes
from tests.support import conversions


def model(nodes: Iterable[NodeProto]) -> ModelProto:
    """Nodes of opset 18 that read ``x``, of rank 3, and lists of one axis."""
    info = helper.make_tensor_value_info
    nodes = list(nodes)
    lists = {"one": [1], "same": [1], "two": [2], "nine": [9], "pads": [0, 1]}
    graph = helper.make_graph(
        nodes,
        "g",
        [info("x", TensorProto.FLOAT, [2, 3, 4])],
        [info(node.output[0], TensorProto.FLOAT, None) for node in nodes],
        [numpy_helper.from_array(np.array(values), name) for name, values in lists.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def paddings(*axes: str) -> list[NodeProto]:
    """What needs to know the rank of ``x`` below opset 18."""
    return [
        helper.make_node("Pad", ["x", "pads", "", name], [f"y{place}"], name=f"n{place}")
        for place, name in enumerate(axes)
    ]


def test_inference_is_asked_once_about_a_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the opsets that the model is taken to, and once for nodes that are equal."""
    asked: list[NodeProto] = []
    infer = node_inference.infer_from

    def counted(node: NodeProto, *more: object) -> object:
        asked.append(node)
        return infer(node, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(node_inference, "infer_from", counted)
    found = conversions(model(paddings("one", "same", "two")))
    assert not any(conversion.blockers for conversion in found[10:])
    assert sorted(node.name for node in asked) == ["n0", "n2"]


def test_equal_nodes_are_inferred_once(monkeypatch: pytest.MonkeyPatch) -> None:
    inferred: list[NodeProto] = []
    infer = node_inference._infer

    def counted(node: NodeProto, *more: object) -> object:
        inferred.append(node)
        return infer(node, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(node_inference, "_infer", counted)
    found = conversions(model(paddings("one", "one", "two", "one")))
    assert not any(conversion.blockers for conversion in found[10:])
    assert sorted(node.name for node in inferred) == ["n0", "n2"]


def test_a_node_that_differs_in_its_constants_alone_is_refused() -> None:
    with pytest.raises(InvalidModelError, match="n2"):
        Conversion(model(paddings("one", "same", "nine")), 13)


def test_types_that_no_step_needs_are_not_inferred(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> None:
        pytest.fail("inference was asked")

    monkeypatch.setattr(node_inference, "infer_from", asked)
    monkeypatch.setattr(run_time_sizes, "infer_shapes", asked)
    nodes = [helper.make_node("ReduceMax", ["x", "one"], ["y"])]
    found = Conversion(model(nodes), 13)
    assert [site.result[0].op_type for site in found.sites] == ["ReduceMax"]


def test_a_split_that_a_call_gives_fewer_parts_than_outputs() -> None:
    """The gate cannot see it in the function, and onnx ends the process where it is inlined."""
    found = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18, "f" : 1]>
        g (float[6] x) => (float[a] y, float[b] z) { y, z = f.halves<n = 1>(x) }
        <domain: "f", opset_import: ["" : 18]>
        halves <n> (x) => (p, q) { p, q = Split<num_outputs: int = @n>(x) }"""
    )
    with pytest.raises(InvalidModelError, match="'num_outputs' is 1, and it has 2 outputs"):
        convert(found, 13)


#: Nodes of ``x``, some of whose inputs are no lists or no numbers, though they must be.
OF_ANOTHER_FORM = {
    "Pad (x, table)": "'table' must be a list, and it has shape .2, 2.",
    "Pad (x, pads, none)": "'none' must be one number, and it has shape .0.",
    "Pad (x, pads, , scalar)": "'scalar' must be a list, and it has shape ..;",
    "Pad (x, pads, , table)": "'table' must be a list",
    "Resize (x, , scales)": "'scales' must be a list",
    "Resize (x, , , scalar)": "'scalar' must be a list",
    "CumSum (x, none)": "'none' must be one number",
    "OneHot (pads, none, values)": "'none' must be one number",
    "Clip (x, nothing)": "'nothing' must be one number",
    "NonMaxSuppression (x, x, none)": "'none' must be one number",
    "AffineGrid (x, table)": "'table' must be a list",
}


@pytest.mark.parametrize("rank_is_known", [True, False])
@pytest.mark.parametrize("text", OF_ANOTHER_FORM)
def test_lists_and_numbers_that_are_of_another_form(text: str, rank_is_known: bool) -> None:
    shape = "[a,b,c]" if rank_is_known else "[]"
    found = parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 20]>
        g (float{shape} x) => (y) <int64[2,2] table = {{0, 0, 0, 0}}, int64 scalar = {{0}},
            int64[0] none = {{}}, float[0] nothing = {{}}, int64[6] pads = {{0, 0, 0, 0, 0, 0}},
            float[1,3] scales = {{1, 1, 2}}, float[2] values = {{0, 1}}> {{ y = {text} }}""")
    if not rank_is_known:
        found.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(InvalidModelError, match=OF_ANOTHER_FORM[text]):
        convert(found, 8, check=False, emulate=True)


def test_numbers_in_lists_of_one_and_axes_of_rank_0_are_as_runtimes_take_them() -> None:
    found = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,1] x) => (y, z, w) <int64 axis = {1}, int64[2] pads = {1, 0},
            float[1] one = {1}, int64[1] first = {0}> {
            y = Squeeze (x, axis) z = Pad (x, pads, one, first) w = CumSum (x, first) }""")
    assert {item.node.op_type for item in Conversion(found, 10, Options(emulate=True)).sites} >= {
        "Pad"
    }


@pytest.mark.parametrize("number", [0, -1])
def test_attributes_that_count_nothing(number: int) -> None:
    found = parser.parse_model(f"""<ir_version: 9, opset_import: ["" : 19]>
        g (float[1,2,3,3] x, float[1,2,2,2] w, float[1,8,2,2] offset) => (y) {{
            y = DeformConv <kernel_shape = [2, 2], offset_group = {number}> (x, w, offset) }}""")
    with pytest.raises(InvalidModelError, match="'offset_group' must be at least 1, and it is"):
        convert(found, 13, check=False, emulate=True)
