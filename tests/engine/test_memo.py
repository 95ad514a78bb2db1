"""What became of one node is taken for equal ones: the same as if each were planned by itself."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, TensorProto, helper

from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.equal_functions import EqualFunctions
from onnxreduce_cli.engine.memo import Memo
from onnxreduce_cli.engine.node_converter import NodeConverter
from onnxreduce_cli.engine.options import DEFAULTS, Options
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.graph import scope
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.types.questions import Questions, answer_key, array_key
from onnxreduce_cli.steps.dispatch import step_for
from onnxreduce_cli.steps.registry import STEPS, Direction
from tests import contract
from tests.support import model, several_times

EXPORTS = Path(__file__).parent.parent / "data" / "exports"


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How many nodes of each operator take their steps by themselves."""
    found: Counter[str] = Counter()
    cross = NodeConverter.cross_boundaries

    def counted(self: NodeConverter, site: object, scope: object, node: NodeProto, *more: object):
        found[node.op_type] += 1
        return cross(self, site, scope, node, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(NodeConverter, "cross_boundaries", counted)
    return found


def outcome(source: ModelProto, opset: int, options: Options = DEFAULTS) -> tuple[object, ...]:
    """What a conversion tells, and the bytes that it makes."""
    made = ModelProto()
    made.CopyFrom(source)
    try:
        conversion = Conversion(made, opset, options)
    except InvalidModelError as error:
        return (str(error),)
    told = (conversion.plan(), [*map(str, conversion.blockers)], conversion.swept)
    if not conversion.blockers:
        conversion.apply()
    return (*told, made.SerializeToString(deterministic=True))


def same_without_memo(source: ModelProto, opset: int, options: Options = DEFAULTS) -> None:
    found = outcome(source, opset, options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Memo, "key", staticmethod(lambda *_: None))
        patch.setattr(EqualFunctions, "sites", lambda _, scope, plan: plan(scope))
        patch.setattr(scope, "_body_key", lambda _: object())
        assert outcome(source, opset, options) == found


def reductions(*dims: list[int | str]) -> ModelProto:
    """ReduceMean over the last of two axes, of inputs of some shapes."""
    given = [
        helper.make_tensor_value_info(f"x{place}", TensorProto.FLOAT, shape)
        for place, shape in enumerate(dims)
    ]
    nodes = [
        helper.make_node("ReduceMean", [f"x{place}"], [f"y{place}"], f"n{place}", axes=[-1])
        for place in range(len(dims))
    ]
    outputs = [helper.make_empty_tensor_value_info(node.output[0]) for node in nodes]
    graph = helper.make_graph(nodes, "g", given, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


@pytest.mark.parametrize("opset", [11, 13, 18])
@pytest.mark.parametrize("name", ["dyn_half", "dyn_norms", "dyn_reductions", "ts_vit", "ts_gru"])
def test_exports_become_the_same_as_without_it(name: str, opset: int) -> None:
    source = onnx.load(EXPORTS / f"{name}.onnx")
    same_without_memo(source, opset)
    same_without_memo(several_times(source, 2), opset)


@pytest.mark.parametrize("runtime", ["opencv==4.6", "onnxruntime==1.8", "tensorrt==8.0"])
@pytest.mark.parametrize("name", ["dyn_encoder", "ts_mobilenet", "dyn_norms"])
def test_rewrites_for_a_runtime_are_the_same_as_without_it(name: str, runtime: str) -> None:
    source = several_times(onnx.load(EXPORTS / f"{name}.onnx"), 2)
    same_without_memo(source, 13, Options(runtime=runtime))


def test_equal_nodes_take_their_steps_once(planned: Counter[str]) -> None:
    conversion = Conversion(reductions([2, 3], [2, 3], [2, 3]), 18)
    assert len(conversion.sites) == 3
    assert planned["ReduceMean"] == 1


def test_what_a_step_did_not_ask_makes_no_difference(planned: Counter[str]) -> None:
    conversion = Conversion(reductions([2, 3], [4, 5], ["N", 7]), 18)
    assert len(conversion.sites) == 3
    assert planned["ReduceMean"] == 1


def test_another_answer_makes_one(planned: Counter[str]) -> None:
    source = model("""<ir_version: 8, opset_import: ["": 11]>
    g (float[2,3] x, float[2,3,4] z, float[2,3] w) => (float[2,3] a, float[6,4] b, float[2,3] c)
    { a = Flatten<axis=-1>(x) b = Flatten<axis=-1>(z) c = Flatten<axis=-1>(w) }""")
    found = Conversion(source, 10)
    assert planned["Flatten"] == 2
    found.apply()
    assert [node.attribute[0].i for node in source.graph.node] == [1, 2, 1]


def test_a_type_that_a_step_states_for_a_value_of_the_model_is_an_answer() -> None:
    """Of the scores no length is known once Attention is written out, but the rank."""
    source = model("""<ir_version: 10, opset_import: ["": 23]>
    g (float[1,2,3,4] x, float[2,3,3] z) => (float[2,9] a, float[2,9] b, float[2,9] c) {
        v, , , p = Attention(x, x, x) a = Flatten<axis=-2>(p)
        w, , , q = Attention(x, x, x) b = Flatten<axis=-2>(q) c = Flatten<axis=-2>(z) }""")
    same_without_memo(source, 10)
    conversion = Conversion(source, 10)
    (main,) = conversion.scopes
    assert conversion.facts.type(main, "p") == conversion.facts.type(main, "q")
    conversion.apply()
    axes = [node.attribute[0].i for node in source.graph.node if node.op_type == "Flatten"]
    assert axes[-3:] == [2, 2, 1]


def test_a_node_that_contradicts_its_types_is_refused_after_sound_ones() -> None:
    """It is asked for the same rank as they are, and is not valid there."""
    source = model("""<ir_version: 8, opset_import: ["": 11]>
    g (float[2,3] x, float[2,3] z) => (float[2,3] a, float[2,3] b)
    { p = Flatten<axis=-1>(x) a = Relu(p) q = Flatten<axis=-1>(z) b = Relu(q) }""")
    for name, rank in (("p", 2), ("q", 3)):
        shape = [2, 3, 1][:rank]
        info = helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        source.graph.value_info.append(info)
    with pytest.raises(InvalidModelError, match="'q' is stated to have rank 3"):
        Conversion(source, 10)


def test_an_output_of_the_graph_vouches_for_no_other_value() -> None:
    """A wrong shape is ignored there, and nowhere else."""
    source = model("""<ir_version: 8, opset_import: ["": 11]>
    g (float[2,3] x, float[2,3] z) => (float[2,3] a, float[2,3] b)
    { a = Flatten<axis=-1>(x) q = Flatten<axis=-1>(z) b = Relu(q) }""")
    wrong = helper.make_tensor_value_info("q", TensorProto.FLOAT, [2, 3, 1])
    source.graph.output[0].type.CopyFrom(wrong.type)
    Conversion(source, 10)
    source.graph.value_info.append(wrong)
    with pytest.raises(InvalidModelError, match="'q' is stated to have rank 3"):
        Conversion(source, 10)


def test_values_and_nodes_keep_their_own_names() -> None:
    source = model("""<ir_version: 8, opset_import: ["": 18]>
    g (float[2,3] x, float[2,3] z) => (float[2,3] p, float[2,3] q)
    { p = Mish(x) q = Mish(z) }""")
    for place, node in enumerate(source.graph.node):
        node.name, node.doc_string = f"mish{place}", f"the number {place}"
        node.metadata_props.add(key="from", value=f"layer {place}")
    same_without_memo(source, 17)
    Conversion(source, 17).apply()
    told = [
        (node.name, node.input[:], node.output[:], node.doc_string, *node.metadata_props)
        for node in source.graph.node
    ]
    # The same three nodes twice, with what is the first's own replaced by the second's.
    assert len(told) == 6
    assert str(told[:3]).replace("mish0", "mish1").replace("'x'", "'z'").replace(
        "'p'", "'q'"
    ).replace("number 0", "number 1").replace("layer 0", "layer 1") == str(told[3:])
    assert len({name for node in source.graph.node for name in node.output}) == 6


def test_a_generated_name_that_is_taken_already() -> None:
    source = model("""<ir_version: 8, opset_import: ["": 18]>
    g (float[2,3] x) => (float[2,3] p, float[2,3] q, float[2,3] q_Softplus, float[2,3] q_Tanh)
    { p = Mish(x) q = Mish(x) q_Softplus = Relu(x) q_Tanh = Relu(x) }""")
    same_without_memo(source, 17)
    Conversion(source, 17).apply()
    onnx.checker.check_model(source, full_check=True)


def test_absent_and_empty_names_stay_as_they_are() -> None:
    source = reductions([2, 3], [2, 3], [2, 3])
    source.graph.node[1].name = ""
    source.graph.node[2].ClearField("name")
    same_without_memo(source, 18)


def test_one_value_read_twice_is_told_from_two() -> None:
    source = model("""<ir_version: 8, opset_import: ["": 20]>
    g (float[2,3] x, float[2,3] z) => (float[2,3] a, float[2,3] b, float[2,3] c)
    { a = PRelu(x, z) b = PRelu(x, x) c = PRelu(z, x) }""")
    same_without_memo(source, 6)


def test_an_output_that_nothing_reads_is_told_from_one_that_is_read() -> None:
    source = model("""<ir_version: 8, opset_import: ["": 13]>
    g (float[2,3] x) => (float[2,3] a, float[2,3] b, bool[2,3] m)
    { a, k = Dropout(x) b, m = Dropout(x) }""")
    same_without_memo(source, 6)


def test_large_constants_are_each_their_own() -> None:
    """Their elements are not compared."""
    wide = helper.make_tensor("w", TensorProto.FLOAT, [2000], range(2000))
    array = onnx.numpy_helper.to_array(wide)
    assert array_key("w", array) != array_key("v", array)
    assert array_key("w", array[:9]) == array_key("v", array[:9].copy())
    assert array_key("w", array[:9]) != array_key("w", array[:9].reshape(3, 3))
    assert array_key("w", array[:9]) != array_key("w", array[:9].astype("int32"))
    one, other = (Scope(onnx.GraphProto(), None, 13, "") for _ in range(2))
    assert answer_key(one, "w", array) == answer_key(one, "w", array.copy())
    assert answer_key(one, "w", array) != answer_key(other, "w", array)
    assert answer_key(one, "w", array[:9]) == answer_key(other, "v", array[:9].copy())


#: Nodes from {x} to {y} of rank 3, which name other values by {p}, with some numbers {n}.
NODES = {
    13: (
        "{y} = ReduceMean<axes=[{n}]>({x})",
        "{y} = Softmax<axis={n}>({x})",
        "{p}k = Constant<value=float {{{n}}}>() {y} = Clip({x}, {p}k)",
        "{p}k = Constant<value=float[1] {{{n}}}>() {y} = Pow({x}, {p}k)",
        "{y}, {p}m = Dropout({x})",
        "{p}d, {p}m = Dropout({x}) {p}f = Cast<to=1>({p}m) {y} = Mul({p}d, {p}f)",
        "{p}z = Constant<value_ints=[0, 0, {n}, 0, 0, 0]>() {y} = Pad({x}, {p}z)",
        "{p}a = Constant<value_ints=[{n}]>() {p}u = Unsqueeze({x}, {p}a) {y} = Squeeze({p}u, {p}a)",
        "{p}g = Shape({x}) {y} = Reshape({x}, {p}g)",
    ),
    18: (
        "{y} = Mish({x})",
        "{y} = Softplus({x})",
        "{p}a = Constant<value_ints=[{n}]>() {y} = ReduceMean({x}, {p}a)",
        "{p}a = Constant<value_ints=[{n}]>() {y} = ReduceL2({x}, {p}a)",
        "{p}k = Constant<value=float[4] {{{n}, 1, 1, 1}}>() {y} = LayerNormalization({x}, {p}k)",
        "{p}z = Constant<value_ints=[1, 1]>() {p}a = Constant<value_ints=[{n}]>()"
        " {y} = Pad({x}, {p}z, , {p}a)",
    ),
}
#: Such nodes that refer to the attribute of a function.
REFERRING = {
    13: (
        "{y} = ReduceMax<axes: ints = @axes>({x})",
        "{y} = Softmax<axis: int = @axis>({x})",
    ),
    18: ("{p}a = Constant<value_ints: ints = @axes>() {y} = ReduceMax({x}, {p}a)",),
}

Body = tuple[tuple[str, int], ...]


@st.composite
def nearly_alike(draw: st.DrawFn, opset: int) -> ModelProto:
    """A model of functions, and branches, of one body with a node or a number changed."""

    def node(*, refers: bool) -> tuple[str, int]:
        pool = NODES[opset] + (REFERRING[opset] if refers else ())
        return draw(st.sampled_from(pool)), draw(st.sampled_from((1, 2)))

    def text(body: Body, first: str, last: str, prefix: str) -> str:
        names = [first, *(f"{prefix}t{place}" for place, _ in enumerate(body[1:])), last]
        return " ".join(
            item.format(x=names[place], y=names[place + 1], p=f"{prefix}n{place}", n=number)
            for place, (item, number) in enumerate(body)
        )

    def alike(body: Body, *, refers: bool) -> Body:
        place = draw(st.integers(0, 2 * len(body)))
        if place >= len(body):
            return body
        return (*body[:place], node(refers=refers), *body[place + 1 :])

    common = tuple(node(refers=False) for _ in range(draw(st.integers(1, 3))))
    given = st.sampled_from(("x", "w", "u"))
    calls, functions = [], []
    for index in range(draw(st.integers(2, 4))):
        body = alike(common, refers=True)
        inner = text(body, "a", "b", draw(st.sampled_from(("", "q"))))
        formals = f"F{index} <axes, axis> (a) => (b)"
        functions.append(f'<domain: "own", opset_import: ["": {opset}]> {formals} {{ {inner} }}')
        for axis in {draw(st.sampled_from((1, 2))) for _ in range(2)}:
            calls.append(
                f"c{index}{axis} = own.F{index}<axes=[{axis}], axis={axis}>({draw(given)})"
            )
    for index in range(draw(st.integers(0, 2))):
        arms = [
            f"{name} = g () => (float[d{name},e{name},f{name}] {name}) {{ "
            f"{text(alike(common, refers=False), draw(given), name, 'i')} }}"
            for name in ("then_branch", "else_branch")
        ]
        calls.append(f"z{index} = If (c) <{', '.join(arms)}>")
    main = text(common, "x", "y", "m")
    imports = f'["": {opset}, "own": 1, "my": 1]'
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: {imports}>
        g (bool c, float[2,3,4] x, float[2,N,4] w) => (float[r,s,t] y) {{
            u = my.Foo(x) {" ".join(calls)} {main}
        }} {" ".join(functions)}""")


@pytest.mark.parametrize("runtime", [None, "tensorrt==8.0"])
@pytest.mark.parametrize(("opset", "target"), [(13, 18), (13, 12), (13, 9), (18, 17), (18, 13)])
@given(data=st.data())
@settings(max_examples=20, deadline=None)
def test_nodes_of_scopes_that_are_nearly_alike(
    opset: int, target: int, runtime: str | None, data: st.DataObject
) -> None:
    same_without_memo(data.draw(nearly_alike(opset)), target, Options(runtime=runtime))


def test_what_is_removed_for_blocked_nodes_counts_for_equal_ones() -> None:
    source = model("""<ir_version: 8, opset_import: ["": 18, "my": 1]>
    g (float[2,3] x) => (float[r,s] y, float[r,s] z)
    <int64[2] pads = {1, 1}, int64[1] axes = {1}> {
        u = my.Foo(x) y = Pad(u, pads, , axes) z = Pad(u, pads, , axes) }""")
    same_without_memo(source, 13, Options(runtime="tensorrt==8.0"))


def test_what_scopes_differ_in_beside_their_values_is_told_apart() -> None:
    """A step may ask for it without a note, or write constants as it is."""
    source = model("""<ir_version: 8, opset_import: ["": 13, "own": 1]>
    g (bool c, float[2,3] x) => (float[2,3] a)
    {
        b = Selu(x)
        d = If (c) <then_branch = t () => (float[2,3] p) { m = Selu(x) p = Selu(m) },
                    else_branch = e () => (float[2,3] q) { m = Selu(x) q = Selu(m) }>
        a = own.F<axis=1>(b)
    }
    <domain: "own", opset_import: ["": 13]> F <axis> (v) => (w) {
        r = Selu(v) s = Softmax<axis: int = @axis>(r) w = Softmax<axis: int = @axis>(s) }
    <domain: "own", opset_import: ["": 13]> G <axis> (v) => (w) {
        r = Selu(v) s = Softmax<axis: int = @axis>(r) w = Softmax<axis: int = @axis>(s) }
    <domain: "own", opset_import: ["": 12]> H (v) => (w) { r = Selu(v) w = Selu(r) }""")
    main, *branches, first, second, older = Conversion(source, 18).scopes
    keys = [Memo.key(scope, scope.nodes[0], 13) for scope in (main, *branches, first, older)]
    assert len(set(keys)) == 4
    assert keys[1] == keys[2]
    assert keys[3] == Memo.key(second, second.nodes[0], 13)
    softmax, other, another = (
        Memo.key(scope, node, 13)
        for scope, node in (
            (first, first.nodes[1]),
            (second, second.nodes[1]),
            (first, first.nodes[1]),
        )
    )
    assert softmax == another != other


def test_equal_nodes_of_functions_and_branches_take_their_steps_once(
    planned: Counter[str],
) -> None:
    """Each function holds the constant as a node of its own, and so does not the main graph."""
    source = model("""<ir_version: 8, opset_import: ["": 13, "own": 1]>
    g (bool c, float[2,3] x) => (float[2,1] a, float[2,1] b, float[2,1] d)
    {
        a = own.F(x) b = own.G(x)
        d = If (c) <then_branch = t () => (float[2,1] p) { p = ReduceMean<axes=[1]>(x) },
                    else_branch = e () => (float[2,1] q) { q = ReduceMean<axes=[1]>(x) }>
    }
    <domain: "own", opset_import: ["": 13]> F (v) => (w) { w = ReduceMean<axes=[1]>(v) }
    <domain: "own", opset_import: ["": 13]> G (s) => (t) { t = ReduceMean<axes=[1]>(s) }""")
    same_without_memo(source, 18)
    planned.clear()
    Conversion(source, 18).apply()
    assert planned["ReduceMean"] == 2
    for function in source.functions:
        constant, reduction = function.node
        assert constant.output[0] == reduction.input[1] == f"{function.output[0]}_axes"
    onnx.checker.check_model(source, full_check=True)


def test_nodes_with_graphs_are_planned_singly(planned: Counter[str]) -> None:
    """Their graphs read values by name, of which nothing is noted."""
    source = model("""<ir_version: 8, opset_import: ["": 13]>
    g (bool c, float[2,3] x) => (float[2,3] a, float[2,3] b)
    {
      a = If (c) <then_branch = t () => (float[2,3] p) { p = Softmax(x) },
                  else_branch = e () => (float[2,3] q) { q = Relu(x) }>
      b = If (c) <then_branch = t () => (float[2,3] r) { r = Softmax(x) },
                  else_branch = e () => (float[2,3] s) { s = Relu(x) }>
    }""")
    Conversion(source, 10)
    assert planned["If"] == 2
    same_without_memo(source, 10)


def test_blocked_nodes_are_reported_by_their_own_names(planned: Counter[str]) -> None:
    source = model("""<ir_version: 8, opset_import: ["": 18, "my.ops": 1]>
    g (float[2,3] x) => (float[2,3] a, float[2,3] b, float[2,3] c)
    {
      y = my.ops.Foo(x) z = my.ops.Foo(x)
      a = Mish(y) b = Mish(z) c = Mish(x)
    }""")
    blocked = [site.blocked for site in Conversion(source, 6).sites if site.blocked is not None]
    assert [item.reason.partition(" is not known")[0] for item in blocked] == [
        "the rank of 'y'",
        "the rank of 'z'",
    ]
    assert [item.rank_of for item in blocked] == ["y", "z"]
    assert planned["Mish"] == 2
    same_without_memo(source, 6)


def test_a_reason_that_names_another_value_is_not_taken_for_others() -> None:
    blocked = Blocked("the rank of 'x' is not known, nor is that of 'z'", "", rank_of="x")
    assert "'z'" in blocked.texts_beside_name[0]
    assert "'x'" not in blocked.texts_beside_name[0]
    renamed = blocked.of_equal({"x": "it's"})
    assert renamed.reason.startswith('the rank of "it\'s" is not known')
    assert (renamed.rank_of, str(renamed)) == ("it's", renamed.reason)
    assert blocked.rank_of == "x"


def plant(monkeypatch: pytest.MonkeyPatch, key: tuple[str, int, Direction], *, asks: bool) -> None:
    """Reduce over the last axis by its number, by a step that asks for the rank or forgets to."""

    def last_axis(context: Context) -> None:
        name = context.node.input[0]
        info = next(item for item in facts_model(context).graph.input if item.name == name)
        rank = context.need_rank(name, "") if asks else len(info.type.tensor_type.shape.dim)
        axes = context.array([rank - 1], "axes")
        context.replace(inputs=[name, axes], drop=["axes"])

    monkeypatch.setattr(contract, "check", lambda _: None)
    monkeypatch.setitem(STEPS, key, step_for(*key)._replace(apply=last_axis))


def facts_model(context: Context) -> ModelProto:
    """The model, past all questions."""
    return context._facts.model


def test_a_step_that_forgets_to_ask_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its result for one rank is taken for another, but not the check of that result."""
    plant(monkeypatch, ("ReduceMean", 18, "up"), asks=False)
    source = reductions([2, 3], [2, 3], [4, 5, 6])
    conversion = Conversion(source, 18)
    taken = {site.result[0].input[1] for site in conversion.sites}
    assert len(taken) == 1, "the step was taken for the node that it is wrong for"
    report = check_sites(conversion)
    assert not report.ok
    assert [failure.node for failure in report.failures] == ["n2"]
    assert report.distinct == 2


def test_a_step_that_asks_is_right(monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, ("ReduceMean", 18, "up"), asks=True)
    conversion = Conversion(reductions([2, 3], [2, 3], [4, 5, 6]), 18)
    assert len({site.result[0].input[1] for site in conversion.sites}) == 2
    assert check_sites(conversion).ok


def test_a_step_that_looks_around_in_the_scope_is_planned_singly(
    monkeypatch: pytest.MonkeyPatch, planned: Counter[str]
) -> None:
    def looks(context: Context) -> None:
        assert context.scope.outputs
        context.replace(inputs=[context.input(0), context.array([-1], "axes")], drop=["axes"])

    monkeypatch.setattr(contract, "check", lambda _: None)
    key: tuple[str, int, Direction] = ("ReduceMean", 18, "up")
    monkeypatch.setitem(STEPS, key, step_for(*key)._replace(apply=looks))
    Conversion(reductions([2, 3], [2, 3]), 18)
    assert planned["ReduceMean"] == 2


def test_questions_about_another_scope_are_not_noted_as_the_nodes_own() -> None:
    source = reductions([2, 3])
    conversion = Conversion(source, 18)
    own, other = Questions(conversion.scopes[0]), object()
    own.note(conversion.scopes[0], "type", ("x",), None)
    assert own.complete
    own.note(other, "type", ("x",), None)  # type: ignore[arg-type]
    assert not own.complete


def test_an_empty_text_that_a_step_writes_is_repeated() -> None:
    path = Path(__file__).parents[1] / "data" / "quantized" / "mobilenet_fused.onnx"
    same_without_memo(onnx.load(path), 9, Options(emulate=True))
