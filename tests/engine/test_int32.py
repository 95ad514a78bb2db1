"""Values of int64 as int32: what is proven, what stays int64, and what blocks."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto

import onnxreduce_cli
from onnxreduce_cli.errors import CheckError, ConversionError, UsageError, blocker_lines
from onnxreduce_cli.report.plan import check_lines, remarks
from onnxreduce_cli.verification.whole.results import VerificationError
from tests import node_cases
from tests.random_graphs.judge import outcomes
from tests.support import model, op_types, run

HEAD = '<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 2, "own" : 1]>'
EXPORTS = Path(__file__).parents[1] / "data" / "exports"
INT32: dict[str, Any] = {"dtypes": {"int64": "int32"}}

EMBEDDING = """g (int64[2, 3] ids, float[2, 3] x, float[50, 1] table)
    => (float[6, 1] z, int64[2] k, int64[2] n)
    <int64[1] one = {1}, int64[1] zero = {0}, int64[1] six = {6}> {
        [two] two = Constant <value_int = 2> ()
        [shape] s = Shape (x)
        [rows] r = Gather (s, zero)
        [mul] t = Mul (r, six)
        [div] u = Div (t, r)
        [concat] v = Concat <axis = 0> (u, one)
        [shift] e = Add (ids, one)
        [look] look = Gather (table, e)
        [reshape] z = Reshape (look, v)
        [best] k = ArgMax <axis = 1, keepdims = 0> (x)
        [double] n = Mul (s, two)
    }"""
FEEDS = {
    "ids": np.array([[0, 48, 1], [2, 3, 47]]),
    "x": np.array([[1, 3, 2], [5, 4, 3]], np.float32),
    "table": np.arange(50, dtype=np.float32).reshape(50, 1),
}


def source(text: str) -> ModelProto:
    return model(f"{HEAD} {text}")


def reasons(text: str, **options: Any) -> dict[str, str]:
    """Why a model does not change, by the nodes that are in the way."""
    with pytest.raises(ConversionError) as raised:
        onnxreduce_cli.convert(source(text), **INT32, **options)
    return {item.node: f"{item.reason}; {item.advice}" for item in raised.value.blockers}


def same_in_int32(found: ModelProto, feeds: dict[str, Any], **options: Any) -> ModelProto:
    """Change a model, and compare what it computes in both executors; return the result."""
    result = onnxreduce_cli.convert(found, **INT32, **options)
    onnx.checker.check_model(result, full_check=True)
    types = {item.name: item.type.tensor_type.elem_type for item in result.graph.input}
    given = {
        name: np.asarray(array).astype(np.int32) if types[name] == TensorProto.INT32 else array
        for name, array in feeds.items()
    }
    for in_numpy in (False, True):
        before = run(found, feeds, in_numpy=in_numpy)
        after = run(result, given, in_numpy=in_numpy)
        for name, array in before.items():
            np.testing.assert_array_equal(array, after[name])
    return result


def dtypes(found: ModelProto) -> set[int]:
    values = (*found.graph.input, *found.graph.output)
    return {item.type.tensor_type.elem_type for item in values}


def test_values_are_equal_in_both_dtypes() -> None:
    options = {"assume_ranges": {"ids": (0, 48)}}
    result = same_in_int32(source(EMBEDDING), FEEDS, **options)
    assert dtypes(result) == {TensorProto.INT32, TensorProto.FLOAT}
    plan = onnxreduce_cli.plan(source(EMBEDDING), **INT32, **options)
    assert plan.prepared == (
        "int64 → int32: 2 weights, all values and attributes",
        "kept in int64: 1 Shape (shape), 1 Reshape (shape), 1 ArgMax (reduced), 1 Concat (for "
        "shapes), 1 Div (for shapes), 1 Mul (for shapes), 1 Gather (for shapes)",
        "taken as stated: ids in 0:48",
        "int32 instead of int64: input ids, output k, output n",
    )


def test_inputs_and_outputs_may_stay() -> None:
    options = {"assume_ranges": {"ids": (0, 48)}, "keep_interface": True}
    result = same_in_int32(source(EMBEDDING), FEEDS, **options)
    assert dtypes(result) == {TensorProto.INT64, TensorProto.FLOAT}
    # What callers give may be anything then, even where nothing is added to it.
    text = "g (int64[2] a) => (float[2] y) { [read] b = Identity (a) y = Cast <to = 1> (b) }"
    assert reasons(text, keep_interface=True) == {
        "read": "how large the integers of 'a' are is not proven; state the range of 'a': "
        "--assume-range 'a=MIN:MAX'"
    }
    assert not reasons_of_nothing(text)


def reasons_of_nothing(text: str) -> list[str]:
    """What is in the way where nothing is."""
    return [str(item) for item in onnxreduce_cli.plan(source(text), **INT32).blockers]


def test_what_stays_reads_inputs_and_makes_outputs_that_stay() -> None:
    found = source("""g (int64[2] s, float[6] x) => (float[A, B] y, int64[C, D] k) {
        y = Reshape (x, s) k = ArgMax (y) }""")
    feeds = {"s": np.array([2, -1]), "x": np.float32([0, 9, 2, 3, 4, 5])}
    result = same_in_int32(found, feeds, keep_interface=True)
    assert op_types(result) == ["Reshape", "ArgMax"]


def test_before_opset_6_casts_state_dtypes_as_text() -> None:
    text = """<ir_version: 5, opset_import: ["" : 4]>
        g (float[2, 3] x) => (int64[2] k) { k = Shape (x) }"""
    result = onnxreduce_cli.convert(model(text), **INT32)
    assert op_types(result) == ["Shape", "Cast"]
    assert onnxreduce_cli.convert(result, **INT32) == result


def test_only_the_first_cause_is_named_with_what_to_type() -> None:
    text = EMBEDDING.replace("e = Add (ids, one)", "f = Add (ids, one) e = Sub (f, one)")
    assert reasons(text) == {
        "shift": "'f' may be from -2147483647 to 2147483648, beyond int32; state the range"
        " of 'ids': --assume-range 'ids=MIN:MAX'"
    }
    assert list(reasons(EMBEDDING, assume_ranges={"ids": (0, 2**31 - 1)})) == ["shift"]


@pytest.mark.parametrize("nodes", ["[last] y = ReduceSum (nz)", "[last] y = CumSum (nz, one)"])
def test_a_sum_of_how_many_is_not_known_is_to_be_stated_itself(nodes: str) -> None:
    text = f"""g (float[2, 3] x) => (int64[M, N] y) <int64 one = {{1}}> {{
        nz = NonZero (x) {nodes} }}"""
    assert reasons(text) == {
        "last": "how large the integers of 'y' are is not proven; state the range of 'y': "
        "--assume-range 'y=MIN:MAX'"
    }
    onnxreduce_cli.convert(source(text), **INT32, assume_ranges={"y": (0, 100)})


def test_what_to_type_names_all_nodes_of_one_reason() -> None:
    text = """g (float[2, 3] x) => (int64[M, N] y, int64 z) <int64 one = {1}> {
        nz = NonZero (x) y = CumSum (nz, one) z = ReduceSum <keepdims = 0> (nz) }"""
    with pytest.raises(ConversionError) as raised:
        onnxreduce_cli.convert(source(text), **INT32)
    expected = "of 'y','z': assume_ranges={'y': (MIN, MAX), 'z': (MIN, MAX)}"
    assert expected in str(raised.value)
    (line,) = blocker_lines(raised.value.blockers)
    assert line.endswith("of 'y','z': --assume-range 'y=MIN:MAX','z=MIN:MAX'")


def test_a_square_is_not_negative() -> None:
    text = "g (int64[N] a) => (int64[N] y) <int64 most = {2147483647}> { s = OP y = Sub (s, most) }"
    for square in ("Mul (a, a)", "Pow (a, two)"):
        found = source(text.replace("OP", square).replace("<int64", "<int64 two = {2}, int64"))
        same_in_int32(found, {"a": np.array([0, -46340])}, assume_ranges={"a": (-46340, 46340)})


SIZES = """g (float[N, 3] x) => (float[M, P] y, int64[Q] r)
    <int64[1] zero = {0}, int64[1] minus = {-1}, int64[1] one = {1}> {
        [shape] s = Shape (x)
        [rows] n = Gather (s, zero)
        [concat] c = Concat <axis = 0> (n, minus)
        [cut] t = Slice (x, zero, n, zero)
        [reshape] y = Reshape (t, c)
        RANGE
    }"""


def test_sizes_that_only_shapes_read_stay() -> None:
    text = SIZES.replace("RANGE", "r = Identity (one)")
    result = same_in_int32(source(text), {"x": np.ones((4, 3), np.float32)})
    assert "Cast" not in op_types(result)
    (line,) = (
        line
        for line in onnxreduce_cli.plan(source(text), **INT32).prepared
        if line.startswith("kept")
    )
    assert line == (
        "kept in int64: 1 Shape (shape), 1 Reshape (shape), 1 Slice (for shapes), 1 Concat (for "
        "shapes), 1 Gather (for shapes)"
    )


def test_a_size_that_is_computed_with_is_fixed_or_stated() -> None:
    text = SIZES.replace(
        "RANGE",
        "[scalar] h = Squeeze (n) [from] f = Squeeze (zero) [by] b = Squeeze (one) "
        "[range] r = Range (f, h, b)",
    )
    assert reasons(text) == {
        "range": "how large the integers of 'r' are is not proven; fix the size: --dim 'N=SIZE', "
        "or state its range: --assume-range 'N=MIN:MAX'"
    }
    feeds = {"x": np.ones((4, 3), np.float32)}
    assert same_in_int32(source(text), feeds, dims={"N": 4})
    for ranges in ({"s": (0, 4)}, {"N": (0, 4)}):
        result = onnxreduce_cli.convert(source(text), **INT32, assume_ranges=ranges)
        assert run(result, feeds)["r"].tolist() == [0, 1, 2, 3]


def test_the_check_runs_at_the_ends_of_sizes(tmp_path: Path) -> None:
    text = """g (float[N, 3] x) => (int64[2] y) <int64 far = {500000000}> {
        s = Shape (x) [mul] y = Mul (s, far) }"""
    onnx.save(source(text), tmp_path / "m.onnx")
    options = {**INT32, "assume_ranges": {"N": (1, 4)}}
    done = onnxreduce_cli.convert_file(tmp_path / "m.onnx", tmp_path / "o.onnx", **options)
    assert "dimension N: run at 1, 4" in check_lines(done)[0]
    assert list(reasons(text, assume_ranges={"N": (1, 5)})) == ["mul"]
    options["assume_ranges"] = {"N": (1, 2**40)}
    onnx.save(source(text.replace("[mul] y = Mul (s, far)", "y = Sub (s, s)")), tmp_path / "m.onnx")
    with pytest.raises(ConversionError):
        onnxreduce_cli.convert_file(tmp_path / "m.onnx", tmp_path / "p.onnx", **options)


@pytest.mark.parametrize(
    ("nodes", "constants"),
    [
        ("y = Slice (x, one, end, one)", ""),
        ("e = Concat <axis = 0> (end, end) y = Slice (x, ones, e)", ", int64[2] ones = {1, 0}"),
        ("y = Slice (x, minus, lowest, one, minus)", ""),
        ("s = Squeeze (end) u = Unsqueeze (s, zero) y = Slice (x, one, u, one)", ""),
    ],
)
def test_a_slice_ends_where_int32_does(nodes: str, constants: str) -> None:
    largest, lowest = 2**63 - 1, -(2**63) + 1
    text = f"""g (float[4, 3] x) => (float[R, C] y)
        <int64[1] one = {{1}}, int64[1] zero = {{0}}, int64[1] minus = {{-1}},
         int64[1] end = {{{largest}}}, int64[1] lowest = {{{lowest}}}{constants}> {{ {nodes} }}"""
    x = np.arange(12, dtype=np.float32).reshape(4, 3)
    result = same_in_int32(source(text), {"x": x})
    made = [onnx.numpy_helper.to_array(tensor) for tensor in result.graph.initializer]
    assert {array.dtype.name for array in made} <= {"int32", "int64"}
    line = "limits beyond int32 at its end: 1 Slice, the same for axes of up to 2147483647 elements"
    assert line in onnxreduce_cli.plan(source(text), **INT32).prepared


@pytest.mark.parametrize("reader", ["y = Add (end, end)", "y = Clip (a, , end1)"])
def test_a_limit_that_others_read_blocks(reader: str) -> None:
    text = f"""g (float[4, 3] x, int64[2] a) => (float[R, C] z, int64[N] y)
        <int64[1] one = {{1}}, int64[1] end = {{{2**63 - 1}}}> {{
            [scalar] end1 = Squeeze (end)
            z = Slice (x, one, end, one)
            [reader] {reader} }}"""
    assert any("9223372036854775807" in reason for reason in reasons(text).values())


def test_a_slice_stays_where_another_domain_reads_its_end() -> None:
    text = f"""g (float[4, 3] x) => (float[R, C] z, float[N] y)
        <int64[1] one = {{1}}, int64[1] end = {{{2**63 - 1}}}> {{
            z = Slice (x, one, end, one)
            y = own.Any (end) }}"""
    line = "kept in int64: 1 Any (own), 1 Slice (for shapes)"
    assert line in onnxreduce_cli.plan(source(text), **INT32).prepared


def test_a_constant_beyond_int32_names_its_readers() -> None:
    text = "g (int64[2] a) => (int64[2] y) <int64 big = {5000000000}> { [least] y = Min (a, big) }"
    assert reasons(text) == {
        "least": "its constant 'big' has elements of 5000000000:5000000000, beyond int32; keep "
        "int64 there: --keep-dtype 'least'"
    }
    # An int32 and the least of it and another integer is one only if that is not lower.
    result = same_in_int32(
        source(text.replace("Min", "Less").replace("(int64[2] y)", "(bool[2] y)")),
        {"a": np.array([3, 2**31 - 1])},
        keep_dtype=["least"],
    )
    assert op_types(result) == ["Cast", "Less"]


def test_a_default_beyond_int32_blocks() -> None:
    text = "g (int64 a) => (int64 y) <int64 a = {5000000000}> { [read] y = Identity (a) }"
    assert list(reasons(text)) == ["read"]


FOLLOWED = "is not followed"


@pytest.mark.parametrize(
    ("text", "node", "reason"),
    [
        (
            "g (int64[2] a) => (seq(int64[2]) y) { [hold] y = SequenceConstruct (a) }",
            "hold",
            "'y' is seq(tensor(int64)), whose integers are not followed",
        ),
        (
            "g (int64[2] a) => (optional(int64[2]) y) { [hold] y = Optional (a) }",
            "hold",
            "'y' is optional(tensor(int64)), whose integers are not followed",
        ),
        (
            "g (float[2] a) => (float[2] y) { b = own.Any (a) y = own.Any (b) }",
            "making 'b'",
            "the type of 'b' is not known",
        ),
        (
            """g (int64 m, bool c, float[2] a) => (float[2] y) {
                [loop] y = Loop (m, c, a) <body = b (int64 i, bool d, float[2] v)
                    => (bool e, float[2] w) { e = Identity (d) w = Add (v, v) }> }""",
            "loop",
            "its body counts in int64, which is not followed",
        ),
        (
            "g (float[2] a) => (int64[2] y) { [cut] y = Cast <to = 7> (a) }",
            "cut",
            "how large the integers of 'y' are is not proven; state the range of 'y': "
            "--assume-range 'y=MIN:MAX'",
        ),
    ],
)
def test_what_is_not_followed_blocks_by_name(text: str, node: str, reason: str) -> None:
    assert reasons(text)[node].startswith(reason)


def test_a_sparse_initializer_blocks() -> None:
    found = source("g (int64[2] a, int64[2] s) => (int64[2] y) { [add] y = Add (a, s) }")
    del found.graph.input[1]
    values = onnx.helper.make_tensor("s", TensorProto.INT64, [1], [7])
    places = onnx.helper.make_tensor("", TensorProto.INT64, [1], [1])
    found.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, places, [2]))
    with pytest.raises(ConversionError) as raised:
        onnxreduce_cli.convert(found, **INT32)
    assert [item.node for item in raised.value.blockers if "sparse" in item.reason] == ["add"]


def test_functions_are_to_be_inlined() -> None:
    text = f"""{HEAD} g (int64[2] a) => (int64[2] y) {{ y = own.Twice (a) }}
        <domain: "own", opset_import: ["" : 17]> Twice (v) => (w) {{ [twice] w = Add (v, v) }}"""
    with pytest.raises(ConversionError) as raised:
        onnxreduce_cli.convert(model(text), **INT32, assume_ranges={"a": (0, 9)})
    assert "--inline-functions" in str(raised.value) or "inline_functions" in str(raised.value)
    options = {"inline_functions": True, "assume_ranges": {"a": (0, 9)}}
    assert same_in_int32(model(text), {"a": np.array([0, 9])}, **options)


def test_graphs_within_nodes_read_and_make_int32() -> None:
    found = source("""g (int64[2] a, bool c, float[2, 4] x) => (int64[2] z) {
        [either] y = If (c) <
            then_branch = t () => (int64[2] u) { k = ArgMax <axis = 1, keepdims = 0> (x)
                                                 u = Add (a, k) },
            else_branch = e () => (int64[2] v) { w = Add (a, a) s = Shape (x) v = Sub (w, s) }>
        z = Identity (y)
    }""")
    x = np.array([[1, 3, 2, 0], [5, 4, 3, 9]], np.float32)
    for c in (True, False):
        feeds = {"a": np.array([-9, 9]), "c": np.array(c), "x": x}
        result = same_in_int32(found, feeds, assume_ranges={"a": (-9, 9), "y": (-22, 14)})
        assert dtypes(result) == {TensorProto.INT32, TensorProto.BOOL, TensorProto.FLOAT}


def test_operators_of_other_domains_stay() -> None:
    found = source("""g (int64[3] a) => (float[3] y) {
        b = Add (a, a)
        [map] y = ai.onnx.ml.LabelEncoder <keys_int64s = [2, 6], values_floats = [0.5, 1.5]> (b)
    }""")
    options = {"assume_ranges": {"a": (0, 9)}}
    result = same_in_int32(found, {"a": np.array([1, 3, 2])}, **options)
    assert op_types(result) == ["Add", "Cast", "LabelEncoder"]


#: What ONNX Runtime has no kernel for with some dtypes beside int32.
NOT_IN_INT32 = {"OneHot", "Unique"}


def judged(case: node_cases.Case) -> str:
    """What became of one of onnx's cases; it computes the same, in each executor that runs it."""
    try:
        result = onnxreduce_cli.convert(case.model, **INT32, check=False)
    except ConversionError as error:
        return "blocked" if error.blockers else str(error)
    if result == case.model:
        return "unchanged"
    types = {item.name: item.type.tensor_type.elem_type for item in result.graph.input}
    narrow = {name for name, number in types.items() if number == TensorProto.INT32}
    feeds = case.feeds[0]
    given = {n: v.astype(np.int32) if n in narrow else v for n, v in feeds.items()}
    before, after = outcomes(case.model, feeds), outcomes(result, given)
    if case.operator not in NOT_IN_INT32:
        assert before.keys() == after.keys(), case.name
    assert "NumPy" in after
    for executor, values in after.items():
        for name, value in values.items():
            expected = before[executor][name]
            np.testing.assert_equal(value, expected, f"{case.name} in {executor}")
    return "changed"


