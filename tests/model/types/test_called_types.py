"""Types behind calls, each body gone through once: what onnx's own inference gives."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, TensorProto, helper

from onnxreduce_cli.model.graph.calls import sizes_of_calls
from onnxreduce_cli.model.graph.scope import function_key, scopes
from onnxreduce_cli.model.graph.values import ValueType
from onnxreduce_cli.model.types import called_types
from onnxreduce_cli.model.types.called_types import LIMIT, CalledTypes
from onnxreduce_cli.model.types.safe_inference import infer_shapes
from onnxreduce_cli.model.types.skeleton import call_skeleton
from tests.model.types.known import facts_of

HEAD = '<ir_version: 10, opset_import: ["" : 18, "f" : 1, "other" : 1]>'
FUNCTION = '<domain: "f", opset_import: ["" : 18, "f" : 1, "other" : 1]>'

NEGATED = "F (a) => (b) { b = Neg(a) }"
JOINED = "F <axis> (a, b) => (c) { c = Concat<axis : int = @axis>(a, b) }"


def model(graph: str, *functions: str) -> ModelProto:
    text = "\n".join([HEAD, f"g {graph}", *(f"{FUNCTION} {function}" for function in functions)])
    return onnx.parser.parse_model(text)


def by_onnx(found: ModelProto) -> ModelProto | None:
    return infer_shapes(found, data_prop=True)


def called_types_of(found: ModelProto) -> CalledTypes:
    functions = {function_key(item): item for item in found.functions}
    return CalledTypes(found, functions, by_onnx)


def told(inferred: ModelProto | None) -> list[dict[str, ValueType]]:
    """The types in each of the scopes of a model's graphs, numbered."""
    assert inferred is not None
    return numbered(scope.declared for scope in scopes(inferred) if scope.function is None)


def numbered(found: Iterable[dict[str, ValueType]]) -> list[dict[str, ValueType]]:
    """The types of values by name, with the names of sizes that onnx makes up numbered."""
    made_up: dict[str, str] = {}

    def number(dim: int | str | None) -> int | str | None:
        if not isinstance(dim, str) or not dim.startswith("unk__"):
            return dim
        return made_up.setdefault(dim, f"size {len(made_up)}")

    def of(known: ValueType) -> ValueType:
        return known._replace(dims=known.dims and tuple(map(number, known.dims)))

    return [{name: of(types[name]) for name in sorted(types)} for types in found]


