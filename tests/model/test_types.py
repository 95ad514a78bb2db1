"""Facts about values: what is known, where from, and what must not be believed."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from onnxreduce_cli.model.calls import UNKNOWN
from onnxreduce_cli.model.facts import Facts
from onnxreduce_cli.model.scope import Scope, scopes
from onnxreduce_cli.model.values import ValueType, common, merge, tensor_type
from tests.support import model

FLOAT, INT64 = 1, 7


def facts_of(found: ModelProto) -> tuple[Facts, list[Scope]]:
    all_scopes = scopes(found)
    return Facts(found, all_scopes), all_scopes


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


def test_the_nearest_scope_counts() -> None:
    facts, found = facts_of(
        model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2] x, bool c) => (float[a] y) <int64[1] outer = {7}> {
            y = If (c) <
                then_branch = t () => (float[b] o) <int64[1] own = {1}> {
                    o = If (c) <
                        then_branch = tt () => (float[b1] p) {
                            q = Add(own, outer)
                            p = Neg(x)
                        },
                        else_branch = te () => (float[b2] p) { p = Identity(x) }
                    >
                },
                else_branch = e () => (float[b3] o) <int64[1] own = {2}> { o = Abs(x) }
            >
        }""")
    )
    main, then, inner, _, other = found
    values = [facts.constant(scope, "own") for scope in (main, then, inner, other)]
    assert values[0] is None
    assert [None if v is None else v.tolist() for v in values[1:]] == [[1], [1], [2]]
    total = facts.constant(inner, "q")
    assert total is not None
    assert total.tolist() == [8]
    assert facts.type(inner, "x") == tensor_type(FLOAT, (2,))


def test_an_initializer_that_is_an_input_is_no_constant() -> None:
    facts, (main,) = facts_of(
        model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2] x, int64[1] a) => (float[2] y) <int64[1] a = {0}> {
            b = Identity(a)
            y = Neg(x)
        }""")
    )
    assert facts.constant(main, "a") is None
    assert facts.constant(main, "b") is None


def test_an_argument_that_every_call_gives_is_a_constant() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[2,3] x) => (float[1,3] y, float[a,b] z)
        <int64[1] one = {0}, int64[1] same = {0}, int64[1] other = {1}> {
            y = local.F(x, one)
            z = local.F(x, SECOND)
        }
        <domain: "local", opset_import: ["" : 18]>
        F (a, axes) => (b) { b = ReduceMax(a, axes) }"""
    for second, expected in (("same", [0]), ("other", None)):
        facts, (_, function) = facts_of(model(text.replace("SECOND", second)))
        found = facts.constant(function, "axes")
        assert (None if found is None else found.tolist()) == expected


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


def test_attributes_of_functions() -> None:
    found = model("""<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
        g (float[2] x) => (float[2] y, float[2] z) {
            y = local.F<same = 3, other = 1>(x)
            z = local.F<same = 3, other = 2, more = 5>(x)
        }
        <domain: "local", opset_import: ["" : 18]>
        F <same, other, none, more : int = 5> (a) => (b) { b = Neg(a) }""")
    facts, (_, function) = facts_of(found)

    def resolved(name: str) -> object:
        reference = onnx.AttributeProto(name="k", ref_attr_name=name, type=onnx.AttributeProto.INT)
        return facts.calls.resolve_attribute(function, reference)

    assert resolved("same") == 3
    assert resolved("other") is UNKNOWN
    assert resolved("none") is None
    assert resolved("more") == 5


def test_what_shape_inference_refuses_leaves_what_is_declared() -> None:
    found = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] x) => (float[1,3] y) {
            bad = Concat<axis = 9>(x, x)
            y = Neg(x)
        }""")
    facts, (main,) = facts_of(found)
    assert facts.type(main, "x") == tensor_type(FLOAT, (2, 3))
    assert facts.type(main, "bad") in (None, tensor_type(FLOAT, None))


def test_shapes_with_large_weights_are_inferred_without_their_data() -> None:
    found = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[N,64] x) => (float[N,64] y) { y = Neg(x) }""")
    weight = onnx.numpy_helper.from_array(np.ones((64, 64), np.float32), "weight")
    found.graph.initializer.append(weight)
    found.graph.node.append(onnx.helper.make_node("MatMul", ["x", "weight"], ["m"]))
    content = found.SerializeToString()
    facts, (main,) = facts_of(found)
    assert facts.type(main, "m") == tensor_type(FLOAT, ("N", 64))
    assert found.SerializeToString() == content


def test_chains_that_never_end() -> None:
    # So far from the end that nobody minds their order.
    rest = " ".join(f"v{n + 1} = Neg(v{n})" for n in range(70))
    found = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2] x) => (float[2] v70) {{
            a = Identity(b)
            b = Identity(a)
            v0 = Add(x, b)
            {rest}
        }}""")
    facts, (main,) = facts_of(found)
    assert facts.constant(main, "a") is None


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

    assert common([of(2, 3), of(2, 4)]) == tensor_type(FLOAT, (2, None))
    assert common([of(2), of(2, 4)]) == tensor_type(FLOAT, None)
    assert common([of(2), None]) is None
    assert common([of(2), tensor_type(INT64, (2,))]) is None
    assert common([]) is None


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
