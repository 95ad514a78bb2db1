"""Names of models as messages show them."""

from __future__ import annotations

import re

import pytest
from onnx import TensorProto, helper

from onnxreduce_cli import ConversionError, convert
from onnxreduce_cli.engine.inspection import Inspection
from onnxreduce_cli.engine.runtime_reach import Runtimes
from onnxreduce_cli.errors import Blocker
from onnxreduce_cli.report.contents import ModelContents
from onnxreduce_cli.report.inspection import inspection_text
from onnxreduce_cli.text import joined, printable, quoted, shortened, width, wrapped


def test_what_is_seen_stays():
    assert printable("größe/層_0 [x]") == "größe/層_0 [x]"
    assert shortened("a" * 200) == "a" * 200
    assert shortened("a" * 68, 60) == "a" * 68, "saying what is left out would take more"


def test_what_is_not_seen_is_escaped():
    assert printable("a\nb\x1b[31m\x9b\u202e\udc80") == r"a\nb\x1b[31m\x9b\u202e\udc80"


def test_escaping_twice_is_escaping_once():
    once = printable("a\nb\x7f")
    assert printable(once) == once


def test_the_middle_of_a_long_name_is_left_out():
    name = "begin" + "a" * 65526 + "end"
    short = shortened(name)
    assert short.startswith("begina")
    assert short.endswith("aend")
    assert "[... 65334 characters ...]" in short


def test_each_line_stays_one():
    assert joined(["a\nb", "c"]) == "a\\nb\nc"


@pytest.mark.parametrize("character", ["a", "\n", "\u202e", "\U0010ffff"])
def test_no_line_is_too_long_to_read(character):
    assert len(joined([character * 65536])) < 2000


@pytest.mark.parametrize("name", ["n" * 65536, b"\xff" * 65536])
def test_a_long_name_is_quoted_in_part(name):
    assert repr(name)[:50] in quoted(name)
    assert len(quoted(name)) < 300


def test_an_inspection_names_long_domains_in_part():
    name = "n" * 65536
    found = Inspection(
        8, {name: 1}, {f"{name}.f": {name: 2}}, {}, (), {}, Runtimes({}, {}, {}, {}, {})
    )
    held = ModelContents(None, "", {}, 0, (), (), {}, {f"{name}.f": 2}, ())
    text = re.sub(r"\n {4,}", " ", inspection_text(found, held, "m.onnx"))  # Wrapped lines in one.
    first, second = text.splitlines()[:2]
    assert first.startswith("m.onnx: IR version 8, nnn")
    assert first.endswith("nnn 1")
    assert second.endswith("nnn 2")
    assert len(first) < 300


def test_a_blocker_with_names_of_64_kb_is_one_readable_line():
    name = "n" * 65536
    text = str(Blocker(name, name, 18, name, f"no {name!r}", "mend it"))
    assert "\n" not in text
    assert len(text) < 3000
    assert text.endswith("; mend it")


def test_the_message_of_the_library_quotes_long_names_in_part():
    name = "n\n" * 32768
    node = helper.make_node("Made", ["x"], [name], name=name, domain=name)
    graph = helper.make_graph(
        [node, helper.make_node("ReduceMax", [name, "axes"], ["y"], name=name)],
        "g",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, [2]),
            helper.make_tensor_value_info("axes", TensorProto.INT64, ["n"]),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(name, 1)]
    with pytest.raises(ConversionError) as caught:
        convert(helper.make_model(graph, opset_imports=opsets, ir_version=8), 6)
    assert caught.value.blockers[0].node == name
    assert len(str(caught.value)) < 3000
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize("total", [80, 120, 200])
def test_prose_is_wrapped_by_columns(total, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(total))
    words = ["模型編碼器", "e\u0301cole", "한국어", "node", "reason"] * 20
    lines = wrapped([f"  {' '.join(words)}; choose --opset 13"]).split("\n")
    assert max(map(width, lines)) in range(total - 20, total + 1)
    assert " ".join(line.strip() for line in lines).split(" ")[: len(words) - 1] == words[:-1]
    assert [line[:6] == " " * 6 for line in lines] == [False] + [True] * (len(lines) - 1)
    assert any("--opset 13" in line for line in lines), "an option stays with its value"


def test_what_is_too_long_for_a_line_is_left_whole(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    assert wrapped(["a " + "x" * 60 + " b", "", "  c"]) == f"a\n    {'x' * 60}\n    b\n\n  c"
