"""Checking sites: what is right passes, every planted mistake is caught."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.engine import emulation
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.steps.dispatch import step_for
from onnxreduce_cli.steps.registry import STEPS, Direction
from onnxreduce_cli.verification.inputs.files import read_inputs
from onnxreduce_cli.verification.running import runtime
from onnxreduce_cli.verification.sites import site_runners
from onnxreduce_cli.verification.sites.report import SiteReport
from onnxreduce_cli.verification.whole.equivalence import verify
from tests import contract
from tests.support import model

HEAD = '<ir_version: 8, opset_import: ["": {opset}]>'


def source(opset: int, text: str) -> ModelProto:
    return model(HEAD.replace("{opset}", str(opset)) + text)


def checked(found: ModelProto, opset: int) -> SiteReport:
    before = found.SerializeToString()
    conversion = Conversion(found, opset, Options(emulate=True))
    assert not conversion.blockers
    report = check_sites(conversion)
    assert found.SerializeToString() == before, "checking touched the model"
    conversion.apply()
    return report


RIGHT = {
    "reduce_up": (
        13,
        18,
        "g (float[N,M] x) => (float[N] y) { y = ReduceMax<axes=[1],keepdims=0>(x) }",
    ),
    "reduce_down": (
        18,
        13,
        "g (float[N,M] x) => (float[N,K] y) <int64[1] a = {1}> { y = ReduceMax(x, a) }",
    ),
    "noop": (
        18,
        13,
        "g (float[N,M] x) => (float[N,M] y) "
        "<int64[0] a = {}> { y = ReduceSumSquare<noop_with_empty_axes=1>(x, a) }",
    ),
    "softmax_up": (11, 13, "g (float[N,C,H] x) => (float[N,C,H] y) { y = Softmax<axis=1>(x) }"),
    "softmax_down": (13, 11, "g (float[N,C,H] x) => (float[N,C,H] y) { y = Softmax<axis=1>(x) }"),
    "hardmax": (13, 12, "g (float[N,C,H] x) => (float[N,C,H] y) { y = Hardmax<axis=0>(x) }"),
    "computed": (28, 18, "g (float[N] x) => (float[1] y) { y = ReduceLogSumExp(x) }"),
    "int8": (13, 11, "g (int8[N,M] x) => (int8[N,1] y) { y = ReduceMin<axes=[1]>(x) }"),
    "bfloat16": (13, 18, "g (bfloat16[N,M] x) => (bfloat16[N,1] y) { y = ReduceMax<axes=[1]>(x) }"),
    "scalar": (13, 18, "g (float x) => (float y) { y = ReduceMax(x) }"),
    "strings": (12, 13, "g (string[N] x, int64[K] i) => (string[K] y) { y = Gather(x, i) }"),
}


@pytest.mark.parametrize("case", RIGHT)
def test_a_right_conversion_passes(case: str) -> None:
    opset, target, text = RIGHT[case]
    if max(opset, target) > onnx.defs.onnx_opset_version():
        pytest.skip("the installed onnx does not know this opset")
    report = checked(source(opset, text), target)
    assert report.ok
    assert not report.unchecked
    assert report.checked == report.distinct


@pytest.mark.parametrize("seed", range(20))
def test_no_draw_asks_where_a_nan_stands_in_an_order(seed: int) -> None:
    found = source(
        11,
        "g (float[3,4] x, int64[1] k) => (float[3,K] y, int64[3,K] i) "
        "{ y, i = TopK<largest = 0>(x, k) }",
    )
    report = check_sites(Conversion(found, 10, Options(emulate=True)), seed=seed)
    assert report.ok
    assert report.bit_exact == 1


@pytest.mark.parametrize("seed", range(40))
def test_no_draw_asks_in_which_order_numbers_are_multiplied(seed: int) -> None:
    # 5e-324 * 0.1 * inf is infinite or no number.
    found = source(
        18, "g (double[2,2,2,2] x, int64[2] a) => (double[K,L] y) { y = ReduceProd(x, a) }"
    )
    report = check_sites(Conversion(found, 7, Options(emulate=True)), seed=seed)
    assert report.ok
    assert report.checked == 1


@pytest.mark.parametrize(
    ("opset", "target", "text"),
    [
        (
            12,
            7,
            'g (float[N,C,T] x) => (float[N,C,C] y) { y = Einsum<equation="bct,bdt->bcd">(x,x) }',
        ),
    ],
)
def test_empty_tensors_that_end_onnxruntime_do_not_end_the_check(
    opset: int, target: int, text: str
) -> None:
    report = checked(source(opset, text), target)
    assert report.ok
    assert not report.unchecked


def test_a_computed_shape_that_fits_is_found_soon() -> None:
    found = source(
        14,
        "g (float[A,B,C,D,8] x, int64[N] p, int64[1] k) => (float[E,F,G,8] y) <int64[1] e = {8}> "
        "{ q = Slice(p, k, k) \n s = Concat<axis=0>(p, e) \n y = Reshape<allowzero=0>(x, s) }",
    )
    found.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 3
    report = checked(found, 13)
    assert report.summary == "1 node, all checked: 1 bit-exact"


def test_scalars_near_constants() -> None:
    found = source(13, "g (uint8 x) => (uint8 y) <uint8 c = {3}> { y = Max(x, c) }")
    assert checked(found, 11).bit_exact == 1


def test_an_einsum_is_not_asked_to_repeat() -> None:
    found = source(
        12,
        "g (float[A,B] x, float[C,D] z) => (float[E,F] y) "
        '{ y = Einsum<equation="ij,jk->ik">(x, z) }',
    )
    for seed in range(5):
        report = check_sites(Conversion(found, 11, Options(emulate=True)), seed=seed)
        assert report.ok
        assert report.checked == 1


def test_large_dimensions_and_weights_cost_nothing() -> None:
    # The data of these inputs would not fit into memory.
    found = source(
        13,
        "g (float[65536,65536] x, float[1048576,1048576] z) => (float[65536] y, float[1048576] w) "
        "{ y = ReduceMax<axes=[1],keepdims=0>(x) \n w = ReduceMax<axes=[1],keepdims=0>(z) }",
    )
    report = checked(found, 18)
    assert report.summary == "2 nodes, 1 different, all checked: 1 bit-exact"


def test_unknown_ranks_are_tried_over_all_that_are_legal() -> None:
    found = source(13, "g (float[N,M] x) => (float[N] y) { y = ReduceMax<axes=[1],keepdims=0>(x) }")
    del found.graph.input[0].type.tensor_type.shape.dim[:]
    found.graph.input[0].type.tensor_type.ClearField("shape")
    found.graph.output[0].type.tensor_type.ClearField("shape")
    assert checked(found, 18).summary == "1 node, all checked: 1 bit-exact"


def test_a_rank_that_only_onnxruntime_accepts_is_not_legal() -> None:
    # ONNX Runtime takes axis 0 of a scalar; the newest opset only the NumPy executor runs.
    found = source(12, "g (int32[N] x) => (int32[M] y) { y = ReduceL1<axes=[0]>(x) }")
    for value in (*found.graph.input, *found.graph.output):
        value.type.tensor_type.ClearField("shape")
    report = checked(found, onnx.defs.onnx_opset_version())
    assert report.ok
    assert report.checked == 1


def test_like_sites_are_checked_once_and_the_summary_says_so() -> None:
    nodes = "\n".join(f"t{i + 1} = ReduceMax<axes=[1]>(t{i})" for i in range(9))
    found = source(
        13,
        f"g (float[N,M] t0) => (float[N,M] y, float[N] z) {{ {nodes} "
        "\n y = Identity(t9) \n z = ReduceMin<axes=[1],keepdims=0>(t0) }",
    )
    report = checked(found, 18)
    assert report.sites == 10
    # The first of the chain reads [N, M], the others [N, 1].
    assert report.distinct == 3
    assert report.summary == "10 nodes, 3 different, all checked: 3 bit-exact"


def test_sites_whose_constants_differ_are_checked_each() -> None:
    """Although no step asked for them: one that forgets to ask is caught."""
    found = source(
        13,
        "g (float[2] x) => (float y, float z) <float[2] a = {1, 2}, float[2] b = {3, 4}> "
        "{ y = ReduceMax<axes=[0],keepdims=0>(a)  z = ReduceMax<axes=[0],keepdims=0>(b) }",
    )
    report = checked(found, 18)
    assert report.summary == "2 nodes, all checked: 2 bit-exact"


def test_nothing_to_check() -> None:
    report = checked(source(13, "g (float[N] x) => (float[N] y) { y = Relu(x) }"), 13)
    assert report.summary == "no nodes to check"


def test_a_site_in_a_function_uses_the_types_of_its_calls() -> None:
    found = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13, "f": 1]>'
        "g (float[N,M] x) => (float[N,1] y) { y = f.top <k = 1> (x) }"
        '<domain: "f", opset_import: ["": 13]> top <k> (a) => (b) { b = ReduceMax<axes=[1]>(a) }'
    )
    report = checked(found, 18)
    assert report.summary == "1 node, all checked: 1 bit-exact"


CALLED_WITH = """g (float[N,M] x, int64[1] i) => (float[?,?] y, float[?] z) {
        y = f.F<kept = 1>(x, i) z = f.F<kept = 0>(x, i) }
    <domain: "f", opset_import: ["": OPSET]> F <kept> (a, i) => (b) { BODY }"""


def called_with(opset: int, body: str) -> ModelProto:
    """A function that two calls give another value, with a body."""
    text = CALLED_WITH.replace("OPSET", str(opset)).replace("BODY", body)
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}, "f": 1]> {text}')


def test_a_site_is_checked_with_each_value_that_calls_set(monkeypatch: pytest.MonkeyPatch) -> None:
    """What one call sets is the default: only the other shows that it got lost."""
    body = "b = ReduceMax<axes=[1], keepdims: int = @kept>(a)"
    report = checked(called_with(13, body), 18)
    assert (report.sites, report.distinct, report.bit_exact) == (1, 1, 1)
    assert not report.unchecked
    key: Key = ("ReduceMax", 18, "up")
    spoil(monkeypatch, key, "ReduceMax", lambda node: attributes.drop(node, ["keepdims"]))
    (failure,) = check_sites(Conversion(called_with(13, body), 18)).failures
    assert "shapes differ" in failure.reason


@pytest.mark.parametrize("op_type", ["ReduceMax", "ReduceSum", "ReduceLogSumExp"])
def test_references_in_the_graphs_of_a_replacement(op_type: str) -> None:
    """Axes known at run time only become one If for each axis, with keepdims as calls set it."""
    body = "i = Shape(a) s = Size(i) o = Constant<value_ints=[1]>() j = Sub(s, o) k = Identity(j)"
    body += f" q = Reshape(k, o) b = {op_type}<keepdims: int = @kept>(a, q)"
    report = checked(called_with(18, body), 11)
    assert report.checked
    assert not report.unchecked


def test_a_site_of_unknown_type_is_unchecked_with_its_reason() -> None:
    found = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13, "f": 1]>'
        "g (float[N,M] x) => (float[N,M] y) { y = Relu(x) }"
        '<domain: "f", opset_import: ["": 13]> top (a) => (b) { b = ReduceMax<axes=[1]>(a) }'
    )
    report = checked(found, 18)
    assert report.ok
    assert report.checked == 0
    assert report.unchecked[0].reason == "the type of 'a' is not known"
    assert report.summary == "1 node, none checked"


Wrong = Callable[[Context], None]
Key = tuple[str, int, Direction]


def plant(monkeypatch: pytest.MonkeyPatch, key: Key, wrong: Wrong) -> None:
    """Take a boundary by a wrong step, which only the check of sites looks at."""
    # That tests would see it as it is taken, too, is not what is asked here.
    monkeypatch.setattr(contract, "check", lambda _: None)
    monkeypatch.setitem(STEPS, key, step_for(*key)._replace(apply=wrong))


def spoil(
    monkeypatch: pytest.MonkeyPatch, key: Key, op_type: str, change: Callable[[NodeProto], object]
) -> None:
    """Take a boundary by its own step, but for a change to each node of an operator it emits."""
    right = step_for(*key).apply
    assert right is not None

    def wrong(context: Context) -> None:
        right(context)
        for node, _ in context.emitted:
            if node.op_type == op_type:
                change(node)

    plant(monkeypatch, key, wrong)


def _wrong_axis(context: Context) -> None:
    context.replace(inputs=[context.input(0)], drop=("noop_with_empty_axes",), axes=[0])


def _lost_keepdims(context: Context) -> None:
    context.replace(inputs=[context.input(0)], drop=("noop_with_empty_axes", "keepdims"), axes=[1])


def _dropped_noop(context: Context) -> None:
    context.replace(inputs=[context.input(0)], drop=("noop_with_empty_axes",))


def _same_axis_number(context: Context) -> None:
    context.replace(axis=context.value("axis", -1))


def _turned(context: Context, back: list[int]) -> None:
    op = context.op
    turned = op.Transpose(context.input(0), perm=[0, 2, 1])
    result = context.replace(inputs=[turned], outputs=[context.fresh("last")], axis=2)
    op.Transpose(*result.output, outputs=[context.node.output[0]], perm=back)


def _wrong_way_back(context: Context) -> None:
    _turned(context, [1, 0, 2])


def _lost_way_back(context: Context) -> None:
    context.replace(inputs=[context.op.Transpose(context.input(0), perm=[0, 2, 1])], axis=2)


def _flat_without_shape(context: Context) -> None:
    flat = context.op.Flatten(context.input(0), axis=1)
    context.replace(inputs=[flat], axis=-1)


def _axes_off_by_one(context: Context) -> None:
    axes = [axis + 1 for axis in context.value("axes")]
    context.replace(inputs=[context.input(0), context.array(axes, "axes")], drop=("axes",))


def _unknown_attribute(context: Context) -> None:
    context.replace(inputs=[context.input(0)], axes=[1])


REDUCE = (
    "g (float[N,M,3] x) => (float[P,Q] y) <int64[1] a = {1}> { y = ReduceMax<keepdims=0>(x, a) }"
)
NOOP = (
    "g (float[N,M] x) => (float[P,Q] y) "
    "<int64[0] a = {}> { y = ReduceMean<noop_with_empty_axes=1>(x, a) }"
)
SOFT = "g (float[N,C,H] x) => (float[N,C,H] y) { y = %s<axis=1>(x) }"

PLANTS: dict[str, tuple[int, int, str, Key, Wrong]] = {
    "wrong axis": (18, 13, REDUCE, ("ReduceMax", 18, "down"), _wrong_axis),
    "lost keepdims": (18, 13, REDUCE, ("ReduceMax", 18, "down"), _lost_keepdims),
    "dropped noop": (18, 13, NOOP, ("ReduceMean", 18, "down"), _dropped_noop),
    "noop left on the node": (18, 13, NOOP, ("ReduceMean", 18, "down"), _unknown_attribute),
    "axes off by one": (
        13,
        18,
        "g (float[N,M,K] x) => (float[P,Q,R] y) { y = ReduceL2<axes=[1]>(x) }",
        ("ReduceL2", 18, "up"),
        _axes_off_by_one,
    ),
    **{
        f"{op}: {what}": (13, 12, SOFT % op, (op, 13, "down"), wrong)
        for op in ("Softmax", "LogSoftmax", "Hardmax")
        for what, wrong in (
            ("keeps its axis number", _same_axis_number),
            ("wrong Transpose back", _wrong_way_back),
            ("no Transpose back", _lost_way_back),
        )
    },
    **{
        f"{op}: {what}": (12, 13, SOFT % op, (op, 13, "up"), wrong)
        for op in ("Softmax", "LogSoftmax", "Hardmax")
        for what, wrong in (
            ("keeps its axis number", _same_axis_number),
            ("stays a matrix", _flat_without_shape),
        )
    },
}


@pytest.mark.parametrize("mistake", PLANTS)
def test_a_planted_mistake_is_caught(mistake: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opset, target, text, key, wrong = PLANTS[mistake]
    found = source(opset, text)
    found.graph.node[0].name = "the_node"
    plant(monkeypatch, key, wrong)
    report = check_sites(Conversion(found, target, Options(emulate=True)))
    assert not report.ok
    assert "1 FAILED" in report.summary
    assert report.failures[0].node == "the_node"
    assert "the_node" in str(report.failures[0])


def test_a_failure_can_be_kept_and_replayed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    plant(monkeypatch, ("ReduceMax", 18, "down"), _wrong_axis)
    failure = check_sites(Conversion(source(18, REDUCE), 13)).failures[0]
    folder = f"{tmp_path}/kept"
    failure.save(folder)
    before, after = f"{folder}/before.onnx", f"{folder}/after.onnx"
    inputs = read_inputs(onnx.load(before), (), f"{folder}/test_data_set_0")
    assert np.array_equal(inputs[0]["i1"], failure.inputs["i1"], equal_nan=True)
    report = verify(before, after, inputs=inputs)
    assert report.equivalent is False


def test_a_replacement_that_reads_what_the_node_did_not_is_unchecked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def elsewhere(context: Context) -> None:
        context.replace(inputs=["z"], drop=("axes",))

    plant(monkeypatch, ("ReduceMax", 18, "up"), elsewhere)
    text = "g (float[N,M] x, float[N,M] z) => (float[N,1] y) { y = ReduceMax<axes=[1]>(x) }"
    report = check_sites(Conversion(source(13, text), 18))
    assert report.checked == 0
    assert "which the node itself does not read" in report.unchecked[0].reason


def test_attribute_and_input_moves_must_be_bit_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    # Off by a unit in the last place, in double by as much: within any tolerance, but no rounding.
    real = runtime.NumpyRunner.run

    def rounding(self, feeds, names):  # type: ignore[no-untyped-def]
        found = real(self, feeds, names)
        steps = {name: np.spacing(value.astype(np.float32)) for name, value in found.items()}
        return {name: (value + steps[name]).astype(value.dtype) for name, value in found.items()}

    opened = runtime.NumpyRunner.__init__

    def init(self, given):  # type: ignore[no-untyped-def]
        opened(self, given)
        if given.opset_import[0].version == 18:
            self.run = rounding.__get__(self)

    monkeypatch.setattr(runtime.NumpyRunner, "__init__", init)
    report = check_sites(Conversion(source(13, RIGHT["reduce_up"][2]), 18))
    assert not report.ok
    assert "max ULP 1" in report.failures[0].reason


#: Moves after which sums are in another order.
ROUNDED = {
    "resize of floats": (
        19,
        16,
        "g (float[1,1,4,4] x, int64[4] s) => (float[A,B,C,D] y) { y = "
        'Resize<mode = "linear", coordinate_transformation_mode = "half_pixel_symmetric">'
        '(x,"","",s) }',
    ),
}


@pytest.mark.parametrize("case", ROUNDED)
def test_what_differs_by_rounding_alone_is_the_same(case: str) -> None:
    opset, target, text = ROUNDED[case]
    report = checked(source(opset, text), target)
    assert report.ok, report.failures
    assert report.checked == 1
    assert not report.bit_exact


def test_a_difference_in_double_too_is_none_of_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "g (float[1,2,9,8] x) => (float[A,B,C,D] y) <int64[2] s = {6,7}> "
        '{ y = Resize<mode = "cubic", axes = [3,2]>(x,"","",s) }'
    )
    spoil(
        monkeypatch,
        ("Resize", 18, "down"),
        "Resize",
        lambda node: node.attribute.append(helper.make_attribute("cubic_coeff_a", -0.7500001)),
    )
    assert not check_sites(Conversion(source(19, text), 16)).ok


def test_a_move_that_rounds_to_a_dtype_must_be_bit_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    real = runtime.NumpyRunner.run

    def rounding(self, feeds, names):  # type: ignore[no-untyped-def]
        found = real(self, feeds, names)
        return {name: np.nextafter(value, value.dtype.type(9)) for name, value in found.items()}

    opened = runtime.NumpyRunner.__init__

    def init(self, given):  # type: ignore[no-untyped-def]
        opened(self, given)
        if given.opset_import[0].version == 13:
            self.run = rounding.__get__(self)

    monkeypatch.setattr(runtime.NumpyRunner, "__init__", init)
    found = source(5, 'g (float[3] x) => (float16[3] y) { y = Cast<to = "FLOAT16">(x) }')
    assert not check_sites(Conversion(found, 13)).ok


def test_a_typical_model_is_checked_in_half_a_second() -> None:
    ops = ("ReduceMax", "ReduceMin", "ReduceMean", "ReduceL1", "ReduceL2", "ReduceProd")
    nodes = [
        f"{op}_{axis}_{keep}_{i} = {op}<axes=[{axis}],keepdims={keep}>(x)"
        for op in ops
        for axis in range(3)
        for keep in range(2)
        for i in range(5)
    ]
    outputs = ", ".join(f"float[?] y{i}" for i in range(1))
    text = (
        f"g (float[N,M,K] x) => ({outputs.replace('float[?]', 'float[A,B,C]')}) "
        "{ " + "\n".join(nodes) + "\n y0 = Identity(x) }"
    )
    conversion = Conversion(source(13, text), 18)
    check_sites(Conversion(source(13, RIGHT["reduce_up"][2]), 18))  # Imports.
    start = time.process_time()
    report = check_sites(conversion)
    spent = time.process_time() - start
    assert (report.sites, report.distinct) == (180, 36)
    assert report.summary.startswith("180 nodes, 36 different, all checked")
    assert spent < 1.0


def test_the_report_is_data() -> None:
    report = checked(source(13, RIGHT["reduce_up"][2]), 18)
    assert report.summary == "1 node, all checked: 1 bit-exact"
    assert report.bit_exact == 1


def test_onnxruntimes_own_deviation_is_a_remark(monkeypatch: pytest.MonkeyPatch) -> None:
    real = site_runners.SiteRunner.run_with

    def deviating(first, runners, sets, names):  # type: ignore[no-untyped-def]
        # As if the kernel of the newer version were wrong.
        return [
            [
                {k: v + 1 if runner.source.label == "after" else v for k, v in found.items()}
                for runner, found in zip(runners, results, strict=True)
            ]
            for results in real(first, runners, sets, names)
        ]

    monkeypatch.setattr(site_runners.SiteRunner, "run_with", deviating)
    report = checked(source(13, RIGHT["reduce_up"][2]), 18)
    assert report.ok
    assert report.bit_exact == 1
    assert "ONNX Runtime" in report.remarks[0]


def test_generated_subgraphs_are_checked() -> None:
    # Before opset 14 a size of zero needs an If with the data from outside.
    report = checked(source(12, SOFT % "Softmax"), 13)
    assert report.ok
    assert report.checked == 1


def test_what_the_model_says_of_its_outputs_bounds_the_inputs() -> None:
    # The step may rest on the declared output: other sizes are not this model's inputs.
    found = source(
        19,
        "g (float[1,1,2,2] x, int64[4] s) => (float[1,1,7,8] y) "
        '{ y = Resize<mode = "nearest">(x, , , s) }',
    )
    report = checked(found, 18)
    assert report.ok


@pytest.mark.parametrize(
    "text",
    [
        "g (float[N,M] x) => (float[A,B] y, float[C,D] z) { y, z = Split<axis=1,split=[2,5]>(x) }",
        "g (float[N,M] x) => (float[A] y) { y = Squeeze<axes=[1]>(x) }",
    ],
)
def test_open_dimensions_that_a_node_asks_something_of(text: str) -> None:
    report = checked(source(11, text), 13)
    assert report.summary == "1 node, all checked: 1 bit-exact"


def test_unknown_ranks_with_what_a_node_asks() -> None:
    text = (
        "g (float[N,M] x) => (float[A,B] y, float[C,D] z) { y, z = Split<axis=1,split=[2,5]>(x) }"
    )
    found = source(11, text)
    for value in (*found.graph.input, *found.graph.output):
        value.type.tensor_type.ClearField("shape")
    assert checked(found, 13).summary == "1 node, all checked: 1 bit-exact"


@pytest.mark.parametrize(
    ("opset", "target", "op_type", "inputs", "attrs"),
    [
        (6, 9, "Gemm", {"x": None, "w": [7, 3], "b": [3]}, {"broadcast": 1}),
        (9, 6, "Gemm", {"x": None, "w": [7, 3], "b": [3]}, {"transA": 1}),
        (17, 13, "LayerNormalization", {"x": None, "s": [5, 7]}, {"axis": -2}),
        (21, 17, "GroupNormalization", {"x": None, "s": [9], "b": [9]}, {"num_groups": 3}),
        (13, 11, "Resize", {"x": None, "": None, "scales": None}, {}),
        (10, 9, "ReverseSequence", {"x": None, "lens": None}, {}),
    ],
)
def test_unknown_ranks_are_those_that_a_node_runs_on(
    opset: int,
    target: int,
    op_type: str,
    inputs: dict[str, list[int] | None],
    attrs: dict[str, int],
) -> None:
    dtypes = {"lens": TensorProto.INT64}
    rng = np.random.default_rng(0)
    graph = helper.make_graph(
        [helper.make_node(op_type, [*inputs], ["y"], **attrs)],
        "g",
        [
            helper.make_tensor_value_info(name, dtypes.get(name, TensorProto.FLOAT), None)
            for name, shape in inputs.items()
            if name and shape is None
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [
            numpy_helper.from_array(rng.random(shape, np.float32), name)
            for name, shape in inputs.items()
            if shape
        ],
    )
    found = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    assert "1 node, all checked" in checked(found, target).summary


def test_what_the_executors_do_not_agree_on_is_not_held_against_a_replacement() -> None:
    # Infinities beside weights of zero: no two ways to interpolate agree on them.
    found = source(
        11,
        "g (float[1,1,4,4] x) => (float[1,1,8,8] y) <float[0] r = {}, float[4] s = {1,1,2,2}> "
        '{ y = Resize<mode = "linear">(x, r, s) }',
    )
    assert checked(found, 9).ok


def test_an_operator_whose_kernel_ends_the_process_on_an_empty_batch() -> None:
    found = source(
        22,
        "g (float[N,S,2] x) => (float[A,B,C,D] y, float[E,F,G] h) "
        "<float[1,4,2] w = {1,2,3,4,5,6,7,8}, float[1,4,1] r = {1,2,3,4}> "
        "{ y, h = LSTM<hidden_size=1, layout=1>(x, w, r) }",
    )
    assert checked(found, 13).summary == "1 node, all checked: 1 bit-exact"


@pytest.mark.parametrize(
    ("opset", "target", "text"),
    [
        (6, 5, "g (float[1,1] x) => (float[A,B] y) <int64[2] s = {60000,60000}> "
         "{ y = Tile(x, s) }"),
        (9, 11, "g (int64[N] i) => (float[N,M] y) <int64 d = {1000000000}, float[2] v = {0,1}> "
         "{ y = OneHot(i, d, v) }"),
        (11, 10, "g () => (int64[N] y) <int64 a = {0}, int64 b = {10000000000}, int64 c = {1}> "
         "{ y = Range(a, b, c) }"),
    ],
)  # fmt: skip
def test_a_site_of_huge_results_is_checked_on_smaller_ones(
    opset: int, target: int, text: str
) -> None:
    report = checked(source(opset, text), target)
    assert report.ok
    assert report.checked == 1
    assert not report.unchecked


def test_a_site_whose_sizes_are_in_its_constants_is_checked_on_smaller_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The matrix that stands for a transform has the sizes of the signal."""
    found = source(17, "g (float[1,4096,1] x) => (float[A,B,C] y) { y = DFT<axis=1>(x) }")
    report = check_sites(Conversion(found, 16, Options(emulate=True)))
    assert report.checked == 1
    assert not report.unchecked

    def square(node: NodeProto) -> None:
        node.input[:] = [node.input[0], node.input[0]]

    spoil(monkeypatch, ("DFT", 17, "down"), "MatMul", square)
    assert not check_sites(Conversion(found, 16, Options(emulate=True))).ok


