"""The line that what `convert` prints begins with."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import onnxreduce_cli
from onnxreduce_cli.report.verdict import verdict_text
from tests.support import model

MEAN = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[2,3] x) => (float[2] y) <int64[1] axes = {1}> {
        a = ReduceMean<keepdims = 0>(x, axes) y = Relu(a)
    }"""
NORM = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[3,64] x, float[64] w) => (float[3,64] y) { y = LayerNormalization(x, w) }"""
BLOCKED = """<ir_version: 8, opset_import: ["" : 18]>
    g (float[N,3] x, int64[M,2] i, float[M] u) => (float[N,3] y) {
        y = ScatterND<reduction = "max">(x, i, u)
    }"""
SEQUENCE = """<ir_version: 8, opset_import: ["" : 17]>
    g (float[2] x) => (float[2] y) {
        s = SequenceConstruct(x, x) i = Constant<value_int = 1>() y = SequenceAt(s, i)
    }"""


#: A change of dtypes puts a Cast behind what makes int64 alone, and compares whole models.
INTEGERS = """<ir_version: 8, opset_import: ["": 17]>
    g (float[2, 3] x) => (int64[1, 3] y) { [best] y = ArgMax(x) }"""


@pytest.mark.parametrize(
    ("text", "call", "expected"),
    [
        (
            MEAN,
            {"opset": 13},
            "Converted to opset 13: 1 node changed, all checked, bit-exact (OUT)",
        ),
        (MEAN, {"opset": 18}, "Unchanged at opset 18: 0 nodes changed (OUT)"),
        (
            MEAN,
            {"target": "opencv==4.6"},
            "Ready for OpenCV 4.6: opset 17, 1 node changed, all checked, bit-exact (OUT)",
        ),
        (
            MEAN,
            {"target": "opencv"},
            "Ready for OpenCV, taken as its newest known, 5.0: opset 18, 0 nodes changed (OUT)",
        ),
        (
            MEAN,
            {"target": "opencv==4.13"},
            "Written for OpenCV 4.13: its operators are not known of that very version, opset 18, "
            "0 nodes changed (OUT)",
        ),
        (
            MEAN,
            {"target": "tidl==9.2"},
            "Written for TIDL 9.2: 1 of 2 operators taken on conditions not known, opset 18, "
            "0 nodes changed (OUT)",
        ),
        (
            MEAN,
            {"target": "opencv==4.6", "check": False},
            "Written for OpenCV 4.6: opset 17, 1 node changed, NOT checked: 1 node (OUT)",
        ),
        (
            MEAN,
            {"opset": 13, "verify": True, "trials": 3},
            "Converted to opset 13: 1 node changed, all checked, bit-exact, verified on 5 inputs "
            "(OUT)",
        ),
        (
            MEAN,
            {"opset": 13, "dry_run": True},
            "Can be converted to opset 13: 1 node changed",
        ),
        (
            MEAN,
            {"opset": 13, "dry_run": True, "verify": True, "trials": 1},
            "Can be converted to opset 13: 1 node changed, all checked, bit-exact, "
            "verified on 3 inputs",
        ),
        (
            MEAN,
            {"dtypes": {"float": "double"}},
            "Converted at opset 18: 1 change of the whole model, all checked (OUT)",
        ),
        (
            MEAN,
            {"dtypes": {"float": "double"}, "check": False},
            "Converted at opset 18: 1 change of the whole model, "
            "NOT checked: 1 change of the whole model (OUT)",
        ),
        (
            MEAN,
            {"dtypes": {"int64": "int32"}},
            "Converted at opset 18: 0 nodes changed (OUT)",
        ),
        (
            MEAN,
            {"fold": True, "strip_metadata": "all", "inline_functions": True},
            "Converted at opset 18: 0 nodes changed (OUT)",
        ),
        (
            BLOCKED,
            {"target": "opencv==4.6", "dry_run": True},
            "Cannot be converted for OpenCV 4.6: 1 node in the way",
        ),
        (
            INTEGERS,
            {"dtypes": {"int64": "int32"}},
            "Converted at opset 17: 1 node changed, 1 change of the whole model, all checked (OUT)",
        ),
        (
            SEQUENCE,
            {"opset": 10},
            "Converted to opset 10: 3 nodes changed, all checked, bit-exact (OUT)",
        ),
        (
            SEQUENCE,
            {"opset": 10, "check": False},
            "Converted to opset 10: 3 nodes changed, NOT checked: 3 nodes (OUT)",
        ),
    ],
)
def test_the_verdict(tmp_path: Path, text: str, call: dict[str, object], expected: str) -> None:
    source, target = str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")
    onnx.save(model(text), source)
    done = onnxreduce_cli.convert_file(source, target, **call)
    found = verdict_text(done, dry_run=bool(call.get("dry_run")))
    assert found == expected.replace("OUT", target)
    assert Path(target).exists() == ("OUT" in expected)


def test_the_largest_error_is_that_of_all_nodes_that_changed(tmp_path: Path) -> None:
    source, target = str(tmp_path / "a.onnx"), str(tmp_path / "b.onnx")
    onnx.save(model(NORM), source)
    done = onnxreduce_cli.convert_file(source, target, 17, expand=["LayerNormalization"])
    assert done.checks is not None
    error = max(item.max_abs for item in done.checks.errors)
    assert error > 0
    assert f", all checked, largest error {error:.2g} (" in verdict_text(done, dry_run=False)
