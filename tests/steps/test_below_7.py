"""Below opset 7 no operator but Scan is written as a Loop: it blocks, and says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from onnxreduce_cli import ConversionError, convert
from onnxreduce_cli.model.scope import GRAPH_OPERATORS, scopes
from tests import node_cases
from tests.support import blockers, converts, of_unknown_rank, one_node

MATRIX = np.array([[4.0, 7.0], [2.0, 6.5]])
WHOLE = np.array([2, 3])

#: What is a Loop at opset 7: operator, opset, inputs, inputs of unknown rank.
LOOPS: dict[str, tuple[str, int, dict[str, np.ndarray[Any, Any]], tuple[str, ...]]] = {
    "sums": ("CumSum", 11, {"x": MATRIX, "axis": np.array(1)}, ()),
    "products": ("CumProd", 26, {"x": MATRIX, "axis": np.array(1)}, ()),
    "determinant": ("Det", 11, {"x": MATRIX}, ()),
    "remainder": ("Mod", 28, {"a": MATRIX, "b": MATRIX[::-1].copy()}, ()),
    "whole power": ("Pow", 12, {"a": WHOLE, "b": WHOLE}, ()),
    "unknown rank": ("Softmax", 11, {"x": MATRIX}, ("x",)),
}


def control_flow(model: ModelProto) -> int:
    """How many nodes of a model, and of graphs within it, have graphs."""
    return sum(node.op_type in GRAPH_OPERATORS for scope in scopes(model) for node in scope.nodes)


@pytest.mark.newest
@pytest.mark.parametrize("what", LOOPS)
def test_what_takes_a_loop_blocks(what: str) -> None:
    op_type, opset, feeds, hidden = LOOPS[what]
    options: dict[str, Any] = {"axis": -1} if op_type == "Softmax" else {}
    source = one_node(op_type, opset, feeds, **options)
    if hidden:
        source, feeds = of_unknown_rank(source, feeds, *hidden)
    assert control_flow(converts(source, 7, feeds, in_numpy=True)) > control_flow(source)
    (blocker,) = blockers(source, 6)
    assert blocker.reason.endswith("and below opset 7 none is written")
    assert blocker.advice.startswith("choose opset 7 or later")


def test_no_control_flow_is_added_to_node_cases() -> None:
    converted = 0
    for case in node_cases.cases()[::60]:
        if "scan" in case.name:
            continue
        for target in (6, 4):
            try:
                found = convert(case.model, target, check=False, emulate=True)
            except ConversionError:
                continue
            assert control_flow(found) <= control_flow(case.model), (case.name, target)
            converted += 1
    assert converted >= 10