def test_a_shape_of_unknown_length_does_not_count_as_a_large_one() -> None:
    found = source(
        14,
        "g (float[5,N,6] x, int64[L] s) => (float[A,B] y) { y = Reshape<allowzero=0>(x, s) }",
    )
    found.graph.output[0].type.tensor_type.ClearField("shape")
    report = checked(found, 13)
    assert report.ok
    assert report.checked == 1


@pytest.mark.parametrize(
    ("opset", "target", "node"),
    [
        (10, 9, "Resize(x, f)"),
        (13, 10, 'Pad<mode="edge">(x, i)'),
    ],
)
def test_numbers_of_unknown_shape_are_as_many_as_there_are_dimensions(
    opset: int, target: int, node: str
) -> None:
    """Scales that an operator of another domain makes have no shape that is known."""
    found = source(
        opset,
        "g (float[1,1,2,3] x, int64[N] n, int64[L] l) => (float[A,B,C,D] y) "
        f"{{ i = Reshape(n, l) f = Cast<to=1>(i) y = {node} }}",
    )
    report = checked(found, target)
    assert report.ok
    assert not report.unchecked


def test_what_cannot_be_made_smaller_may_take_a_little_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(emulation, "MOST_NODES", 1_000)
    found = source(
        16,
        "g (float[N,2,H,W] x, float[N,I,J,2] i) => (float[A,B,C,D] y) "
        '{ y = GridSample<mode="bicubic">(x, i) }',
    )
    report = checked(found, 9)
    assert report.ok
    assert not report.unchecked


