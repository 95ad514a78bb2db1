"""Which runtimes take a model as it is, and which after a conversion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from onnxreduce_cli import ConversionError, convert
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.inspection import inspect
from onnxreduce_cli.engine.runtime_reach import Runtimes, runtimes_taking
from onnxreduce_cli.targets.reading import read_runtime
from tests.support import model

SAMPLES = Path(__file__).parents[2] / "samples"


def runtimes(nodes: str, version: int, ir_version: int = 8, **_: Any) -> Runtimes:
    return inspect(graph(nodes, version, ir_version)).runtimes


def graph(nodes: str, version: int, ir_version: int = 8) -> Any:
    return model(f"""<ir_version: {ir_version}, opset_import: ["" : {version}]>
    g (float[2,3,4] x) => (float[a,b,c] y) {{ {nodes} }}""")


L1 = "a = Constant<value = int64[1] {1}>() y = ReduceL1(x, a)"


def test_as_it_is_and_converted() -> None:
    found = runtimes(L1, 18)
    assert found.as_it_is["opencv"] == "4.8 to 5.0"
    assert found.converted["opencv"] == "4.5 to 4.7"
    assert found.as_it_is["onnxruntime"] == "1.14 to 1.32"
    assert found.converted["onnxruntime"] == "1.3 to 1.13"
    assert "hailo" not in {*found.as_it_is, *found.converted, *found.refused, *found.unknown}
    assert found.unknown["vitisai"] == {"Constant": "", "ReduceL1": ""}


@pytest.mark.parametrize(
    ("nodes", "version", "found"),
    [
        ("y = Add(x, x)", 13, None),
        ("y = ReduceL1<axes=[1]>(x)", 11, None),
        ("y = ReduceL1(x)", 13, None),
        ("y = ReduceL1<axes=[1]>(x)", 13, ("ReduceL1", {"openvino": "2025.4 to 2026.4"})),
        (
            "a = LogSoftmax<axis=0>(x) y = LogSoftmax<axis=1>(a)",
            11,
            ("LogSoftmax", {"opencv", "mnn", "ncnn", "tinygrad", "jaxonnxruntime", "x2paddle"}),
        ),
        ("y = LogSoftmax<axis=2>(x)", 11, None),
        (
            "y = ReduceSum<noop_with_empty_axes=1>(x)",
            13,
            ("ReduceSum", {"mnn", "ncnn", "onnx2tf", "onnxruntime", "opencv"}),
        ),
    ],
)
def test_what_is_computed_wrong(nodes: str, version: int, found: Any) -> None:
    wrong = runtimes(nodes, version).wrong
    if found is None:
        assert wrong == {}
        return
    operator, names = found
    assert all(set(operators) == {operator} for operators in wrong.values())
    if isinstance(names, dict):
        assert {name: operators[operator] for name, operators in wrong.items()} == names
    else:
        assert set(wrong) == names


def test_nodes_of_functions_are_looked_at() -> None:
    found = model("""<ir_version: 8, opset_import: ["" : 13, "own" : 1]>
        g (float[2,3] x) => (float[2,1] y) { y = own.f(x) }
        <domain: "own", opset_import: ["" : 13]>
        f (v) => (w) { w = ReduceL1<axes=[1]>(v) }""")
    assert set(inspect(found).runtimes.wrong["openvino"]) == {"ReduceL1"}


@pytest.mark.parametrize("axes", ["int64[0] {}", "int64[1] {1}"])
def test_nodes_with_no_axes_are_told_apart(axes: str) -> None:
    found = model(f"""<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[2,3] x) => (float[a,b] y) {{ y = own.f(x) }}
        <domain: "own", opset_import: ["" : 18]>
        f (v) => (w) {{ axes = Constant<value={axes}>() w = ReduceL1(v, axes) }}""")
    assert ("openvino" in inspect(found).runtimes.wrong) is ("{1}" in axes)


@pytest.mark.parametrize(
    ("opset", "wrong"), [(13, {"ReduceL1"}), (16, {"ReduceL1"}), (18, {"ReduceL1"}), (12, set())]
)
def test_nodes_of_graphs_within_nodes_are_looked_at(opset: int, wrong: set[str]) -> None:
    """Each once as it will be: those that become others, too."""
    found = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2,3,4] x, bool c) => (float[a,b,d] y) {
            p = ReduceL1<axes=[1]>(x)
            q = ReduceL1<axes=[2]>(p)
            r = If(c) <
                then_branch = then () => (float[a,b,d] t) { t = ReduceL1<axes=[0]>(q) },
                else_branch = else () => (float[a,b,d] e) { e = Identity(q) }
            >
            y = ReduceL1<axes=[0]>(r)
        }""")
    conversion = Conversion(found, opset)
    after = [node.node.op_type for node in conversion.nodes_after()]
    assert after.count("ReduceL1") == 4
    conversion.apply()
    operators = {name for ops in inspect(conversion.model).runtimes.wrong.values() for name in ops}
    assert operators == wrong


def test_the_ir_version_counts() -> None:
    assert runtimes(L1, 18, 10).as_it_is["onnxruntime"] == "1.18 to 1.32"


def test_what_cannot_be_converted() -> None:
    found = runtimes("y = ReduceProd(x)", 13)
    assert {"jaxonnxruntime", "opencv"} <= found.refused.keys()
    for name, span in found.refused.items():
        version = span.split()[0] if span else str(read_runtime(name).rows[-1].version)
        wanted = f"{name}=={version}" if version != "0" else name
        with pytest.raises(ConversionError):
            convert(graph("y = ReduceProd(x)", 13), runtime=wanted)


def test_what_can_be_converted() -> None:
    found = runtimes(L1, 18)
    for name, span in found.converted.items():
        version = span.split()[0].rstrip(",") if span else str(read_runtime(name).rows[0].version)
        convert(graph(L1, 18), runtime=f"{name}=={version}" if version != "0" else name)


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.onnx")), ids=lambda path: path.stem)
@pytest.mark.parametrize("opset", [9, 13, 20])
def test_what_takes_a_model_is_known_before_it_is_converted(sample: Path, opset: int) -> None:
    conversion = Conversion(onnx.load(sample), opset)
    before = runtimes_taking(conversion)
    conversion.apply()
    assert before
    assert before == inspect(conversion.model).runtimes.as_it_is


def test_nothing_takes_what_cannot_be_converted() -> None:
    found = model("""<ir_version: 8, opset_import: ["" : 18]> g (string[3] x) => (string[3] y) {
    y = StringNormalizer<case_change_action="LOWER">(x) }""")
    assert runtimes_taking(Conversion(found, 7)) == {}
