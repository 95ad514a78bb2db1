"""No conversion leaves nodes that nobody reads; of each step see `tests/contract.py`."""

from __future__ import annotations

import random

import pytest
from onnx import ModelProto, helper, parser

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.model.graph.dead_values import without_unread
from onnxreduce_cli.steps.registry import STEPS
from tests import contract, node_cases

TARGETS = (8, 9, 10, 12, 17)


def unread(conversion: Conversion) -> list[str]:
    """The operators of new nodes that nobody reads."""
    return [
        node.op_type
        for site in conversion.sites
        if site.blocked is None
        for node in contract.unread_nodes(site.result, site.node.output)
    ]


def gather_nd() -> ModelProto:
    return parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 12]>\n'
        "g (float[2,N] x, int64[A,B] i) => (float[C] y) { y = GatherND(x, i) }"
    )


def test_a_question_leaves_nothing_behind() -> None:
    # How many dimensions are indexed is not known, which must be asked and not computed.
    conversion = Conversion(gather_nd(), 10, Options(emulate=True))
    assert not conversion.blockers
    assert conversion.sites[0].result
    assert unread(conversion) == []


def test_a_step_that_leaves_something_unread_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    key = ("GatherND", 12, "down")

    def careless(context: Context) -> None:
        context.op.Shape("x")
        context.replace()

    step = STEPS[key]
    monkeypatch.setitem(STEPS, key, step._replace(apply=careless))
    with pytest.raises(AssertionError, match=r"the step of GatherND .* nobody reads: Shape"):
        Conversion(gather_nd(), 11)


def test_what_only_leads_to_what_is_gone_goes_too() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "i"], ["size"]),
        helper.make_node("Abs", ["x"], ["size_of"]),
        helper.make_node("Split", ["size_of"], ["", "part"]),
        helper.make_node("Neg", ["part"], ["y"]),
    ]
    assert [node.op_type for node in without_unread(nodes, ["y"])] == ["Abs", "Split", "Neg"]


def test_what_a_graph_within_reads_stays() -> None:
    inner = helper.make_graph([helper.make_node("Neg", ["a"], ["b"])], "then", [], [])
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=inner),
    ]
    assert without_unread(nodes, ["y"]) == nodes


def test_a_sample_of_node_cases() -> None:
    swept = 0
    cases = node_cases.cases()
    # Few leave anything to sweep; of these a later step stops reading what an earlier one emits.
    sample = [case for case in cases if case.name.startswith("test_cumsum_1d")]
    for case in [*sample, *random.Random(1).sample(cases, 40)]:
        for target in TARGETS:
            conversion = Conversion(case.model, target, Options(emulate=True))
            assert unread(conversion) == [], f"{case.name} to {target}"
            swept += conversion.swept
    assert swept