def test_what_is_too_large_at_any_size_is_unchecked() -> None:
    found = source(
        19,
        "g (float[1,1,H,W] x) => (float[A,B,C,D] y) "
        "{ y = AveragePool<kernel_shape=[4096,4096],dilations=[2,2],"
        "pads=[4096,4096,4096,4096]>(x) }",
    )
    report = checked(found, 18)
    assert report.ok
    assert report.checked == 0
    assert report.unchecked[0].reason.startswith("its tensors are too large to try")


def test_a_draw_of_many_elements_is_not_made() -> None:
    """What the sampling of a region takes depends on the region's size, not on the image's."""
    start = time.process_time()
    for opset, target, text in (
        (
            18,
            10,
            "g (float[N,C,H,W] x, float[R,4] rois) => (float[A,B,C2,D] y) <int64[3] i = {0,1,0}> "
            "{ y = RoiAlign<output_height=2,output_width=2,sampling_ratio=0,"
            'coordinate_transformation_mode="output_half_pixel">(x, rois, i) }',
        ),
        (
            10,
            12,
            "g (float[N,C,H,W] x, float[4] s) => (float[A,B,C2,D] y) "
            '{ y = Resize<mode="nearest">(x, s) }',
        ),
    ):
        report = checked(source(opset, text), target)
        assert report.ok, report.failures
        assert report.checked == 1
    assert time.process_time() - start < 20


