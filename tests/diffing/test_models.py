"""How types of values are told."""

from __future__ import annotations

import pytest
from onnx import TensorProto, TypeProto, helper

from onnxreduce_cli.diffing.models import type_text

FLOATS = helper.make_tensor_type_proto(TensorProto.FLOAT, ["N", 3, None])
INTS = helper.make_tensor_type_proto(TensorProto.INT64, None)


@pytest.mark.parametrize(
    ("proto", "text"),
    [
        (FLOATS, "float[N,3,?]"),
        (INTS, "int64"),
        (helper.make_tensor_type_proto(TensorProto.BFLOAT16, []), "bfloat16[]"),
        (helper.make_sequence_type_proto(FLOATS), "seq(float[N,3,?])"),
        (helper.make_sequence_type_proto(helper.make_sequence_type_proto(INTS)), "seq(seq(int64))"),
        (helper.make_optional_type_proto(FLOATS), "optional(float[N,3,?])"),
        (helper.make_map_type_proto(TensorProto.STRING, INTS), "map(string,int64)"),
        (helper.make_sparse_tensor_type_proto(TensorProto.DOUBLE, [2, 3]),
         "sparse_tensor(double[2,3])"),
    ],
)  # fmt: skip
def test_types_are_told_in_the_words_of_schemas(proto: TypeProto, text: str) -> None:
    assert type_text(proto) == text


def test_what_onnx_cannot_write() -> None:
    assert type_text(TypeProto()) == "no type"
    assert type_text(helper.make_sequence_type_proto(TypeProto())) == "seq(no type)"
    assert type_text(helper.make_tensor_type_proto(99, [1])) == "dtype 99[1]"
    opaque = TypeProto(opaque_type=TypeProto.Opaque(domain="d", name="n"))
    assert type_text(opaque) == 'opaque_type { domain: "d" name: "n" }'
