"""Functions that no one body serves: a copy for each way of calling them."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import onnx
from click.testing import CliRunner
from onnx import FunctionProto, ModelProto, helper

import onnxreduce_cli
from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.cli.main import cli
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.inspection import inspect
from tests.support import blockers, converts, model

X = np.array([[[1.5, -2.0, 0.25], [3.0, 4.0, 7.0]]], np.float32)


def names(found: ModelProto) -> list[str]:
    return [function.name for function in found.functions]


def calls(found: ModelProto) -> list[str]:
    """The functions that the main graph's nodes call."""
    return [node.op_type for node in found.graph.node if node.domain == "local"]


def body(found: ModelProto, name: str) -> FunctionProto:
    (function,) = (item for item in found.functions if item.name == name)
    return function


def axes(opset: int = 17, default: str = "") -> ModelProto:
    """A function whose axes three calls set in three ways, two of which come to the same."""
    return model(f"""<ir_version: 10, opset_import: ["" : {opset}, "local" : 1]>
        g (float[1,2,3] x) => (float[1,1,3] u, float[1,2,1] v, float[1,2,1] w, float[1,2,1] t) {{
            [a] u = local.F<dims = [1]>(x)
            [b] v = local.F<dims = [2]>(x)
            [c] w = local.F<dims = [-1]>(x)
            [d] t = local.F<dims = [2]>(x)
        }}
        <domain: "local", opset_import: ["" : {opset}]>
        F <dims{default}> (p) => (q) {{ [n] q = ReduceMax<axes : ints = @dims>(p) }}""")


def test_axes_below_11() -> None:
    source = axes()
    result = converts(source, 10, {"x": X}, exact=True)
    # What nothing had to change is one function still.
    assert calls(result) == ["F_1", "F_1", "F_2", "F_1"]
    references = [item.node[0].attribute[0].ref_attr_name for item in result.functions]
    assert references == ["dims", ""]


def test_where_one_body_serves_all_there_are_no_copies() -> None:
    for target in (11, 12, 13, 18, 21):
        result = converts(axes(), target, {"x": X}, exact=True)
        assert names(result) == ["F"]
        assert not onnxreduce_cli.plan(axes(), target).specialised


def test_where_one_body_serves_all_calls_of_calls_there_are_no_copies() -> None:
    """What the innermost function is given comes from the outermost calls, in two ways."""
    text = """<ir_version: 8, opset_import: ["": 13, "own": 1]>
        g (float[2,3] x) => (int64[?,?] y, int64[?,?] z) {
            y = own.Outer<a = 0>(x) z = own.Outer<a = LAST>(x) }
        <domain: "own", opset_import: ["": 13, "own": 1]>
        Outer <a> (v) => (w) { w = own.Inner<axis: int = @a>(v) }
        <domain: "own", opset_import: ["": 13]>
        Inner <axis> (v) => (w) { w = ArgMax<axis: int = @axis>(v) }"""
    for last, copies in (
        ("1", ["Outer", "Inner"]),
        ("-1", ["Outer_1", "Outer_2", "Inner_1", "Inner_2"]),
    ):
        result = converts(model(text.replace("LAST", last)), 10, {"x": X[0]}, exact=True)
        assert names(result) == copies


def test_an_attribute_that_some_calls_leave_out() -> None:
    source = model("""<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x) => (float[1,1,1] y, float[1,1,3] z) {
            y = local.F(x)
            z = local.F<dims = [1]>(x)
        }
        <domain: "local", opset_import: ["" : 17]>
        F <dims> (a) => (b) { [n] b = ReduceMax<axes : ints = @dims>(a) }""")
    up = converts(source, 18, {"x": X}, exact=True)
    assert len(up.functions) == 2
    converts(up, 13, {"x": X}, exact=True)


