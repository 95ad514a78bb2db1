"""onnx's shape inference: without weights, and with shapes that follow from computed constants."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.graph.values import tensor_type
from onnxreduce_cli.model.types import run_time_sizes
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.model.types.safe_inference import infer_shapes
from onnxreduce_cli.model.types.shape_inference import ShapeInference
from tests.model.types.known import facts_of
from tests.support import model

FLOAT = 1

PADS = """<ir_version: {ir}, opset_import: ["": 11]>
g (float[1, 3, 4, 5] x) => (float[a, b, c, d] y)
<int64[4] given = {{1, 2, 0, 0}}, int64[1] four = {{4}}, int64[2] pairs = {{-1, 2}},
 int64[1] flat = {{-1}}, int64[1] last = {{-1}}, int64[1] least = {{-9}}, int64[1] zero = {{0}}> {{
  zeros = ConstantOfShape<value = int64[1] {{0}}>(four)
  all = Concat<axis = 0>(given, zeros)
  table = Reshape(all, pairs)
  turned = Slice(table, last, least, zero, last)
  columns = Transpose<perm = [1, 0]>(turned)
  long = Reshape(columns, flat)
  pads = Cast<to = 7>(long)
  padded = Pad(x, pads)
  y = Relu(padded)
}}"""


def test_pads_that_an_exporter_computes() -> None:
    for ir in (3, 7):
        source = model(PADS.format(ir=7))
        source.ir_version = ir
        found = scopes(source)
        facts = Facts(source, found)
        pads = facts.constant(found[0], "pads")
        assert pads is not None
        assert pads.tolist() == [0, 0, 0, 1, 0, 0, 0, 2]
        known = facts.type(found[0], "padded")
        assert known is not None
        assert known.dims == (1, 3, 4, 8)


def test_sizes_that_constants_decide_take_one_inference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Expand as torch.onnx.export writes it by TorchScript: onnx infers nothing through Where."""
    source = model("""<ir_version: 8, opset_import: ["": 17]>
        g (float[1, 3] x) => (float[a, b] y)
        <int64[2] sizes = {4, -1}, int64[1] two = {2}, int64[2] all = {-1, -1}> {
            ones = ConstantOfShape<value = int64[1] {1}>(two)
            open = Equal(sizes, all)
            shape = Where(open, ones, sizes)
            wide = Expand(x, shape)
            y = Relu(wide)
        }""")
    runs: list[onnx.ModelProto] = []

    def counted(found: onnx.ModelProto, *, data_prop: bool) -> onnx.ModelProto | None:
        runs.append(found)
        return infer_shapes(found, data_prop=data_prop)

    monkeypatch.setattr(run_time_sizes, "infer_shapes", counted)
    facts, found = facts_of(source)
    known = facts.type(found[0], "y")
    assert known is not None
    assert known.dims == (4, 3)
    assert len(runs) == 1


def test_axes_that_a_function_body_computes() -> None:
    source = model("""<ir_version: 10, opset_import: ["" : 18]>
        g (float[2, n, 4] x) => (float[a, b, c] y)
        <int64 one = {1}, int64 minus_one = {-1}> {
            shape = Shape(x)
            rank = Size(shape)
            first = Add(rank, minus_one)
            axes = Range(first, rank, one)
            mean = ReduceMean(x, axes)
            y = Neg(mean)
        }""")
    facts, found = facts_of(source)
    known = facts.type(found[0], "mean")
    assert known is not None
    assert known.dims == (2, "n", 1)


def test_the_model_is_not_touched() -> None:
    source = model(PADS.format(ir=7))
    before = source.SerializeToString()
    found = scopes(source)
    Facts(source, found).type(found[0], "padded")
    assert source.SerializeToString() == before
    onnx.checker.check_model(source, full_check=True)


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


def test_groups_that_are_normalised_get_their_shape_back() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[b, 8, h, 6] x, float[8, 1, 1] s) => (float[p, q, r, t] y)
        <int64[3] groups = {0, 4, -1}, float[4] one = {1, 1, 1, 1}> {
            a = Reshape(x, groups)
            n = InstanceNormalization(a, one, one)
            shape = Shape(x)
            back = Reshape(n, shape)
            c = Mul(back, s)
            a2 = Reshape(c, groups)
            n2 = InstanceNormalization(a2, one, one)
            shape2 = Shape(c)
            back2 = Reshape(n2, shape2)
            y = Mul(back2, s)
        }""")
    facts, (scope,) = facts_of(source)
    for name in ("back", "c", "back2"):
        known = facts.type(scope, name)
        assert known is not None
        assert known.dims == ("b", 8, "h", 6)


def test_a_size_that_is_certain_takes_the_place_of_a_name() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 14]>
        g (float[b, s, 32] x) => (float[b, s, 4, d] y) <int64 zero = {0}, int64 one = {1},
         int64 two = {2}, int64 four = {4}, int64[1] front = {0}, int64[1] heads = {4}> {
            shape = Shape(x)
            b0 = Gather(shape, zero) b1 = Unsqueeze(b0, front)
            s0 = Gather(shape, one) s1 = Unsqueeze(s0, front)
            w0 = Gather(shape, two) w1 = Div(w0, four) w2 = Unsqueeze(w1, front)
            to = Concat<axis = 0>(b1, s1, heads, w2)
            split = Reshape(x, to)
            y = Relu(split)
        }""")
    facts, (scope,) = facts_of(source)
    known = facts.type(scope, "split")
    assert known is not None
    assert known.dims == ("b", "s", 4, 8)