MODELS = {
    "one call": model("(float[N, 3] x) => (y) { y = f.F(x) }", NEGATED),
    "calls between nodes": model(
        "(float[N, 3] x) => (y) { a = Neg(x) b = f.F(a) c = Flatten(b) d = f.F(c) y = Abs(d) }",
        NEGATED,
    ),
    "calls within calls": model(
        "(float[N, 3] x) => (y) { y = f.G(x) }",
        "G (a) => (b) { c = f.F(a) d = Transpose<perm = [1, 0]>(c) b = f.F(d) }",
        NEGATED,
    ),
    "sizes that change from call to call": model(
        "(float[N, 3] x) => (z) { y = f.F(x) z = f.F(y) }",
        "F (a) => (b) { b = Concat<axis = 1>(a, a) }",
    ),
    "dtypes and ranks that change from call to call": model(
        "(float[N, 3] x, int64[2] v) => (y, z) { y = f.F(x) z = f.F(v) }", NEGATED
    ),
    "names that change from call to call": model(
        "(float[N, 3] x, float[M, 3] v) => (y, z, w) { y = f.F(x) z = f.F(v) w = f.F(y) }",
        NEGATED,
    ),
    "names that are equal within a call": model(
        "(float[N, N] x, float[N, M] v) => (y, z) { y = f.F(x) z = f.F(v) }",
        "F (a) => (b) { c = Transpose<perm = [1, 0]>(a) b = Add(a, c) }",
    ),
    "attributes": model(
        "(float[N, 3] x) => (y, z) { y = f.F<axis = 0>(x, x) z = f.F<axis = 1>(x, x) }", JOINED
    ),
    "an attribute's default": model(
        "(float[N, 3] x) => (y, z) { y = f.F(x, x) z = f.F<axis = 0>(x, x) }",
        JOINED.replace("<axis>", "<axis : int = 1>"),
    ),
    "attributes handed on": model(
        "(float[N, 3] x) => (y, z) { y = f.G(x) z = f.G<place = 0>(x) }",
        "G <place : int = 1> (a) => (b) { b = f.F<axis : int = @place>(a, a) }",
        JOINED,
    ),
    "attributes within graphs": model(
        """(float[N, 3] x, bool c) => (y) { y = f.G<axis = 1>(x, c) }""",
        """G <axis> (a, c) => (b) { b = If(c) <
            then_branch = t () => (p) { p = Concat<axis : int = @axis>(a, a) },
            else_branch = e () => (q) { q = Concat<axis : int = @axis>(a, a) }> }""",
    ),
    "inputs left out": model(
        "(float[N, 3] x, float v) => (y, z, w) { y = f.F(x, , v) z = f.F(x, v) w = f.F(x) }",
        "F (a, least, most) => (b) { b = Clip(a, least, most) }",
    ),
    "an output that is an input": model(
        "(float[N, 3] x) => (y) { v = f.F(x) y = Neg(v) }", "F (a) => (a) { b = Neg(a) }"
    ),
    "outputs that are one value": model(
        "(float[N, 3] x) => (y, z) { y, z = f.F(x) }", "F (a) => (b, b) { b = Neg(a) }"
    ),
    "initializers as inputs": model(
        "(float[N, 3] x) => (y, z) <float[2] w = {1, 2}> { y = f.F(w) z = Add(y, w) }", NEGATED
    ),
    "constants as inputs": model(
        "(float[N, 3] x) => (y) { w = Constant<value = float[2] {1, 2}>() y = f.F(w) }", NEGATED
    ),
    "constants between calls": model(
        "(float[N, 3] x) => (y) <int64[2] s = {3, 2}> { a = f.F(x) b = Reshape(a, s) y = f.F(b) }",
        NEGATED,
    ),
    "constants of nodes between calls": model(
        """(float[N, 3] x, float[1, 1, 2, 2] v) => (y, z, w) {
            s = Constant<value = int64[2] {3, 2}>()  n = Constant<value_int = 2>()
            m = Constant<value_ints = [2, 3]>()  f = Constant<value_floats = [1.0, 1.0, 2.0, 2.0]>()
            l = Constant<value_float = 2.0>()  t = Constant<value_string = "text">()
            a = f.F(x)  b = Reshape(a, s)  c = f.F(b)  y = Reshape(c, m)  d = f.F(y)
            k = Constant<value = int64[1] {1}>()  p = f.F(d)  e, z = TopK(p, k)
            g = f.F(v)  w = Resize(g, , f)  i = f.F(n)  j = f.F(l)  h = f.G(t) }""",
        NEGATED,
        "G (a) => (b) { b = Identity(a) }",
    ),
    "constants of bodies": model(
        "(float[N, 3] x) => (y) { y = f.G(x) }",
        "G (a) => (b) { s = Constant<value_ints = [-1, 2, 3]>() c = f.F(a) b = Reshape(c, s) }",
        NEGATED,
    ),
    "what is stated of what calls give": model(
        "(float[N, 3] x) => (float[a, b] y) <float[?, ?] v> { v = f.F(x) y = f.F(v) }", NEGATED
    ),
    "what is stated and not known otherwise": model(
        "(float[N, 3] x) => (y) <float[N, 5] v> { v = other.Op(x) y = f.F(v) }", NEGATED
    ),
    "sequences": model(
        "(float[N, 3] x, int64 i) => (y) { s = f.F(x) y = SequenceAt(s, i) }",
        "F (a) => (b) { b = SequenceConstruct(a, a) }",
    ),
    "calls before and behind graphs within": model(
        """(float[N, 3] x, bool c) => (y) { a = f.F(x) b = If(c) <
            then_branch = t () => (p) { r = Abs(a) p = Concat<axis = 0>(r, r) },
            else_branch = e () => (q) { q = Identity(a) }> y = f.F(b) }""",
        NEGATED,
    ),
    "graphs within bodies": model(
        "(float[N, 3] x, bool c) => (y, z) { y = f.F(x, c) z = f.F(y, c) }",
        """F (a, c) => (b) { b = If(c) < then_branch = t () => (p) { p = Neg(a) },
            else_branch = e () => (q) { q = Abs(a) }> }""",
    ),
    "sizes that nobody names": model(
        """(float[N] x, float[M] v) => (y, z)
        { a = NonZero(x) b = f.F(a) c = NonZero(v) d = f.F(c) y = Add(a, c) z = Add(b, d) }""",
        NEGATED,
    ),
    "sizes that nobody names within bodies": model(
        "(float[N] x, float[M] v) => (y, z) { y = f.F(x) z = f.F(v) w = NonZero(x) }",
        "F (a) => (b) { b = NonZero(a) }",
    ),
    "sizes that nobody names within graphs": model(
        """(float[N] x, bool c) => (z) { a = NonZero(x) y = f.F(a) z = If(c) <
            then_branch = t () => (p) { r = Neg(x) p = NonZero(r) },
            else_branch = e () => (q) { q = NonZero(x) }> }""",
        NEGATED,
    ),
    "sizes of sequences that nobody names": model(
        "(float[N] x, int64 i) => (y, z) { s = f.F(x) y = SequenceAt(s, i) z = NonZero(x) }",
        "F (a) => (b) { c = NonZero(a) b = SequenceConstruct(c, c) }",
    ),
    "names that look made up": model(
        "(float[N] x, float[unk__0] v) => (y, z) { y = f.F(x) z = f.F(y) w = Concat<axis=0>(v, v)}",
        "F (a) => (b) { c = NonZero(a) b = Squeeze(c) }",
    ),
    "operators that onnx does not know": model(
        "(float[N, 3] x) => (y, z, w) { y = f.F(x) z = Neg(x) w = f.G(z) }",
        "F (a) => (b) { c = other.Op(a) b = Neg(c) }",
        "G (a) => (b) { c = other.Op(a) b = Neg(a) }",
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_types_are_those_that_onnx_infers(name: str) -> None:
    found = MODELS[name]
    before = found.SerializeToString()
    expected = told(by_onnx(found))
    assert told(called_types_of(found).infer(found)) == expected
    assert found.SerializeToString() == before
    assert sum(map(len, expected)) > len(found.graph.input)


@pytest.mark.parametrize("name", MODELS)
def test_all_that_is_known_is_the_same_with_few_calls_and_many(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the bodies of functions as well."""

    def known() -> list[dict[str, ValueType]]:
        facts, all_scopes = facts_of(MODELS[name])
        return numbered(facts._inference.of(scope) for scope in all_scopes)

    few = known()
    monkeypatch.setattr(called_types, "LIMIT", 0)
    monkeypatch.setattr(called_types, "call_skeleton", counted := Counted(call_skeleton))
    assert known() == few
    assert counted.calls


class Counted:
    """A function that counts how often it is called."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function, self.calls = function, 0

    def __call__(self, *arguments: Any) -> Any:
        self.calls += 1
        return self._function(*arguments)


def dims_of(found: ModelProto) -> dict[str, Any]:
    """The dimensions of each value of a main graph that is known to be a tensor."""
    return {
        name: known.dims for name, known in told(called_types_of(found).infer(found))[0].items()
    }


def test_functions_named_as_operators_that_stand_for_others() -> None:
    """Inference takes Gelu of ONNX Runtime for an Identity, but not a function of that name."""
    found = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["" : 18, "com.microsoft" : 1, "f" : 1]>
        g (float[N, 3] x) => (y, z) { y = f.F(x)  z = com.microsoft.FastGelu(x) }
        <domain: "f", opset_import: ["" : 18, "com.microsoft" : 1]>
        F (a) => (b) { b = com.microsoft.Gelu(a) }
        <domain: "com.microsoft", opset_import: ["" : 18]>
        Gelu (a) => (b) { b = Concat<axis = 1>(a, a) }"""
    )
    assert dims_of(found)["y"] == ("N", 6)
    for limit in (0, LIMIT):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(called_types, "LIMIT", limit)
            facts, (main, *_) = facts_of(found)
            known = [facts.type(main, name) for name in "yz"]
        assert [item and item.dims for item in known] == [("N", 6), ("N", 3)]


def test_outputs_left_out() -> None:
    """Of which onnx's own inference makes an error."""
    found = model(
        "(float[N, 3] x) => (y, z, w) { y, v = f.F(x) , z = f.F(x) w = f.F(x) }",
        "F (a) => (b, c) { b = Neg(a) c = Transpose<perm = [1, 0]>(a) }",
    )
    there, turned = ("N", 3), (3, "N")
    assert dims_of(found) == {"x": there, "y": there, "v": turned, "z": turned, "w": there}


def test_functions_that_call_themselves_tell_nothing() -> None:
    found = model(
        "(float[N, 3] x) => (y, z) { y = f.F(x) w = f.G(x) z = Neg(x) }",
        "F (a) => (b) { c = Neg(a) b = f.F(c) }",
        "G (a) => (b) { b = f.H(a) }",
        "H (a) => (b) { c = f.G(a) b = Transpose<perm = [1, 0]>(a) }",
    )
    assert dims_of(found) == {"x": ("N", 3), "w": (3, "N"), "z": ("N", 3)}


def test_what_onnx_refuses_in_one_part_leaves_the_others() -> None:
    """Here operators of a domain that is not imported."""
    found = model(
        """(float[N, 3] x) => (y) {
            v = unknown.Op(x) w = Neg(x) b = f.F(x) c = f.G(x) d = Neg(b) }""",
        NEGATED,
        "G (a) => (b) { b = unknown.Op(a) }",
    )
    assert by_onnx(found) is None
    assert dims_of(found) == dict.fromkeys("bdx", ("N", 3))


def test_calls_in_graphs_tell_nothing() -> None:
    found = model(
        """(float[N, 3] x, bool c) => (y) { a = If(c) < then_branch = t () => (p) { p = f.F(x) },
            else_branch = e () => (q) { q = Neg(x) }> b = f.F(x) y = Add(b, b) }""",
        NEGATED,
    )
    known = dims_of(found)
    assert "a" not in known
    assert known["y"] == ("N", 3)


def chain_of(count: int, last: str, outer: str = "c = f.F{next}(a) b = f.F{next}(c)") -> ModelProto:
    """Functions that each call the next one twice."""
    bodies = [
        f"F{index} (a) => (b) {{ {outer.format(next=index + 1)} }}" for index in range(count - 1)
    ]
    bodies.append(f"F{count - 1} (a) => (b) {{ {last} }}")
    return model("(float[N, 3] x) => (y) { y = f.F0(x) }", *bodies)


@pytest.mark.parametrize(
    ("last", "dims"),
    [
        ("b = Neg(a)", ("N", 3)),
        ("b = Transpose<perm = [1, 0]>(a)", ("N", 3)),
        ("c = Flatten(a) b = NonZero(c)", (2, "size 0")),
    ],
)
def test_each_body_is_gone_through_once_for_types(
    last: str, dims: tuple[int | str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(called_types, "call_skeleton", counted := Counted(call_skeleton))
    assert dims_of(chain_of(30, last))["y"] == dims
    assert counted.calls <= 3 * 30


def test_sizes_of_functions() -> None:
    def of(found: ModelProto) -> dict[str, int]:
        functions = {function_key(item): item for item in found.functions}
        return {key[1]: count for key, count in sizes_of_calls(functions).items()}

    assert of(chain_of(4, "c = Neg(a) b = Neg(c)")) == {"F3": 2, "F2": 6, "F1": 14, "F0": 30}
    assert of(MODELS["graphs within bodies"]) == {"F": 3}
    itself = of(model("(float[2] x) => (y) { y = f.F(x) }", "F (a) => (b) { b = f.F(a) }"))
    assert itself["F"] > LIMIT


OPERATORS = ("Neg", "Transpose", "Concat", "Add", "NonZero", "Cast", "Dropout")


@st.composite
def bodies(draw: st.DrawFn, inputs: list[str], called: list[FunctionProto]) -> list[NodeProto]:
    """Some nodes, of operators or calls, that read what is before them."""
    nodes: list[NodeProto] = []
    there = list(inputs)
    for index in range(draw(st.integers(1, 5))):
        made = f"v{index}"
        first, second = draw(st.sampled_from(there)), draw(st.sampled_from(there))
        kind = draw(st.sampled_from((*OPERATORS, *called, *called)))
        if isinstance(kind, FunctionProto):
            outputs = [made, f"{made}o"]
            nodes.append(helper.make_node(kind.name, [first, second], outputs, domain="f"))
            if draw(st.booleans()):
                axis = draw(st.integers(0, 1))
                nodes[-1].attribute.append(helper.make_attribute("axis", axis))
            there += outputs
            continue
        reads = [first, second] if kind in ("Concat", "Add") else [first]
        nodes.append(helper.make_node(kind, reads, [made]))
        if kind == "Cast":
            nodes[-1].attribute.append(helper.make_attribute("to", TensorProto.FLOAT))
        elif kind == "Concat":
            nodes[-1].attribute.append(axis_of(draw, inputs))
        there.append(made)
    return nodes


def axis_of(draw: st.DrawFn, inputs: list[str]) -> AttributeProto:
    """An axis: within functions, which read `a`, that of the call or not."""
    if "a" in inputs and draw(st.booleans()):
        return AttributeProto(name="axis", ref_attr_name="axis", type=AttributeProto.INT)
    return helper.make_attribute("axis", draw(st.integers(0, 1)))


@st.composite
def models(draw: st.DrawFn) -> ModelProto:
    """Models of functions that call those before them."""
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    functions: list[FunctionProto] = []
    for index in range(draw(st.integers(1, 4))):
        nodes = draw(bodies(["a", "b"], functions))
        given = [name for node in nodes for name in node.output]
        outputs = [draw(st.sampled_from(given)), given[-1]]
        function = helper.make_function(
            "f", f"F{index}", ["a", "b"], outputs, nodes, opsets,
            attribute_protos=[helper.make_attribute("axis", draw(st.integers(0, 1)))],
        )  # fmt: skip
        functions.append(function)
    nodes = draw(bodies(["x", "z"], functions))
    dims = st.sampled_from((1, 2, 3, "N", "M"))
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [draw(dims), draw(dims)])
        for name in ("x", "z")
    ]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("v0")])
    return helper.make_model(graph, functions=functions, opset_imports=opsets, ir_version=10)


@settings(deadline=None, max_examples=100)
@given(models())
def test_drawn_models_have_the_types_that_onnx_infers(found: ModelProto) -> None:
    expected = by_onnx(found)
    if expected is not None:
        assert told(called_types_of(found).infer(found)) == told(expected)