def test_defaults() -> None:
    source = model("""<ir_version: 10, opset_import: ["" : 12, "local" : 1]>
        g (float[1,2,3] x) => (float[1,2,3] y, float[1,2,3] z, float[1,2,3] w) {
            y = local.F(x)
            z = local.F<axis = 2>(x)
            w = local.F<axis = 1>(x)
        }
        <domain: "local", opset_import: ["" : 12]>
        F <axis : int = 1> (a) => (b) { b = Softmax<axis : int = @axis>(a) }""")
    result = converts(source, 13, {"x": X})
    assert len(result.functions) == 2
    first, second, third = calls(result)
    assert first == third != second
    assert [len(function.node) > 1 for function in result.functions].count(True) == 1
    assert result.functions[0].attribute_proto == source.functions[0].attribute_proto


def test_dtypes_that_the_older_definition_lacks() -> None:
    source = model("""<ir_version: 10, opset_import: ["" : 12, "local" : 1]>
        g (float[2,3] x, int8[2,3] i, double[2,3] d)
            => (float[2,1] y, int8[2,1] z, double[2,1] w) {
            y = local.F(x)
            z = local.F(i)
            w = local.F(d)
        }
        <domain: "local", opset_import: ["" : 12]>
        F (a) => (b) { [n] b = ReduceMax<axes = [-1]>(a) }""")
    data = np.array([[1, -2, 3], [4, 5, -6]])
    feeds = {
        "x": data.astype(np.float32),
        "i": data.astype(np.int8),
        "d": data.astype(np.float64),
    }
    result = converts(source, 11, feeds, exact=True)
    first, second, third = calls(result)
    assert first == third != second
    assert [node.op_type for node in body(result, first).node] == ["ReduceMax"]
    assert [node.op_type for node in body(result, second).node] == ["Cast", "ReduceMax", "Cast"]


def test_ranks() -> None:
    source = model("""<ir_version: 10, opset_import: ["" : 13, "local" : 1]>
        g (float[2,3] m, float[1,2,3] x, float[4,2] k)
            => (float[2,3] y, float[1,2,3] z, float[4,2] w) {
            y = local.F(m)
            z = local.F(x)
            w = local.F(k)
        }
        <domain: "local", opset_import: ["" : 13]>
        F (a) => (b) { [n] b = Softmax<axis = 1>(a) }""")
    feeds = {"m": X[0], "x": X, "k": np.arange(8, dtype=np.float32).reshape(4, 2)}
    result = converts(source, 12, feeds)
    first, second, third = calls(result)
    assert first == third != second
    assert len(body(result, first).node) == 1


def test_constants_of_the_caller() -> None:
    source = model("""<ir_version: 10, opset_import: ["" : 10, "local" : 1]>
        g (float[1,2,3] x) => (float[1,2,2] y, float[1,2,1] z, float[1,2,2] w)
        <int64[1] one = {1}, int64[1] two = {2}> {
            y = local.F(x, two)
            z = local.F(x, one)
            w = local.F(y, two)
        }
        <domain: "local", opset_import: ["" : 10]>
        F (a, count) => (b) { b, places = TopK(a, count) }""")
    result = converts(source, 9, {"x": X}, exact=True)
    assert calls(result) == ["F_1", "F_2", "F_1"]
    assert [node.op_type for item in result.functions for node in item.node] == ["TopK", "TopK"]


def nested() -> ModelProto:
    """One function called by the graph, from a branch, and by two others, one of these by one."""
    return model("""<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x, bool c)
            => (float[1,1,3] y, float[1,2,1] z, float[1,1,3] w, float[p,q,r] v)
        {
            [top] y = local.Inner<dims = [1]>(x)
            [outer] z = local.Outer<dims = [-1]>(x)
            [outermost] w = local.Outermost(x)
            [choice] v = If (c) <
                then_branch = t () => (float[p1,q1,r1] o) {
                    [in_then] o = local.Outer<dims = [0]>(x)
                },
                else_branch = e () => (float[p2,q2,r2] o) {
                    [in_else] o = local.Inner<dims = [-3]>(x)
                }
            >
        }
        <domain: "local", opset_import: ["" : 17, "local" : 1]>
        Outermost (a) => (b) { [within] b = local.Outer<dims = [-2]>(a) }
        <domain: "local", opset_import: ["" : 17, "local" : 1]>
        Outer <dims> (a) => (b) {
            n = Neg(a)
            [deep] m = local.Inner<dims : ints = @dims>(n)
            b = Neg(m)
        }
        <domain: "local", opset_import: ["" : 17]>
        Inner <dims> (a) => (b) { [n] b = ReduceMax<axes : ints = @dims>(a) }""")


