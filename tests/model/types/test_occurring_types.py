"""Tests of the types that may occur in a model: of each value that there is, its own among them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, TensorProto

import onnxreduce_cli
from onnxreduce_cli import schemas
from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.shape_inference import ShapeInference
from tests.node_cases import collected
from tests.support import model

EXPORTS = Path(__file__).parents[2] / "data" / "exports"


def facts(found: ModelProto) -> Facts:
    return Facts(found, scopes(found))


def missing(found: ModelProto) -> list[str]:
    """The values that the model states with a type that is taken not to occur."""
    known = facts(found)
    return [
        f"{name}: {kind}"
        for scope in known.scopes
        for name, (kind, *_) in scope.declared.items()
        if not known.occurring_types.may_be(kind)
    ]


def lost(models: Iterable[tuple[str, ModelProto]]) -> list[str]:
    return [f"{name} {item}" for name, found in models for item in missing(found)]


@pytest.mark.matrix
def test_what_is_in_the_cases_of_onnx_may_occur() -> None:
    assert lost((case.name, case.model) for case in collected()) == []


def test_what_is_in_exports_may_occur() -> None:
    paths = sorted(EXPORTS.glob("*.onnx"))
    assert paths
    assert lost((path.stem, onnx.load(path)) for path in paths) == []


def occurring(text: str, opset: int = 22) -> set[str]:
    """The dtypes that may occur in a model."""
    found = facts(model(f'<ir_version: 10, opset_import: ["": {opset}, "own": 1]>' + text))
    names = [name.lower() for name, number in TensorProto.DataType.items() if number]
    return {name for name in names if found.occurring_types.may_be(f"tensor({name})")}


USUAL = {"float", "int64", "string"}


@pytest.mark.parametrize(
    ("text", "more"),
    [
        ("g (float[2] x) => (float[2] y) { y = Relu(x) }", set()),
        ("g (bfloat16[2] x) => (bfloat16[2] y) { y = Relu(x) }", {"bfloat16"}),
        ("g (float[2] x) => (float16[2] y) { y = Cast<to = 10>(x) }", {"float16"}),
        ("g (float[2] x) => (bool[2] y) { y = Less(x, x) }", {"bool"}),
        ("g (float[2,2] x, float s) => (uint8[2,2] y) { y = QuantizeLinear(x, s) }", {"uint8"}),
        (
            "g (float[2,2] x, float s) => (int4[2,2] y) "
            "{ y = QuantizeLinear<output_dtype = 22>(x, s) }",
            {"uint8", "int4"},
        ),
        ("g (float[2] x) => (uint8[2] y) <uint8[2] w = {1, 2}> { y = Identity(w) }", {"uint8"}),
        ("g (float[2] x) => (int8 y) { y = Constant<value = int8 {3}>() }", {"int8"}),
        ("g (float[2] x) => (float[2] y) { y = LayerNormalization(x, x) }", set()),
        (
            "g (float[2] x) => (float[2] y, bfloat16[1] m) "
            "{ y, m = LayerNormalization<stash_type = 16>(x, x) }",
            {"bfloat16"},
        ),
        (
            "g (bool b) => (double y) { y = If (b) <then_branch = t () => (double a) "
            "{ a = Constant<value = double {1}>() }, else_branch = e () => (double c) "
            "{ c = Constant<value = double {2}>() }> }",
            {"bool", "double"},
        ),
        (
            "g (float[2] x) => (float16[2] y) { y = own.f<kind = 10>(x) } "
            '<domain: "own", opset_import: ["": 22]> f<kind>(x) => (y) '
            "{ y = Cast<to: int = @kind>(x) }",
            {"float16"},
        ),
        (
            "g (float[2] x) => (float16[2] y) { y = own.f(x) } "
            '<domain: "own", opset_import: ["": 22]> f<kind: int = 10>(x) => (y) '
            "{ y = Cast<to: int = @kind>(x) }",
            {"float16"},
        ),
    ],
)
def test_what_brings_a_dtype_in(text: str, more: set[str]) -> None:
    assert occurring(text) == USUAL | more


def test_any_type_may_come_from_an_operator_that_onnx_does_not_define() -> None:
    assert "bfloat16" in occurring("g (float[2] x) => (float[2] y) { y = own.Strange(x) }")


def test_a_sequence_occurs_by_what_makes_one() -> None:
    plain = facts(
        model(
            '<ir_version: 8, opset_import: ["": 16]> g (float x) => (float y) { y = Identity(x) }'
        )
    )
    made = facts(
        model(
            '<ir_version: 8, opset_import: ["": 16]> g (float x) => (int64 y) '
            "{ s = SequenceConstruct(x) \n y = SequenceLength(s) }"
        )
    )
    assert not plain.occurring_types.may_be("seq(tensor(float))")
    assert made.occurring_types.may_be("seq(tensor(float))")
    assert not made.occurring_types.may_be("optional(seq(tensor(float)))")


def test_nodes_of_types_that_stay_allowed_are_asked_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("types were inferred")

    text = "g (TYPE[2] x) => (TYPE[2] y) { z = Add(x, x) \n y = Mul(z, x) }"
    head = '<ir_version: 8, opset_import: ["": 14]> '
    monkeypatch.setattr(ShapeInference, "of", refuse)
    onnxreduce_cli.convert(model(head + text.replace("TYPE", "float")), 13, check=False)
    with pytest.raises(AssertionError, match="inferred"):
        onnxreduce_cli.convert(model(head + text.replace("TYPE", "uint8")), 13, check=False)


def test_definitions_that_give_a_dtype_are_known() -> None:
    """No operator with an attribute that names a dtype is overlooked."""
    naming = {
        (op_type, name)
        for op_type in schemas.operators()
        for since in schemas.versions(op_type)
        for name in schemas.schema(op_type, since).attributes
        if name == "to" or "dtype" in name or "type" in name
    }
    assert {name for _, name in naming} == {
        "dtype",
        "output_datatype",
        "output_dtype",
        "stash_type",
        "to",
        "type",
    }
