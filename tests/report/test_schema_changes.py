"""What the schemas alone tell of a boundary."""

from __future__ import annotations

import pytest

from onnxreduce_cli import schemas
from onnxreduce_cli.report.schema_changes import schema_changes


@pytest.mark.parametrize(
    ("op_type", "boundary", "changes"),
    [
        ("LpPool", 2, ["attribute p is INT, not FLOAT", "attribute kernel_shape is now required"]),
        ("DFT", 20, ["attribute axis went away", "input axis was added"]),
        ("Softmax", 13, ["attribute axis defaults to -1, not 1"]),
        ("Gemm", 11, ["input C is optional, where it was required"]),
        ("Scatter", 11, ["it is deprecated"]),
        ("Erf", 13, ["input input takes more types: tensor(bfloat16)"]),
        ("BatchNormalization", 15, ["X and scale no longer must have one type"]),
        ("QuantizeLinear", 19, ["x and y_scale must have one type"]),
    ],
)
def test_differences(op_type: str, boundary: int, changes: list[str]) -> None:
    assert set(changes) <= set(schema_changes(op_type, boundary))


def test_a_meaning_is_for_readers() -> None:
    assert schema_changes("GatherND", 12)[-1] == (
        "the text differs: read onnx.defs.get_schema('GatherND', 11) and get_schema('GatherND', 12)"
    )


def test_every_boundary_differs_in_something() -> None:
    nothing = {
        (op_type, boundary)
        for op_type in schemas.operators()
        for boundary in schemas.versions(op_type)[1:]
        if not schema_changes(op_type, boundary)
    }
    # A function body was added, which no definition of the signature tells; and onnx before 1.20
    # has the text of NonMaxSuppression 10 at 11.
    assert nothing <= {("DepthToSpace", 28), ("NonMaxSuppression", 11)}
