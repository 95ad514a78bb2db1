"""Two models, one function? One model, executors that agree?"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, TypeProto, helper, numpy_helper

import onnxreduce_cli
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.report.verify import verify_text
from onnxreduce_cli.verification.compare.values import Tolerance
from onnxreduce_cli.verification.errors import CannotRunError, InputError, RunFailedError
from onnxreduce_cli.verification.inputs.files import read_inputs
from onnxreduce_cli.verification.inputs.profiles import PROFILES
from onnxreduce_cli.verification.running.isolated import IsolatedRunner
from onnxreduce_cli.verification.whole import trials
from onnxreduce_cli.verification.whole.equivalence import run, verify
from tests.support import model, without_times

HEAD = '<ir_version: 8, opset_import: ["": {opset}]>'


def source(text: str, opset: int = 13) -> ModelProto:
    return model(HEAD.replace("{opset}", str(opset)) + text)


SUM = "g (float[N,M] x) => (float[N] y) { t = Exp(x) \n y = ReduceMax<axes=[1],keepdims=0>(t) }"
OTHER = "g (float[N,M] x) => (float[N] y) { t = Exp(x) \n y = ReduceMin<axes=[1],keepdims=0>(t) }"


def test_a_model_is_equivalent_to_itself_converted() -> None:
    found = source(SUM)
    report = verify(found, onnxreduce_cli.convert(found, 18))
    assert report.equivalent is True
    assert report.exit_code == 0
    pairs = [c for c in report.comparisons if c.first[0] != c.second[0]]
    assert {(c.first[1], c.second[1]) for c in pairs} == {
        ("onnxruntime", "onnxruntime"),
        ("numpy", "numpy"),
    }
    assert all(c.errors.bit_exact and c.trials == 8 for c in pairs)
    assert verify_text(report).startswith("EQUIVALENT")


def test_a_difference_is_told_with_the_first_value_and_its_nodes() -> None:
    report = verify(source(SUM), source(OTHER))
    assert report.exit_code == 1
    assert report.divergence is not None
    assert report.divergence.value == "y"
    assert report.divergence.first_nodes == ("y (ReduceMax)",)
    assert report.divergence.second_nodes == ("y (ReduceMin)",)
    assert report.divergence.errors.mismatches
    wrong = next(c for c in report.comparisons if not c.errors.agree)
    assert wrong.errors.max_abs > 0
    assert wrong.errors.max_ulp > 0
    text = verify_text(report)
    assert text.startswith("NOT EQUIVALENT")
    assert "ReduceMin" in text


def test_onnx_version_converters_wrong_softmax_is_caught_and_the_node_named() -> None:
    found = source(
        "g (float[2,3,4] x) => (float[2,3,4] y) { t = Elu(x) \n s = Softmax<axis=1>(t) \n "
        "y = Sin(s) }"
    )
    found.graph.node[1].name = "the_softmax"
    wrong = onnx.version_converter.convert_version(found, 12)
    assert wrong.opset_import[0].version == 12
    report = verify(found, wrong)
    assert report.exit_code == 1
    assert report.divergence is not None
    assert report.divergence.value == "s"
    assert report.divergence.first_nodes == ("the_softmax (Softmax)",)
    assert verify(found, onnxreduce_cli.convert(found, 12)).exit_code == 0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("g (float[N,M] z) => (float[N] y) { y = ReduceMax<axes=[1],keepdims=0>(z) }", "'z' is"),
        ("g (double[N,M] x) => (double[N] y) { y = ReduceMax<axes=[1],keepdims=0>(x) }", "double"),
        ("g (float[N,M,K] x) => (float[N] y) { y = ReduceMax<axes=[1,2],keepdims=0>(x) }", "rank"),
        ("g (float[N,M] x) => (float[N,1] y) { y = ReduceMax<axes=[1]>(x) }", "rank"),
        ("g (float[N,M] x) => (float[N] z) { z = ReduceMax<axes=[1],keepdims=0>(x) }", "only in"),
    ],
)
def test_interfaces_that_differ(text: str, words: str) -> None:
    report = verify(source(SUM), source(text))
    assert report.exit_code == 1
    assert any(words in line for line in report.interface)
    assert not report.runs
    assert "interfaces" in verify_text(report).splitlines()[0]


def test_executors_agree_on_one_model() -> None:
    report = verify(source(SUM))
    assert report.exit_code == 0
    assert [run.trials for run in report.runs] == [8, 8]


def test_nothing_known_is_not_success() -> None:
    unknown = helper.make_model(
        helper.make_graph(
            [helper.make_node("Custom", ["x"], ["y"], domain="own")],
            "g",
            [helper.make_tensor_value_info("x", 1, [2])],
            [helper.make_tensor_value_info("y", 1, [2])],
        ),
        opset_imports=[helper.make_opsetid("", 13), helper.make_opsetid("own", 1)],
        ir_version=8,
    )
    for report in (verify(unknown), verify(unknown, unknown)):
        assert report.equivalent is None
        assert report.exit_code == 3
        assert all(item.reason for item in report.runs)
        assert verify_text(report).startswith("NOT VERIFIED")
        assert not verify_text(report).startswith("EQUIVALENT")
    # One executor alone says nothing about whether executors agree.
    assert verify(source(SUM), executors=["onnxruntime"]).exit_code == 3
    # But it can compare two models.
    assert verify(source(SUM), source(SUM), executors=["onnxruntime"]).exit_code == 0


def test_models_that_fail_on_every_input_are_not_verified() -> None:
    broken = source("g (float[2] x, float[3] z) => (float[N] y) { y = Identity(x) }")
    broken.graph.node[0].CopyFrom(helper.make_node("Add", ["x", "z"], ["y"]))
    assert verify(broken, broken).exit_code == 3


def test_the_first_model_is_the_reference_for_what_inputs_are_accepted() -> None:
    lenient = source(
        "g (float[N] x, int64[1] i) => (float[M] y) { t = Slice(x, i, i) \n y = Abs(x) }"
    )
    strict = source("g (float[N] x, int64[1] i) => (float[M] y) { t = Gather(x, i) \n y = Abs(x) }")
    inputs = {"x": np.ones(2, np.float32), "i": np.array([7])}
    assert verify(lenient, strict, inputs=inputs).exit_code == 1
    assert verify(strict, lenient, inputs=inputs).exit_code == 3


def _deviating(monkeypatch: pytest.MonkeyPatch, op_type: str, amount: float) -> None:
    """Let ONNX Runtime deviate on models that contain an operator."""
    real = IsolatedRunner.run

    def deviating(self: Any, feeds: Any, names: Any) -> Any:
        found = real(self, feeds, names)
        wrong: set[str] = set()
        for node in self.source.skeleton.graph.node if self.executor == "onnxruntime" else ():
            if node.op_type == op_type or not wrong.isdisjoint(node.input):
                wrong.update(node.output)
        return {k: v + np.float32(amount) if k in wrong else v for k, v in found.items()}

    monkeypatch.setattr(IsolatedRunner, "run", deviating)


def test_an_executor_that_runs_only_the_first_model_is_told() -> None:
    # No kernel of ONNX Runtime takes integers there; the NumPy executor finds them equal.
    found = source("g (int16[N] x) => (int16[N] y) { y = Identity(x) }")
    other = source("g (int16[N] x) => (int16[N] y) { y = Max(x, x) }")
    report = verify(found, other)
    assert report.exit_code == 0
    assert "onnxruntime runs the first model, but not the second: " in report.remarks[0]
    assert not verify(other, found).remarks


def test_a_runtimes_own_deviation_is_named_not_blamed_not_hidden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = source("g (float[N] x) => (float[N] y) { t = Relu(x) \n u = Abs(t) \n y = Neg(u) }")
    other = source("g (float[N] x) => (float[N] y) { t = Relu(x) \n u = Abs(t) \n y = Neg(u) }")
    other.graph.node[1].op_type = "Identity"  # Abs of what Relu gives.
    _deviating(monkeypatch, "Abs", 1e5)
    report = verify(found, other)
    assert report.equivalent is True
    assert any(not c.errors.agree for c in report.comparisons)
    assert any("ONNX Runtime's deviation" in remark for remark in report.remarks)
    assert [item.model for item in report.disagreements] == ["a"]
    where = report.disagreements[0].divergence
    assert where is not None
    assert where.value == "u"
    assert where.first_nodes == ("u (Abs)",)
    assert "  y:  ok but for ONNX Runtime's deviation  " in verify_text(report)
    assert "Abs" in verify_text(report)
    # Alone, it is a disagreement between executors.
    alone = verify(found)
    assert alone.exit_code == 1
    assert alone.disagreements[0].divergence is not None
    assert alone.disagreements[0].divergence.first_nodes == ("u (Abs)",)


def test_a_real_difference_beside_a_deviation_is_still_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = source("g (float[N] x) => (float[N] y) { u = Abs(x) \n y = Neg(u) }")
    other = source("g (float[N] x) => (float[N] y) { u = Identity(x) \n y = Neg(u) }")
    _deviating(monkeypatch, "Abs", 1e5)
    assert verify(found, other).exit_code == 1


def test_failing_inputs_are_kept_and_replayed(tmp_path: Path) -> None:
    folder = str(tmp_path / "failure")
    report = verify(source(SUM), source(OTHER), save_failure=folder)
    assert report.saved == folder
    inputs = read_inputs(source(SUM), (), folder)
    again = verify(source(SUM), source(OTHER), inputs=inputs)
    assert again.exit_code == 1
    assert [trial.values for trial in again.trials] == ["given"]
    assert verify(source(SUM), source(SUM), save_failure=str(tmp_path / "no")).saved is None
    assert not (tmp_path / "no").exists()


def test_the_same_seed_draws_the_same_inputs() -> None:
    reports = [verify(source(SUM), source(OTHER), seed=seed) for seed in (1, 1, 2)]
    texts = [json.dumps({**without_times(report.to_dict()), "seed": 0}) for report in reports]
    assert texts[0] == texts[1] != texts[2]
    assert json.loads(texts[0])["exit_code"] == 1
    assert json.loads(texts[0])["comparisons"][0]["errors"]["mismatches"]


def test_trials_special_values_and_tolerances() -> None:
    assert len(verify(source(SUM), trials=2).trials) == 2
    profiles = [trial.values for trial in verify(source(SUM), special=True).trials]
    usual = [trial.values for trial in verify(source(SUM)).trials]
    assert usual == list(PROFILES)
    assert profiles == [*usual, "special", "special"]
    profiles = [trial.values for trial in verify(source(SUM), special=True, trials=2).trials]
    assert profiles == ["ordinary", "small", "special"]
    near = source("g (float[N] x) => (float[N] y) <float c = {1.00001}> { y = Mul(x, c) }")
    same = source("g (float[N] x) => (float[N] y) <float c = {1}> { y = Mul(x, c) }")
    assert verify(near, same).exit_code == 0
    assert verify(near, same, tolerance=Tolerance(exact=True)).exit_code == 1
    assert verify(near, same, tolerance=Tolerance(ulp=4)).exit_code == 1
    assert verify(near, same, tolerance=Tolerance(ulp=400)).exit_code == 0
    assert verify(near, same, tolerance=Tolerance(rtol=0, atol=0)).exit_code == 1


RANDOM = {
    "by its operator": "g (float[N] x) => (float[N] y, float[N] z) "
    "{ t = RandomNormalLike(x) \n y = Abs(t) \n z = Neg(x) }",
    "in training": "g (float[N] x) => (float[N] y, float[N] z) <bool on = {1}, float r = {0.5}> "
    "{ y = Dropout(x, r, on) \n z = Neg(x) }",
    "in its size": "g (float[N] x) => (int64[A,B] y, float[N] z) "
    "{ t = RandomNormalLike(x) \n u = Relu(t) \n y = NonZero(u) \n z = Neg(x) }",
}


@pytest.mark.parametrize("how", RANDOM)
def test_random_results_are_not_compared(how: str) -> None:
    found = source(RANDOM[how])
    report = verify(found, found, executors=["onnxruntime"])
    assert report.equivalent is True
    assert report.remarks == ("output 'y' is random: it was not compared",)
    assert {comparison.output for comparison in report.comparisons} == {"z"}
    # Where all is random, nothing is known.
    del found.graph.output[1]
    assert verify(found, found, executors=["onnxruntime"]).exit_code == 3


def test_a_function_that_calls_a_random_one_is_random() -> None:
    found = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 13, "f": 1]>'
        "g (float[N] x) => (float[N] y) { y = f.outer(x) }"
        '<domain: "f", opset_import: ["": 13, "f": 1]> outer (a) => (b) { b = f.inner(a) }'
        '<domain: "f", opset_import: ["": 13]> inner (a) => (b) { b = RandomNormalLike(a) }'
    )
    assert verify(found, found, executors=["onnxruntime"]).exit_code == 3


def test_dropout_that_drops_nothing_is_compared() -> None:
    found = source(
        "g (float[N] x) => (float[N] y) <bool off = {0}, float r = {0.5}> "
        "{ y = Dropout(x, r, off) }"
    )
    assert verify(found, found).exit_code == 0


@pytest.mark.parametrize("is_test", [0, 1])
def test_an_old_dropout_is_random_unless_it_is_for_tests(is_test: int) -> None:
    """What it drops in one run it does not in another; ONNX Runtime has no kernel for it."""
    found = source(
        f"g (float[N] x) => (float[N] y) {{ y = Dropout<is_test = {is_test}>(x) }}",
        opset=6,
    )
    report = verify(found, found, executors=["numpy"])
    assert report.exit_code == (0 if is_test else 3)


def test_progress_is_told() -> None:
    seen: list[tuple[int, int, str]] = []
    verify(source(SUM), source(SUM), progress=lambda *args: seen.append(args))
    assert seen[0][0] == 0
    assert seen[-1][:2] == (36, 36)
    assert len(seen) == 5


def _external(tmp_path: Path, op_type: str) -> str:
    weight = numpy_helper.from_array(np.arange(12, dtype=np.float32).reshape(3, 4), "w")
    found = helper.make_model(
        helper.make_graph(
            [
                helper.make_node("MatMul", ["x", "w"], ["t"], name="mm"),
                helper.make_node(op_type, ["t"], ["u"], name="middle"),
                helper.make_node("Identity", ["u"], ["y"]),
            ],
            "g",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3])],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4])],
            [weight],
        ),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=8,
    )
    path = tmp_path / f"{op_type}.onnx"
    onnx.save(found, path, save_as_external_data=True, location=f"{op_type}.bin", size_threshold=0)
    return str(path)


def test_external_data_stays_in_its_file(tmp_path: Path) -> None:
    first, second = _external(tmp_path, "Relu"), _external(tmp_path, "Abs")
    assert verify(first, first).exit_code == 0
    report = verify(first, second)
    assert report.exit_code == 1
    assert report.divergence is not None
    assert report.divergence.value == "u"
    assert report.divergence.second_nodes == ("middle (Abs)",)


def test_other_forms_of_files(tmp_path: Path) -> None:
    path = tmp_path / "m.onnxtxt"
    path.write_text(onnx.printer.to_text(source(SUM)))
    assert verify(str(path), source(SUM)).exit_code == 0


def test_unreadable_files_and_wrong_inputs(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"no model")
    with pytest.raises(InvalidModelError):
        verify(tmp_path / "bad.onnx")
    with pytest.raises(InvalidModelError):
        verify(tmp_path / "none.onnx")
    with pytest.raises(InputError, match="no input 'q'"):
        verify(source(SUM), inputs={"q": np.ones(1)})
    with pytest.raises(InputError, match="no input has a dimension 'Q'"):
        verify(source(SUM), dims={"Q": 2})
    with pytest.raises(ValueError, match="no executor"):
        verify(source(SUM), executors=["tpu"])


def test_inputs_of_another_dtype_are_void() -> None:
    report = verify(source(SUM), source(SUM), inputs={"x": np.ones((2, 2))})
    assert report.exit_code == 3
    assert report.trials[0].void


@pytest.mark.parametrize("executor", ["numpy", "onnxruntime"])
def test_run(executor: str, tmp_path: Path) -> None:
    found = source(
        "g (float[N,M] x) => (float[N] b, float[N,M] a) "
        "{ a = Neg(x) \n b = ReduceMax<axes=[1],keepdims=0>(x) }"
    )
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    outputs = onnxreduce_cli.run(found, {"x": x}, executor=executor)
    assert list(outputs) == ["b", "a"]
    assert np.array_equal(outputs["b"], [2, 5])
    onnx.save(found, tmp_path / "m.onnx")
    again = run(os.fspath(tmp_path / "m.onnx"), {"x": x}, executor=executor)
    assert np.array_equal(again["a"], -x)
    with pytest.raises((RunFailedError, CannotRunError)):
        run(found, {}, executor=executor)


def test_run_with_dtypes_that_numpy_lacks() -> None:
    found = source("g (float[N] x) => (bfloat16[N] y) { y = Cast<to=16>(x) }")
    x = np.array([1, 2.5, -3], np.float32)
    outputs = [run(found, {"x": x}, executor=name)["y"] for name in ("numpy", "onnxruntime")]
    assert outputs[0].dtype == outputs[1].dtype
    assert np.array_equal(*outputs)


def test_the_librarys_face() -> None:
    report = onnxreduce_cli.verify(source(SUM), source(OTHER))
    assert report.to_dict()["equivalent"] is False


def test_what_is_too_large_to_draw_is_told_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Before ONNX Runtime opens the model, which takes memory as it says."""
    monkeypatch.setattr(trials, "open_isolated", lambda *_: pytest.fail("it was opened"))
    found = source("g (float[100000,100000] x) => (float[A,B] y) { y = Neg(x) }")
    with pytest.raises(InputError, match="10,000,000,000 elements are too large"):
        verify(found)


