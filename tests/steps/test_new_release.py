"""A release of onnx that changes an operator: one test fails and tells what is to be done.

The release is the made-up one of `tests.next_opset`, in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from onnxreduce_cli import schemas
from onnxreduce_cli.steps.registry import STEPS
from tests.support import model

pytestmark = pytest.mark.newest

ROOT = Path(__file__).parents[2]

#: The opset of that release, which this process knows too if it runs with it.
OPSET = schemas.newest_opset() + ("tests.next_opset" not in sys.modules)

#: Every test of what is told about boundaries, and those that go through all definitions.
TESTS = (
    "tests/steps/test_audit.py",
    "tests/steps/test_every_boundary.py",
    "tests/report/test_operators.py",
    "tests/model/graph/test_ir_version.py",
    "tests/executor/test_backend_cases.py",
    "tests/executor/test_coverage.py",
    "tests/executor/test_family_matrix.py",
    "tests/executor/test_run.py",
    "tests/test_node_cases.py::test_targets_are_around_the_boundaries",
)

CHECKLIST = """\
onnx {version} has boundaries that onnxreduce does not know:

ReduceSum {opset}
  what changed: input axes is required, where it was optional
  1. Declare it in onnxreduce_cli/steps/audit.json, under "{opset}": what changed in the \
definition, and in which directions every node stays as it is.
  2. For the other directions write a step in {file}: @up("ReduceSum", {opset}, ...), \
@down("ReduceSum", {opset}, ...).
  3. Test it in {test}: the same results before and after (`converts`).
  4. Register its kernel in onnxreduce_cli/executor/reduce.py: ONNX Runtime has none at first.

When this test passes: python -m onnxreduce_cli.report.operators
"""


def python(*arguments: object) -> str:
    """What Python prints with the release registered; what it exits with does not matter."""
    ran = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return ran.stdout + ran.stderr


def command_line(*arguments: object) -> str:
    start = (
        "import sys, tests.next_opset; from onnxreduce_cli.cli.program import program; program()"
    )
    return python("-c", start, *arguments)


def test_one_test_fails_with_the_checklist() -> None:
    options = ("-q", "-p", "tests.next_opset", "-p", "no:cacheprovider", "--no-header")
    told = python("-m", "pytest", *options, *TESTS)
    file = STEPS["ReduceSum", 13, "down"].place.partition(":")[0]
    test = next(ROOT.glob("tests/steps/**/test_reduce_sum_13_others_18.py")).relative_to(ROOT)
    checklist = CHECKLIST.format(version=onnx.__version__, opset=OPSET, file=file, test=test)
    assert checklist in told
    failed = [line for line in told.splitlines() if line.startswith("FAILED")]
    assert [line.partition(" - ")[0].rpartition("::")[2] for line in failed] == [
        "test_every_boundary_of_the_installed_onnx_is_declared"
    ]
    assert "\n1 failed, " in told


def test_ops_says_that_it_is_undeclared() -> None:
    told = command_line("ops", "ReduceSum")
    assert (
        f"opset {OPSET}: Undeclared: this onnxreduce was made before that change, and lets no node "
        "across. By the installed onnx, input axes is required, where it was optional.\n"
        f"  {OPSET - 1} to {OPSET}: undeclared: ReduceSum changed at opset {OPSET}, and this "
        "onnxreduce does not know how\n"
    ) in told
    assert f"ReduceSum: 1 11 13 {OPSET}; no step {OPSET - 1} to {OPSET}, " in command_line("ops")


def test_conversions_stop_at_what_is_undeclared_only(tmp_path: Path) -> None:
    for op_type in ("ReduceSum", "Neg"):
        found = model(f"""<ir_version: 8, opset_import: ["" : 18]>
            g (float[2] x) => (float[d] y) {{ [n] y = {op_type}(x) }}""")
        onnx.save(found, tmp_path / f"{op_type}.onnx")
    stopped = command_line("convert", tmp_path / "ReduceSum.onnx", "--opset", OPSET)
    assert f"ReduceSum changed at opset {OPSET}, and this onnxreduce does not know how" in stopped
    assert f"choose opset {OPSET - 1} or earlier" in stopped
    assert "Traceback" not in stopped
    told = command_line("inspect", tmp_path / "ReduceSum.onnx")
    assert f"can reach opset 1-{OPSET - 1}\ncannot reach opset {OPSET}:\n  ReduceSum node n" in told
    target = tmp_path / "target.onnx"
    told = command_line("convert", tmp_path / "Neg.onnx", "--opset", OPSET, "-o", target)
    assert target.exists(), told
    converted = onnx.load(target)
    assert converted.opset_import[0].version == OPSET
    assert converted.ir_version == 8