def test_functions_that_call_functions() -> None:
    source = nested()
    feeds = [{"x": X, "c": np.array(flag)} for flag in (True, False)]
    for target in (12, 11, 10, 8):
        result = converts(source, target, *feeds, exact=True)
        changed = target < 11
        assert (len(result.functions) > 3) == changed
        called = {(n.domain, n.op_type) for f in result.functions for n in f.node}
        called |= {(n.domain, n.op_type) for n in result.graph.node}
        for attribute in result.graph.node[-1].attribute:
            called |= {(n.domain, n.op_type) for n in attribute.g.node}
        # Nobody calls what is not there, and nothing is there that nobody calls.
        assert {item for item in called if item[0]} == {("local", n) for n in names(result)}


def test_a_caller_of_which_one_body_serves_stays() -> None:
    source = model("""<ir_version: 10, opset_import: ["" : 17, "local" : 1]>
        g (float[1,2,3] x, float[2,3] m) => (float[1,2,3] y, float[1,3] z, float[1,2,1] w) {
            y = local.Outer(x)
            z = local.Outer(m)
            w = local.Inner<dims = [-1]>(x)
        }
        <domain: "local", opset_import: ["" : 17, "local" : 1]>
        Outer (a) => (b) { b = local.Inner<dims = [0]>(a) }
        <domain: "local", opset_import: ["" : 17]>
        Inner <dims> (a) => (b) { [n] b = ReduceMax<axes : ints = @dims>(a) }""")
    result = converts(source, 10, {"x": X, "m": X[0]}, exact=True)
    assert names(result) == ["Outer", "Inner_1", "Inner_2"]
    assert calls(result) == ["Outer", "Outer", "Inner_1"]


def full() -> ModelProto:
    """A function with everything a function can have, for two calls that differ."""
    source = axes(default=" : ints = [1]")
    del source.graph.node[2:]
    del source.graph.output[2:]
    for node in source.graph.node:
        node.doc_string = "a call"
        node.metadata_props.add(key="node", value=node.name)
    function = source.functions[0]
    function.doc_string = "a function"
    function.overload = "special"
    for node in source.graph.node:
        node.overload = "special"
    function.metadata_props.add(key="function", value="meta")
    function.node[0].doc_string = "a node"
    function.node[0].metadata_props.add(key="deep", value="down")
    function.opset_import.add(domain="ai.onnx.ml", version=3)
    source.opset_import.add(domain="ai.onnx.ml", version=3)
    info = function.value_info.add(name="q", doc_string="the output")
    info.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    unknown = b"\xfa\x3e\x03new"
    for message in (function, function.node[0], source.graph.node[0]):
        message.MergeFromString(unknown)
    other = source.functions.add()
    other.CopyFrom(source.functions[0])
    other.name = "F_1"
    other.node[0].CopyFrom(helper.make_node("Neg", ["p"], ["q"]))
    return source