def test_a_constant_that_a_step_read_is_the_same_on_both_sides() -> None:
    found = source(9, "g (float[N,40] x, float[4,40] w) => (float[A,B] y) { y = Mean(x, w) }")
    weight = np.random.default_rng(0).standard_normal((4, 40)).astype(np.float32)
    del found.graph.input[1]
    found.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    report = checked(found, 7)
    assert report.ok, report.failures
    assert report.checked == 1


def test_letters_of_an_einsum_stand_for_the_sizes_of_constants() -> None:
    found = source(
        12,
        "g (float[A,B,C] x) => (float[D,E,F] y) "
        "<float[2,2,3] w = {1,2,3,4,5,6,7,8,9,10,11,12}> "
        '{ y = Einsum<equation="bij,bjk->bik">(w, x) }',
    )
    report = checked(found, 11)
    assert report.ok, report.failures
    assert report.checked == 1


@pytest.mark.parametrize(
    ("opset", "target", "text"),
    [
        (20, 19, 'g (double[2,3] x) => (double[A,B] y) { y = Gelu<approximate="tanh">(x) }'),
        (
            21,
            20,
            "g (double[2,4,3] x, double[4] s, double[4] b) => (double[A,B,C] y) "
            "{ y = GroupNormalization<num_groups=2>(x, s, b) }",
        ),
        (
            22,
            17,
            "g (double[1,1,3,2,2] x, double[1,1,4,2,3] i) => (double[A,B,C,D,E] y) "
            '{ y = GridSample<align_corners=1, mode="linear">(x, i) }',
        ),
        (
            23,
            22,
            "g (double[2,4,3] x, double[3] s) => (double[A,B,C] y) { y = RMSNormalization(x, s) }",
        ),
    ],
)
def test_doubles_of_a_float_s_precision(opset: int, target: int, text: str) -> None:
    report = checked(source(opset, text), target)
    assert report.ok, report.failures
    assert report.checked == 1


