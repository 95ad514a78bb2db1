"""Constants: what is known before the run, where from, and what must not be believed."""

from __future__ import annotations

import onnx

from onnxreduce_cli.model.graph.values import tensor_type
from tests.model.types.known import facts_of
from tests.support import model

FLOAT = 1


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


def test_what_is_known_does_not_depend_on_what_was_asked_first() -> None:
    chain = " ".join(f"v{n + 1} = Add(v{n}, v0)" for n in range(2000))
    found = model(f"""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2] x) => (float[2] y) <int64[1] v0 = {{1}}> {{
            {chain}
            y = Neg(x)
        }}""")
    (last_first, (main,)), (first_first, (other,)) = facts_of(found), facts_of(found)
    wanted = range(0, 2001, 40)
    backwards = [last_first.constant(main, f"v{n}") for n in reversed(wanted)]
    forwards = [first_first.constant(other, f"v{n}") for n in wanted]
    assert [array.tolist() for array in forwards if array is not None] == [[n + 1] for n in wanted]
    assert [array.tolist() for array in backwards if array is not None] == [
        [n + 1] for n in reversed(wanted)
    ]


def test_sizes_that_are_kept_whatever_they_are() -> None:
    facts, (main, then, _) = facts_of(
        model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[N,3] x, bool c) => (float[a,b] y) {
            y = If (c) <
                then_branch = t () => (float[d,e] o) {
                    shape = Shape(x)
                    o = Reshape(x, shape)
                },
                else_branch = f () => (float[g,h] o) { o = Identity(x) }
            >
        }""")
    )
    conversion = facts.extended()
    assert conversion.elements(then, "shape") == (None, 3)
    assert conversion.kept_dims(then, "shape", "x") == (True, False)
    assert conversion.kept_dims(main, "x", "x") == ()


def test_what_a_constant_of_a_shape_is_filled_with_is_not_there() -> None:
    """Its tensor says that its data is in a file, and names none."""
    found = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2] x) => (float[a] y, int64[b] z) <int64[1] n = {2}> {
            z = ConstantOfShape<value = int64[1] {1}>(n)
            y = Neg(x)
        }""")
    tensor = found.graph.node[0].attribute[0].t
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    facts, (main,) = facts_of(found)
    assert facts.constant(main, "z") is None
    assert facts.elements(main, "z") == (None, None)


def test_a_constant_that_is_cast_like_another_value() -> None:
    facts, (scope,) = facts_of(
        model("""<ir_version: 8, opset_import: ["" : 18]>
        g (double[2] x) => (double[2] y) <float one = {1.5}> {
            like = CastLike(one, x)
            y = Mul(x, like)
        }""")
    )
    array = facts.constant(scope, "like")
    assert array is not None
    assert array.dtype == "float64"
    assert array == 1.5