def test_nothing_is_lost() -> None:
    source = full()
    source.graph.node[1].attribute[0].ints[:] = [-1]
    result = onnxreduce_cli.convert(source, 10)
    expected = copy.deepcopy(source)
    expected.opset_import[0].version = 10
    for owner in (expected, *expected.functions):
        for entry in owner.opset_import:
            if entry.domain == "ai.onnx.ml":  # Nothing reads it.
                owner.opset_import.remove(entry)
    function = expected.functions[0]
    assert names(result) == ["F_2", "F_3", "F_1"]
    for found, value in zip(result.functions, ([1], [2]), strict=False):
        other = FunctionProto()
        other.CopyFrom(function)
        other.name = found.name
        other.opset_import[0].version = 10
        if value == [2]:
            del other.node[0].attribute[:]
            other.node[0].attribute.append(helper.make_attribute("axes", value))
        assert found.SerializeToString(deterministic=True) == other.SerializeToString(
            deterministic=True
        )
    for node, name in zip(expected.graph.node, names(result), strict=False):
        node.op_type = name
    assert result.graph.SerializeToString() == expected.graph.SerializeToString()


def test_the_same_bytes_each_time() -> None:
    for build in (axes, nested):
        contents = {onnxreduce_cli.convert(build(), 10).SerializeToString() for _ in range(4)}
        assert len(contents) == 1


def test_in_place_and_plan() -> None:
    source = nested()
    content = source.SerializeToString()
    plan = onnxreduce_cli.plan(source, 10)
    assert plan.possible
    assert source.SerializeToString() == content
    result = onnxreduce_cli.convert(source, 10)
    assert source.SerializeToString() == content
    assert onnxreduce_cli.convert(source, 10, in_place=True) is source
    assert source == result
    said = {name.removeprefix("local.") for item in plan.specialised for name, _ in item.copies}
    assert said <= set(names(result))


def test_what_blocks_still_blocks() -> None:
    source = model("""<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        g (float[1,2,3] x, bfloat16[2] r) => (float[1,2,3] y, bfloat16[2] z) {
            [good] y = local.F(x)
            [bad] z = local.F(r)
        }
        <domain: "local", opset_import: ["" : 18]>
        F (a) => (b) { [n] b = Relu(a) }""")
    (blocker,) = blockers(source, 7)
    assert (blocker.scope, blocker.node) == ("function local.F as called by bad", "n")
    del source.graph.node[0]
    del source.graph.output[0]
    (blocker,) = blockers(source, 7)
    assert blocker.scope == "function local.F"


def test_the_command_says_so(tmp_path: Path) -> None:
    given, made = str(tmp_path / "m.onnx"), str(tmp_path / "n.onnx")
    onnx.save(axes(), given)
    runner = CliRunner()
    line = "  function local.F: specialised as local.F_1 for a, b, d; local.F_2 for c\n"
    shown = runner.invoke(cli, ["convert", given, "--opset", "10", "--dry-run"])
    assert (shown.exit_code, line in shown.output) == (0, True)
    done = runner.invoke(cli, ["convert", given, "--opset", "10", "-o", made])
    assert (done.exit_code, line in done.output) == (0, True)
    onnx.checker.check_model(onnx.load(made), full_check=True)


def test_inspection_and_site_checks() -> None:
    found = inspect(nested())
    assert sum(item.op_type == "ReduceMax" for item in found.family) == 1
    assert not found.reach[10]
    assert not check_sites(Conversion(nested(), 10)).failures


