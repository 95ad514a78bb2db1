"""Sizes that a model states, however large: no list as long is made at conversion."""

from __future__ import annotations

import pytest
from onnx import parser

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options

LARGE = 1 << 40

#: By what is large: an opset, inputs, what is given, and a node; then where it is converted to.
CASES = {
    "the heads of an Attention": (
        23, f"float[1,{LARGE},2,2] x, float[1,2,2,2] k", "y = Attention(x, k, k)", 22,
    ),
    "the queries of an Attention": (
        23, f"float[1,2,{LARGE},2] x, float[1,2,2,2] k", "y = Attention<is_causal=1>(x, k, k)", 22,
    ),
    "what is sliced backwards": (
        13, f"float[{LARGE},2] x, int64[1] n", "e = Constant<value_ints=[-9223372036854775807]>() "
        "a = Constant<value_ints=[0]>() s = Constant<value_ints=[-1]>() "
        "t = Constant<value_ints=[-1]>() y = Slice(x, t, e, a, s)", 9,
    ),
    "the channels of a DepthToSpace": (
        11, f"float[1,{LARGE},2,2] x", 'y = DepthToSpace<blocksize=2, mode="CRD">(x)', 10,
    ),
    "the channels of a GroupNormalization": (
        18, f"float[1,{LARGE},4] x", "s = Constant<value_floats=[1.0, 2.0]>() "
        "y = GroupNormalization<num_groups=2>(x, s, s)", 21,
    ),
    "the blocks of a scale": (
        21, f"float[{LARGE},4] x, float[{LARGE // 4},4] s",
        "y = QuantizeLinear<block_size=4, axis=0, output_dtype=3>(x, s)", 18,
    ),
    "the axes of a Col2Im": (
        18, f"float[1,4,5] x, int64[{LARGE}] i, int64[2] b", "y = Col2Im(x, i, b)", 13,
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", CASES)
def test_no_list_is_as_long(what: str) -> None:
    opset, inputs, nodes, target = CASES[what]
    found = parser.parse_model(f"""<ir_version: 10, opset_import: ["" : {opset}]>
        g ({inputs}) => (float[] y) {{ {nodes} }}""")
    found.graph.output[0].type.Clear()
    conversion = Conversion(found, target, Options(emulate=True))
    if not conversion.blockers:
        conversion.apply()
        assert found.ByteSize() < 100_000
