"""Those who follow CONTRIBUTING get there: a release of onnx, a new step, a new runtime."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import onnx
import pytest

from onnxreduce_cli import schemas
from onnxreduce_cli.targets import reading
from tests.conftest import Result
from tests.support import model

ROOT = Path(__file__).parents[1]

#: The opset of a made-up release.
OPSET = schemas.newest_opset() + 1

#: Registers what is new in it: an operator Cube, and that Neg has a factor.
RELEASE = f"""
from onnx import defs
from onnx.defs import OpSchema

FLOATS = ("T", ["tensor(float)"], "")
DATA = OpSchema.FormalParameter("X", "T", ""), OpSchema.FormalParameter("Y", "T", "")
FACTOR = OpSchema.Attribute("factor", defs.OpSchema.AttrType.FLOAT, "", required=False)
for name, attributes in (("Cube", []), ("Neg", [FACTOR])):
    defs.register_schema(
        OpSchema(
            name,
            "",
            {OPSET},
            inputs=[DATA[0]],
            outputs=[DATA[1]],
            type_constraints=[FLOATS],
            attributes=attributes,
        )
    )
"""

#: What is declared and written then, in files that a test names: as whole files, or at their ends.
DECLARED = {"operators": ["Neg"], "what": "Has a factor, which may be 1.", "unedited": ["up"]}
STEP_OF_CUBE = f'''"""Cube."""

from __future__ import annotations

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import introduced


@introduced("Cube", {OPSET}, "x times x times x")
def cube(context: Context) -> None:
    """``Cube(x)`` becomes ``Mul(x, Mul(x, x))``."""
    op, data = context.op, context.input(0)
    context.replace("Mul", [data, op.Mul(data, data)], keep=())
'''
STEP_OF_NEG = f'''

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import down


@down("Neg", {OPSET}, "its factor multiplies what it gives")
def factor(context: Context) -> None:
    """``Neg<factor=2>(x)`` becomes ``Mul(Neg(x), 2)``."""
    value, data = context.value("factor", 1.0), context.input(0)
    elem_type = context.need_elem_type(data, "the factor is of it")
    times = context.scalar(value, "factor", elem_type)
    context.replace("Mul", [context.op.Neg(data), times], keep=())
'''
KERNEL_OF_CUBE = f'''"""Cube."""

from __future__ import annotations

from typing import Any

from onnxreduce_cli.executor.registry import Call, kernel


@kernel("Cube", {OPSET})
def cube(call: Call, data: Any) -> Any:
    """Multiply each element by itself twice."""
    return data * data * data
'''
KERNEL_OF_NEG = f'''

from onnxreduce_cli.executor.registry import kernel


@kernel("Neg", {OPSET})
def negative(call, data):
    """Multiply the opposite of each element."""
    return (-data * call.attrs.get("factor", 1.0)).astype(data.dtype)
'''
TEST = f'''
import numpy as np
import pytest

from tests.support import converts, model, op_types


@pytest.mark.newest
@pytest.mark.parametrize(("node", "found"), [("CALL", WRITTEN)])
def test_the_newest_NAME(node, found):
    source = model(f"""<ir_version: 8, opset_import: ["" : {OPSET}]>
        g (float[3] x) => (float[3] y) {{{{ y = {{node}}(x) }}}}""")
    result = converts(source, {OPSET - 1}, {{"x": np.array([-1.5, 0, 2], np.float32)}})
    assert op_types(result) == found
'''


class Clone:
    """A copy of the project, with the made-up release installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        ignored = shutil.ignore_patterns("__pycache__", "golden")
        for name in ("onnxreduce", "onnxreduce_cli", "tests"):
            shutil.copytree(ROOT / name, folder / name, ignore=ignored)
        (folder / "docs").mkdir()
        for name in ("pyproject.toml", "docs/operators.md"):
            shutil.copy(ROOT / name, folder / name)
        (folder / "release.py").write_text(RELEASE, encoding="utf-8")

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a command there."""
        return subprocess.run(
            arguments,
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def pytest(self, *tests: str) -> subprocess.CompletedProcess[str]:
        """Run tests there."""
        options = ("-q", "-p", "release", "-p", "no:cacheprovider", "--no-header")
        return self.run(sys.executable, "-m", "pytest", *options, *tests)

    def write(self, name: str, text: str) -> None:
        """Add to the end of a file, which is made if there is none."""
        with (self.folder / name).open("a", encoding="utf-8") as file:
            file.write(text)


@pytest.mark.newest
def test_a_release_with_a_new_operator_and_a_changed_one(tmp_path: Path) -> None:
    clone = Clone(tmp_path)
    declared = "tests/steps/test_audit.py::test_every_boundary_of_the_installed_onnx_is_declared"
    told = clone.pytest(declared).stdout
    files: dict[str, list[str]] = {}
    for op_type in ("Cube", "Neg"):
        start = told.index(f"\n{op_type} {OPSET}\n")
        part = told[start : told.index("\n\n", start + 1)]
        files[op_type] = re.findall(r"\bin ((?:\w+/)+\w+\.(?:py|json))\b", part)
    step, *_, test, kernel = files["Cube"]
    clone.write(step, STEP_OF_CUBE)
    clone.write(kernel, KERNEL_OF_CUBE)
    clone.write(test, _test("Cube", "Cube", ["Mul", "Mul"]))
    audit, step, test, kernel = files["Neg"]
    records = json.loads((tmp_path / audit).read_text(encoding="utf-8"))
    records[str(OPSET)] = [DECLARED]
    (tmp_path / audit).write_text(json.dumps(records), encoding="utf-8")
    clone.write(step, STEP_OF_NEG)
    clone.write(kernel, KERNEL_OF_NEG)
    clone.write(test, _test("Neg", "Neg<factor=2.0>", ["Neg", "Mul"]))

    # Before they are in any index, in a process that loads what it needs only.
    for name, after in (("Cube", "Mul, Mul"), ("Neg", "Neg, Mul")):
        done = clone.run(sys.executable, "-c", _CONVERT, name)
        assert done.stdout.strip() == after, done.stdout + done.stderr
    assert "no step makes" not in told
    written = clone.run(sys.executable, "-c", _WRITE)
    assert written.returncode == 0, written.stderr
    done = clone.pytest(declared, *(item[-2] for item in files.values()), *_UP_TO_DATE)
    assert done.returncode == 0, done.stdout
    lint = clone.run(str(Path(sys.executable).with_name("lint-imports")), "--no-cache")
    assert lint.returncode == 0, lint.stdout


def _test(name: str, call: str, written: list[str]) -> str:
    text = TEST.replace("NAME", name.lower()).replace("CALL", call)
    return text.replace("WRITTEN", repr(written))


#: Converts a node of an operator, and prints what became of it.
_CONVERT = f"""
import sys
import release
import onnxreduce
from onnx import parser
source = parser.parse_model('''<ir_version: 8, opset_import: ["" : {OPSET}]>
    g (float[3] x) => (float[3] y) {{ y = ''' + sys.argv[1] + "(x) }}")