def test_a_double_that_is_defined_as_double_must_be_one(monkeypatch: pytest.MonkeyPatch) -> None:
    found = source(
        21,
        "g (double[2,4,3] x, double[4] s, double[4] b) => (double[A,B,C] y) "
        "{ y = GroupNormalization<num_groups=2,stash_type=11>(x, s, b) }",
    )
    assert check_sites(Conversion(found, 20, Options(emulate=True))).checked == 1
    epsilon = helper.make_attribute("epsilon", 2e-5)
    key: Key = ("GroupNormalization", 21, "down")
    spoil(monkeypatch, key, "InstanceNormalization", lambda node: node.attribute.append(epsilon))
    assert not check_sites(Conversion(found, 20, Options(emulate=True))).ok


def test_what_has_no_negative_elements_is_drawn_without_them() -> None:
    """What replaces a Mod need not look at the sign of a size, or of a Cast of bytes."""
    sizes = "{ i = Shape(x) y = Mod(i, d) }"
    numbers = "{ i = Cast<to=7>(x) y = Mod(i, d) }"
    for dtype, body in (("float", sizes), ("uint8", numbers)):
        text = f"g ({dtype}[N] x) => (int64[M] y) <int64[1] d = {{4}}> {body}"
        report = checked(source(13, text), 9)
        assert report.ok, report.failures
        assert report.checked == 1
        found = source(
            13, f"g (int64[N] i) => (int64[N] y) <int64[1] d = {{4}}> {body[:2]} y = Mod(i, d) }}"
        )
        assert len(Conversion(found, 9).sites[-1].result) > len(
            Conversion(source(13, text), 9).sites[-1].result
        )


