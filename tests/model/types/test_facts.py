"""Types of values: what is stated, inferred, and left by the operators around."""

from __future__ import annotations

import pytest

from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.graph.values import ValueType, common_type, merge, tensor_type
from onnxreduce_cli.model.types.facts import Facts
from tests.model.types.known import facts_of
from tests.support import model

FLOAT, INT64 = 1, 7


def test_types_are_inferred_where_they_are_not_stated() -> None:
    facts, (main,) = facts_of(
        model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[N,3] x) => (float[N,1] y) <int64[1] axes = {1}> {
            a = Neg(x)
            y = ReduceMax(a, axes)
        }""")
    )
    assert facts.type(main, "a") == tensor_type(FLOAT, ("N", 3))
    assert facts.type(main, "axes") == tensor_type(INT64, (1,))
    assert facts.type(main, "nothing") is None
    assert facts.type(main, "") is None
    assert facts.elem_type(main, "a") == FLOAT
    assert facts.kind(main, "a") == "tensor(float)"


def test_types_in_a_function_are_what_all_calls_have_in_common() -> None:
    facts, (_, function) = facts_of(
        model("""<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[2,3] x, float[2,4] w, float[5] v) => (float[2,3] y, float[2,4] z) {
            y = local.F(x, x)
            z = local.F(w, v)
        }
        <domain: "local", opset_import: ["" : 18]>
        F (a, c) => (b) { b = Neg(a) d = Neg(c) }""")
    )
    assert facts.type(function, "b") == tensor_type(FLOAT, (2, None))
    assert facts.type(function, "d") == tensor_type(FLOAT, None)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (None, None, None),
        ((2, None), (2, 3), (2, 3)),
        (("N", None), (4, "M"), (4, "M")),
        ((2, 3), (9, 9), (2, 3)),
        ((2, 3), (2, 3, 4), (2, 3)),
        (None, (1,), (1,)),
    ],
)
def test_two_accounts_of_one_value(
    first: tuple[int, ...] | None, second: tuple[int, ...] | None, expected: object
) -> None:
    merged = merge(tensor_type(FLOAT, first), tensor_type(FLOAT, second))
    assert merged == ValueType("tensor(float)", FLOAT, expected)  # type: ignore[arg-type]
    assert merge(None, merged) == merge(merged, None) == merged


def test_what_is_common() -> None:
    def of(*dims: int) -> ValueType:
        return tensor_type(FLOAT, dims)

    assert common_type([of(2, 3), of(2, 4)]) == tensor_type(FLOAT, (2, None))
    assert common_type([of(2), of(2, 4)]) == tensor_type(FLOAT, None)
    assert common_type([of(2), None]) is None
    assert common_type([of(2), tensor_type(INT64, (2,))]) is None
    assert common_type([]) is None


def test_a_type_that_the_operators_around_leave() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 13, "custom" : 1]>
        g (float[2] x) => (float[n] y, float[m] z) {
            a = custom.Hide(x)
            b = Det(a)
            c = IsInf(b)
            d = custom.Hide(x)
            e = Floor(d)
            y = custom.Show(c)
            z = custom.Show(e)
        }""")
    found = scopes(source)
    facts = Facts(source, found)
    assert facts.kind(found[0], "a") is None
    assert facts.allowed_kinds(found[0], "a") == {"tensor(float)", "tensor(double)"}
    assert "tensor(bfloat16)" in (facts.allowed_kinds(found[0], "d") or ())
    assert facts.kind(found[0], "d") is None
    both = model("""<ir_version: 8, opset_import: ["" : 13, "custom" : 1]>
        g (float[2] x, float s) => (float[n] y) {
            a = custom.Hide(x)
            b = QuantizeLinear(a, s)
            c = Floor(a)
            y = custom.Show(b, c)
        }""")
    found = scopes(both)
    assert Facts(both, found).kind(found[0], "a") == "tensor(float)"
