"""The dtypes of inputs and outputs changed alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import onnxreduce_cli
from onnxreduce_cli.engine.passes import interface
from onnxreduce_cli.errors import CheckError, UsageError
from onnxreduce_cli.report.plan import check_lines, remarks
from onnxreduce_cli.verification.whole.results import VerificationError
from tests.support import model, op_types, run

TEXT = """<ir_version: 8, opset_import: ["": 17]>
agraph (int64[N] ids, float[30, 4] x) => (float[N, 4] y, int64[N] best) {
    [pick] y = Gather(x, ids)
    [choose] best = ArgMax<axis = 1, keepdims = 0>(y)
}"""


def test_only_what_callers_give_and_get_changes() -> None:
    source = model(TEXT)
    dtypes = {"ids": "i32", "best": "int32", "y": "fp64"}
    plan = onnxreduce_cli.plan(source, io_dtypes=dtypes)
    assert plan.prepared == (
        "input ids: int32 instead of int64, which a Cast inside restores; values that do not fit "
        "int32 are not what they were",
        "output best: int32 instead of int64, by a Cast at its end; values that do not fit int32 "
        "are not what they were",
        "output y: double instead of float, by a Cast at its end",
    )
    assert {(item.node, item.result) for item in plan.changes} == {
        ("pick", ("Cast", "Gather", "Cast")),
        ("choose", ("ArgMax", "Cast")),
    }
    result = onnxreduce_cli.convert(source, io_dtypes=dtypes)
    onnx.checker.check_model(result, full_check=True)
    assert op_types(result) == ["Cast", "Gather", "ArgMax", "Cast", "Cast"]
    x, ids = np.arange(120, dtype=np.float32).reshape(30, 4), np.int64([0, 29, 3])
    expected = run(source, {"ids": ids, "x": x})
    found = run(result, {"ids": ids.astype(np.int32), "x": x})
    assert (found["best"].dtype, found["y"].dtype) == (np.int32, np.float64)
    for name, value in found.items():
        np.testing.assert_array_equal(value, expected[name])
    assert onnxreduce_cli.convert(result, io_dtypes=dtypes) == result
    plan = onnxreduce_cli.plan(result, io_dtypes={"ids": "int32"})
    assert plan.prepared == ("input ids is int32 already",)


def test_a_subgraph_and_an_output_that_is_an_input_get_it_too() -> None:
    source = model("""<ir_version: 8, opset_import: ["": 17]>
        agraph (int64[2] a, bool c) => (int64[2] y, int64[2] a) {
            y = If (c) <then_branch = t () => (int64[2] t) { t = Add(a, a) },
                        else_branch = e () => (int64[2] u) { u = Identity(a) }>
        }""")
    result = onnxreduce_cli.convert(source, io_dtypes={"a": "int8"})
    onnx.checker.check_model(result, full_check=True)
    assert [item.type.tensor_type.elem_type for item in result.graph.output] == [7, 3]
    feeds = {"a": np.int8([1, -2]), "c": np.array(True)}
    found = run(result, feeds)
    np.testing.assert_array_equal(found["y"], np.int64([2, -4]))
    np.testing.assert_array_equal(found["a"], feeds["a"])


def test_a_cast_below_opset_6_states_its_dtype_as_text() -> None:
    source = model("""<ir_version: 3, opset_import: ["": 5]>
        agraph (float[2] x) => (float[2] y) { y = Relu(x) }""")
    result = onnxreduce_cli.convert(source, io_dtypes={"x": "double", "y": "double"})
    assert [node.attribute[0].s for node in result.graph.node if node.op_type == "Cast"] == [
        b"FLOAT",
        b"DOUBLE",
    ]
    assert [info.type.tensor_type.elem_type for info in result.graph.output] == [11]


@pytest.mark.parametrize(
    ("text", "dtypes", "message"),
    [
        (
            TEXT,
            {"id": "int32"},
            "io_dtypes={'id': 'int32'}: the model has no input or output 'id'; did you mean ids?; "
            "its inputs: 'ids', 'x'; its outputs: 'y', 'best'",
        ),
        (TEXT, {"ids": "inte64"}, "there is no dtype 'inte64'; did you mean int64"),
        (TEXT, {"x": "string"}, "Cast-17 does not lead from string to float"),
        (TEXT, {"y": "float8e4m3fn"}, "Cast-17 does not lead from float to float8e4m3fn"),
        (
            """<ir_version: 8, opset_import: ["": 17]>
            agraph (float[1] x, float[1] w) => (float[1] y) <float[1] w = {2}> { y = Mul(x, w) }""",
            {"w": "double"},
            "io_dtypes={'w': 'double'}: the input has a default, an initializer",
        ),
        (
            """<ir_version: 8, opset_import: ["": 17]>
            agraph (seq(float[1]) x) => (int64 y) { y = SequenceLength(x) }""",
            {"x": "double"},
            "io_dtypes={'x': 'double'}: it is no tensor of a known dtype",
        ),
    ],
)
def test_what_cannot_be_is_refused_by_name(text: str, dtypes: dict[str, str], message: str) -> None:
    with pytest.raises(UsageError) as error:
        onnxreduce_cli.convert(model(text), io_dtypes=dtypes)
    assert message in str(error.value)


def convert(tmp_path: Path, text: str, **options: Any) -> Any:
    source = tmp_path / "m.onnx"
    onnx.save(model(text), source)
    return onnxreduce_cli.convert_file(source, tmp_path / "o.onnx", **options)


#: All values of x that float16 does not hold make the result another.
EXACT = """<ir_version: 8, opset_import: ["": 17]>
agraph (float[N, 4] x, int64[N, 4] n) => (float[N, 4] y, int64[N, 4] m) {
    big = Constant<value = float {1e6}>()
    y = Mul(x, big)
    three = Constant<value = int64 {3}>()
    m = Mul(n, three)
}"""


def test_both_models_run_on_values_of_the_narrower_dtype(tmp_path: Path) -> None:
    done = convert(tmp_path, EXACT, io_dtypes={"x": "float16", "n": "uint8"}, verify=True)
    assert done.verified.equivalent
    lines = [
        "input x: both models ran on values of float16, to which they were cast",
        "input n: both models ran on values of uint8, to which they were cast",
    ]
    assert [item for item in remarks(done) if "both models ran" in item] == [
        f"remark: {line}" for line in lines
    ]
    done = convert(tmp_path, EXACT, io_dtypes={"x": "float16", "n": "uint8"}, force=True)
    (summary,) = [line for line in check_lines(done) if "--io-dtype" in line]
    assert ", ".join(lines) in summary


def test_outputs_are_compared_in_the_narrower_dtype(tmp_path: Path) -> None:
    done = convert(tmp_path, EXACT, io_dtypes={"y": "float16", "m": "int32"}, verify=True)
    assert done.verified.equivalent


def test_given_values_that_do_not_fit_are_counted(tmp_path: Path) -> None:
    np.save(tmp_path / "n.npy", np.int64([[1, 2, 3, 300], [255, 256, -1, 0]]))
    np.save(tmp_path / "x.npy", np.float32([[0.1, 1, 2, 1e6]] * 2))
    done = convert(
        tmp_path,
        EXACT,
        io_dtypes={"x": "float16", "n": "uint8"},
        verify=True,
        pairs=(f"n={tmp_path / 'n.npy'}", f"x={tmp_path / 'x.npy'}"),
    )
    assert done.verified.equivalent
    assert [item for item in remarks(done) if "cannot be given" in item] == [
        f"warning: input {name}: {number} elements given cannot be given in the new dtype; the "
        "models were compared on what a cast makes of them"
        for name, number in (("n", 3), ("x", 2))
    ]


@pytest.mark.parametrize("verify", [False, True])
def test_a_wrong_cast_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verify: bool
) -> None:
    own = interface.cast_interface

    def wrong(given: onnx.ModelProto, names: Any, outer: int, inner: int) -> Any:
        found = own(given, names, outer, inner)
        (last,) = [node for node in given.graph.node if "m" in node.output]
        last.op_type = "Sub"
        return found

    monkeypatch.setattr(interface, "cast_interface", wrong)
    error = VerificationError if verify else CheckError
    with pytest.raises(error) as caught:
        convert(tmp_path, EXACT, io_dtypes={"n": "uint8"}, verify=verify)
    if isinstance(caught.value, VerificationError):
        assert not caught.value.report.equivalent
    else:
        assert "output 'm' differs" in str(caught.value)
    assert not (tmp_path / "o.onnx").exists()


def test_beside_a_change_of_all_dtypes(tmp_path: Path) -> None:
    text = EXACT.replace("1e6", "3")
    options = {"dtypes": {"float": "double"}, "io_dtypes": {"x": "fp16", "m": "i32"}}
    done = convert(tmp_path, text, verify=True, **options)
    assert done.verified.equivalent
    found = onnx.load(tmp_path / "o.onnx").graph
    assert [item.type.tensor_type.elem_type for item in (*found.input, *found.output)] == [
        *(10, 7, 11, 6)
    ]


def test_an_output_that_is_named_twice(tmp_path: Path) -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (float[2] x) => (float[2] y, float[2] y) { y = Neg(x) }"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    onnxreduce_cli.convert_file(
        *(str(tmp_path / "m.onnx"), str(tmp_path / "o.onnx")),
        dtypes={"float": "double"},
        keep_interface=True,
    )
    found = onnx.load(tmp_path / "o.onnx")
    onnx.checker.check_model(found, full_check=True)
    assert [node.op_type for node in found.graph.node] == ["Cast", "Neg", "Cast"]
