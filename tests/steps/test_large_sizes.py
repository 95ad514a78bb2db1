"""Sizes that a model states, however large: no list as long is made at conversion."""

from __future__ import annotations

from contextlib import suppress

import pytest
from onnx import GraphProto, parser

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import Lookups, Workspace
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.model.graph.edit import Constants
from onnxreduce_cli.model.graph.names import Names
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.steps.registry import ALTERNATIVES

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
    "the kernel of a DeformConv": (
        19, f"float[1,1,{LARGE},3] x, float[1,1,1,1] w, float[1,2,1,1] o",
        f"y = DeformConv<kernel_shape=[{LARGE}, 1]>(x, w, o)", 18,
    ),
    "the diagonal of an Einsum": (
        12, f"float[{1 << 30},{1 << 30}] x", 'y = Einsum<equation="ii->i">(x)', 11,
    ),
    "the columns of a Trilu without rows": (14, f"float[0,{LARGE}] x", "y = Trilu(x)", 13),
    "the frames of an STFT of few elements": (
        17, "float[1,16,1] x", "s = Constant<value_int=8>() "
        f'n = Constant<value_int={LARGE}>() y = STFT(x, s, "", n)', 16,
    ),
    "the axes of a Col2Im": (
        18, f"float[1,4,5] x, int64[{LARGE}] i, int64[2] b", "y = Col2Im(x, i, b)", 13,
    ),
}  # fmt: skip

#: What is large of a node that a runtime does not take: its inputs, and how it is computed.
REWRITTEN = {
    "the repeats of a Tile": (
        "float[2,3] x", f"r = Constant<value_ints=[1, {LARGE}]>() y = Tile(x, r)",
    ),
    "what is gathered from": (
        f"float[{LARGE}] x", "i = Constant<value_ints=[0, 2, -1]>() y = Gather(x, i)",
    ),
    "what is gathered from by GatherND": (
        f"float[{LARGE}] x", "i = Constant<value=int64[2,1] {0, -1}>() y = GatherND(x, i)",
    ),
    "what is scattered to": (
        f"float[{LARGE},2] x, float[2,2] u",
        "i = Constant<value=int64[2,1] {5, -1}>() y = ScatterND(x, i, u)",
    ),
    "what a Hardmax compares": (f"float[2,{LARGE}] x", "y = Hardmax(x)"),
    "what a Hardmax does not": (f"float[{LARGE},2] x", "y = Hardmax(x)"),
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


@pytest.mark.parametrize("what", REWRITTEN)
def test_nothing_that_is_written_for_runtimes_is_as_long(what: str) -> None:
    inputs, nodes = REWRITTEN[what]
    found = parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18]>
        g ({inputs}) => (float[] y) {{ {nodes} }}""")
    found.graph.output[0].type.Clear()
    facts = admit(found)
    (scope,) = facts.scopes
    node = scope.nodes[-1]
    assert ALTERNATIVES[node.op_type]
    for item in ALTERNATIVES[node.op_type]:
        workspace = Workspace(facts.extended(), Names([scope]), Constants(), GraphProto())
        context = Context(node, scope, 18, 18, 18, "node", workspace, Lookups())
        with suppress(Blocked):
            item.apply(context)
        assert sum(made.ByteSize() for made, _ in context.emitted) < 100_000
        assert sum(array.nbytes for array, _ in workspace.constants.arrays.values()) < 100_000
