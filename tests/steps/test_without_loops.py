"""Control flow is added for a few operators alone, and not below opset 7; the others block."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from onnx import ModelProto

from onnxreduce_cli import ConversionError, convert, steps
from onnxreduce_cli.engine.emulation import EMULATED, MOST_NODES
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, scopes
from tests import node_cases
from tests.support import blockers, converts, of_unknown_rank, one_node

MATRIX = np.array([[4.0, 7.0], [2.0, 6.5]])
WHOLE = np.array([2, 3])
FLAGS = np.array([True, False])
IMAGE = np.ones((1, 1, 4, 4), np.float32)
REGIONS = {"x": IMAGE, "rois": np.ones((1, 4), np.float32), "batch": np.array([0])}
BOXES = {"boxes": np.ones((1, 3, 4), np.float32), "scores": np.ones((1, 2, 3), np.float32)}
TOKENS = {name: np.ones((1, 2, 4), np.float32) for name in ("q", "k", "v")}


class Case(NamedTuple):
    """A node that only control flow could stand for below an opset.

    Attributes:
        op_type: the operator.
        opset: the model's opset.
        feeds: its inputs.
        since: the oldest opset at which it can be converted.
        reason: what the blocker says.
        options: attributes and what else `one_node` takes.
    """

    op_type: str
    opset: int
    feeds: dict[str, np.ndarray[Any, Any]]
    since: int
    reason: str
    options: dict[str, Any] = {}  # noqa: RUF012 - never changed


AXIS = {"x": MATRIX, "axis": np.array(1)}
STEP_BY_STEP = "only a Loop or a Scan multiplies along an axis step by step"
CASES = {
    "sums": Case("CumSum", 14, AXIS, 11, "its axis is only known at run time"),
    "products": Case("CumProd", 26, AXIS, 26, f"before opset 26 {STEP_BY_STEP}"),
    "determinant": Case(
        "Det", 11, {"x": MATRIX}, 11, "only a Loop or a Scan eliminates the columns of a matrix"
    ),
    "not zero": Case(
        "NonZero", 9, {"x": MATRIX}, 9, "only a Loop or a Scan finds the elements that are not zero"
    ),
    "selected": Case(
        "Compress", 9, {"x": MATRIX, "c": FLAGS}, 9, "finds the elements that a condition selects"
    ),
    "boxes": Case("NonMaxSuppression", 11, BOXES, 10, "selects boxes one after the other"),
    "regions": Case(
        "RoiAlign",
        16,
        REGIONS,
        10,
        "goes through regions of interest",
        {"coordinate_transformation_mode": "output_half_pixel"},
    ),
    "shifted regions": Case(
        "RoiAlign", 16, REGIONS, 16, "before opset 16 its regions are not shifted by half a pixel"
    ),
    "tokens": Case(
        "LinearAttention",
        27,
        TOKENS,
        27,
        "before opset 27 only a Loop or a Scan updates a state token by token",
        {"q_num_heads": 1, "kv_num_heads": 1, "outputs": 2, "update_rule": "linear"},
    ),
    "remainder": Case(
        "Mod",
        13,
        {"a": MATRIX, "b": MATRIX[::-1].copy()},
        10,
        "before opset 10 only a Loop computes the exact remainders of doubles",
        {"fmod": 1},
    ),
    "whole power": Case(
        "Pow", 12, {"a": WHOLE, "b": WHOLE}, 12, "only a Loop computes such powers of int64"
    ),
    "slices": Case(
        "Unique",
        11,
        {"x": MATRIX},
        11,
        "before opset 11 only a Loop or a Scan sorts slices",
        {"axis": 0, "output_shapes": [[None, None]]},
    ),
    "inverse": Case(
        "Unique",
        11,
        {"x": MATRIX},
        11,
        "only a Loop or a Scan numbers the elements of its output inverse_indices",
        {"outputs": 3},
    ),
    "counting": Case(
        "Range",
        11,
        {"start": np.array(0), "limit": np.array(4), "delta": np.array(1)},
        9,
        "a size is only known at run time, and before opset 9 only a Loop counts up to it",
        {"output_shapes": [[None]]},
    ),
}


def control_flow(model: ModelProto) -> int:
    """How many nodes of a model, and of graphs within it, have graphs."""
    return sum(node.op_type in GRAPH_OPERATORS for scope in scopes(model) for node in scope.nodes)


@pytest.mark.newest
@pytest.mark.parametrize("what", CASES)
def test_what_takes_control_flow_blocks(what: str) -> None:
    case = CASES[what]
    source = one_node(case.op_type, case.opset, case.feeds, **case.options)
    for emulate in (True, False):
        (blocker,) = blockers(source, case.since - 1, emulate=emulate)
        assert case.reason in blocker.reason
        assert blocker.advice.startswith(f"choose opset {case.since} or later")
    if case.since < case.opset:
        found = converts(source, case.since, case.feeds, in_numpy=True)
        assert not control_flow(found)


def test_a_rank_that_only_a_loop_would_change() -> None:
    feeds = {"x": np.ones((1, 3), np.float32), "shape": np.array([2, 3])}
    source, hidden = of_unknown_rank(one_node("Expand", 8, feeds), feeds, "x")
    (blocker,) = blockers(source, 7)
    assert "is not known, and before opset 8 only a Loop gives both one rank" in blocker.reason
    assert "choose opset 8 or later, or state the shapes" in blocker.advice
    pair = {"x": np.ones((2, 3), np.float32), "y": np.ones(3, np.float32)}
    source, hidden = of_unknown_rank(one_node("Max", 8, pair), pair, "x")
    assert hidden
    (blocker,) = blockers(source, 7)
    assert "before opset 8 nothing gives values of unknown ranks one rank" in blocker.reason


@pytest.mark.newest
def test_the_family_has_loops_down_to_opset_7() -> None:
    feeds = {"x": MATRIX}
    source, feeds = of_unknown_rank(one_node("Softmax", 11, feeds, axis=-1), feeds, "x")
    found = converts(source, 7, feeds, in_numpy=True)
    assert control_flow(found) > control_flow(source)
    (blocker,) = blockers(source, 6)
    assert "is not known: only a Loop gives the result its shape" in blocker.reason
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


def test_operators_that_are_not_emulated_gain_none() -> None:
    converted = 0
    for case in node_cases.cases()[::20]:
        if EMULATED.union(GRAPH_OPERATORS, {"Identity"}).intersection(op_types_of(case.model)):
            continue
        for target in (13, 9, 7):
            if any("Sequence" in op_type for op_type in op_types_of(case.model)):
                continue
            try:
                found = convert(case.model, target, check=False, emulate=True)
            except ConversionError:
                continue
            assert not control_flow(found), (case.name, target)
            converted += 1
    assert converted >= 50


def op_types_of(model: ModelProto) -> set[str]:
    return {node.op_type for scope in scopes(model) for node in scope.nodes}


def test_few_modules_of_steps_write_control_flow() -> None:
    """Those of the family and of scatters with a reduction, and of what has graphs itself."""
    found = set()
    root = Path(next(iter(steps.__path__)))
    for path in root.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "onnxreduce_cli.emit.loops":
                found.add(path.relative_to(root).as_posix())
    assert {path.relative_to(root).as_posix() for path in root.rglob("emulated_*.py")} < found
    assert {name for name in found if not name.startswith("control_flow/")} == {
        "indexing/emulated_scatter_reductions.py",
        "reduction/emulated_reduce_rank.py",
        "reduction/emulated_softmax.py",
        "reduction/reduce_sum_13_others_18.py",
        "shape/expand_constant_of_shape.py",
    }


def test_contributors_are_told_how_many_nodes_there_may_be() -> None:
    text = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert f"at most {MOST_NODES} nodes for one" in text