made = onnxreduce.convert(source, {OPSET - 1})
print(*(node.op_type for node in made.graph.node), sep=", ")
"""

#: What is written anew in the end.
_WRITE = """
import release, runpy
runpy.run_module("onnxreduce_cli.report.operators", run_name="__main__")
"""
_UP_TO_DATE = (
    "tests/report/test_operators.py",
    "tests/steps/test_loading.py::test_the_index_is_what_the_modules_register",
    "tests/executor/test_coverage.py",
)


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of runtimes' files, to add to."""
    folder = tmp_path / "data"
    shutil.copytree(reading._DATA, folder)
    monkeypatch.setattr(reading, "_DATA", folder)
    caches = (reading.runtime_names, reading.read_runtime, reading._small_tables)
    for item in caches:
        item.cache_clear()
    yield folder
    for item in caches:
        item.cache_clear()


THREE_LINES = 'title = "Acme"\n[[row]]\nversion = "1.2"\n'


def test_a_new_runtime(data: Path, tmp_path: Path, onnxreduce: Callable[..., Result]) -> None:
    path, target = tmp_path / "m.onnx", tmp_path / "m.acme-1.2.onnx"
    onnx.save(
        model("""<ir_version: 8, opset_import: ["" : 18]>
            g (float[2,3] x) => (float[2,1] y) <int64[1] a = {1}> { y = ReduceMax(x, a) }"""),
        path,
    )
    (data / "acme.toml").write_text(THREE_LINES, encoding="utf-8")
    told = onnxreduce("targets", "acme")
    assert told.code == 0
    assert "1.2" in told.out
    assert onnxreduce("convert", path, "--for", "acme==1.2").code == 0
    assert onnx.load(target).opset_import[0].version == 18

    # And with what is known of it: an opset, and something that it gets wrong.
    source = '[sources.lab]\nkind = "measured"\nwhere = "here"\ndate = "2026-11-22"\n'
    quirk = (
        '[[quirk]]\noperators = ["ReduceMax"]\nform = "axes input"\neffect = "wrong"\n'
        'what = "reduces all axes"\nsource = "lab"\n'
    )
    row = THREE_LINES + 'source = "lab"\nnewest = 18\n'
    (data / "acme.toml").write_text(row + source + quirk, encoding="utf-8")
    reading.read_runtime.cache_clear()
    assert "acme: ReduceMax" in onnxreduce("inspect", path).out
    assert onnxreduce("convert", path, "--for", "acme==1.2", "--force").code == 0
    assert onnx.load(target).opset_import[0].version < 18

    # A mistake is told with its file.
    (data / "acme.toml").write_text(THREE_LINES + "newest = 18\n", encoding="utf-8")
    reading.read_runtime.cache_clear()
    told = onnxreduce("convert", path, "--for", "acme")
    assert told.code == 2
    assert "acme.toml: acme: 18 has no source" in told.err
    assert "bug" not in told.err
