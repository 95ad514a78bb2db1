"""Types inferred once for nodes that are alike: what inference of the whole graph gives."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from onnx import ModelProto, TensorProto, helper

from onnxreduce_cli.model import alike_types, node_inference, shape_inference, signatures
from onnxreduce_cli.model.alike_types import AlikeTypes, suits
from onnxreduce_cli.model.scope import scopes
from onnxreduce_cli.model.values import ValueType, tensor_type
from tests.model.known import facts_of
from tests.random_graphs.graphs import Case, cases

MODELS = sorted((Path(__file__).parents[1] / "data").glob("*/*.onnx"))
FLOAT = TensorProto.FLOAT


def types_of(found: ModelProto) -> dict[str, ValueType | None]:
    """What is known of each value that a node of a main graph makes; {} if it does not suit.

    Where anything is, inference of the whole graph gives the same.
    """
    facts, (main, *_) = facts_of(found)
    if not main.nodes or facts.stated.overridable:
        return {}
    if not suits(main, facts.calls, found.ir_version):
        return {}
    alike = AlikeTypes(main, found.ir_version)
    whole = facts._inference.of(main)
    known = {name: alike.of(name) for name in main.producers}
    for name, own in known.items():
        if own is not None:
            assert own == whole.get(name)
    return known


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every graph count as large, and each node be unlike the others."""
    monkeypatch.setattr(alike_types, "FEW", 1)
    monkeypatch.setattr(alike_types, "_ALIKE", 1)
    monkeypatch.setattr(signatures, "_FEW", 1)
    # Whatever else the tests ask for is inferred of the whole graph.
    monkeypatch.setattr(shape_inference, "suits", lambda *_: False)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_models_have_the_types_that_the_whole_graph_gives(path: Path) -> None:
    types_of(onnx.load(path, load_external_data=False))


def test_most_types_are_known_without_the_whole_graph() -> None:
    found = [types_of(onnx.load(path, load_external_data=False)) for path in MODELS]
    known = [own for types in found for own in types.values()]
    assert sum(own is not None for own in known) > len(known) / 2


@settings(deadline=None, max_examples=30)
@given(cases())
def test_random_graphs_have_the_types_that_the_whole_graph_gives(case: Case) -> None:
    types_of(case.model)


TEXT = """<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]>
g ({inputs}) => ({outputs}) <{more}> {{ {nodes} }}"""


def text(
    nodes: str, inputs: str = "float[2,N] x", outputs: str = "y", more: str = "", opset: int = 18
) -> ModelProto:
    return onnx.parser.parse_model(
        TEXT.format(nodes=nodes, inputs=inputs, outputs=outputs, more=more, opset=opset)
    )


@pytest.mark.parametrize(
    ("found", "dims"),
    [
        (text("y = Neg(x)"), (2, "N")),
        (text("y = ReduceMax(x, axes)", more="int64[1] axes = {1}"), (2, 1)),
        (text("a = Constant<value = int64[1] {0}>() y = ReduceMax(x, a)"), (1, "N")),
        (text("a = Neg(x) y = ReduceMax(a)"), (1, 1)),
        (text("a, b = Split<axis = 0>(x, s) y = Neg(b)", more="int64[2] s = {1, 1}"), (1, "N")),
        (text("y = Clip(x, , top)", more="float top = {1}"), (2, "N")),
        (text("y = Concat<axis = 0>(x, x, x, x)"), (8, "N")),
        (text("s = Shape(x) y = Neg(s)"), (2,)),
        # What is stated counts, and where it is less than all what follows counts as well.
        (text("y = Neg(a) a = Neg(x)", more="float[2, 5] a"), (2, 5)),
        (text("y = Neg(x)", outputs="float[2, 5] y"), (2, 5)),
        (text("y = Neg(x)", outputs="float y"), ()),
        (text("y = Neg(x)", outputs="float[] y"), (2, "N")),
        (text("y = Shape(x)", outputs="float[] y"), None),
        (text("y = Neg(a) a = Neg(x)", more="float[2, M] a"), None),
        (text("y = Neg(a) a = Neg(x)", outputs="int64[2, 3] y"), (2, 3)),
        (text("y, z = Split<axis = 0>(x, s)", more="float[1, 7] z, int64[2] s = {1, 1}"), None),
        # An unknown size is given a name, another for each, by inference of the whole graph alone.
        (text("y = Neg(x)", inputs="float[2, ?] x"), None),
        (text("y = Add(x, z)", inputs="float[N] x, float[M] z"), None),
        (text("y = NonZero(x)"), None),
        # What computes sizes is followed there alone.
        (text("s = Shape(x) y = Reshape(x, s)"), None),
        (text("y = Reshape(x, s)", inputs="float[2,N] x, int64[1] s"), None),
        (text("y = Reshape(x, s)", more="int64[2] s = {0, -1}"), None),
        (text("y = Reshape(x, s)", "float[4, 6] x", more="int64[2] s = {3, -1}"), (3, 8)),
        (text("y = local.Op(x)"), None),
        (text("y = MatMul(x, x)", inputs="float[2, 3] x"), None),
        (text("y = Upsample(x)", opset=7), None),
    ],
)
def test_what_is_known_without_the_whole_graph(
    found: ModelProto, dims: tuple[int | str, ...] | None
) -> None:
    known = types_of(found)["y"]
    assert (None if known is None else known.dims) == dims


