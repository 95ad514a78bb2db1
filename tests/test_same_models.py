"""What counts as the same result of two conversions."""

from __future__ import annotations

import json

import pytest

from onnxreduce_cli import convert
from tests import same_models
from tests.same_models import canonical
from tests.support import model

SOURCE = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x, int64[1] axes) => (float[2,3] y) {
    s = ReduceMax<keepdims=1>(x, axes)
    y = Add(x, s)
}"""


def made_up(names):
    """The source with a node before it whose names are not the source's."""
    text = SOURCE.replace("s = ReduceMax", f"{names[0]} = Abs(x)\n    s = ReduceMax")
    return model(text.replace("(x, axes)", f"({names[1]}, axes)"))


def same(one, other):
    source = model(SOURCE)
    return canonical(one, source) == canonical(other, source)


def test_names_that_were_made_up_do_not_count():
    assert same(made_up(["a", "a"]), made_up(["b", "b"]))
    assert not same(made_up(["a", "a"]), made_up(["b", "x"]))


def test_names_of_the_source_count():
    renamed = made_up(["a", "a"])
    renamed.graph.node[1].output[0] = renamed.graph.node[2].input[1] = "t"
    assert not same(made_up(["a", "a"]), renamed)


def test_attributes_and_initializers_count():
    source = model(SOURCE)
    first, second = convert(source, 13), convert(source, 13)
    assert same(first, second)
    second.graph.node[-1].attribute.add(name="more", i=1)
    assert not same(first, second)


def test_what_differs_is_told(tmp_path, monkeypatch, capsys):
    def one(target):
        monkeypatch.setattr(
            same_models, "conversions", lambda: iter([("it", lambda: model(SOURCE), target)])
        )

    one(13)
    assert same_models.main("record", str(tmp_path / "found.json")) == 0
    assert set(json.loads((tmp_path / "found.json").read_text())) == {"it"}
    assert same_models.main("compare", str(tmp_path / "found.json")) == 0
    one(11)
    assert same_models.main("compare", str(tmp_path / "found.json")) == 1
    assert "not the same: it" in capsys.readouterr().out


@pytest.mark.matrix
def test_conversions_are_drawn_the_same_each_time():
    first = [(name, target) for name, _, target in same_models.conversions()]
    assert len(first) >= same_models.COUNT
    assert first == [(name, target) for name, _, target in same_models.conversions()]
