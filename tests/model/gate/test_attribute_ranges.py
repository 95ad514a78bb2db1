"""Numbers in attributes on which onnx would end the process, or take all memory."""

from __future__ import annotations

import pytest
from onnx import helper, parser

import onnxreduce_cli
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.gate.attribute_ranges import range_problem


@pytest.mark.parametrize(
    ("node", "said"),
    [
        ("GatherND<batch_dims = -9>(x, i)", "'batch_dims' must be at least 0, and it is -9"),
        (
            "LayerNormalization<axis = 2147483648>(x, x)",
            "'axis' must be at most 2147483647, and it is 2147483648",
        ),
        (
            "Split<num_outputs = 2147483647>(x)",
            "'num_outputs' must be at most 1048576, and it is 2147483647",
        ),
        ("Split<num_outputs = 0>(x)", "'num_outputs' must be at least 1, and it is 0"),
    ],
)
def test_what_ends_the_inference_of_onnx_is_refused(node: str, said: str) -> None:
    source = parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 18]>
    g (float[2,3] x, int64[2,1] i) => (float[] y) {{ y = {node} }}""")
    with pytest.raises(InvalidModelError, match=said):
        onnxreduce_cli.plan(source, 13)


def test_heads_are_not_made_one_by_one_without_end() -> None:
    node = helper.make_node("LinearAttention", list("qkv"), ["y", "s"], q_num_heads=1 << 31)
    assert (
        range_problem(node)
        == "its attribute 'q_num_heads' must be at most 1048576, and it is 2147483648"
    )


def test_a_call_of_a_function_says_what_only_it_knows() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "f" : 1]>
    g (float[2,3] x, int64[2,1] i) => (float[2,3] y) { y = f.take<n = COUNT>(x, i) }
    <domain: "f", opset_import: ["" : 18]>
    take <n> (x, i) => (y) { y = GatherND<batch_dims: int = @n>(x, i) }"""
    sound, wrong = (parser.parse_model(text.replace("COUNT", count)) for count in ("0", "-9"))
    assert not onnxreduce_cli.plan(sound, 11).blockers
    onnxreduce_cli.plan(wrong, 13)  # Nothing is asked of it there, so onnx is not asked either.
    with pytest.raises(InvalidModelError, match="'batch_dims' must be at least 0, and it is -9"):
        onnxreduce_cli.plan(wrong, 11)