def test_a_rank_that_follows_from_one_that_a_computed_shape_decides() -> None:
    source = model("""<ir_version: 7, opset_import: ["" : 12]>
        g (float[n, 12] x) => (float[a, b, c] y)
        <int64[3] minus = {1, -3, -4}, int64[1] front = {0}, int64[1] one = {1}, int64[1] m = {2},
         int64[1] rest = {-1}> {
            pairs = Neg(minus)  first = Reshape(x, pairs)
            shape = Shape(first)  size = Slice(shape, front, one)
            to = Concat<axis = 0>(size, m, rest)  second = Reshape(first, to)
            after = Shape(second)  many = Slice(after, front, one)
            last = Concat<axis = 0>(many, rest, m)  third = Reshape(second, last)
            y = Relu(third)
        }""")
    facts, (scope,) = facts_of(source)
    for name in ("first", "second", "third"):
        known = facts.type(scope, name)
        assert known is not None
        assert known.rank == 3


def test_shapes_that_a_function_body_computes() -> None:
    """A Constant of doubles is all that a function at opset 8 can have of integers."""
    source = model("""<ir_version: 8, opset_import: ["" : 8, "own" : 1]>
        g (float[2,3] x, float[4,6] w) => (float[1,2,3] y, float[1,8,3] z) {
            y = own.flat(x)
            z = own.flat(w)
        }
        <domain: "own", opset_import: ["" : 8]>
        flat (x) => (y) {
            numbers = Constant<value = double[3] {1, -1, 3}>()
            sizes = Cast<to = 7>(numbers)
            blocks = Reshape(x, sizes)
            negative = Neg(blocks)
            shape = Shape(negative)
            y = Reshape(negative, shape)
        }""")
    facts, found = facts_of(source)
    (body,) = [scope for scope in found if scope.function is not None]
    for name in ("blocks", "negative", "y"):
        known = facts.type(body, name)
        assert known is not None
        assert known.dims is not None
        assert (known.rank, known.dims[0], known.dims[2]) == (3, 1, 3)


def test_functions_that_are_equal_but_for_what_calls_give_have_their_own_types(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Beside types these are constants, which decide the shape here, and attributes."""
    body = "{ t = Transpose<perm: ints = @perm>(x) y = Reshape(t, sizes) }"
    names = ("first", "second", "third", "fourth", "fifth")
    source = model(
        """<ir_version: 8, opset_import: ["": 13, "own": 1]>
        g (float[2, 3] x, float[1, 6] w) => (float[a, b] y)
        <int64[2] six = {6, 1}, int64[2] again = {6, 1}, int64[2] two = {2, 3}> {
            a = own.first<perm = [0, 1]>(x, six) b = own.second<perm = [0, 1]>(x, again)
            c = own.third<perm = [0, 1]>(x, two) d = own.fourth<perm = [1, 0]>(x, six)
            e = own.fifth<perm = [0, 1]>(w, six) y = Relu(a)
        } """
        + "".join(
            f'<domain: "own", opset_import: ["": 13]> {name} <perm> (x, sizes) => (y) {body}'
            for name in names
        )
    )
    runs = []
    infer = ShapeInference._infer_calls

    def counted(self: ShapeInference, *given: Any) -> None:
        runs.append(given)
        infer(self, *given)

    monkeypatch.setattr(ShapeInference, "_infer_calls", counted)
    facts, (_, *bodies) = facts_of(source)
    found = [(facts.type(scope, "t"), facts.type(scope, "y")) for scope in bodies]
    assert [(t and t.dims, y and y.dims) for t, y in found] == [
        ((2, 3), (6, 1)),
        ((2, 3), (6, 1)),
        ((2, 3), (2, 3)),
        ((3, 2), (6, 1)),
        ((1, 6), (6, 1)),
    ]
    assert len(runs) == 4
