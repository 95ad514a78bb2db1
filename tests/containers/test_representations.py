"""Values of graphs within graphs: what stands for those of one place has one kind."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.support import blockers, converts, model

X, Z = np.array([1, -2], np.float32), np.arange(6, dtype=np.float32).reshape(3, 2)
HEAD = '<ir_version: 8, opset_import: ["": 16]> g '

CHOSEN = (
    HEAD
    + """(float[2] x, float[N, 2] z, bool c) => (bool h, {value}) {{
    p = If(c) < then_branch = t () => (optional({kind}) a) {{ {first} }},
        else_branch = e () => (optional({kind}) b) {{ {second} }}>
    h = OptionalHasElement(p)
    {read}
}}"""
)

LENGTH = """y = If(h) < then_branch = u () => (int64 l)
        { q = OptionalGetElement(p)  l = SequenceLength(q) },
    else_branch = f () => (int64 m) { m = Constant<value_int = 7>() }>"""

SOME = "s = SequenceConstruct(x, z)  a = Optional(s)"
ELEMENT = "y = OptionalGetElement(p)"


@pytest.mark.parametrize("target", [15, 14, 10, 7])
@pytest.mark.parametrize(
    ("kind", "value", "first", "second", "read"),
    [
        ("seq(float)", "int64 y", SOME, "b = Optional<type = seq(float)>()", LENGTH),
        (
            "seq(float)",
            "int64 y",
            "e = SequenceEmpty()  a = Optional(e)",
            "b = Optional<type = seq(float)>()",
            LENGTH,
        ),
        ("float[2]", "float[2] y", "a = Optional(x)", "n = Neg(x)  b = Optional(n)", ELEMENT),
        (
            "float[2]",
            "bool y",
            "a = Optional<type = float[2]>()",
            "b = Optional<type = float[2]>()",
            "y = Not(h)",
        ),
        (
            "seq(float)",
            "int64 y",
            SOME,
            "r = SequenceConstruct(z, x)  b = Optional(r)",
            "q = OptionalGetElement(p)  y = SequenceLength(q)",
        ),
    ],
    ids=["list or none", "empty list or none", "two tensors", "none or none", "two lists"],
)
def test_optional_values_of_branches(
    kind: str, value: str, first: str, second: str, read: str, target: int
) -> None:
    source = model(CHOSEN.format(kind=kind, value=value, first=first, second=second, read=read))
    feeds = [{"x": X, "z": Z, "c": np.array(flag)} for flag in (True, False)]
    converts(source, target, *feeds, exact=True)


def test_what_is_not_there_takes_no_memory() -> None:
    """It has the shape of what else is given in its place."""
    source = model(
        CHOSEN.format(
            kind="seq(float[900, 900])",
            value="int64 y",
            first="s = SequenceConstruct(x, x)  a = Optional(s)",
            second="b = Optional<type = seq(float[900, 900])>()",
            read=LENGTH,
        ).replace("float[2] x", "float[900, 900] x")
    )
    feeds = {"x": np.ones((900, 900), np.float32), "z": Z, "c": np.array(False)}
    assert converts(source, 15, feeds, exact=True).ByteSize() < 3000


#: A value that is not there at first, and what a round makes of it.
LATER = (
    HEAD
    + """(float[2] x, bool c, int64 n) => (bool h, {value}) {{
    first = Optional<type = {kind}>()
    p = Loop(n, c, first) < body = b (int64 i, bool k, optional({kind}) now)
        => (bool m, optional({kind}) next) {{
            m = Identity(k)  has = OptionalHasElement(now)
            next = If(has) <
                then_branch = t () => (optional({kind}) a)
                    {{ q = OptionalGetElement(now)  {again} }},
                else_branch = e () => (optional({kind}) d) {{ {begin} }}>
        }}>
    h = OptionalHasElement(p)
    {read}
}}"""
)


@pytest.mark.parametrize("target", [15, 12, 9])
@pytest.mark.parametrize(
    ("kind", "value", "again", "begin", "read"),
    [
        (
            "float[2]",
            "float[2] y",
            "r = Add(q, x)  a = Optional(r)",
            "d = Optional(x)",
            """y = If(h) < then_branch = u () => (float[2] l) { l = OptionalGetElement(p) },
                else_branch = f () => (float[2] m2) { m2 = Neg(x) }>""",
        ),
        (
            "seq(float[2])",
            "int64 y",
            "r = SequenceInsert(q, x)  a = Optional(r)",
            "o = SequenceConstruct(x, x)  d = Optional(o)",
            LENGTH.replace("m)", "m2)").replace("m =", "m2 ="),
        ),
    ],
    ids=["tensor", "sequence"],
)
def test_optional_values_that_a_loop_makes_later(
    kind: str, value: str, again: str, begin: str, read: str, target: int
) -> None:
    source = model(LATER.format(kind=kind, value=value, again=again, begin=begin, read=read))
    feeds = [{"x": X, "c": np.array(True), "n": np.array(n)} for n in range(4)]
    converts(source, target, *feeds, exact=True, in_numpy=True)


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        ("a = Optional(x)", "s = SequenceEmpty()  b = Optional(s)", "values of different kinds"),
        ("a = Optional(x)", "b = Neg(x)", "its branches give values of two kinds"),
        ("a = SequenceEmpty()", "b = Optional(x)", "values of different kinds"),
    ],
)
def test_branches_that_give_values_of_different_kinds(first: str, second: str, reason: str) -> None:
    """Which onnx's full check refuses."""
    source = onnx.parser.parse_model(
        CHOSEN.format(
            kind="float[2]", value="bool y", first=first, second=second, read="y = Not(h)"
        )
    )
    (blocker,) = blockers(source, 14)
    assert reason in blocker.reason
    assert blocker.advice.startswith("mend the model: ")
