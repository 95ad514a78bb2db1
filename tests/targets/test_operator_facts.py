"""Facts of the operators' files, each as its source has it."""

from __future__ import annotations

import onnx
import pytest

from lab.measured import load, pairs
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.targets.operators import OperatorTable
from onnxreduce_cli.targets.requirement import find_target
from onnxreduce_cli.targets.verdict import default_domain_nodes
from onnxreduce_cli.targets.versions import Version


def table(requirement: str) -> OperatorTable:
    """The table of the one version that a requirement names."""
    (found,) = find_target(requirement).operator_tables
    return found


@pytest.mark.parametrize(
    ("requirement", "op_type", "opset", "said"),
    [
        ("rknn-toolkit2==1.4.0", "Sin", 12, "not taken"),
        ("rknn-toolkit2==2.3.2", "Sin", 12, "taken"),
        ("rknn==2.2", "GRU", 13, "taken if the batch size is 1"),
        ("rknn==2.1", "Hardmax", 13, "not taken"),
        (
            "rknn==2.2",
            "Hardmax",
            13,
            "taken if the chip takes it as the simulator of the toolkit does",
        ),
        ("rknn==2.2", "Gelu", 20, "not taken"),
        ("rknn==2.2", "AffineGrid", 20, "not known"),
        ("rknn-toolkit==1.7.1", "SpaceToDepth", 11, "taken"),
        ("rknn-toolkit==1.7.1", "Erf", 11, "not taken"),
        ("rknn-toolkit==1.7.5", "Elu", 11, "taken if alpha is 1"),
        ("rknn-toolkit==1.7.5", "Where", 11, "not taken"),
        ("rknn-toolkit==1.7.5", "DepthToSpace", 11, "not known"),
        ("barracuda==3.0", "LayerNormalization", 9, "not taken"),
        ("barracuda", "Xor", 9, "taken"),
        ("barracuda==1.0", "Tile", 9, "not taken"),
        ("barracuda==2.4", "ArgMax", 13, "taken if select_last_index is 0"),
        ("sentis==1.1", "LayerNormalization", 15, "not taken"),
        ("sentis==2.1", "LayerNormalization", 15, "taken"),
        ("inference-engine==2.4", "Mish", 15, "taken"),
        ("sentis==2.1", "GRU", 15, "not taken"),
        ("rknn==2.1", "LayerNormalization", 17, "taken"),
        ("rknn==2.2", "LayerNormalization", 17, "not taken"),
        ("tract==0.21", "Attention", 23, "not taken"),
        ("tract==0.23", "Attention", 23, "taken"),
        ("tvm==0.20", "Unique", 13, "taken"),
        ("onnx2torch==1.5", "Softmax", 13, "taken"),
        ("onnx2torch==1.5", "ReduceMax", 18, "not taken"),
        ("iree==3.11", "BitwiseAnd", 18, "taken"),
        ("iree==3.11", "Ceil", 11, "not taken"),
        ("mnn==3.6", "Hardmax", 13, "not taken"),
        ("candle==0.11", "LayerNormalization", 17, "not taken"),
        ("tflite==2.6", "Add", 13, "taken"),
        ("migraphx==7.2", "Relu", 13, "taken"),
        ("rten", "com.microsoft.FastGelu", 1, "taken"),
        ("gonnx==1.1", "Resize", 13, "not taken"),
        ("coreml==1.24", "ArgMax", 13, "taken"),
        ("coreml==1.24", "Einsum", 13, "runs on the CPU"),
        ("coreml==1.18", "Gelu", 20, "runs on the CPU"),
        ("coreml==1.15", "MaxPool", 13, "taken if the input is of rank 4"),
    ],
)
def test_an_operator_is_taken_as_its_source_says(
    requirement: str, op_type: str, opset: int, said: str
) -> None:
    domain, _, name = op_type.rpartition(".")
    assert str(table(requirement).answer(domain, name, opset)) == said


#: The names in the lab's file of the runtimes that it calls otherwise.
NAMES = {"rknn-toolkit2": "rknn"}


def test_what_the_lab_found_right_is_taken() -> None:
    measured = load()
    asked, refused = 0, 0
    for pair in pairs(measured, left_out=frozenset()):
        name, _, version = pair.runtime.rpartition("-")
        runtime = NAMES.get(name, name)
        if runtime not in WITH_A_SOURCE_OF_THEIR_OWN:
            continue
        found = OperatorTable.load(runtime, Version.of(version))
        assert found is not None
        op_type = measured["sources"][pair.source]["op"]
        said = found.answer("", op_type, pair.source_opset).value
        if pair.exported == "right":
            assert said in ("taken", "taken if"), f"{op_type} in {pair.runtime}"
            asked += 1
        refused += pair.exported == "refused" and said == "not taken"
    assert asked > 500
    assert refused > 100


#: Runtimes whose list is their own source or a document, which the lab has run as well.
WITH_A_SOURCE_OF_THEIR_OWN = {
    "iree", "jaxonnxruntime", "mnn", "onnx2tf", "onnx2torch", "rknn", "tinygrad", "tract", "tvm",
}  # fmt: skip


CAST = """<ir_version: 8, opset_import: ["": 13]>
g (bool[N] x) => (float[N] y) { b = Not(x) y = Cast<to=1>(b) }"""


def test_a_boolean_is_an_integer_in_sentis() -> None:
    nodes = list(default_domain_nodes(admit(onnx.parser.parse_model(CAST))))
    found = table("sentis==2.1")
    assert [found.answer("", n.node.op_type, 13, n).value for n in nodes] == ["taken", "taken"]
