"""Facts of the operators' files, each as its source has it."""

from __future__ import annotations

import onnx
import pytest

from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.targets.operators import OperatorTable
from onnxreduce_cli.targets.requirement import find_target
from onnxreduce_cli.targets.verdict import default_domain_nodes


def table(requirement: str) -> OperatorTable:
    """The table of the one version that a requirement names."""
    (found,) = find_target(requirement).operator_tables()
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
        ("rknn==2.2", "Gelu", 20, "not known"),
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
    ],
)
def test_an_operator_is_taken_as_its_source_says(
    requirement: str, op_type: str, opset: int, said: str
) -> None:
    assert str(table(requirement).answer("", op_type, opset)) == said


CAST = """<ir_version: 8, opset_import: ["": 13]>
g (bool[N] x) => (float[N] y) { b = Not(x) y = Cast<to=1>(b) }"""


def test_a_boolean_is_an_integer_in_sentis() -> None:
    nodes = list(default_domain_nodes(admit(onnx.parser.parse_model(CAST))))
    found = table("sentis==2.1")
    assert [found.answer("", n.node.op_type, 13, n).value for n in nodes] == ["taken", "taken"]