def test_a_node_that_accepts_nothing_is_the_model_s_fault() -> None:
    found = source(
        9,
        "g (float[3] x, float[3] s, float[3] b, float[3] m, float[3] v) => (float[3] y) "
        "{ y = BatchNormalization(x, s, b, m, v) }",
    )
    report = checked(found, 5)
    assert report.ok
    assert report.unchecked[0].reason.startswith("the model itself is invalid there: ")


def test_blocks_divide_what_is_drawn() -> None:
    found = source(
        13,
        "g (float[N,C,H,W] x) => (float[A,B,C2,D] y) "
        '{ y = DepthToSpace<blocksize=3,mode="CRD">(x) }',
    )
    report = checked(found, 9)
    assert report.ok, report.failures
    assert report.checked == 1


def _stays_negative(context: Context) -> None:
    context.replace()


def test_a_negative_axis_that_stays_below_11_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    found = source(13, "g (float[N,M] x) => (float[A,B] y) { y = ReduceMax<axes=[-1]>(x) }")
    plant(monkeypatch, ("ReduceMax", 11, "down"), _stays_negative)
    report = check_sites(Conversion(found, 9, Options(emulate=True)))
    assert "negative axis" in report.failures[0].reason


def test_an_image_of_no_size_is_not_drawn() -> None:
    found = source(
        22,
        "g (float[N,C,H,W] x, float[N,P,Q,2] grid) => (float[A,B,C,D] y) "
        '{ y = GridSample<mode = "linear">(x, grid) }',
    )
    assert checked(found, 13).ok