def judge_all(cases: list[node_cases.Case]) -> None:
    counts = Counter(judged(case) for case in cases)
    assert counts["changed"] > len(cases) / 5
    assert counts["blocked"] < len(cases) / 10
    assert counts.keys() <= {"unchanged", "changed", "blocked"}


def test_some_node_cases() -> None:
    judge_all(random.Random(0).sample(list(node_cases.cases()), 100))


@pytest.mark.matrix
def test_every_node_case() -> None:
    judge_all(list(node_cases.cases()))


@pytest.mark.parametrize("name", ["skl_forest", "skl_logistic"])
def test_labels_of_classifiers_are_known(name: str) -> None:
    found = onnx.load(EXPORTS / f"{name}.onnx")
    with np.load(EXPORTS / f"{name}.npz") as data:
        feeds = {item.name: data[item.name] for item in found.graph.input}
    result = onnxreduce_cli.convert(found, **INT32)
    label = run(result, feeds)["label"]
    assert label.dtype == np.int32
    np.testing.assert_array_equal(label, run(found, feeds)["label"])


def test_encoded_labels_are_known() -> None:
    text = """g (string[3] a) => (int64[3] y) {
        [map] y = ai.onnx.ml.LabelEncoder <keys_strings = ["a", "b"], values_int64s = [2, NUMBER],
                                           default_int64 = -7> (a) }"""
    feeds = {"a": np.array(["b", "c", "a"], object)}
    same_in_int32(source(text.replace("NUMBER", "2147483647")), feeds)
    assert list(reasons(text.replace("NUMBER", "2147483648"))) == ["map"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"assume_ranges": {"id": (0, 1)}},
            r"\{'id': \(0, 1\)\}: no input, no node's output",
        ),
        ({"assume_ranges": {"two": (0, 1)}}, "it is a constant; leave it out"),
        ({"assume_ranges": {"x": (0, 1)}}, r"it is tensor\(float\), not tensor\(int64\)"),
        ({"assume_ranges": {"ids": (2, 1)}}, "the first number is above the second"),
        (
            {"assume_ranges": {"ids": (0, 1)}, "dtypes": {"float": "float16"}},
            "add dtypes={'int64': 'int32'}",
        ),
        ({"dtypes": {"int64": "int16"}}, "and int64 to int32, not int64"),
        ({"dtypes": {"int32": "int64"}}, "and int64 to int32, not int32"),
    ],
)
def test_what_cannot_be_stated(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        onnxreduce_cli.convert(source(EMBEDDING), **{**INT32, **options})


FROM_FLOATS = """g (float[4] x, int64[4] a) => (int64[4] y) <int64 far = {2000000000}> {
    [cut] c = Cast <to = 7> (x)
    [mul] m = Mul (c, far)
    [add] y = Add (m, a)
}"""


def test_a_range_that_does_not_hold_is_found_by_the_check() -> None:
    options = {"assume_ranges": {"c": (0, 1), "a": (-5, 5)}}
    with pytest.raises(CheckError) as raised:
        onnxreduce_cli.convert(source(FROM_FLOATS), **INT32, **options)
    assert "output 'y' differs" in str(raised.value)
    assert "state ranges that hold, as c=0:1, a=-5:5 may not" in str(raised.value)


def test_the_check_runs_at_the_ends(tmp_path: Path) -> None:
    onnx.save(source(EMBEDDING), tmp_path / "m.onnx")
    options = {**INT32, "assume_ranges": {"ids": (-50, 48)}}
    done = onnxreduce_cli.convert_file(tmp_path / "m.onnx", tmp_path / "o.onnx", **options)
    (said,) = check_lines(done)
    assert "input ids: run at -50 and 48, as its range is stated" in said
    done = onnxreduce_cli.convert_file(
        tmp_path / "m.onnx", tmp_path / "o.onnx", verify=True, force=True, **options
    )
    assert done.verified is not None
    assert "input ids: run at -50 and 48, as its range is stated" in done.verified.remarks
    assert remarks(done) is not None


def test_data_beyond_the_stated_range_is_named(tmp_path: Path) -> None:
    onnx.save(source(EMBEDDING), tmp_path / "m.onnx")
    np.save(tmp_path / "ids.npy", FEEDS["ids"])
    done = onnxreduce_cli.convert_file(
        tmp_path / "m.onnx",
        tmp_path / "o.onnx",
        verify=True,
        pairs=(f"ids={tmp_path / 'ids.npy'}",),
        assume_ranges={"ids": (0, 9)},
        **INT32,
    )
    assert done.verified is not None
    (said,) = (line for line in done.verified.warnings if "ids" in line)
    assert said == "--assume-range ids=0:9 does not hold: 2 elements given lie beyond it"


def test_a_planted_overflow_is_not_equivalent(tmp_path: Path, monkeypatch: Any) -> None:
    from onnxreduce_cli.engine.passes import int32

    text = "g (int64[2] a) => (int64[2] y) { [add] y = Add (a, a) }"
    onnx.save(source(text), tmp_path / "m.onnx")
    monkeypatch.setattr(int32, "INT32", int32.Interval(-(2**40), 2**40))
    options = {**INT32, "assume_ranges": {"a": (0, 2**31 - 1)}}
    with pytest.raises(CheckError, match="output 'y' differs"):
        onnxreduce_cli.convert_file(tmp_path / "m.onnx", tmp_path / "o.onnx", **options)
    with pytest.raises(VerificationError):
        onnxreduce_cli.convert_file(
            tmp_path / "m.onnx", tmp_path / "o.onnx", verify=True, **options
        )
