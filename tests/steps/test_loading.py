"""The modules that are imported for an operator: those that hold its steps, and no more."""

from __future__ import annotations

import json
import subprocess
import sys

from onnxreduce_cli import schemas
from onnxreduce_cli.steps.loading import INDEX, steps_index_text
from onnxreduce_cli.steps.registry import ALTERNATIVES, STEPS
from tests.steps.checklist import undeclared

#: Prints the description of a step that is looked for alone.
DESCRIPTION = """
import sys
from onnxreduce_cli.steps.dispatch import step_for
print(step_for(sys.argv[1], int(sys.argv[2]), sys.argv[3]).description)
"""

#: Prints what can stand for a node, and what its step is, where the index has nothing.
WITHOUT_INDEX = """
import sys
from onnxreduce_cli.steps import loading
loading._index = dict
from onnxreduce_cli.steps.dispatch import alternatives, step_for
op_type, form = sys.argv[1:]
for item in alternatives(op_type, form):
    print(item.description)
print(step_for("Mish", 18, "down").description)
"""

#: What a conversion imports of the steps.
OF_A_CONVERSION = """
import sys
import onnxreduce_cli
from onnx import parser
onnxreduce_cli.convert(parser.parse_model(sys.argv[1]), int(sys.argv[2]), check=False)
start = "onnxreduce_cli.steps."
names = sorted(name.removeprefix(start) for name in sys.modules if name.startswith(start))
print(*[name for name in names if "." in name])
"""


def python(script: str, *arguments: str) -> str:
    """What a script prints."""
    command = [sys.executable, "-c", script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_index_is_what_the_modules_register() -> None:
    """An older onnx has fewer operators; what a newer one has is to be declared first."""
    written, registered = (
        json.loads(INDEX.read_text(encoding="utf-8")),
        json.loads(steps_index_text()),
    )
    if undeclared() or written.keys() - set(schemas.operators()):
        assert registered.items() <= written.items()
    else:
        assert written == registered, "run python -m onnxreduce_cli.report.operators"


def test_reasons_why_there_is_no_way_are_found_too() -> None:
    """They are no functions, which the index lists; they stand beside the operator's others."""
    reasons = [step for step in STEPS.values() if step.apply is None]
    assert reasons
    for step in reasons:
        told = python(DESCRIPTION, step.op_type, str(step.boundary), step.direction)
        assert told == f"{step.description}\n"


def test_what_is_not_in_the_index_is_found_before_a_node_is_in_the_way() -> None:
    op_type, (first, *_) = next(iter(ALTERNATIVES.items()))
    told = python(WITHOUT_INDEX, op_type, next(iter(first.forms))).splitlines()
    assert first.description in told
    assert told[-1] == STEPS["Mish", 18, "down"].description


def test_a_conversion_imports_the_steps_of_its_operators() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2,3] x) => (float[2,3] y) { m = Mish(x) y = Split<num_outputs=1>(m) }"""
    names = python(OF_A_CONVERSION, text, "13").split()
    assert {"elementwise.activations", "shape.split"} <= set(names)
    assert len(names) < 12, "the modules of other operators are imported"


def test_the_way_up_imports_nothing_that_is_for_the_way_down_or_for_runtimes() -> None:
    text = """<ir_version: 8, opset_import: ["" : 13]>
    g (float[2,3] x) => (float[2,1] y) {
        m = Softmax(x) a = Add(m, m) y = ReduceMean<axes=[1]>(a)
    }"""
    names = python(OF_A_CONVERSION, text, "18").split()
    assert "reduction.reduce_sum_13_others_18" in names
    assert "elementwise.binary_operators" not in names, "those of Add cross 6 and 7"
    assert not [name for name in names if "emulated" in name or "alternatives" in name]
