"""The options that commands share: what they take, and what they do."""

from __future__ import annotations

import json

import click
import onnx
import pytest
from onnx import helper

from onnxreduce_cli.cli.convert import convert_command
from onnxreduce_cli.cli.options import parse_size
from tests.support import model

TEXT = """<ir_version: 10, opset_import: ["" : 18, "local" : 1], doc_string: "by me">
    g (float[N,3] x) => (int64[2] y) { [call] z = local.Same(x)  [shape] y = Shape(z) }
    <domain: "local", opset_import: ["" : 18]> Same (a) => (b) { b = Identity(a) }"""


@pytest.fixture(autouse=True)
def _source(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    onnx.save(model(TEXT), "m.onnx")


def test_each_option_does_without_an_opset(onnxreduce):
    result = onnxreduce("convert", "--strip-metadata", "m.onnx", "-o", "stripped.onnx")
    assert result.code == 0, result.err
    assert "metadata of the model and all in it stripped: 7 bytes less" in result.out
    assert onnx.load("stripped.onnx").doc_string == ""
    assert onnxreduce("convert", "m.onnx", "--strip-metadata=nodes", "-o", "kept.onnx").code == 0
    assert onnx.load("kept.onnx").doc_string == "by me"
    result = onnxreduce("convert", "m.onnx", "--inline-functions", "-o", "inlined.onnx")
    assert result.code == 0
    assert "function local.Same: inlined for call" in result.out
    assert not onnx.load("inlined.onnx").functions
    result = onnxreduce("convert", "m.onnx", "--dim", "N=2", "--verify")
    assert result.code == 0, result.err
    assert "dimensions fixed: N = 2" in result.out
    found = onnx.load("m.opset18.onnx")
    assert [node.op_type for node in found.graph.node] == ["Constant"]
    assert found.opset_import[0].version == 18


def test_dtypes_of_inputs_and_outputs_with_commas_and_several_times(onnxreduce):
    options = ["--io-dtype", "x=fp16,y=i32", "--io-dtype", "y=i32"]
    result = onnxreduce("convert", "m.onnx", *options, "--dry-run")
    assert result.code == 0, result.err
    lines = [
        "input x: float16 instead of float, which a Cast inside restores; values that do not",
        "output y: int32 instead of int64, by a Cast at its end; values that do not",
    ]
    assert all(line in result.out for line in lines)
    result = onnxreduce("convert", "m.onnx", *options, "-o", "o.onnx", "--json")
    prepared = json.loads(result.out)["models"][0]["plan"]["prepared"]
    assert [item[:40] for item in prepared] == [item[:40] for item in lines]
    found = onnx.load("o.onnx").graph
    assert [item.type.tensor_type.elem_type for item in (*found.input, *found.output)] == [10, 6]
    for wrong, said in (
        ("z=int32", "the model has no input or output 'z'"),
        ("x", "'x' is not of the form NAME=DTYPE"),
        ("x=fp16,x=fp64", "it says both fp16 and fp64 of 'x'"),
        ("x=fp17", "there is no dtype 'fp17'; did you mean fp16"),
    ):
        result = onnxreduce("convert", "m.onnx", "--io-dtype", wrong)
        assert result.code == 2
        assert said in " ".join(result.err.split())


def test_ranges_with_commas_and_several_times(onnxreduce, tmp_path):
    text = """<ir_version: 8, opset_import: ["": 17]>
        g (int64[2] a, int64[2] b) => (int64[2] y) { [mul] c = Mul(a, b) [add] y = Add(c, a) }"""
    onnx.save(onnx.parser.parse_model(text), "integers.onnx")
    call = ["convert", "integers.onnx", "--dtype", "int64=int32", "-o", "o.onnx"]
    result = onnxreduce(*call)
    assert result.code == 1
    assert "state the range of 'a': --assume-range 'a=MIN:MAX'" in " ".join(result.err.split())
    ranges = ["--assume-range", "a=-9:9,b=0:99", "--assume-range", "b=0:99"]
    result = onnxreduce(*call, *ranges, "--dry-run")
    assert result.code == 0, result.err
    assert "taken as stated: a in -9:9, b in 0:99" in result.out
    result = onnxreduce(*call, *ranges, "--verify")
    assert result.code == 0, result.err
    assert "input b: run at 0 and 99, as its range is stated" in result.out + result.err
    for wrong, said in (
        ("c", "'c' is not of the form NAME=MIN:MAX, with two integers, as in ids=0:30521"),
        ("c=1:2.5", "is not of the form NAME=MIN:MAX"),
        ("c=1:2,c=1:3", "it says two ranges of 'c'"),
        ("d=1:2", "no dimension of an input is called 'd'"),
        ("c=2:1", "the first number is above the second"),
    ):
        result = onnxreduce(*call, "--force", "--assume-range", wrong)
        assert result.code == 2
        assert said in " ".join(result.err.split())


def test_a_dimension_that_is_not_there(onnxreduce):
    result = onnxreduce("convert", "m.onnx", "--dim", "M=2")
    assert result.code == 2
    assert "the model has no such dimension" in result.err
    assert "it has 'N'" in result.err


def test_a_dimension_that_is_said_twice(onnxreduce):
    result = onnxreduce("convert", "m.onnx", "--dim", "N=2", "--dim", "N=3")
    assert result.code == 2
    assert "it says both 2 and 3 for N" in result.err
    assert (
        "not of the form name=size, as batch=1"
        in onnxreduce("convert", "m.onnx", "--dim", "N=²").err
    )


def test_a_dtype_that_becomes_no_other(onnxreduce):
    result = onnxreduce("convert", "m.onnx", "--dtype", "bfloat16")
    assert result.code == 2
    assert "'bfloat16' is not of the form FROM=TO" in result.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1048576", 1 << 20),
        ("1MB", 1_000_000),
        ("1mb", 1_000_000),
        ("512KiB", 512 << 10),
        ("1.5 GB", 1_500_000_000),
        ("2GiB", 2 << 30),
        ("0", 0),
        ("3TB", 3 * 10**12),
        (None, None),
    ],
)
def test_sizes(text: str | None, expected: int | None) -> None:
    assert parse_size(click.Context(convert_command), convert_command.params[0], text) == expected


