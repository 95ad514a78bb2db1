"""`import onnxreduce` shows what `onnxreduce_cli` does, to programs and to type checkers."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

import onnxreduce
import onnxreduce_cli
from tests.conftest import Result
from tests.support import model, without_times

#: What a project that uses the library may write.
CONSUMER = """
import onnx
import onnxreduce
from onnxreduce import Blocker, ConversionError, Plan, VerifyReport, convert_version

model: onnx.ModelProto = onnx.load("a.onnx")
moved: onnx.ModelProto = convert_version(model, 13)
moved = onnxreduce.convert(model, 13, expand=["LogSoftmax"], strict=True, dims={"batch": 1})
moved = onnxreduce.convert("a.onnx", runtime="onnxruntime==1.8", ir_version="keep")
plan: Plan = onnxreduce.plan("a.onnx", 13, dtypes={"bfloat16": "float"})
blockers: list[Blocker] = list(plan.blockers)
done = onnxreduce.convert_file("a.onnx", "b.onnx", 13, verify=True, trials=3)
made: str = done.target
report: VerifyReport = onnxreduce.verify("a.onnx", moved)
try:
    onnxreduce.run("a.onnx", {})
except ConversionError as error:
    found: tuple[Blocker, ...] = tuple(error.blockers)
version: str = onnxreduce.__version__
"""

WRONG = """
import onnxreduce
onnxreduce.convert("a.onnx", "13")
onnxreduce.convert("a.onnx", 13, strikt=True)
onnxreduce.convert_file("a.onnx", 13)
made: int = onnxreduce.convert("a.onnx", 13)
"""


@pytest.mark.parametrize("name", onnxreduce_cli.__all__)
def test_the_names_are_the_same(name: str) -> None:
    assert getattr(onnxreduce, name) is getattr(onnxreduce_cli, name)


def test_what_there_is_can_be_listed() -> None:
    assert set(onnxreduce_cli.__all__) <= set(dir(onnxreduce_cli))
    assert set(dir(onnxreduce)) == {*onnxreduce_cli.__all__, "targets", "__version__"}
    with pytest.raises(AttributeError, match="module 'onnxreduce' has no attribute 'nothing'"):
        onnxreduce.nothing  # noqa: B018


def test_nothing_is_imported_before_it_is_used() -> None:
    code = "import sys, onnxreduce; assert not {'onnx', 'numpy', 'onnxruntime'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("module", ["onnxreduce", "onnxreduce_cli"])
def test_it_runs_as_a_module(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", module, "--version"], check=True, capture_output=True, text=True
    )
    lines = done.stdout.splitlines()
    assert lines[0] == f"onnxreduce {onnxreduce.__version__}"
    assert [line.split()[0] for line in lines] == [
        "onnxreduce",
        "onnx",
        "onnxruntime",
        "numpy",
        "Python",
    ]


def checked(code: str, folder: Path) -> list[str]:
    """What mypy says of a project that uses the library, in its strict mode."""
    from mypy import api

    path = folder / "consumer.py"
    path.write_text(code)
    kept = Path(".mypy_cache", "consumer").resolve()
    said, _, _ = api.run(["--strict", "--cache-dir", str(kept), str(path)])
    return [line.split(": ", 1)[1] for line in said.splitlines() if path.name in line]


@pytest.mark.kit
def test_a_project_that_uses_it_is_type_checked(tmp_path: Path) -> None:
    assert checked(CONSUMER, tmp_path) == []
    found = checked(WRONG, tmp_path)
    for wrong in ('types "str", "str"', '"strikt"', '"convert_file"', 'type "ModelProto"'):
        assert any(wrong in line for line in found), wrong


SOURCE = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x) => (float[2,1] y) <int64[1] axes = {1}> { [first] y = ReduceMax(x, axes) }"""


def test_results_are_short_where_they_are_shown(tmp_path: Path) -> None:
    path = tmp_path / "<a>.onnx"
    onnx.save(model(SOURCE), path)
    done = onnxreduce.convert_file(path, tmp_path / "b.onnx", 13)
    report = onnxreduce.verify(path, done.target, trials=2)
    diff = onnxreduce.diff(path, done.target)
    assert repr(done) == (
        f"<Converted {path} → {done.target}: Plan opset 18 → 13: 1 → 1 nodes, 1 changed>"
    )
    assert repr(report) == f"<VerifyReport EQUIVALENT: {path} and {done.target}, 2 trials>"
    # The opset, the IR version, the node, and the constant that it no longer reads.
    assert repr(diff) == f"<Diff {path} and {done.target}: 4 differences>"
    assert repr(done.checks) == "<SiteReport 1 node, all checked: 1 bit-exact>"
    for item in (done, report, diff):
        page = item._repr_html_()
        assert page.startswith("<table>")
        assert "<a>" not in page
    assert "<td" in report._repr_html_()
    assert "axes [1] → attribute" in diff._repr_html_()


def test_results_are_data_as_the_command_prints_it(
    tmp_path: Path, onnxreduce: Callable[..., Result]
) -> None:
    path, target = str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")
    onnx.save(model(SOURCE), path)
    done = onnxreduce_cli.convert_file(path, target, 13, verify=True, trials=1).to_dict()
    call = ("convert", path, "--opset", "13", "-o", target, "--force", "--verify", "--trials", "1")
    (printed,) = json.loads(onnxreduce(*call, "--json").out)["models"]
    same = {"source", "target", "plan", "checks", "verified", "whole", "sizes"}
    told, shown = ({name: found[name] for name in same} for found in (done, printed))
    assert without_times(told) == without_times(shown)
    assert set(done) - same == {"data", "false_shapes", "numpy_alone", "files"}
    assert done["plan"] == onnxreduce_cli.plan(path, 13).to_dict()
    found = json.loads(onnxreduce("verify", path, target, "--trials", "1", "--json").out)
    told = onnxreduce_cli.verify(path, target, trials=1).to_dict()
    assert without_times(told) == without_times({name: found[name] for name in told})
    found = json.loads(onnxreduce("diff", path, target, "--json").out)
    told = onnxreduce_cli.diff(path, target).to_dict()
    assert told == {name: found[name] for name in told}
