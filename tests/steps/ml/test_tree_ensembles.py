"""Tree ensembles of ai.onnx.ml, across 3 and 5."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from onnx import ModelProto, TensorProto, numpy_helper

from onnxreduce import CheckError, ConversionError, convert
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.ml.tree_ensembles import _sums_are_floats
from tests.steps.ml.models import ROWS, doubles, of_node, same_at, trees, version_of

FLOAT = TensorProto.FLOAT


def regressor(version: int = 3, x: Any = ROWS, **others: Any) -> ModelProto:
    attributes = trees(n_targets=1, **others)
    return of_node("TreeEnsembleRegressor", version, x, {"y": (FLOAT, ["N", 1])}, **attributes)


def classifier(version: int = 3, x: Any = ROWS, **others: Any) -> ModelProto:
    labels = others.get("classlabels_strings", ())
    outputs = {
        "label": (TensorProto.STRING if labels else TensorProto.INT64, ["N"]),
        "scores": (FLOAT, ["N", 2]),
    }
    return of_node("TreeEnsembleClassifier", version, x, outputs, **trees("class", **others))


@pytest.mark.parametrize("post", ["NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"])
@pytest.mark.parametrize("aggregate", ["SUM", "AVERAGE", "MIN", "MAX"])
def test_a_regressor_goes_up_and_back(aggregate: str, post: str) -> None:
    weights = [0.125, 0.25, 0.375, 0.0625, 0.5]  # PROBIT is of numbers between 0 and 1.
    made = regressor(aggregate_function=aggregate, post_transform=post, target_weights=weights)
    up = same_at(made, 5, ROWS)
    assert [node.op_type for node in up.graph.node] == ["TreeEnsemble"]
    back = same_at(up, 1, ROWS)
    assert [node.op_type for node in back.graph.node] == ["TreeEnsembleRegressor"]


@pytest.mark.parametrize("post", ["SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO"])
def test_several_scores_are_not_transformed_as_another_runtime_would(post: str) -> None:
    """ONNX Runtime has SOFTMAX and LOGISTIC of TreeEnsemble the other way round."""
    targets, outputs = [0, 1, 0, 1, 1], {"y": (FLOAT, ["N", 2])}
    attributes = trees(n_targets=2, post_transform=post, target_ids=targets)
    made = of_node("TreeEnsembleRegressor", 3, ROWS, outputs, **attributes)
    if post == "SOFTMAX_ZERO":
        same_at(same_at(made, 5, ROWS), 1, ROWS)
        return
    with pytest.raises(ConversionError, match=f"where TreeEnsemble says {post}"):
        convert(made, ml_opset=5)
    attributes = trees(n_targets=2, target_ids=targets)
    node = of_node("TreeEnsembleRegressor", 3, ROWS, outputs, **attributes)
    ensemble = same_at(node, 5, ROWS)
    (found,) = [item for item in ensemble.graph.node[0].attribute if item.name == "post_transform"]
    found.i = ["NONE", "SOFTMAX", "LOGISTIC"].index(post)
    with pytest.raises(ConversionError, match=f"where TreeEnsemble says {post}"):
        convert(ensemble, ml_opset=3)


@pytest.mark.parametrize("labels", ["strings", "int64s"])
def test_a_classifier_of_one_weight_a_leaf(labels: str) -> None:
    """Binary: the scores of the class 1 alone, from which those of the other follow."""
    classes: Any = ["no", "yes"] if labels == "strings" else [3, 7]
    made = classifier(
        class_ids=[1] * 5,
        class_weights=[0.5, 0.25, -1.0, 0.125, 0.5],
        post_transform="LOGISTIC",
        **{f"classlabels_{labels}": classes},
    )
    same_at(made, 1, ROWS)
    with pytest.raises(ConversionError, match="TreeEnsemble chooses no class"):
        convert(made, ml_opset=5)


def test_doubles_become_floats_where_no_result_changes() -> None:
    rows = ROWS.astype(np.float64)
    made = regressor(
        x=rows,
        nodes_values=None,
        nodes_values_as_tensor=doubles(trees()["nodes_values"]),
        target_weights=None,
        target_weights_as_tensor=doubles(trees()["target_weights"]),
    )
    result = same_at(made, 1, rows)
    assert not any("tensor" in item.name for item in result.graph.node[0].attribute)


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ({"nodes_values_as_tensor": doubles([0.1] * 8)}, "nodes_values_as_tensor is no float"),
        ({"target_weights_as_tensor": doubles([0.1] * 5)}, "target_weights_as_tensor is no float"),
        ({"target_weights_as_tensor": doubles([1.0, 2.0**30, 1, 1, 1])}, "added up in double"),
        (
            {"target_weights_as_tensor": doubles([1.0] * 5), "post_transform": "LOGISTIC"},
            "transformed in double",
        ),
    ],
)
def test_doubles_that_decide_block(others: dict[str, Any], reason: str) -> None:
    lists = {name.removesuffix("_as_tensor"): None for name in others if "_as_tensor" in name}
    made = regressor(x=ROWS.astype(np.float64), **lists, **others)
    with pytest.raises(ConversionError, match=reason):
        convert(made, ml_opset=1)


@pytest.mark.parametrize(
    ("numbers", "held"),
    [
        ([], True),
        ([0.0, 1.5, -2.25], True),
        ([1.0, 2.0**23], True),
        ([1.0, 2.0**24], False),
        ([2.0**-149, 1.0], False),
        ([float("inf"), 1.0], False),
    ],
)
def test_sums_that_a_float_holds(numbers: list[float], held: bool) -> None:
    assert _sums_are_floats(numbers) == held


def ensemble(**others: Any) -> ModelProto:
    """A tree with sets of members, in which a leaf is reached in two ways."""
    attributes: dict[str, Any] = {
        "n_targets": 2,
        "tree_roots": [0],
        "nodes_modes": numpy_helper.from_array(np.array([6, 0, 6], np.uint8)),
        "nodes_featureids": [0, 1, 1],
        "nodes_splits": numpy_helper.from_array(np.array([0.0, 2.5, 0.0], np.float32)),
        "nodes_truenodeids": [0, 1, 0],
        "nodes_trueleafs": [1, 1, 1],
        "nodes_falsenodeids": [1, 2, 2],
        "nodes_falseleafs": [0, 0, 1],
        "nodes_missing_value_tracks_true": [0, 0, 1],
        "leaf_targetids": [0, 1, 0],
        "leaf_weights": numpy_helper.from_array(np.array([1.5, 2.5, -3.0], np.float32)),
        "membership_values": numpy_helper.from_array(
            np.array([1.0, 2.0, 7.0, np.nan, 4.0, 5.0, np.nan], np.float32)
        ),
    }
    outputs = {"y": (FLOAT, ["N", 2])}
    return of_node("TreeEnsemble", 5, MEMBERS, outputs, **attributes | others)


MEMBERS = np.array(
    [
        *([1, 0], [2, 9], [7, 4], [3, 2.5], [3, 4], [3, 5], [3, 6], [0, 7]),
        *([np.nan, 0], [np.nan, np.nan], [3, np.nan]),
    ],
    np.float32,
)


def test_sets_of_members_are_compared_one_by_one() -> None:
    result = same_at(ensemble(), 3, MEMBERS)
    modes = next(a for a in result.graph.node[0].attribute if a.name == "nodes_modes").strings
    assert list(modes).count(b"BRANCH_EQ") == 5


def test_an_empty_batch() -> None:
    same_at(ensemble(), 1, MEMBERS[:0])
    same_at(regressor(), 5, ROWS[:0])


def test_other_dtypes_than_float_block() -> None:
    """TreeEnsembleRegressor gives float for doubles too."""
    made = ensemble()
    for value in (made.graph.input[0], made.graph.output[0]):
        value.type.tensor_type.elem_type = TensorProto.DOUBLE
    for item in made.graph.node[0].attribute:
        if item.t.data_type == FLOAT:
            item.t.CopyFrom(doubles(numpy_helper.to_array(item.t).tolist()))
    with pytest.raises(ConversionError, match="gives float alone"):
        convert(made, ml_opset=3)


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ({"base_values": [1.0]}, "base_values"),
        ({"target_nodeids": [2, 3, 4, 1, 1]}, "several votes"),
        ({"target_nodeids": [2, 3, 4, 1, 0]}, "no vote"),
        ({"nodes_falsenodeids": [4, 9, 0, 0, 0, 2, 0, 0]}, "leads to no node"),
        ({"nodes_values": [2.5]}, "different numbers of nodes, or of leaves"),
        ({"target_ids": [0]}, "different numbers of nodes, or of leaves"),
    ],
)
def test_what_an_ensemble_cannot_say_blocks(others: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConversionError, match=reason):
        convert(regressor(**others), ml_opset=5)


@pytest.mark.parametrize(
    ("others", "reason"),
    [
        ({"tree_roots": [-1]}, "its node -1 does not exist"),
        ({"nodes_truenodeids": [3, 1, 0]}, "its leaf 3 does not exist"),
        ({"nodes_featureids": [0, 1]}, "different numbers of nodes, or of leaves"),
        ({"leaf_targetids": [0]}, "different numbers of nodes, or of leaves"),
    ],
)
def test_an_ensemble_that_contradicts_itself_blocks(others: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConversionError, match=reason):
        convert(ensemble(**others), ml_opset=3)


def test_an_ensemble_without_trees_blocks() -> None:
    made = ensemble()
    (roots,) = (item for item in made.graph.node[0].attribute if item.name == "tree_roots")
    del roots.ints[:]
    with pytest.raises(ConversionError, match="it has no trees"):
        convert(made, ml_opset=3)


@pytest.mark.parametrize(
    ("runtime", "version"),
    [("onnxruntime==1.8", 2), ("onnxruntime==1.10", 2), ("onnxruntime==1.14", 3)],
)
def test_a_runtime_gets_a_version_that_it_takes(runtime: str, version: int) -> None:
    result = convert(ensemble(), runtime=runtime)
    assert version_of(result) == version
    assert result.graph.node[0].op_type == "TreeEnsembleRegressor"


@pytest.mark.parametrize(
    ("source", "advice"),
    [
        (regressor(target_weights=None, target_weights_as_tensor=doubles([0.1] * 5)), "export it"),
        (ensemble(post_transform=1), "leave --for out if that does not matter"),
    ],
)
def test_a_version_that_a_runtime_does_not_take_is_not_advised(
    source: ModelProto, advice: str
) -> None:
    with pytest.raises(ConversionError) as raised:
        convert(source, runtime="onnxruntime==1.10")
    (found,) = raised.value.blockers
    assert found.advice.startswith(advice)
    assert "--ml-opset" not in found.advice


def test_an_older_opset_brings_the_version_of_its_time() -> None:
    assert version_of(convert(regressor(), 13)) == 2
    assert version_of(convert(regressor(), 21)) == 3
    assert version_of(convert(regressor(), 9)) == 1
    assert version_of(convert(regressor(), 13, ml_opset=3)) == 3


@pytest.mark.parametrize(
    "fault",
    [
        {"nodes_missing_value_tracks_true": None},
        {"aggregate_function": "MAX"},
        {"target_weights": [1.5, 2.25, -3.0, 0.125, 0.500001]},
        {"nodes_values": [0.5, 0.25001, 0.0, 0.0, 0.0, 0.75, 0.0, 0.0]},
        {"nodes_modes": ["BRANCH_LT", "BRANCH_LT", *["LEAF"] * 3, "BRANCH_GT", *["LEAF"] * 2]},
    ],
    ids=lambda fault: next(iter(fault)),
)
def test_the_check_finds_each_fault(fault: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Inputs are drawn at thresholds and beside them, and NaN."""
    up = convert(regressor(), ml_opset=5)
    replace = Context.replace

    def faulty(self: Context, *args: Any, **values: Any) -> Any:
        return replace(self, *args, **values | _in_order(fault, values))

    monkeypatch.setattr(Context, "replace", faulty)
    with pytest.raises(CheckError):
        convert(up, ml_opset=3)


