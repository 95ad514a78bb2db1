"""Converting one file: results as data, typed errors, nothing printed."""

from __future__ import annotations

import io

import onnx
import pytest

from onnxreduce_cli.api import comparison
from onnxreduce_cli.api.file_conversion import convert_file
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import ConversionError, UsageError
from onnxreduce_cli.steps import registry
from onnxreduce_cli.verification.running.limits import Limits, current_limits
from onnxreduce_cli.verification.whole.results import VerificationError
from tests.support import model

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3,4] x) => (float[2,1,4] y) <int64[1] axes = {1}> {
    [mean] y = ReduceMean(x, axes)
}"""

BLOCKED = """<ir_version: 8, opset_import: ["" : 18]>
g (bfloat16[2,3] x) => (bfloat16[1,1] y) { [first] y = ReduceMax(x) }"""


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "model.onnx"
    onnx.save(model(TEXT), path)
    return path


@pytest.fixture(autouse=True)
def silent(capfd):
    yield
    assert capfd.readouterr() == ("", "")


def test_what_became_of_it(source):
    done = convert_file(str(source), None, Options(13, verify=True))
    assert done.target == str(source.with_name("model.opset13.onnx"))
    assert onnx.load(done.target).opset_import[0].version == 13
    assert [change.node for change in done.plan.changes] == ["mean"]
    assert done.checks is not None
    assert done.checks.checked == 1
    assert done.verified is not None
    assert done.verified.equivalent


def test_a_dry_run_writes_nothing(source, tmp_path):
    onnx.save(model(BLOCKED), source)
    done = convert_file(str(source), None, Options(11, dry_run=True))
    assert [blocker.node for blocker in done.plan.blockers] == ["first"]
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize("dry_run", [False, True])
def test_whole_models_run_within_the_limits_of_the_options(source, monkeypatch, dry_run):
    seen, verify = [], comparison.verify

    def limited_verify(*given, **named):
        seen.append(current_limits())
        return verify(*given, **named)

    monkeypatch.setattr(comparison, "verify", limited_verify)
    options = Options(13, verify=True, dry_run=dry_run, timeout=7.0, memory=4 * 10**9)
    assert convert_file(str(source), None, options).verified
    assert seen == [Limits(7.0, 4 * 10**9)]
    assert current_limits() == Limits()


def test_streams(source):
    read, written = io.BytesIO(source.read_bytes()), io.BytesIO()
    convert_file("-", "-", Options(13, verify=True), stdin=read, stdout=written)
    assert onnx.ModelProto.FromString(written.getvalue()).opset_import[0].version == 13


@pytest.mark.parametrize("extension", ["json", "textproto", "onnxtxt"])
def test_other_forms_are_verified(source, tmp_path, extension):
    target = tmp_path / f"out.{extension}"
    assert convert_file(str(source), str(target), Options(13, verify=True)).verified
    back = tmp_path / "back.onnx"
    assert convert_file(str(target), str(back), Options(18, verify=True)).verified


def test_errors(source, tmp_path):
    for options in (Options(), Options(99), Options(0), Options(18, expand=("Add",))):
        with pytest.raises(UsageError):
            convert_file(str(source), None, options)
    with pytest.raises(UsageError, match="--in-place"):
        convert_file(str(source), str(source), Options(13))
    onnx.save(model(BLOCKED), source)
    with pytest.raises(ConversionError) as caught:
        convert_file(str(source), None, Options(11))
    assert [blocker.node for blocker in caught.value.blockers] == ["first"]
    assert list(tmp_path.iterdir()) == [source]


def test_a_wrong_step_is_found_by_comparing_the_whole_models(source, tmp_path, monkeypatch):
    key = ("ReduceMean", 18, "down")
    step = registry.STEPS[key]

    def wrong(context):
        context.replace(inputs=[context.input(0)], axes=[2])

    monkeypatch.setitem(registry.STEPS, key, registry.Step(*key, "step", step.description, wrong))
    with pytest.raises(VerificationError) as caught:
        convert_file(str(source), None, Options(13, check=False, verify=True))
    assert caught.value.report.equivalent is False
    assert list(tmp_path.iterdir()) == [source]
