"""Einsum below 12."""

from __future__ import annotations

import re

import numpy as np
import pytest

from onnxreduce_cli import InvalidModelError, plan
from tests.support import blockers, converts, converts_or_counts, model, one_node

EQUATIONS = [
    ("ij->ji", [(2, 3)]),
    ("ij->j", [(2, 3)]),
    ("ij->", [(2, 3)]),
    ("ij", [(2, 3)]),
    ("ii->i", [(3, 3)]),
    ("iji->j", [(3, 2, 3)]),
    ("ii", [(3, 3)]),
    ("...ij->...ji", [(4, 2, 3)]),
    ("i,i", [(3,), (3,)]),
    ("i,j->ij", [(3,), (2,)]),
    ("ij,jk", [(2, 3), (3, 4)]),
    ("ij,jk->ki", [(2, 3), (3, 4)]),
    ("bij,bkj->bik", [(2, 3, 4), (2, 5, 4)]),
    ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
    ("bqhd,bkhd->bhqk", [(2, 4, 3, 5), (2, 6, 3, 5)]),
    ("bhqk,bkhd->bqhd", [(2, 3, 4, 6), (2, 6, 3, 5)]),
    ("abc,cde->abde", [(2, 3, 4), (4, 5, 6)]),
    ("abcd,cde->abe", [(2, 3, 4, 5), (4, 5, 6)]),
    ("abcd,dce->abe", [(2, 3, 4, 5), (5, 4, 6)]),
    ("ab,cd->ac", [(2, 3), (4, 5)]),
    ("ij,ij->ij", [(2, 3), (2, 3)]),
    ("ij,ij->i", [(2, 3), (2, 3)]),
    ("...ij,...jk->...ik", [(4, 2, 3), (1, 3, 5)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("i,ij,j->", [(2,), (2, 3), (3,)]),
    ("bij, bjk -> bik", [(2, 0, 3), (2, 3, 4)]),
    ("ij,jk->ik", [(2, 0), (0, 4)]),
    ("Bn,nB->B", [(2, 3), (3, 2)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
@pytest.mark.newest
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    rng = np.random.default_rng(2)
    for dtype in (np.float32, np.float64, np.int64):
        inputs = {
            f"x{index}": (rng.normal(size=shape) * 5).astype(dtype)
            for index, shape in enumerate(shapes)
        }
        rank = np.einsum(equation, *inputs.values()).ndim
        output = [[None] * rank]
        source = one_node("Einsum", 12, inputs, equation=equation, output_shapes=output)
        for target in (11, 9, 7) if dtype != np.int64 else (11, 9):
            converts(source, target, inputs)
        if "ii" in equation or "iji" in equation:
            continue
        named = {
            name: [f"{name}_{axis}" for axis in range(array.ndim)] for name, array in inputs.items()
        }
        symbolic = one_node(
            "Einsum", 12, inputs, equation=equation, output_shapes=output, shapes=named
        )
        converts(symbolic, 11, inputs)


@pytest.mark.parametrize("equation", ["ii->i", "iij->ji", "jii", "iji,i->ij"])
def test_einsum_of_a_diagonal_of_unknown_size(equation: str) -> None:
    x = np.arange(9, dtype=np.float32)
    shape = [3] * len(equation.partition(",")[0].partition("->")[0])
    inputs = {"x": np.resize(x, shape)} | ({"z": x[:3]} if "," in equation else {})
    names = {name: ["n"] * array.ndim for name, array in inputs.items()}
    rank = np.einsum(equation, *inputs.values()).ndim
    source = one_node(
        "Einsum", 12, inputs, equation=equation, shapes=names, output_shapes=[[None] * rank]
    )
    for target in (11, 8):
        converts_or_counts(source, target, inputs)


def test_einsum_that_cannot() -> None:
    x = np.ones((3, 3), np.float32)
    unranked = one_node(
        "Einsum",
        12,
        {"x": x},
        equation="i...->i",
        hidden=("x",),
        output_shapes=[[None]],
    )
    assert "rank" in blockers(unranked, 11)[0].reason
    of_two = one_node(
        "Einsum", 12, {"x": x}, equation="ij->ji", hidden=("x",), output_shapes=[[None, None]]
    )
    converts(of_two, 11, {"x": x})


@pytest.mark.parametrize(
    "equation",
    ["...ii->&..i", "ij->ii", "ij->k", "ij->i..", "i1->i", "ij->j->i", "i.j...->i", "é->é"],
)
def test_what_is_no_equation(equation: str) -> None:
    node = one_node("Einsum", 12, {"x": np.ones((3, 3), np.float32)}, equation="ij->ji")
    node.graph.node[-1].attribute[0].s = equation.encode()
    message = re.escape(f"its attribute 'equation' is {equation!r}, which is none; mend")
    with pytest.raises(InvalidModelError, match=message):
        plan(node, 11)


def test_an_equation_of_more_operands_than_there_are() -> None:
    x = np.ones((3, 3), np.float32)
    node = one_node("Einsum", 12, {"x": x}, equation="ij->ji", hidden=("x",))
    node.graph.node[-1].attribute[0].s = b"ij,jk->ik"
    (blocker,) = blockers(node, 11)
    assert blocker.reason == "its equation 'ij,jk->ik' does not describe its inputs"


def test_what_is_no_equation_by_way_of_functions() -> None:
    text = """<ir_version: 8, opset_import: ["" : 12, "f" : 1]>
        g (float[3,3] x) => (float y) { [call] y = f.Outer <rule = "ij->"> (x) }
        <domain: "f", opset_import: ["" : 12, "f" : 1]>
        Outer <rule> (a) => (b) { b = f.Inner <equation: string = @rule> (a) }
        <domain: "f", opset_import: ["" : 12]>
        Inner <equation> (a) => (b) { b = Einsum <equation: string = @equation> (a) }"""
    found = model(text)
    assert plan(found, 11).possible
    found.graph.node[0].attribute[0].s = b"...ii->&..i"
    message = re.escape("its attribute 'rule' is '...ii->&..i', which is no equation, and")
    with pytest.raises(InvalidModelError, match=message):
        plan(found, 11)


def test_a_default_that_is_no_equation() -> None:
    text = """<ir_version: 9, opset_import: ["" : 12, "f" : 1]>
        g (float[3,3] x) => (float y) { y = f.F (x) }
        <domain: "f", opset_import: ["" : 12]>
        F <equation: string = "ij->"> (a) => (b) {
            b = Einsum <equation: string = @equation> (a)
        }"""
    found = model(text)
    assert plan(found, 11).possible
    found.functions[0].attribute_proto[0].s = b"i.j...->i\xff"
    with pytest.raises(InvalidModelError, match="its attribute 'equation' is "):
        plan(found, 11)


@pytest.mark.parametrize(
    ("equation", "allowed"),
    [
        ("bij,bkj->bik", {"MatMul", "Transpose"}),
        ("ij,jk", {"MatMul"}),
        ("ij->i", {"ReduceSum"}),
        ("ij->ji", {"Transpose"}),
        ("i,j->ij", {"Mul", "Unsqueeze"}),
        ("bhid,bhjd->bhij", {"MatMul", "Transpose"}),
        ("bij,bij->b", {"MatMul", "Reshape", "Squeeze", "Transpose", "Unsqueeze"}),
    ],
)
def test_in_the_operators_that_a_runtime_takes(equation: str, allowed: set[str]) -> None:
    sizes = dict(zip("bhdijk", (2, 3, 4, 5, 4, 6), strict=True)) | {"j": 5}
    terms = equation.partition("->")[0].split(",")
    rng = np.random.default_rng(5)
    feeds = {
        f"x{index}": rng.standard_normal([sizes[label] for label in term]).astype(np.float32)
        for index, term in enumerate(terms)
    }
    source = one_node("Einsum", 17, feeds, equation=equation)
    result = converts(source, 17, feeds, allow_ops=sorted(allowed))
    assert {node.op_type for node in result.graph.node} <= allowed
