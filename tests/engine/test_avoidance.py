"""What a runtime gets wrong of nodes whose attributes the callers of a function set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import onnxreduce_cli
from onnxreduce_cli.engine.avoidance import Avoidance
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.targets.requirement import find_target
from onnxreduce_cli.verification.whole.equivalence import verify
from tests.support import assert_same, model, run

EXPORTS = Path(__file__).parents[1] / "data" / "exports"

X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)


def called(
    opset: int, attribute: str, first: str, second: str, body: str, dims: str = "[d,e,f]"
) -> ModelProto:
    """A model that calls a function twice, through another one that hands its attribute `p` on.

    The second call gives a value of the dimensions `dims`.
    """
    return model(f"""<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]>
        g (float[2,3,4] x) => (float[a,b,c] y, float{dims} z) {{
            y = local.F<p : {attribute} = {first}>(x)
            z = local.F<p : {attribute} = {second}>(x)
        }}
        <domain: "local", opset_import: ["" : {opset}, "local" : 1]>
        F <p> (a) => (b) {{ b = local.G<q : {attribute} = @p>(a) }}
        <domain: "local", opset_import: ["" : {opset}]>
        G <q> (a) => (b) {{ {body} }}""")


def converts_for(runtime: str, source: ModelProto) -> ModelProto:
    """The model for a runtime, which computes what it did and is valid."""
    result = onnxreduce_cli.convert(source, runtime=runtime, check=False)
    onnx.checker.check_model(result, full_check=True)
    before, after = run(source, {"x": X}), run(result, {"x": X})
    for name in ("y", "z"):
        assert_same(before[name], after[name])
    assert verify(source, result, trials=1).exit_code == 0
    return result


@pytest.mark.parametrize("runtime", ["onnxruntime==1.8", "onnxruntime==1.3", "opencv==4.10", "mnn"])
@pytest.mark.parametrize("path", sorted(EXPORTS.glob("*.onnx")), ids=lambda path: path.stem)
@pytest.mark.matrix
def test_nodes_that_are_not_asked_for_their_dtypes_would_not_change(
    path: Path, runtime: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No dtype occurs in the model that the runtime does not take of their operators."""
    found, target = onnx.load(path), find_target(runtime)

    def outcome() -> list[object]:
        conversion = Conversion(found, 13, runtime=target)
        sites = conversion.sites
        return [(*site.node.output, site.result_key, site.avoided) for site in sites]

    planned = outcome()
    monkeypatch.setattr(Avoidance, "affects_given", lambda self, name, _: self.affects(name))
    assert planned == outcome()


@pytest.mark.parametrize("runtime", ["opencv==4.5", "opencv==4.10", "opencv==4.12"])
@pytest.mark.parametrize(
    ("op_type", "opset", "first", "second"),
    [
        ("ReduceSum", 9, "[0, 2, 1]", "[0]"),
        ("ReduceMax", 11, "[0, -1]", "[2]"),
        ("ReduceMean", 13, "[0, 1]", "[1]"),
    ],
)
def test_axes_that_calls_set_in_two_ways(
    runtime: str, op_type: str, opset: int, first: str, second: str
) -> None:
    body = f"b = {op_type}<axes : ints = @q>(a)"
    converts_for(runtime, called(opset, "ints", first, second, body))


@pytest.mark.parametrize(
    ("opset", "second", "dims", "body"),
    [
        (11, "0", "[d]", "b = ReduceMean<axes = [0, 2], keepdims : int = @q>(a)"),
        (11, "0", "", "b = ReduceMax<keepdims : int = @q>(a)"),
        pytest.param(
            *(18, "0", "[d,e,f]", "b = ReduceMax<noop_with_empty_axes : int = @q>(a)"),
            marks=pytest.mark.newest,  # ONNX Runtime 1.23 reduces nothing by ReduceSum alone.
        ),
        (11, "2", "[d,e,f]", "b = Softmax<axis : int = @q>(a)"),
        (13, "2", "[d,e,f]", "b = Hardmax<axis : int = @q>(a)"),
    ],
)
@pytest.mark.parametrize("runtime", ["opencv==4.6", "opencv==4.10", "x2paddle", "mnn"])
def test_what_depends_on_a_number_that_calls_set_in_two_ways(
    runtime: str, opset: int, second: str, dims: str, body: str
) -> None:
    converts_for(runtime, called(opset, "int", "1", second, body, dims))


def test_what_is_written_in_place_of_one_form_is_written_where_all_calls_have_it() -> None:
    same = called(11, "ints", "[0, 1]", "[0, 1]", "b = ReduceMax<axes : ints = @q>(a)")
    result = converts_for("opencv==4.5", same)
    assert [function.name for function in result.functions] == ["F", "G"]
    assert [node.op_type for node in result.functions[1].node].count("ReduceMax") == 2
