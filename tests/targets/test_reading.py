"""The runtimes' files are complete, and a mistake in one is found."""

from __future__ import annotations

import re

import pytest

from onnxreduce_cli import schemas
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.targets.forms import FORMS
from onnxreduce_cli.targets.operators import read_operators
from onnxreduce_cli.targets.reading import parse_runtime, read_runtime, runtime_names
from onnxreduce_cli.targets.rows import FACTS, Quirk, Source

#: Those that people ask for.
WANTED = {
    "onnxruntime", "opencv", "openvino", "tensorrt", "rknn", "qnn", "horizon", "tidl", "stedgeai",
    "vitisai", "ryzenai", "hailo", "winml", "migraphx", "unity", "onnx-mlir", "burn", "pplnn",
    "axelera", "sima",
}  # fmt: skip


def complete(source: Source) -> bool:
    return bool(source.where) and re.fullmatch(r"20\d\d-\d\d-\d\d", source.date) is not None


def test_those_that_people_ask_for_are_there() -> None:
    assert set(runtime_names()) >= WANTED


@pytest.mark.parametrize("name", runtime_names())
def test_each_row_is_complete(name: str) -> None:
    found = read_runtime(name)
    assert found.title
    assert found.rows
    for row in found.rows:
        assert row.facts.keys() == FACTS.keys()
        for fact in row.facts.values():
            assert (fact.source is None) == (fact.value is None)
            assert fact.source is None or complete(fact.source)
        for quirk in row.quirks:
            assert complete(quirk.source)
            assert quirk.what
    assert (
        any(quirk for row in found.rows for quirk in row.quirks)
        or any(fact.value for row in found.rows for fact in row.facts.values())
        or read_operators(name) is not None
    ), "nothing is known of it"


def quirks() -> list[Quirk]:
    return [
        quirk for name in runtime_names() for row in read_runtime(name).rows for quirk in row.quirks
    ]


@pytest.mark.newest
def test_quirks_are_of_operators_that_exist() -> None:
    assert set().union(*(quirk.operators for quirk in quirks())) <= set(schemas.operators())


def test_each_form_is_used() -> None:
    assert {quirk.form for quirk in quirks()} == set(FORMS)


FILE = """
title = "One"
[sources.lab]
kind = "measured"
where = "here"
date = "2026-11-22"
[every]
best = { value = 12, source = "lab" }
"""
ROW = '\n[[row]]\nversion = "1.0"\nsource = "lab"\nnewest = 13\n'
QUIRK = """
[[quirk]]
versions = ">=1"
operators = ["Reduce* but ReduceSum", "Abs"]
opsets = "13-17"
form = "axes input"
effect = "wrong"
what = "halts"
source = "lab"
"""


def test_a_file() -> None:
    (row,) = parse_runtime("one", FILE + ROW + QUIRK).rows
    assert row.number("newest") == 13
    assert row.number("oldest") is None
    assert str(row.facts["oldest"]) == "not known"
    assert row.number("best") == 12
    (quirk,) = row.quirks
    assert {"Abs", "ReduceMax"} < quirk.operators
    assert "ReduceSum" not in quirk.operators
    assert [quirk.at(opset) for opset in (12, 13, 17, 18)] == [False, True, True, False]
    assert str(quirk.source) == "measured, 2026-11-22: here"


def test_a_row_may_say_that_a_fact_of_all_others_is_not_known() -> None:
    (row,) = parse_runtime("one", FILE + ROW + 'best = "not known"').rows
    assert row.number("best") is None


def test_three_lines_are_a_file() -> None:
    found = parse_runtime("one", 'title = "One"\n[[row]]\nversion = "1.0"')
    assert [str(row.version) for row in found.rows] == ["1.0"]
    assert {str(fact) for fact in found.rows[0].facts.values()} == {"not known"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (FILE.replace('title = "One"', "") + ROW, "one lacks 'title'"),
        (FILE + "[[row]]", "one lacks 'version'"),
        ('title = "One"\nrow = 3', "one has a value of a wrong type"),
        ("title = One", "one.toml: "),
        (FILE + ROW.replace('source = "lab"', ""), "13 has no source"),
        (FILE + ROW.replace('"lab"', '"web"'), "web"),
        (FILE + ROW + ROW, "two have one version"),
        (FILE + ROW + "speed = 1", "a row has no speed"),
        (FILE.replace("measured", "guessed") + ROW, "'guessed' is none of measured, document"),
        (FILE + ROW + QUIRK.replace("axes input", "odd"), "'odd' is none of any"),
        (FILE + ROW + QUIRK.replace("wrong", "slow"), "'slow' is none of wrong"),
        (FILE + ROW + QUIRK.replace(">=1", "1"), "no condition"),
        (FILE + ROW + QUIRK.replace("opsets", "opset"), "a quirk has no opset"),
        (FILE + ROW + QUIRK.replace("13-17", "new"), "new"),
        (FILE, "one lacks 'row'"),
    ],
)
def test_mistakes(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        parse_runtime("one", text)