def test_an_input_is_too_large_to_draw_before_the_generator_ends():
    source = model("""<ir_version: 8, opset_import: ["": 17]>
        agraph (float[8192, 4096] x) => (float[8192, 4096] y) { y = Relu(x) }""")
    with pytest.raises(InputError, match="33,554,432 elements are too large to draw"):
        verify(source)


def test_a_batch_of_one_where_images_must_be_large() -> None:
    found = source(
        "g (float[N,C,H,W] x) => (float[A,B] y) <int64[2] shape = {-1, 301056}> "
        "{ t = Concat<axis = 1>(x, x) \n y = Reshape(t, shape) }"
    )
    report = verify(found, found, dims={"C": 3}, trials=2)
    assert report.exit_code == 0
    assert [trial.shapes["x"] for trial in report.trials] == [(1, 3, 224, 224)] * 2
    assert not report.remarks


def test_two_models_of_one_name_are_told_apart(tmp_path: Path) -> None:
    onnx.save(source(SUM), tmp_path / "m.onnx")
    report = verify(tmp_path / "m.onnx", tmp_path / "m.onnx")
    assert report.exit_code == 0
    assert (report.a, report.b) == (str(tmp_path / "m.onnx"), f"{tmp_path / 'm.onnx'} (b)")
    assert {c.trials for c in report.comparisons} == {8}


def test_a_sequence_where_none_may_be_is_the_models_fault() -> None:
    found = source("g (float[2] x) => (float[2] y) { y = Max(x, x) }")
    inner = found.graph.input[0].type
    outer = TypeProto()
    outer.sequence_type.elem_type.CopyFrom(inner)
    inner.CopyFrom(outer)
    report = verify(found, executors=["numpy"])
    assert report.exit_code == 3
    assert "is a sequence, which is not allowed here" in report.runs[0].reason