def chain(count: int, *, alike: bool = True) -> ModelProto:
    """A chain of Add and Neg; or of Concat, each of another size."""
    nodes, value = [], "x"
    for index in range(count):
        op_type, more = ("Neg", []) if index % 2 else ("Add", ["x"])
        if not alike:
            op_type, more = "Concat", ["x"]
        keep = {} if alike else {"axis": 0}
        nodes.append(helper.make_node(op_type, [value, *more], [f"v{index}"], **keep))
        value = f"v{index}"
    info = [helper.make_tensor_value_info("x", FLOAT, [2, "N"])]
    outputs = [helper.make_tensor_value_info(value, FLOAT, None)]
    return helper.make_model(
        helper.make_graph(nodes, "chain", info, outputs),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The operators of the nodes that onnx was asked about."""
    found = []

    def infer_from(node, *rest):  # type: ignore[no-untyped-def]
        found.append(node.op_type)
        return node_inference.infer_from(node, *rest)

    monkeypatch.setattr(alike_types, "infer_from", infer_from)
    return found


def test_onnx_is_asked_once_for_nodes_that_are_alike(asked: list[str]) -> None:
    assert set(types_of(chain(5000)).values()) == {tensor_type(FLOAT, (2, "N"))}
    # The second Add, and those after it, read what a node made, which is of the same type.
    assert sorted(asked) == ["Add", "Neg"]


def test_nodes_are_alike_that_differ_in_names_alone_and_read_the_same_types() -> None:
    found = text(
        """a = Neg(x) b = Neg(a) c = Neg(z) d = Abs(x) e = Add(a, b) f = Add(b, a) h = Add(a, a)
        i = Add(c, z) k = NonZero(x) l = Neg(k) y = Neg(a)""",
        inputs="float[2,N] x, double[2,N] z",
        outputs="float[2,M] y",
    )
    (main,) = scopes(found)
    groups = AlikeTypes(main, found.ir_version).groups()
    a, b, c, d, e, f, h, i, *others = groups
    assert a is b
    assert e is f
    assert len({a, c, d, e, i}) == 5
    assert h is None  # It reads a value twice.
    assert others == [None] * 3  # Of which the types are not known, or stated.


def test_nothing_after_the_wanted_value_is_looked_at(asked: list[str]) -> None:
    found = chain(5000)
    found.graph.node[4001].op_type = "Abs"
    alike = AlikeTypes(scopes(found)[0], found.ir_version)
    assert alike.of("v1000") is not None
    assert "Abs" not in asked
    assert alike.of("v4002") is not None
    assert "Abs" in asked


def test_where_nodes_are_unlike_the_whole_graph_is_inferred(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alike_types, "_ALIKE", 16)
    known = types_of(chain(5000, alike=False))
    assert known["v4000"] is None
    assert len(asked) < 5000 / 4


def test_no_whole_graph_is_inferred_where_nodes_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shape_inference, "suits", suits)
    monkeypatch.setattr(shape_inference, "infer_shapes", lambda *_, **__: pytest.fail("asked"))
    facts, (main,) = facts_of(chain(3000))
    assert facts.type(main, "v2500") == tensor_type(FLOAT, (2, "N"))
    assert facts.kind(main, "v2999") == "tensor(float)"


def test_graphs_that_do_not_suit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alike_types, "FEW", 2000)
    for count, expected in ((1999, False), (2000, True)):
        facts, (main,) = facts_of(chain(count))
        assert suits(main, facts.calls, 8) == expected