def test_open_dimensions_take_the_sizes_that_others_have_there() -> None:
    found = source(
        17,
        "g (float[P,Q,5] x, float[3,4,5] s) => (float[A,B,C] y) "
        "{ y = LayerNormalization<axis = 0>(x, s) }",
    )
    assert checked(found, 16).checked == 1


@pytest.mark.parametrize("batch", ["2", "n"])
def test_computed_sizes_of_which_some_are_known(batch: str) -> None:
    source = model(
        f"""<ir_version: 6, opset_import: ["" : 11]>
        g (float[{batch},3,8,8] x) => (float[a,b,c,d] y)
        <float[0] none = {{}}, int64[1] start = {{0}}, int64[1] end = {{2}},
         int64[2] size = {{5, 11}}> {{
            shape = Shape(x)
            kept = Slice(shape, start, end)
            sizes = Concat<axis = 0>(kept, size)
            y = Resize<coordinate_transformation_mode = "align_corners", mode = "linear">
                (x, none, none, sizes)
        }}"""
    )
    report = check_sites(Conversion(source, 9, Options(emulate=True)))
    assert report.ok
    assert not report.unchecked


def test_what_is_undefined_is_not_drawn() -> None:
    found = source(15, "g (int32[N] x, int32[N] p) => (int32[N] y) { y = Pow(x, p) }")
    report = checked(found, 11)
    assert report.ok
    assert report.checked == 1


@pytest.mark.parametrize("op_type", ["ReduceLogSum", "ReduceLogSumExp", "ReduceMean"])
def test_integers_that_cannot_hold_a_result_are_not_drawn(op_type: str) -> None:
    target = onnx.defs.onnx_opset_version()
    text = f"g (int32[N,M] x) => (int32[N,1] y) {{ y = {op_type}<axes=[1]>(x) }}"
    report = checked(source(12, text), target)
    assert report.ok, report.failures
    assert report.checked == 1


def test_a_result_that_integers_cannot_hold_whatever_the_inputs_is_unchecked() -> None:
    found = source(19, "g (uint32[2,0,3] x) => (uint32[1,1,1] y) { y = ReduceLogSum(x) }")
    report = checked(found, 4)
    assert report.ok


def _without_indices(context: Context) -> None:
    context.replace(outputs=[context.node.output[0]])


@pytest.mark.parametrize(("read", "ok"), [(False, True), (True, False)])
def test_an_output_may_go_only_if_nobody_reads_it(
    read: bool, ok: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Where a NaN is among others, what is largest may be another with the places than without.
    text = "g (float[1,1,H,W] x) => (float[1,1,A,B] y%s) { y, i = MaxPool<kernel_shape=[1,1]>(x) }"
    found = source(11, text % (", int64[1,1,A,B] i" if read else ""))
    plant(monkeypatch, ("MaxPool", 12, "up"), _without_indices)
    report = check_sites(Conversion(found, 12, Options(emulate=True)))
    assert report.ok is ok
    assert report.checked == 1
    assert ["lost" in failure.reason for failure in report.failures] == ([] if ok else [True])


def test_what_is_not_checked_of_equal_functions_is_reported_of_each() -> None:
    functions = "".join(
        f"""<domain: "f", opset_import: ["": 13]> f{number} (a) => (b) {{
            c = ReduceMax<axes=[0]>(a) d = ReduceMax<axes=[0]>(c) b = ReduceMin<axes=[1]>(d)
        }}"""
        for number in range(3)
    )
    found = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13, "f": 1]>'
        "g (float[N,M] x) => (float[N,M] y) { y = Relu(x) }" + functions
    )
    report = check_sites(Conversion(found, 18))
    assert (report.sites, report.distinct, report.checked) == (9, 6, 0)
    assert [(item.op_type, item.scope, item.sites) for item in report.each] == [
        (op_type, f"function f.f{number}", times)
        for number in range(3)
        for op_type, times in (("ReduceMax", 2), ("ReduceMin", 1))
    ]
    assert [(item.op_type, item.sites) for item in report.unchecked] == [
        ("ReduceMax", 6),
        ("ReduceMin", 3),
    ]


def test_random_results_are_unchecked() -> None:
    found = source(21, "g (float[N] x) => (float[N] y) { y = RandomNormalLike(x) }")
    conversion = Conversion(found, 22)
    report = check_sites(conversion)
    assert report.checked == 0