@pytest.fixture
def source(tmp_path):
    found = model("""<ir_version: 8, opset_import: ["" : 18, "my.ops" : 1]>
    g (float[2,3] x) => (float[N,M] z) { y = my.ops.Foo(x) z = Relu(y) }""")
    found.graph.output[0].CopyFrom(helper.make_empty_tensor_value_info("z"))
    path = tmp_path / "model.onnx"
    onnx.save(found, path)
    return path


def test_the_blocker_says_what_to_type(onnxreduce, source):
    result = onnxreduce("convert", source, "--opset", 13)
    assert result.code == 1
    assert " ".join(result.err.split()).endswith("state it, such as: --type y=float")
    result = onnxreduce("convert", source, "--opset", 13, "--type", "y=float")
    assert result.code == 0
    assert "types taken as given, stated in value_info: y=float" in result.out
    written = onnx.load(source.with_name("model.opset13.onnx"))
    assert [info.name for info in written.graph.value_info] == ["y"]


def test_the_plan_says_what_was_stated(onnxreduce, source):
    result = onnxreduce("convert", source, "--opset", 13, "--dry-run", "--type", "y=float[2,N]")
    assert result.code == 0
    assert "types taken as given, stated in value_info: y=float[2,N]" in result.out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["y"], "'y' is not of the form NAME=DTYPE"),
        (["=float"], "'=float' is not of the form NAME=DTYPE"),
        (["y=float", "y=uint8"], "it says both float and uint8 of 'y'"),
        (["y=flaot"], "there is no dtype 'flaot'; did you mean float"),
        (["w=float"], "--type w: no graph of the model has such a value"),
        (["x=double"], "--type x: it is known to be float[2,3]"),
    ],
)
def test_what_makes_no_sense_is_refused(onnxreduce, source, given, message):
    options = [item for text in given for item in ("--type", text)]
    result = onnxreduce("convert", source, "--opset", 13, *options)
    assert result.code == 2
    assert message in result.err
    assert not source.with_name("model.opset13.onnx").exists()


def test_several_models_take_it_too(onnxreduce, source, tmp_path):
    options = ["--opset", 13, "--out-dir", tmp_path / "out", "--resume", "--type", "y=float"]
    for _ in range(2):
        result = onnxreduce("convert", source, *options)
        assert result.code == 0
    assert (tmp_path / "out" / "model.onnx").exists()
