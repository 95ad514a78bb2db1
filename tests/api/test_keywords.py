"""Errors of the library name its keywords, where those of the command name its options."""

from __future__ import annotations

import re

import pytest

import onnxreduce
from onnxreduce_cli.api.keywords import in_keywords
from tests.support import model

SOURCE = """<ir_version: 8, opset_import: ["" : 18]>
g (float[N,3] x) => (float[N,1] y) <int64[1] axes = {1}> { [first] y = ReduceMax(x, axes) }"""


@pytest.mark.parametrize(
    ("typed", "keywords"),
    [
        ("a.onnx exists; to overwrite it say --force", "force=True"),
        ("fix its dimensions: --dim NAME=SIZE", ": dims={NAME: SIZE}"),
        ("leave ai.onnx.ml at 2: --ml-opset 2", ": ml_opset=2"),
        ("change it throughout: --dtype bfloat16=float", ": dtypes={'bfloat16': 'float'}"),
        ("name a version: --for onnxruntime==1.20", ": target='onnxruntime==1.20'"),
        ("state it, such as: --type 'a b=uint8[2]'", ": types={'a b': 'uint8[2]'}"),
        ("say them: -i NAME=FILE.npy", ": inputs={NAME: FILE.npy}"),
        ("weights apart: --external-data-threshold 1MB", ": threshold=1_000_000"),
        ("name a file: -o DIR/x.onnx", ": out='DIR/x.onnx'"),
        ("--strict and --no-check exclude each other", "strict=True and check=False exclude each"),
        ("to keep them: --keep-dtype '/a/Pow,Add 1'", ": keep_dtype=['/a/Pow', 'Add 1']"),
        ("leave --for out", "leave target out"),
    ],
)
def test_an_option_becomes_the_keyword(typed: str, keywords: str) -> None:
    assert keywords in in_keywords(typed)
    assert not re.search(r"(^| )--?[a-z]", in_keywords(typed))


def test_a_command_to_type_in_a_shell_stays() -> None:
    typed = "list them: onnxreduce ops --of a.onnx\nthen say --force"
    assert in_keywords(typed) == "list them: onnxreduce ops --of a.onnx\nthen say force=True"


def test_exceptions_name_keywords() -> None:
    source = model(SOURCE)
    with pytest.raises(onnxreduce.UsageError, match=r"opset=N.*target=RUNTIME"):
        onnxreduce.convert(source)
    with pytest.raises(onnxreduce.UsageError, match=r"dtypes=\{FROM: TO\}"):
        onnxreduce.plan(source, 13, keep_interface=True)