def test_models_of_other_domains_keep_their_imports() -> None:
    found = helper.make_model(
        helper.make_graph(
            [
                helper.make_node("ReduceMax", ["x"], ["t"], axes=[1]),
                helper.make_node("Custom", ["t"], ["y"], domain="own"),
            ],
            "g",
            [helper.make_tensor_value_info("x", 1, ["N", "M"])],
            [helper.make_tensor_value_info("y", 1, ["N", "M"])],
        ),
        opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("own", 1)],
        ir_version=8,
    )
    assert checked(found, 18).summary == "1 node, all checked: 1 bit-exact"


def test_a_tensor_that_is_not_in_the_model_is_not_read() -> None:
    """Its node is reported, its data neither looked for nor made up."""
    found = source(9, "g () => (int64[3] y) { y = Constant<value = int64[3] {1, 2, 3}>() }")
    tensor = found.graph.node[0].attribute[0].t
    tensor.ClearField("int64_data")
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="none.bin")
    report = checked(found, 8)
    assert report.ok
    assert [item.reason for item in report.unchecked] == [
        "its tensor is large, or external data, which is not read"
    ]


def test_an_open_dimension_that_is_scaled_is_not_always_1(monkeypatch: pytest.MonkeyPatch) -> None:
    # A dimension of 1 would be broadcast, and hides what happens along it.
    found = source(
        17,
        "g (float[2,C] x, float[5] w) => (float[A,B] y) { y = LayerNormalization<axis=-1>(x, w) }",
    )
    key: Key = ("LayerNormalization", 17, "down")
    spoil(monkeypatch, key, "ReduceMean", lambda node: setattr(node, "op_type", "ReduceSum"))
    assert not check_sites(Conversion(found, 16, Options(emulate=True))).ok


def test_a_node_behind_the_site_is_part_of_it_where_a_step_looked_past_it() -> None:
    """The quantized values cannot be any: what replaces the second node reads the first's input."""
    found = source(
        21,
        "g (float[N,4] x) => (float[A,B] y) <float s = {0.3}, float8e5m2 z = {0}> "
        "{ q = QuantizeLinear(x, s, z)  y = DequantizeLinear(q, s, z) }",
    )
    report = checked(found, 18)
    assert report.ok, report.failures
    assert not report.unchecked
    assert report.checked


@pytest.mark.parametrize(
    ("opset", "target", "text"),
    [
        (
            16,
            11,
            "g (int64[1] x) => (int64 y) <int64[1] a = {-1}> { y = Squeeze(x, a) }",
        ),
        (
            14,
            13,
            "g (float[N,C] x) => (float[A,B,C2,D] y) <int64[4] s = {-1,2,6,6}> "
            "{ y = Reshape<allowzero=0>(x, s) }",
        ),
    ],
)
def test_shapes_that_fit_are_found(opset: int, target: int, text: str) -> None:
    found = source(opset, text)
    if opset == 16:
        found.graph.input[0].type.tensor_type.ClearField("shape")
        found.graph.output[0].type.tensor_type.ClearField("shape")
    report = checked(found, target)
    assert report.ok, report.failures
    assert report.checked == 1


def test_a_small_constant_that_becomes_an_initializer_is_checked_with_its_site() -> None:
    text = """g (float[N,6] x) => (float[N,6] y) <int64 a = {0}, int64 b = {6}, int64 d = {1}>
        { c = Range(a, b, d) y = Gather<axis = 1>(x, c) }"""
    found = source(13, text)
    assert any(site.initializers for site in Conversion(found, 8, Options(emulate=True)).sites)
    report = checked(found, 8)
    assert report.ok
    assert not report.unchecked


#: Nodes with graphs that read what is around them, and that other nodes replace below 11.
WITH_BODIES = {
    "if": """g (bool c, float[N,6] x) => (float[A,B] y) {
        t = Exp(x)
        y = If(c) <
            then_branch = a () => (float[P,Q] p) { w = Constant<value_ints=[1]>()
                s = ReduceSum(t, w) p = Add(s, x) },
            else_branch = b () => (float[N,6] q) { q = Neg(t) }>
        }""",
    "loop": """g (int64 n, float[N,6] x) => (float[A,N,6] y) {
        c = Constant<value = bool {1}>()
        y = Loop(n, c) <body = b (int64 i, bool k) => (bool l, float[N,6] z) {
            l = Identity(k) f = Cast<to=1>(i) z = Add(x, f) }>
        }""",
}


@pytest.mark.parametrize("text", WITH_BODIES.values(), ids=WITH_BODIES)
def test_a_node_with_graphs_is_checked_with_them(text: str) -> None:
    report = checked(source(13, text), 8)
    assert report.ok
    assert not report.unchecked


def test_a_mistake_around_graphs_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def not_at_all(node: NodeProto) -> None:
        node.op_type = "Identity"

    spoil(monkeypatch, ("If", 11, "down"), "Not", not_at_all)
    report = check_sites(Conversion(source(13, WITH_BODIES["if"]), 8, Options(emulate=True)))
    assert [item.op_type for item in report.failures] == ["If"]


def test_a_node_with_graphs_of_other_domains_is_unchecked() -> None:
    text = WITH_BODIES["if"].replace("Neg(t)", "local.Neg(t)")
    found = model('<ir_version: 8, opset_import: ["": 13, "local": 1]>' + text)
    report = check_sites(Conversion(found, 8, Options(emulate=True)))
    assert "its subgraphs have nodes of other domains" in [i.reason for i in report.unchecked]


def test_a_node_whose_graphs_draw_random_numbers_is_unchecked() -> None:
    text = WITH_BODIES["if"].replace("Neg(t)", "RandomUniformLike(t)")
    report = check_sites(Conversion(source(13, text), 8, Options(emulate=True)))
    assert report.ok
    assert "its results are random" in [item.reason for item in report.unchecked]
