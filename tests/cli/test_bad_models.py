"""Models that are broken, as broken pipelines make them: each gets a clear line, no traceback."""

from __future__ import annotations

import os

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.support import model

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3,4] x) => (float[2,1,4] y) <int64[1] axes = {1}> {
    [mean] y = ReduceMean(x, axes)
}"""


def put(path, value):
    """An edit: ``graph.node.0.op_type`` and the like is set to a value."""

    def edit(found):
        *steps, last = path.split(".")
        for step in steps:
            found = found[int(step)] if step.isdigit() else getattr(found, step)
        setattr(found, last, value)

    return edit


def axes(*values):
    return lambda found: found.graph.initializer[0].CopyFrom(
        numpy_helper.from_array(np.array(values), "axes")
    )


def also(domain, version):
    return lambda found: found.opset_import.append(helper.make_opsetid(domain, version))


def raw(content):
    def edit(found):
        found.graph.initializer[0].ClearField("int64_data")
        found.graph.initializer[0].raw_data = content

    return edit


#: An edit, the exit code of a conversion to 13, and what is said.
BROKEN = {
    "no opset import": (lambda found: found.ClearField("opset_import"), 1, "add the domain to"),
    "opset 0": (put("opset_import.0.version", 0), 2, "imported at opset 0; opsets begin at 1"),
    "opset -1": (put("opset_import.0.version", -1), 2, "imported at opset -1"),
    "opset 999": (put("opset_import.0.version", 999), 1, "of opset 999, and onnx "),
    "opset 2**40": (put("opset_import.0.version", 1 << 40), 2, "of domain 'ai.onnx' is no opset"),
    "imported twice": (also("", 13), 2, "imported at several opsets (13, 18)"),
    "imported by both names": (also("ai.onnx", 13), 2, "imported at several opsets (13, 18)"),
    "unknown operator": (put("graph.node.0.op_type", "Bogus"), 1, "Bogus node mean (opset 18)"),
    "no operator": (put("graph.node.0.op_type", ""), 1, "mend the model"),
    "no inputs": (lambda found: found.graph.node[0].ClearField("input"), 2, "has 0 inputs"),
    "no outputs": (lambda found: found.graph.node[0].ClearField("output"), 2, "has 0 outputs"),
    "unknown dtype": (
        put("graph.input.0.type.tensor_type.elem_type", 99),
        2,
        "element type 99, which the installed onnx does not know",
    ),
    "unknown dtype of a constant": (
        put("graph.initializer.0.data_type", 999),
        2,
        "element type 999, which the installed onnx does not know",
    ),
    "data cut short": (raw(b"123"), 2, "'axes' has data that does not fit its dimensions [1] of"),
    "floats for axes": (axes(1.5), 2, "its input 'axes' is tensor(double), which"),
    "an attribute of another type": (
        lambda found: found.graph.node[0].attribute.append(helper.make_attribute("keepdims", "x")),
        2,
        "its attribute 'keepdims' has a type that ReduceMean-18 does not allow",
    ),
}


@pytest.fixture
def save(tmp_path):
    def write(edit):
        found = model(TEXT)
        edit(found)
        path = tmp_path / "model.onnx"
        path.write_bytes(found.SerializeToString())
        return path

    return write


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_model_gets_a_clear_line(onnxreduce, save, name):
    edit, code, message = BROKEN[name]
    path = save(edit)
    result = onnxreduce("convert", path, "--opset", 13)
    assert result.code == code
    assert message in result.err
    assert str(path) in result.err
    assert os.listdir(path.parent) == [path.name]
    for call in (("convert", path, "--opset", 11, "--dry-run"), ("inspect", path)):
        result = onnxreduce(*call)
        assert "bug in onnxreduce" not in result.err


#: Unusual, but nothing that stands in the way.
ODD = {
    "custom domains only": lambda found: (
        put("graph.node.0.domain", "my")(found),
        found.ClearField("opset_import"),
        also("my", 1)(found),
    ),
    "imported twice alike": also("", 18),
    "the other name of the domain": put("opset_import.0.domain", "ai.onnx"),
    "IR version 0": put("ir_version", 0),
    "IR version 999": put("ir_version", 999),
    "no graph name": put("graph.name", ""),
    "no node name": put("graph.node.0.name", ""),
    "two nodes of one name": lambda found: found.graph.node.append(
        helper.make_node("ReduceMean", ["x", "axes"], ["z"], name="mean")
    ),
    "no graph outputs": lambda found: found.graph.ClearField("output"),
    "no nodes": lambda found: found.graph.ClearField("node"),
    "a long text": put("doc_string", "x" * 10_000_000),
}


@pytest.mark.parametrize("name", ODD)
def test_an_odd_model_is_converted(onnxreduce, save, name):
    path = save(ODD[name])
    assert onnxreduce("convert", path, "--opset", 13).code == 0
    versions = {
        entry.domain: entry.version
        for entry in onnx.load(path.with_name("model.opset13.onnx")).opset_import
    }
    assert versions.get("", versions.get("ai.onnx")) in (13, None)
    assert onnxreduce("inspect", path).code == 0


def test_texts_about_a_model_that_are_not_utf_8(onnxreduce, tmp_path):
    found = model("""<ir_version: 8, opset_import: ["" : 13],
        producer_name: "name-by", producer_version: "name-of">
        g (float[N] x) => (float[N] y) { y = Relu(x) }""")
    found.metadata_props.add(key="key-of", value="value-of")
    found.graph.node[0].metadata_props.add(key="namespace", value="place-of/it")
    path = tmp_path / "m.onnx"
    for part in (b"name-by", b"name-of", b"key-of", b"value-of"):
        path.write_bytes(found.SerializeToString().replace(part, b"\xff" + part[1:]))
        result = onnxreduce("inspect", path)
        assert result.code == 0
        assert "\N{REPLACEMENT CHARACTER}" + part[1:].decode() in result.out
        assert onnxreduce("inspect", path, "--json").code == 0
        assert onnxreduce("inspect", path, "--report", tmp_path / "page.html").code == 0
        converted = onnxreduce(
            "convert", path, "--opset", 18, "-o", tmp_path / "out.onnx", "--force"
        )
        assert converted.code == 0
        assert b"\xff" + part[1:] in (tmp_path / "out.onnx").read_bytes()
        assert onnxreduce("diff", path, path).code == 0
    path.write_bytes(found.SerializeToString().replace(b"place-of", b"\xfflace-of"))
    assert onnxreduce("inspect", path, "--report", tmp_path / "page.html").code == 0
    assert "\\ufffdlace-of" in (tmp_path / "page.html").read_text("utf-8")
