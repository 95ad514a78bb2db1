"""Every definition of every ai.onnx operator is computed by something, or known not to be."""

from __future__ import annotations

import json
import subprocess
import sys

import onnx

from onnxreduce_cli.executor.registry import INDEX, find_kernel, index_text, registered
from tests.executor.models import LATEST
from tests.steps.checklist import is_computed

# Random results, a codec, and operators nobody needs for converting.
UNSUPPORTED = {
    "ImageDecoder",
    "MaxRoiPool",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
}


def schemas() -> list[onnx.defs.OpSchema]:
    return [
        s
        for s in onnx.defs.get_all_schemas_with_history()
        if s.domain == "" and s.since_version <= LATEST
    ]


def test_each_definition_has_a_kernel_a_body_or_the_reference() -> None:
    missing = set()
    for schema in schemas():
        if not (
            is_computed(schema.name, schema.since_version)
            or (schema.deprecated and schema.name in {"Upsample", "Scatter"})
        ):
            missing.add(schema.name)
    assert missing == UNSUPPORTED


def test_the_index_is_what_the_modules_register() -> None:
    written = INDEX.read_text(encoding="utf-8")
    assert written == index_text(), "run python -m onnxreduce_cli.report.operators"


def test_a_model_imports_the_kernels_of_its_operators() -> None:
    script = (
        "import sys\n"
        "from onnx import parser\n"
        "from onnxreduce_cli.executor import Executor\n"
        "Executor(parser.parse_model(sys.argv[1]))\n"
        "start = 'onnxreduce_cli.executor.'\n"
        "print(*[name for name in sys.argv[2:] if start + name in sys.modules])\n"
    )
    text = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2,3] x) => (float[2,3] y) { m = Softmax(x) y = Add(m, x) }"""
    modules = [*json.loads(INDEX.read_text(encoding="utf-8"))]
    done = subprocess.run(
        [sys.executable, "-c", script, text, *modules], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["elementwise", "softmax"]


def test_kernels_are_registered_for_definitions_that_exist() -> None:
    learning = [s for s in onnx.defs.get_all_schemas_with_history() if s.domain == "ai.onnx.ml"]
    known = {(s.name, s.since_version) for s in (*schemas(), *learning)}
    names = {s.name for s in (*schemas(), *learning)}
    for op, since in registered():
        # A newer onnx has definitions, and operators, that this one does not know yet.
        assert (op, since) in known or since > LATEST, (op, since)
        assert op in names or since > LATEST, op


def test_the_family_has_kernels_of_its_own() -> None:
    family = [
        s
        for s in schemas()
        if s.name in {"Softmax", "LogSoftmax", "Hardmax"}
        or (s.name.startswith("Reduce") and s.name != "Reduce")
    ]
    assert len(family) >= 50
    for schema in family:
        assert find_kernel(schema.name, schema.since_version), (schema.name, schema.since_version)
