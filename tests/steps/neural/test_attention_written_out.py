"""Attention below 23: the form that each feature takes, and that all of them compute the same."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

from onnxreduce_cli import ConversionError, convert
from tests.support import converts, converts_or_counts, one_node, op_types, run

pytestmark = pytest.mark.newest

RANDOM = np.random.default_rng(5)
PLAIN = ["MatMul", "MatMul", "Mul", "Mul", "Softmax", "Transpose"]


def normal(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RANDOM.standard_normal(shape).astype(dtype)


def inputs_of(
    rank: int = 4,
    *,
    groups: int = 1,
    past: int | None = None,
    mask: str = "",
    dtype: Any = np.float32,
    batch: int = 2,
) -> dict[str, Any]:
    """Inputs of 4 heads, 3 queries and 5 keys of size 8, values of size 6."""
    kv = 4 // groups
    sizes = {"q": (4, 3, 8), "k": (kv, 5, 8), "v": (kv, 5, 6)}
    feeds: dict[str, Any] = {}
    for name, (heads, length, size) in sizes.items():
        shape = (heads, length, size) if rank == 4 else (length, heads * size)
        feeds[name] = normal(batch, *shape, dtype=dtype)
    total = 5 + (past or 0)
    masks = {
        "": None,
        "bool": RANDOM.random((3, total)) > 0.5,
        "float": normal(batch, 1, 3, total, dtype=dtype),
        "double": normal(3, total, dtype=np.float64),
        "row": RANDOM.random(total) > 0.3,
    }
    if masks[mask] is not None and masks[mask].dtype == bool:
        masks[mask][..., 0] = True
        if mask == "bool":
            masks[mask][1] = False  # It sees nothing.
    feeds["mask"] = masks[mask]
    if past is not None:
        feeds |= {
            "past_key": normal(batch, kv, past, 8, dtype=dtype),
            "past_value": normal(batch, kv, past, 6, dtype=dtype),
        }
    return feeds


def attention(
    feeds: dict[str, Any],
    outputs: int = 1,
    *,
    dynamic: bool = False,
    initializers: tuple[str, ...] = (),
    **values: Any,
) -> ModelProto:
    if feeds["q"].ndim == 3:
        kv = feeds["k"].shape[2] // 8
        values |= {"q_num_heads": 4, "kv_num_heads": kv}
    shapes: dict[str, list[str | int]] | None = None
    if dynamic:
        middle = [4] if feeds["q"].ndim == 4 else []
        kv_middle = list(feeds["k"].shape[1:2]) if middle else []
        shapes = {"q": ["b", *middle, "s", feeds["q"].shape[-1]]}
        shapes |= {name: ["b", *kv_middle, "t", feeds[name].shape[-1]] for name in "kv"}
        for name in ("past_key", "past_value"):
            if name in feeds:
                shapes[name] = ["b", feeds[name].shape[1], "p", feeds[name].shape[-1]]
    rank = feeds["q"].ndim
    return one_node(
        "Attention",
        23,
        feeds,
        outputs=outputs,
        output_shapes=[[None] * count for count in (rank, 4, 4, 4)[:outputs]],
        shapes=shapes,
        initializers=initializers,
        **values,
    )


def given(feeds: dict[str, Any]) -> dict[str, Any]:
    return {name: array for name, array in feeds.items() if array is not None}


def added(source: ModelProto, opset: int = 17) -> list[str]:
    """The operators that a node becomes beyond those of the plain form, sorted."""
    left = op_types(convert(source, opset, check=False))
    for op_type in PLAIN:
        left.remove(op_type)
    return sorted(left)


def test_the_plain_form_is_what_exporters_write() -> None:
    feeds = inputs_of()
    for opset in (22, 17, 13):
        result = converts(attention(feeds), opset, given(feeds))
        assert sorted(op_types(result)) == PLAIN
        assert len(result.graph.initializer) == 1
        assert (
            sorted(op_types(converts(attention(feeds, dynamic=True), opset, given(feeds)))) == PLAIN
        )


FORMS: dict[str, tuple[dict[str, Any], dict[str, Any], list[str]]] = {
    "rank 3": ({"rank": 3}, {}, ["Reshape"] * 4 + ["Transpose"] * 3),
    "shared keys": ({"groups": 2}, {}, ["Gather", "Gather"]),
    "a past": ({"past": 2}, {}, ["Concat", "Concat"]),
    "a cap": ({}, {"softcap": 2.0}, ["Div", "Mul", "Tanh"]),
    "a scale": ({}, {"scale": 0.3}, []),
    "causal": ({}, {"is_causal": 1}, ["Add", "Where"]),
    "a mask": ({"mask": "bool"}, {}, ["Add", "Equal", "ReduceMax", "Where", "Where"]),
    "a mask of numbers": ({"mask": "float"}, {}, ["Add", "Equal", "ReduceMax", "Where"]),
    "a mask of doubles": ({"mask": "double"}, {}, ["Add", "Cast", "Equal", "ReduceMax", "Where"]),
    "precision": ({"dtype": np.float16}, {"softmax_precision": 1}, ["Cast", "Cast"]),
}


@pytest.mark.parametrize("case", FORMS)
def test_each_feature_adds_its_own_nodes(case: str) -> None:
    options, values, expected = FORMS[case]
    feeds = inputs_of(**options)
    assert added(attention(feeds, **values)) == expected
    source = attention(feeds, 3 if "past_key" in feeds else 1, **values)
    for opset in (22, 17, 13, 11, 9):
        converts(source, opset, given(feeds))


@pytest.mark.parametrize(
    ("mask", "expected"),
    [("bool", ["Add", "Where"]), ("float", ["Add"]), ("row", ["Add"]), ("double", ["Add"])],
)
def test_a_constant_mask_is_added_as_it_is(mask: str, expected: list[str]) -> None:
    """What sees nothing is known then, and costs a Where only where there is such a query."""
    feeds = inputs_of(mask=mask)
    source = attention(feeds, initializers=("mask",))
    assert added(source) == expected
    converts(source, 13, given(feeds), in_numpy=mask == "row")


def test_causal_of_lengths_known_at_run_time_only() -> None:
    feeds = inputs_of(past=2)
    source = attention(feeds, 3, dynamic=True, is_causal=1)
    below_15 = ["Concat", "Concat", "ConstantOfShape", "Gather", "Shape", "Shape", "Trilu"]
    assert added(source) == sorted(["Add", "Where", *below_15])
    assert "Trilu" not in added(source, 13)
    short = {**given(feeds), "past_key": normal(2, 4, 0, 8), "past_value": normal(2, 4, 0, 6)}
    for opset in (22, 17, 14, 13, 11, 9, 8):
        converts_or_counts(source, opset, given(feeds), short, in_numpy=opset == 8)


def test_a_causal_that_is_not_1_is_none() -> None:
    feeds = inputs_of()
    assert added(attention(feeds, is_causal=-1)) == added(attention(feeds))
    converts(attention(feeds, is_causal=-1), 17, given(feeds))


def test_scores_after_a_stage_that_does_not_exist_block() -> None:
    source = attention(inputs_of(past=2), 4, qk_matmul_output_mode=-2)
    with pytest.raises(ConversionError, match="qk_matmul_output_mode=-2 does not exist"):
        convert(source, 17)


def test_causal_of_many_queries_holds_no_large_constant() -> None:
    feeds = {name: np.zeros((1, 1, 300, 2), np.float32) for name in "qkv"} | {"mask": None}
    source = attention(feeds, is_causal=1)
    for opset in (17, 13):
        result = convert(source, opset, check=False)
        assert result.ByteSize() < 10_000
    feeds = {name: normal(1, 1, 300, 2) for name in "qkv"}
    converts(source, 13, feeds)


CASES = [
    dict(
        zip(
            ("rank", "groups", "past", "mask", "causal", "cap", "mode", "dynamic"),
            case,
            strict=True,
        )
    )
    for case in itertools.product(
        (3, 4),
        (1, 2),
        (None, 0, 2),
        ("", "bool", "float", "row"),
        (0, 1),
        (0.0, 2.0),
        (None, 0, 1, 2, 3),
        (False, True),
    )
]


@pytest.mark.parametrize("number", range(0, len(CASES), 31))
def test_features_together(number: int) -> None:
    """Of all combinations one in 31, which meets each pair of features: both executors agree."""
    case = CASES[number]
    feeds = inputs_of(case["rank"], groups=case["groups"], past=case["past"], mask=case["mask"])
    values = {"is_causal": case["causal"], "softcap": case["cap"]}
    outputs = 1 if case["past"] is None else 3
    if case["mode"] is not None:
        outputs, values = 4, {**values, "qk_matmul_output_mode": case["mode"]}
    source = attention(feeds, outputs, dynamic=case["dynamic"], **values)
    # ONNX Runtime takes no mask of one dimension, and tells the lowest float for minus infinity.
    in_numpy = [True] if case["mask"] == "row" or case["mode"] == 2 else [False, True]
    for opset, alone in itertools.product((22, 13), in_numpy):
        converts(source, opset, given(feeds), in_numpy=alone)


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
@pytest.mark.parametrize("options", [{}, {"mask": "bool"}, {"past": 2}, {"rank": 3, "groups": 2}])
def test_other_dtypes(dtype: Any, options: dict[str, Any]) -> None:
    feeds = inputs_of(dtype=dtype, **options)
    for opset in (22, 13):
        converts(attention(feeds, is_causal=1), opset, given(feeds), in_numpy=True)


@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("empty", ["batch", "queries"])
def test_nothing_of_size_0_is_lost(rank: int, empty: str) -> None:
    feeds = inputs_of(rank, mask="bool")
    source = attention(feeds, dynamic=True)
    source.graph.input[3].type.tensor_type.shape.dim[0].dim_param = "s"
    result = converts(source, 13, given(feeds))
    if empty == "batch":
        none = {name: array[:0] for name, array in given(feeds).items()} | {"mask": feeds["mask"]}
    else:
        none = {**given(feeds), "q": feeds["q"][..., :0, :], "mask": feeds["mask"][:0]}
    batch, queries = (0, 3) if empty == "batch" else (2, 0)
    # Of rank 3 the function body fails, as does what checks the conversion.
    shape = (batch, 4, queries, 6) if rank == 4 else (batch, queries, 24)
    assert run(result, none)["y0"].shape == shape


def test_nan_and_infinity_stay_where_they_are() -> None:
    feeds = inputs_of(mask="bool")
    feeds["q"][0, 0, 2, 0] = np.nan
    feeds["k"][1, 0, 0, 0] = np.inf
    converts(attention(feeds), 13, given(feeds), in_numpy=True)
    converts(attention(feeds), 13, given(feeds))


def test_where_too_little_is_known_the_function_body_stands_for_it() -> None:
    feeds = inputs_of(mask="bool", groups=2)
    source = attention(feeds, dynamic=True)
    for value, heads in zip(source.graph.input, ("h", "g", "g"), strict=False):
        value.type.tensor_type.shape.dim[1].dim_param = heads
    result = converts(source, 13, given(feeds))
    assert "Mod" in op_types(result)


def test_its_name_and_metadata_are_kept() -> None:
    feeds = inputs_of(rank=3)
    source = attention(feeds)
    entry = source.graph.node[0].metadata_props.add()
    entry.key, entry.value = "from", "layer 3"
    result = convert(source, 17)
    last = result.graph.node[-1]
    assert (last.op_type, last.name) == ("Reshape", source.graph.node[0].name)
    assert [(item.key, item.value) for item in last.metadata_props] == [("from", "layer 3")]
