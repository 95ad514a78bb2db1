"""Nodes that cannot be there with the inputs that they have: those alike are asked about once."""

from collections.abc import Iterable

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper, parser

from onnxreduce_cli import convert
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model import node_inference, shape_inference


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


@pytest.mark.parametrize(
    ("axes", "count"), [(["one"] * 5, 1), (["one", "same"], 1), (["one", "two"] * 3, 2)]
)
def test_inference_is_asked_once_about_nodes_that_are_alike(
    axes: list[str], count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[NodeProto] = []
    infer = node_inference._infer

    def counted(node: NodeProto, *more: object) -> object:
        asked.append(node)
        return infer(node, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(node_inference, "_infer", counted)
    assert not Conversion(model(paddings(*axes)), 13).blockers
    assert len(asked) == count


def test_a_node_that_differs_in_its_constants_alone_is_refused() -> None:
    with pytest.raises(InvalidModelError, match="n2"):
        Conversion(model(paddings("one", "same", "nine")), 13)


def test_types_that_no_step_needs_are_not_inferred(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(*_: object) -> None:
        pytest.fail("inference was asked")

    monkeypatch.setattr(node_inference, "_infer", asked)
    monkeypatch.setattr(shape_inference, "infer_shapes", asked)
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