def exported() -> ModelProto:
    """What PyTorch's exporter of graphs writes when it does not inline: modules and operators."""
    rng = np.random.default_rng(0)
    square, small = (
        ", ".join(f"{value:.3f}" for value in rng.normal(0, 1, size * size)) for size in (8, 4)
    )
    return model(
        """<ir_version: 10, opset_import: ["" : 18, "lib" : 1, "pkg.torch.net" : 1],
            producer_name: "pytorch">
        main_graph (float[2,4,8] l_x) => (float[2,4,8] attention, float[2,8] pooled, float[2,4] top)
        <float[8,8] weight = {SQUARE}, float[4,4] weight_1 = {SMALL}> {
            [block_1] attention = pkg.torch.net.Block(l_x, weight)
            [pool_1] pooled = pkg.torch.net.Pool(attention)
            [t] turned = Transpose<perm = [0, 2, 1]>(attention)
            [block_2] again = pkg.torch.net.Block(turned, weight_1)
            [pool_2] top = pkg.torch.net.Pool(again)
        }
        <domain: "pkg.torch.net", opset_import: ["" : 18, "lib" : 1]>
        Block (x, w) => (y) {
            [mm] product = MatMul(x, w)
            [soft] weights = lib.aten_softmax_no_dtype<dim = -2>(product)
            [mul] scaled = Mul(weights, x)
            [norm] y = lib.aten_norm<dims = [-1], keepdim = 1>(scaled)
        }
        <domain: "pkg.torch.net", opset_import: ["" : 18, "lib" : 1]>
        Pool (x) => (y) {
            [flat] m = lib.aten_amax<keepdim = 0>(x)
            [soft] y = lib.aten_softmax_no_dtype<dim = 0>(m)
        }
        <domain: "lib", opset_import: ["" : 18]>
        Rank (input) => (rank) {
            shape = Shape(input)
            rank = Size(shape)
        }
        <domain: "lib", opset_import: ["" : 18, "lib" : 1]>
        IsScalar (input) => (is_scalar) {
            rank = lib.Rank(input)
            zero = Constant<value_int = 0>()
            is_scalar = Equal(rank, zero)
        }
        <domain: "lib", opset_import: ["" : 18, "lib" : 1]>
        aten_softmax_no_dtype <dim> (self) => (result) {
            scalar = lib.IsScalar(self)
            lifted = If (scalar) <
                then_branch = thenGraph () => (a) {
                    zero = Constant<value_ints = [0]>()
                    a = Unsqueeze(self, zero)
                },
                else_branch = elseGraph () => (b) { b = Identity(self) }
            >
            result = Softmax<axis : int = @dim>(self)
        }
        <domain: "lib", opset_import: ["" : 18]>
        aten_norm <dims, keepdim> (self) => (result) {
            axes = Constant<value_ints : ints = @dims>()
            mean = ReduceMean<keepdims : int = @keepdim>(self, axes)
            square = ReduceL2<keepdims : int = @keepdim>(self, axes)
            centred = Sub(self, mean)
            result = Div(centred, square)
        }
        <domain: "lib", opset_import: ["" : 18]>
        aten_amax <keepdim> (self) => (result) {
            one = Constant<value_ints = [1]>()
            result = ReduceMax<keepdims : int = @keepdim>(self, one)
        }""".replace("SQUARE", square).replace("SMALL", small)
    )


def test_a_model_of_modules_and_operators() -> None:
    source = exported()
    feeds = {"l_x": np.random.default_rng(1).normal(0, 1, (2, 4, 8)).astype(np.float32)}
    for target in (21, 17, 13, 12, 11):
        result = converts(source, target, feeds)
        expected = [function.name for function in source.functions]
        if target < 13:
            # The two axes of Softmax; who calls it is one function still.
            expected[4:5] = ["aten_softmax_no_dtype_1", "aten_softmax_no_dtype_2"]
        assert names(result) == expected


def test_a_shape_that_depends_on_what_outer_calls_set_is_not_known() -> None:
    """Around the Softmax of 11 that of 13 needs Transposes of the rank, 3 in one call, 2 in one."""
    source = model("""<ir_version: 8, opset_import: ["" : 13, "local" : 1]>
        g (float[1,2,3] x) => (float[a,b,c] y, float[d,e] z) {
            y = local.Outer<outer = 1>(x)
            z = local.Outer<outer = 0>(x)
        }
        <domain: "local", opset_import: ["" : 13, "local" : 1]>
        Outer <outer> (a) => (b) { b = local.Inner<inner : int = @outer>(a) }
        <domain: "local", opset_import: ["" : 13]>
        Inner <inner> (a) => (b) {
            t = ReduceMax<axes = [0], keepdims : int = @inner>(a)
            b = Softmax<axis = -2>(t)
        }""")
    result = converts(source, 11, {"x": X})
    onnx.checker.check_model(result, full_check=True)
    assert names(result) == ["Outer_1", "Outer_2", "Inner_1", "Inner_2"]
