"""Emulations: control flow that was not there, or very many nodes for one, only where asked for."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from onnxreduce_cli import ConversionError, convert, plan
from onnxreduce_cli.engine import emulation
from onnxreduce_cli.report.plan import plan_text
from tests.conftest import Result
from tests.support import as_converted, assert_same, model, one_node, op_types, run

FEEDS = {
    "x": np.arange(4, dtype=np.float32),
    "i": np.array([[1], [1], [3]]),
    "u": np.array([5, 2, 9], np.float32),
}


def scatter(reduction: str) -> ModelProto:
    return one_node("ScatterND", 18, FEEDS, reduction=reduction)


def reduction(opset: int) -> ModelProto:
    """A mean over axes that are only known at run time."""
    return model(
        f"""<ir_version: 8, opset_import: ["" : {opset}]>
        g (float[2, 3, 4] x, int64[n] axes) => (float[p, q, r] y) {{
            y = ReduceMean<keepdims=1> (x, axes)
        }}"""
    )


def control_flow(found: ModelProto) -> set[str]:
    return {"If", "Loop", "Scan"}.intersection(op_types(found))


def test_an_emulation_blocks() -> None:
    source = scatter("max")
    with pytest.raises(ConversionError) as caught:
        convert(source, 13)
    (blocker,) = caught.value.blockers
    assert blocker.op_type == "ScatterND"
    expected = r"it can only be emulated at opset 13: a Loop over its indices; \d+ nodes"
    assert re.fullmatch(expected, blocker.reason)
    assert blocker.advice == "--emulate accepts that, or choose a later opset"
    assert plan(source, 13).blockers == (blocker,)
    assert source == scatter("max")


def test_an_emulation_is_done_where_it_is_wanted() -> None:
    source = scatter("max")
    result = convert(source, 13, emulate=True)
    assert control_flow(result) == {"Loop"}
    assert_same(run(source, FEEDS)["y0"], run(result, FEEDS)["y0"])
    (change,) = plan(source, 13, emulate=True).changes
    assert change.edits == ("a Loop over its indices",)
    assert change.control_flow == ("Loop",)


@pytest.mark.parametrize("source", [scatter("none"), scatter("add")])
def test_what_is_no_emulation_is_done_and_not_told(source: ModelProto) -> None:
    for change in plan(source, 16).changes:
        assert not change.warnings
        assert not change.control_flow


def test_many_nodes_are_told() -> None:
    feeds = {
        "x": np.ones((1, 2, 4, 5), np.float32),
        "grid": np.zeros((1, 3, 3, 2), np.float32),
    }
    source = one_node("GridSample", 16, feeds)
    found = plan(source, 15)
    (change,) = found.changes
    assert change.nodes == len(change.result) > emulation.MANY_NODES
    assert f"up to {change.nodes} nodes for one GridSample" in plan_text(as_converted(found))
    assert not change.warnings
    assert not control_flow(convert(source, 15, check=False))


def test_very_many_nodes_block(monkeypatch: pytest.MonkeyPatch) -> None:
    feeds = {
        "x": np.ones((1, 2, 4, 5), np.float32),
        "grid": np.zeros((1, 3, 3, 2), np.float32),
    }
    source = one_node("GridSample", 16, feeds)
    monkeypatch.setattr(emulation, "MOST_NODES", 40)
    for emulate in (False, True):
        (blocker,) = plan(source, 15, emulate=emulate).blockers
        assert re.fullmatch(r"it would take \d+ nodes, more than 40, at opset 15", blocker.reason)
        assert blocker.advice == "choose a later opset"


def test_the_family_is_exempt_from_opset_11_on() -> None:
    source = reduction(18)
    feeds: dict[str, Any] = {
        "x": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
        "axes": np.array([0, 2]),
    }
    result = convert(source, 11)
    assert control_flow(result) == {"If"}
    assert_same(run(source, feeds)["y"], run(result, feeds)["y"])
    assert "control flow added: 3 If, for" in plan_text(as_converted(plan(source, 11)))
    (blocker,) = plan(source, 10).blockers
    assert "it can only be emulated at opset 10" in blocker.reason


def test_control_flow_that_was_there_is_none_that_is_brought() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["" : 13]> g (float[2] x, bool c) => (float[2] y) {
            y = If (c) <
                then_branch = a () => (float[2] t) { t = Abs (x) },
                else_branch = b () => (float[2] e) { e = Neg (x) }
            >
        }"""
    )
    assert plan(source, 10).possible


def test_on_the_command_line(onnxreduce: Callable[..., Result], tmp_path: Path) -> None:
    path, target = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(scatter("max"), path)
    arguments = ["convert", path, "--opset", 13, "-o", target]
    refused = onnxreduce(*arguments)
    assert refused.code == 1
    assert "--emulate accepts that" in refused.err
    assert not target.exists()
    assert onnxreduce(*arguments, "--emulate").code == 0
    assert control_flow(onnx.load(target)) == {"Loop"}
    assert "--emulate accepts that" in onnxreduce("inspect", path).out
    shown = onnxreduce(*arguments[:-2], "--dry-run", "--emulate").out
    assert "control flow added: 1 Loop, for" in shown


def test_bounds_in_memory_are_told() -> None:
    x = np.ones((2, 3, 4, 1), np.float32)
    source = one_node("DFT", 17, {"x": x}, shapes={"x": [None] * 4}, output_shapes=[[None] * 4])
    (change,) = plan(source, 16, emulate=True).changes
    assert "a matrix of the transform's length squared is made when the model runs" in (
        change.warnings
    )