def _in_order(fault: dict[str, Any], values: dict[str, Any]) -> dict[str, Any]:
    """The fault, its lists in the order in which the step writes nodes and leaves."""
    ((name, given),) = fault.items()
    right = trees().get(name)
    if given is None or isinstance(given, str):
        return fault
    changed = [(old, new) for old, new in zip(right, given, strict=True) if old != new]
    return {name: [dict(changed).get(item, item) for item in values[name]]}


@st.composite
def forests(draw: st.DrawFn) -> dict[str, Any]:
    """Random trees, of any depth and mode."""
    found: dict[str, Any] = {name: [] for name in trees()}
    for tree in range(draw(st.integers(1, 4))):
        count = 2 * draw(st.integers(1, 7)) + 1
        parents: dict[int, list[int]] = {}
        free = [0]
        number = 0
        while number + 2 < count:
            parent = free.pop(draw(st.integers(0, len(free) - 1)))
            parents[parent] = [number + 1, number + 2]
            free += parents[parent]
            number += 2
        for node in range(count):
            inner = node in parents
            found["nodes_treeids"].append(tree)
            found["nodes_nodeids"].append(node)
            found["nodes_featureids"].append(draw(st.integers(0, 1)) if inner else 0)
            mode = draw(st.sampled_from(["LEQ", "LT", "GTE", "GT", "EQ", "NEQ"]))
            found["nodes_modes"].append(f"BRANCH_{mode}" if inner else "LEAF")
            value = draw(st.sampled_from([0.0, 0.25, 0.5, 0.75, -1.0, 1e30])) if inner else 0.0
            found["nodes_values"].append(value)
            true, false = parents.get(node, [0, 0])
            found["nodes_truenodeids"].append(true)
            found["nodes_falsenodeids"].append(false)
            found["nodes_missing_value_tracks_true"].append(draw(st.integers(0, 1)) * inner)
            if not inner:
                found["target_treeids"].append(tree)
                found["target_nodeids"].append(node)
                found["target_ids"].append(0)
                found["target_weights"].append(draw(st.integers(-64, 64)) / 8)
    return found


@pytest.mark.newest
@settings(max_examples=25, deadline=None)
@given(forests(), st.sampled_from(["SUM", "AVERAGE", "MIN", "MAX"]))
def test_random_forests_go_up_and_down(forest: dict[str, Any], aggregate: str) -> None:
    """ONNX Runtime 1.23 computes a TreeEnsemble of several modes in another way."""
    grid = [-1.0, 0.0, 0.25, 0.3, 0.5, 0.75, 1e30, np.nan]
    x = np.array([[a, b] for a in grid for b in grid], np.float32)
    made = regressor(aggregate_function=aggregate, **forest)
    same_at(same_at(made, 5, x), 1, x)


def test_a_deprecated_operator_is_the_same_below() -> None:
    given = {"n_targets": 1, "post_transform": "NONE", **trees()}
    model = of_node("TreeEnsembleRegressor", 5, ROWS, {"y": (TensorProto.FLOAT, ["N", 1])}, **given)
    result = convert(model, ml_opset=3, strict=True, check=False)
    assert version_of(result) == 3
    assert result.graph.node == model.graph.node
