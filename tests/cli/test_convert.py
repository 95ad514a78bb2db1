"""`onnxreduce convert`: what it writes, what it says, and how it ends."""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, external_data_helper, helper, numpy_helper

from onnxreduce_cli.steps import registry
from tests.support import model, run

SAMPLES = Path(__file__).parents[2] / "samples"

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3,4] x) => (float[2,1,4] y) <int64[1] axes = {1}> {
    [mean] y = ReduceMean(x, axes)
}"""

#: Nothing before opset 14 has a place for bfloat16 reductions below 13.
BLOCKED = """<ir_version: 8, opset_import: ["" : 18]>
g (bfloat16[2,3] x) => (bfloat16[1,1] y, bfloat16[1,1] z) {
    [first] y = ReduceMax(x)
    [second] z = ReduceMin(x)
}"""


BLOCKED_TEXT = (
    "2 nodes (1 ReduceMax, 1 ReduceMin; opset 18) first, second: it has a tensor(bfloat16)"
)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model(TEXT), path)
    return path


def opset_of(path):
    return onnx.load(path).opset_import[0].version


def test_the_output_is_named_after_the_opset(onnxreduce, source):
    result = onnxreduce("convert", source, "--opset", 13)
    assert result.code == 0
    assert opset_of(source.with_name("model.opset13.onnx")) == 13
    assert result.out.startswith("Converted to opset 13: 1 node changed, all checked, bit-exact\n")
    assert "  opset 18 to 13, " in result.out
    assert "1 ReduceMean: axes [1] → attribute: mean" in result.out
    assert "1 node, all checked: 1 bit-exact" in result.out
    assert opset_of(source) == 18


def test_output_and_quiet(onnxreduce, source, tmp_path):
    result = onnxreduce("convert", source, "--opset", 13, "-o", tmp_path / "out.onnx", "-q")
    assert (result.code, result.out, result.err) == (0, "", "")
    assert opset_of(tmp_path / "out.onnx") == 13


def test_pipes(source):
    call = [sys.executable, "-m", "onnxreduce_cli", "convert", "-", "--opset", "13"]
    with source.open("rb") as stdin:
        done = subprocess.run([*call, "-o", "-"], stdin=stdin, capture_output=True, check=True)
    assert onnx.ModelProto.FromString(done.stdout).opset_import[0].version == 13
    assert b"opset 18 to 13" in done.stderr
    broken = subprocess.run(call, input=b"no model", capture_output=True, check=False)
    assert (broken.returncode, broken.stdout) == (2, b"")
    assert b"no ONNX model" in broken.stderr
    assert b"Traceback" not in broken.stderr


def test_dry_run_shows_the_plan_and_writes_nothing(onnxreduce, source, tmp_path):
    before = sorted(os.listdir(tmp_path))
    result = onnxreduce("convert", source, "--opset", 13, "--dry-run")
    assert result.code == 0
    assert "1 ReduceMean: axes [1] → attribute: mean\n" in result.out
    assert "no longer read, removed: axes" in result.out
    assert result.out.startswith("Can be converted to opset 13: 1 node changed\n")
    onnx.save(model(BLOCKED), source)
    result = onnxreduce("convert", source, "--opset", 11, "--dry-run")
    assert result.code == 1
    assert result.out.startswith("Cannot be converted to opset 11: 2 nodes in the way\n")
    assert " ".join(result.err.split()).startswith(BLOCKED_TEXT)
    quiet = onnxreduce("convert", source, "--opset", 11, "--dry-run", "-q")
    assert (quiet.code, quiet.out) == (1, "")
    lines = quiet.err.splitlines()
    assert [line.startswith(f"{source}: ReduceM") for line in lines] == [True, True]
    assert sorted(os.listdir(tmp_path)) == before


def test_blockers_of_one_reason_are_told_together_and_nothing_is_written(
    onnxreduce, source, tmp_path
):
    onnx.save(model(BLOCKED), source)
    result = onnxreduce("convert", source, "--opset", 11, "-o", tmp_path / "out.onnx")
    assert result.code == 1
    head, *told = result.err.splitlines()
    assert "cannot be converted to opset 11; nothing was written" in head
    assert " ".join(" ".join(told).split()).startswith(BLOCKED_TEXT)
    assert max(map(len, told)) <= 100
    each = onnxreduce("convert", source, "--opset", 11, "--verbose").err.splitlines()
    assert each[0] == head
    for line in ("ReduceMax node first (opset 18): ", "ReduceMin node second (opset 18): "):
        assert sum(found.startswith(line) for found in each) == 1
    assert not (tmp_path / "out.onnx").exists()


def test_a_name_as_long_as_can_be(onnxreduce, source, tmp_path):
    target = tmp_path / f"{'x' * 250}.onnx"
    assert onnxreduce("convert", source, "--opset", 13, "-o", target).code == 0
    assert opset_of(target) == 13
    long = tmp_path / f"{'x' * 251}.onnx"
    result = onnxreduce("convert", source, "--opset", 13, "-o", long)
    assert result.code == 2
    assert "File name too long" in result.err


def test_an_existing_file_needs_force(onnxreduce, source, tmp_path):
    target = tmp_path / "out.onnx"
    target.write_bytes(b"precious")
    result = onnxreduce("convert", source, "--opset", 13, "-o", target)
    assert result.code == 2
    assert "--force" in result.err
    assert target.read_bytes() == b"precious"
    assert onnxreduce("convert", source, "--opset", 13, "-o", target, "--force").code == 0
    assert opset_of(target) == 13


def test_the_input_needs_in_place(onnxreduce, source):
    before = source.read_bytes()
    for extra in ((), ("--force",)):
        result = onnxreduce("convert", source, "--opset", 13, "-o", source, *extra)
        assert result.code == 2
        assert "--in-place" in result.err
    assert source.read_bytes() == before
    source.chmod(0o640)
    assert onnxreduce("convert", source, "--opset", 13, "--in-place").code == 0
    assert opset_of(source) == 13
    assert stat.S_IMODE(source.stat().st_mode) == 0o640


def test_the_models_own_opset_gives_the_same_bytes(onnxreduce, source, tmp_path):
    target = tmp_path / "same.onnx"
    # Bytes that no serializer would write: an unknown field at the very front.
    source.write_bytes(bytes([0xF8, 0x7F, 1]) + source.read_bytes())
    assert onnxreduce("convert", source, "--opset", 18, "-o", target).code == 0
    assert target.read_bytes() == source.read_bytes()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"not a model", "is no ONNX model in protobuf form: it is cut short, or something else"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:12\n", "git lfs pull"),
        (b"\x08\x08", "it has no graph"),
        (None, "cannot be read: No such file or directory"),
    ],
)
def test_unreadable_input(onnxreduce, tmp_path, content, message):
    path = tmp_path / "bad.onnx"
    if content is not None:
        path.write_bytes(content)
    result = onnxreduce("convert", path, "--opset", 13)
    assert result.code == 2
    assert message in result.err
    assert os.listdir(tmp_path) == ([] if content is None else ["bad.onnx"])


def test_a_folder_as_input_or_output(onnxreduce, source, tmp_path):
    result = onnxreduce("convert", tmp_path, "--opset", 13)
    assert result.code == 0
    (made,) = set(tmp_path.iterdir()) - {source}
    assert onnx.load(made).opset_import[0].version == 13
    made.unlink()
    result = onnxreduce("convert", source, "--opset", 13, "-o", tmp_path)
    assert result.code == 2
    assert "is a folder" in result.err
    target = tmp_path / "none" / "yet" / "x.onnx"
    assert onnxreduce("convert", source, "--opset", 13, "-o", target).code == 0
    assert onnx.load(target).opset_import[0].version == 13
    result = onnxreduce("convert", source, "--opset", 13, "-o", source / "x.onnx")
    assert result.code == 2
    assert str(source) in result.err


def test_a_folder_that_nothing_can_be_made_in(onnxreduce, source, tmp_path, monkeypatch):
    def refuse(*_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(tempfile, "mkstemp", refuse)
    output = tmp_path / "out.onnx"
    result = onnxreduce("convert", source, "--opset", 13, "-o", output)
    assert result.code == 2
    reason = (
        f"nothing can be made in the folder {tmp_path} (Permission denied); name another folder"
    )
    assert result.err == f"Error: {output}: {reason}\n"
    monkeypatch.setattr(os, "makedirs", refuse)
    result = onnxreduce("convert", source, "--opset", 13, "--out-dir", tmp_path / "new")
    assert result.code == 2
    assert reason in result.err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.json", b'{"a": 1', "in json form: Failed to load JSON"),
        ("m.json", b"[1]", "in json form: Failed to parse"),
        ("m.json", b"\xff\xfe", "in json form: 'utf-8' codec"),
        ("m.json", b'{"a": 1}', 'in json form: Message type "onnx.ModelProto" has no field'),
        ("m.textproto", b"foo: bar", "in textproto form: 1:1 : Message type"),
        ("m.onnxtxt", b"<ir_version", "in onnxtxt form: [ParseError at position (line: 1"),
    ],
)
def test_unreadable_text(onnxreduce, tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(content)
    result = onnxreduce("convert", path, "--opset", 13)
    assert result.code == 2
    assert message in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "name the opset to reach"),
        (("--opset", "99"), "there is no opset 99"),
        (("--opset", "0"), "there is no opset 0"),
        (("--opset", "18", "--expand", "Foo"), "Foo cannot be written in other operators"),
        (("--opset", "18", "--expand", "If"), "operators; onnxreduce ops marks those that can"),
        (("--opset", "18", "--contract", "Foo"), "family, all, and onnxreduce ops marks"),
        (("--opset", "18", "--contract", "Swich"), "did you mean Swish?"),
        (("--opset", "18", "--ir-version", "new"), "give a number"),
        (("--opset", "18", "--ir-version", "99"), "give a number"),
        (("--opset", "18", "-o", ""), "a name is empty; is some variable not set?"),
        (("", "--opset", "18"), "a name is empty; is some variable not set?"),
        (("--opset", "thirteen"), "is not a valid integer"),
        (("--opset", "13", "--in-plaice"), "No such option"),
    ],
)
def test_wrong_usage(onnxreduce, source, arguments, message):
    result = onnxreduce("convert", source, *arguments)
    assert result.code == 2
    assert message in result.err


def test_names_are_shown_in_one_line(onnxreduce, source):
    found = model(BLOCKED)
    found.graph.node[0].name = "first\n\x1b[31mred"
    onnx.save(found, source)
    result = onnxreduce("convert", source, "--opset", 11)
    assert "\n2 nodes (1 ReduceMax, 1 ReduceMin; opset 18) first\\n\\x1b[31mred, second: " in (
        result.err
    )
    assert all(line.startswith("    ") for line in result.err.splitlines()[2:])


def test_expand_without_a_change_of_opset(onnxreduce, tmp_path):
    target = tmp_path / "out.onnx"
    found = onnx.load(SAMPLES / "reductions_opset18.onnx")
    found.ir_version = 14
    onnx.save(found, tmp_path / "in.onnx")
    result = onnxreduce("convert", tmp_path / "in.onnx", "--expand", "LogSoftmax", "-o", target)
    assert result.code == 0
    assert "IR version 14 to 8" in result.out
    assert onnx.load(target).ir_version == 8
    types = [node.op_type for node in onnx.load(target).graph.node]
    assert "LogSoftmax" not in types
    assert "Log" in types


def test_contract_without_a_change_of_opset(onnxreduce, tmp_path):
    text = """<ir_version: 9, opset_import: ["": 20]>
    agraph (float[4] x) => (float[4] y) { s = Softplus(x) t = Tanh(s) y = Mul(x, t) }"""
    onnx.save(model(text), tmp_path / "in.onnx")
    target = tmp_path / "out.onnx"
    result = onnxreduce("convert", tmp_path / "in.onnx", "--contract", "Mish, Gelu", "-o", target)
    assert result.code == 0
    assert "1 node changed" in result.out
    assert [node.op_type for node in onnx.load(target).graph.node] == ["Mish"]


def test_ir_versions(onnxreduce, source, tmp_path):
    target = tmp_path / "out.onnx"
    call = ("convert", source, "-o", target, "--force", "--opset")
    result = onnxreduce(*call, 13)
    assert result.code == 0
    assert "  opset 18 to 13, 112 bytes → 104 bytes, IR version 8 to 7\n" in result.out
    assert onnx.load(target).ir_version == 7
    for option, number in (("auto", 7), ("keep", 8), (7, 7), (6, 6), (9, 9)):
        assert onnxreduce(*call, 13, "--ir-version", option).code == 0
        assert onnx.load(target).ir_version == number
    assert onnxreduce(*call, 24).code == 0
    assert onnx.load(target).ir_version == 8
    assert onnxreduce(*call, 24, "--ir-version", 12).code == 0
    assert onnx.load(target).ir_version == 12


def test_what_holds_the_ir_version_up(onnxreduce, tmp_path):
    found = onnx.parser.parse_model("""<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        g (float[2,3] x) => (float[2,1] y) { y = local.F(x) }
        <domain: "local", opset_import: ["" : 18]>
        F (a) => (b) { i = Constant<value_ints = [1]>() b = ReduceMean(a, i) }""")
    onnx.save(found, tmp_path / "in.onnx")
    call = ("convert", tmp_path / "in.onnx", "-o", tmp_path / "out.onnx", "--opset", 13)
    result = onnxreduce(*call, "--ir-version", 7)
    assert result.code == 1
    text = (
        "IR version 7 has no place for model-local function 'F', which needs 8: say --ir-version 8"
    )
    assert text in result.err
    result = onnxreduce(*call)
    assert result.code == 0
    assert "IR version 10 to 8 (needed by model-local function 'F')" in result.out
    assert onnx.load(tmp_path / "out.onnx").ir_version == 8


def test_a_model_at_its_opset_gets_the_ir_version_of_that(onnxreduce, tmp_path):
    """The number that `helper.make_model` writes, which older runtimes do not take, is lowered."""
    found = onnx.parser.parse_model(TEXT)
    found.ir_version = 14
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(found, source)
    call = ("convert", source, "-o", target, "--force")
    result = onnxreduce(*call, "--opset", 18)
    assert result.code == 0
    assert "Converted at opset 18: 0 nodes changed\n" in result.out
    assert "  opset 18 as it was, 112 bytes → 112 bytes, IR version 14 to 8\n" in result.out
    assert onnx.load(target).graph == found.graph
    assert onnx.load(target).ir_version == 8
    result = onnxreduce(*call, "--expand", "Gelu")
    assert result.code == 0
    assert "IR version 14 stays (the opset stays; --ir-version 8 lowers it)" in result.out
    assert target.read_bytes() == source.read_bytes()


def test_imports_that_nothing_reads(onnxreduce, tmp_path):
    found = onnx.parser.parse_model(TEXT)
    for domain, version in (("ai.onnx.ml", 5), ("com.microsoft", 2), ("custom", 3)):
        found.opset_import.add(domain=domain, version=version)
    source, target = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(found, source)
    result = onnxreduce("convert", source, "-o", target, "--opset", 13)
    assert result.code == 0
    assert "  imports that nothing reads, removed: ai.onnx.ml 5, com.microsoft 2\n" in result.out
    left = {entry.domain: entry.version for entry in onnx.load(target).opset_import}
    assert left == {"": 13, "custom": 3}
    assert onnxreduce("convert", source, "-o", target, "--opset", 18, "--force").code == 0
    assert target.read_bytes() == source.read_bytes()


def test_a_wrong_step_stops_the_conversion(onnxreduce, source, tmp_path, monkeypatch):
    """The check can fail: a planted step reduces another axis."""
    key = ("ReduceMean", 18, "down")
    step = registry.STEPS[key]

    def wrong(context):
        context.replace(inputs=[context.input(0)], axes=[2])

    monkeypatch.setitem(registry.STEPS, key, registry.Step(*key, "step", step.description, wrong))
    target = tmp_path / "out.onnx"
    result = onnxreduce("convert", source, "--opset", 13, "-o", target)
    assert result.code == 1
    assert not target.exists()
    assert "ReduceMean node mean" in result.err
    folder = Path(result.err.splitlines()[-1].rpartition(" ")[2])
    assert (folder / "0" / "before.onnx").exists()
    replay = ("verify", folder / "0" / "before.onnx", folder / "0" / "after.onnx")
    assert onnxreduce(*replay, "--inputs", folder / "0" / "test_data_set_0").code == 1
    assert onnxreduce("convert", source, "--opset", 13, "-o", target, "--no-check").code == 0
    assert target.exists()
    target.unlink()
    result = onnxreduce("convert", source, "--opset", 13, "-o", target, "--no-check", "--verify")
    assert result.code == 1
    assert "NOT EQUIVALENT" in result.err
    assert not target.exists()


def test_verify_along_the_way(onnxreduce, source):
    result = onnxreduce("convert", source, "--opset", 13, "--verify")
    assert result.code == 0
    assert "verified: the whole models agree on 8 inputs, by " in result.out


@pytest.mark.parametrize("extension", ["json", "textproto", "onnxtxt"])
def test_other_forms(onnxreduce, tmp_path, extension):
    path = tmp_path / f"model.{extension}"
    onnx.save(model(TEXT), path)
    assert onnxreduce("convert", path, "--opset", 13).code == 0
    assert opset_of(tmp_path / f"model.opset13.{extension}") == 13
    assert onnxreduce("convert", path, "--opset", 13, "-o", tmp_path / "binary.onnx").code == 0
    assert opset_of(tmp_path / "binary.onnx") == 13


@pytest.fixture
def external(tmp_path):
    """A model whose weight lies in a file of its own, in a folder of its own."""
    weight = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4), "w")
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w"], ["m"]),
            helper.make_node("Softmax", ["m"], ["y"], axis=1),
        ],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])],
        [weight],
    )
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    external_data_helper.convert_model_to_external_data(found, True, "weights.bin", 0)
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "model.onnx"
    onnx.save(found, path)
    assert (tmp_path / "in" / "weights.bin").exists()
    return path


def test_external_data_stays_where_it_is(onnxreduce, external):
    result = onnxreduce("convert", external, "--opset", 11)
    assert result.code == 0
    assert sorted(os.listdir(external.parent)) == [
        "model.onnx",
        "model.opset11.onnx",
        "weights.bin",
    ]
    result = onnx.load(external.parent / "model.opset11.onnx", load_external_data=False)
    assert result.graph.initializer[0].data_location == TensorProto.EXTERNAL


def test_external_data_goes_along(onnxreduce, external, tmp_path):
    target = tmp_path / "out" / "model.onnx"
    target.parent.mkdir()
    assert onnxreduce("convert", external, "--opset", 11, "-o", target, "--verify").code == 0
    inputs = {"x": np.ones((2, 3), np.float32)}
    assert np.array_equal(
        run(onnx.load(external), inputs)["y"], run(onnx.load(target), inputs)["y"]
    )
    # Another file of that name is not overwritten.
    (target.parent / "weights.bin").write_bytes(b"precious")
    result = onnxreduce("convert", external, "--opset", 11, "-o", target, "--force")
    assert result.code == 2
    assert (target.parent / "weights.bin").read_bytes() == b"precious"


def test_external_data_outside_the_folder_or_missing(onnxreduce, external, tmp_path):
    data = external.parent / "weights.bin"
    data.rename(tmp_path / "weights.bin")
    target = tmp_path / "out.onnx"
    result = onnxreduce("convert", external, "--opset", 11, "-o", target)
    assert result.code == 2
    assert "weights.bin" in result.err
    found = onnx.load(external, load_external_data=False)
    found.graph.initializer[0].external_data[0].value = "../weights.bin"
    external.write_bytes(found.SerializeToString())
    result = onnxreduce("convert", external, "--opset", 11, "-o", target)
    assert result.code == 2
    assert "not inside the model's folder" in result.err
    assert not target.exists()


def test_a_target_that_cannot_be_written(onnxreduce, source, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    before = sorted(os.listdir(source.parent))
    result = onnxreduce("convert", source, "--opset", 13)
    assert result.code == 2
    assert f"{source.with_name('model.opset13.onnx')}: No space left on device" in result.err
    assert sorted(os.listdir(source.parent)) == before


def test_help_imports_nothing_heavy():
    script = (
        "import sys; sys.argv = ['onnxreduce', '--help']\n"
        "from onnxreduce_cli.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "heavy = {'onnx', 'onnxruntime', 'numpy'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True, capture_output=True)


def test_where_weights_go(onnxreduce, external, tmp_path):
    inputs = {"x": np.ones((2, 3), np.float32)}
    expected = run(onnx.load(external), inputs)["y"]
    inline, out = tmp_path / "inline.onnx", tmp_path / "out.onnx"
    assert onnxreduce("convert", external, "--opset", 11, "-o", inline, "--inline").code == 0
    assert not onnx.load(inline, load_external_data=False).graph.initializer[0].external_data
    # No opset is needed to move weights.
    result = onnxreduce("convert", inline, "-o", out, "--external-data-threshold", "48B")
    assert result.code == 0
    assert (tmp_path / "out.onnx.data").read_bytes() == (
        external.parent / "weights.bin"
    ).read_bytes()
    for path in (inline, out):
        assert np.array_equal(run(onnx.load(path), inputs)["y"], expected)


def test_links_come_with_a_warning(onnxreduce, external, tmp_path):
    target = tmp_path / "out.onnx"
    arguments = ("convert", external, "--opset", 11, "-o", target, "--external-data", "link")
    result = onnxreduce(*arguments, "--verify")
    assert result.code == 0
    assert "weights.bin is a hard link" in result.err
    assert (tmp_path / "weights.bin").samefile(external.parent / "weights.bin")


@pytest.mark.parametrize("size", ["", "-1", "1XB", "MB", "1 000", "0x10"])
def test_sizes_that_are_none(onnxreduce, source, size):
    result = onnxreduce("convert", source, "--external-data-threshold", size)
    assert result.code == 2
    assert "is no size" in result.err


def test_what_single_sites_do_not_show_is_compared(onnxreduce, tmp_path):
    path = tmp_path / "sequence.onnx"
    text = """<ir_version: 8, opset_import: ["" : 13]> g (float[n, 3] x) => (float[n, 3] y) {
        rows = SplitToSequence<axis = 0>(x)
        y = ConcatFromSequence<axis = 0>(rows)
    }"""
    onnx.save(model(text), path)
    done = onnxreduce("convert", path, "--opset", 10)
    assert done.err == ""
    assert "loads in ONNX Runtime, agrees with the model on 2 inputs" in done.out
    (found,) = json.loads(onnxreduce("convert", path, "--opset", 10, "--force", "--json").out)[
        "models"
    ]
    assert "agrees with the model on 2 inputs" in found["whole"]["summary"]
    warning = "warning: not checked: 2 nodes of sequences or optional values, written out together"
    assert warning in onnxreduce("convert", path, "--opset", 10, "--force", "--no-check").err


RANDOM = """<ir_version: 8, opset_import: ["" : 15]>
g (float[N] x) => (float[N] y) {
    [noise] y = Bernoulli(x)
}"""


def test_a_node_that_is_not_checked_is_a_warning_and_with_strict_an_error(onnxreduce, tmp_path):
    path, target = tmp_path / "model.onnx", tmp_path / "out.onnx"
    onnx.save(model(RANDOM), path)
    done = onnxreduce("convert", path, "--opset", 14, "-o", target, "--strict")
    assert done.code == 1
    assert "Bernoulli node noise: its results are random" in done.err
    assert "could not be checked:\n" in done.err
    assert r"\n" not in done.err
    assert not target.exists()

    done = onnxreduce("convert", path, "--opset", 14, "-o", target)
    assert done.code == 0
    assert "warning: not checked: Bernoulli node noise" in done.err
    assert target.exists()

    done = onnxreduce(
        "convert", path, "--opset", 14, "-o", target, "--strict", "--no-check", "--force"
    )
    assert done.code == 2
    assert "--strict and --no-check exclude" in done.err


def test_a_strict_conversion_of_checked_nodes_is_like_any_other(onnxreduce, source, tmp_path):
    target = tmp_path / "out.onnx"
    assert onnxreduce("convert", source, "--opset", 13, "-o", target, "--strict").code == 0
    assert target.exists()


def test_for_a_runtime(onnxreduce, tmp_path):
    source = tmp_path / "model.onnx"
    source.write_bytes((SAMPLES / "reductions_opset18.onnx").read_bytes())
    done = onnxreduce("convert", source, "--for", "opencv==4.6")
    assert done.code == 0
    text = " ".join(done.out.split())
    assert "for opencv 4.6: at the model's own opset, 18, it would get wrong or refuse" in text
    made = onnx.load(tmp_path / "model.opencv-4.6.onnx")
    assert made.opset_import[0].version == 12
    unknown = onnxreduce("convert", source, "--for", "opencw")
    assert unknown.code == 2
    assert "did you mean opencv?" in unknown.err
    assert onnxreduce("convert", source).code == 2


def test_of_runtimes_that_nobody_named_inspect_tells(onnxreduce, tmp_path):
    path, made = tmp_path / "m.onnx", tmp_path / "m.opset13.onnx"
    onnx.save(
        model("""<ir_version: 8, opset_import: ["" : 11]>
            g (float[2,3] x) => (float[2,1] y) { y = ReduceL1<axes=[1]>(x) }"""),
        path,
    )
    assert "openvino" not in onnxreduce("convert", path, "--opset", "13").out

    def wrong(path):
        return json.loads(onnxreduce("inspect", path, "--json").out)["runtimes"]["wrong"]

    line = "openvino 2025.4 to 2026.4: ReduceL1"
    warning = "warning: computed wrong as it is, with no error; convert --for avoids that:\n"
    told = onnxreduce("inspect", made).out
    assert f"  {line}\n" in told[told.index(warning) :]
    assert wrong(made)["openvino"] == {"ReduceL1": "2025.4 to 2026.4"}
    assert "openvino" not in wrong(path)
    assert onnxreduce("convert", path, "--for", "openvino==2026.4").code == 0
    assert "openvino" not in wrong(tmp_path / "m.openvino-2026.4.onnx")


def test_an_opset_is_asked_for_where_the_model_has_none(onnxreduce, tmp_path):
    path = tmp_path / "other.onnx"
    text = """<ir_version: 8, opset_import: ["other" : 1]>
        g (float[N] x) => (float[N] y) { y = other.Own(x) }"""
    onnx.save(model(text), path)
    result = onnxreduce("convert", path, "--strip-metadata")
    assert result.code == 2
    assert "the model imports no default domain; name the opset: --opset N" in result.err


def test_operators_to_write_out_that_the_model_lacks(onnxreduce, source, tmp_path):
    call = ("convert", source, "-o", tmp_path / "out.onnx", "--expand", "Gelu")
    assert "nothing to change there: the model has no Gelu" in onnxreduce(*call).out
    call = ("convert", call[1], "--ml-opset", 2, "--dry-run")
    assert "the model has no ai.onnx.ml" in onnxreduce(*call).out
