"""LabelEncoder, TreeEnsemble and TreeEnsembleRegressor of ai.onnx.ml.

Sources: LabelEncoder 1, 2, 4; TreeEnsemble 5; TreeEnsembleRegressor 1, 3. Trees are followed row by
row, as their text says; leaves are added up in the order of the trees.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from onnxreduce_cli.executor.dtypes import Array
from onnxreduce_cli.executor.errors import Invalid, NotSupported
from onnxreduce_cli.executor.registry import Call, kernel

#: The lists of LabelEncoder 2, by the dtype that they hold, with the names of the defaults.
_LISTS = {
    "strings": (object, "default_string"),
    "int64s": (np.int64, "default_int64"),
    "floats": (np.float32, "default_float"),
}


@kernel("LabelEncoder", 1)
def label_encoder_1(call: Call, x: Array) -> Array:
    """Give the index of each string in the list, or the string at each index."""
    classes = list(call.attrs.get("classes_strings", ()))
    if x.dtype == object:
        indices = {name: index for index, name in enumerate(classes)}
        return _looked_up(x, indices, call.attrs["default_int64"], np.int64)
    return _looked_up(x, dict(enumerate(classes)), call.attrs["default_string"], object)


@kernel("LabelEncoder", 2, 4)
def label_encoder(call: Call, x: Array) -> Array:
    """Give the value of each element's key."""
    keys, _ = _entries(call, "keys")
    values, default = _entries(call, "values")
    if len(keys) != len(values):
        raise Invalid("it has not one value for each key")
    table = dict(zip(map(_key, keys.tolist()), values.tolist(), strict=True))
    return _looked_up(x, table, default, values.dtype)


def _entries(call: Call, side: str) -> tuple[Array, Any]:
    """Return the keys or values, and the default for what is not found."""
    tensor = call.attrs.get(f"{side}_tensor")
    if tensor is not None:
        array = np.asarray(tensor).reshape(-1)
        given = call.attrs.get("default_tensor")
        if given is not None:
            return array, np.asarray(given).reshape(-1)[0]
        names = {np.dtype(dtype): name for dtype, name in _LISTS.values()}
        backup = "_Unused" if array.dtype == object else -0.0 if array.dtype.kind == "f" else -1
        return array, call.attrs.get(names.get(array.dtype, ""), backup)
    for ending, (dtype, name) in _LISTS.items():
        if f"{side}_{ending}" in call.attrs:
            given = call.attrs.get("default_tensor")
            default = call.attrs[name] if given is None else np.asarray(given).reshape(-1)[0]
            return np.array(call.attrs[f"{side}_{ending}"], dtype), default
    raise Invalid(f"it has no {side}")


def _key(element: Any) -> Any:
    """Return what an element is looked up by: each NaN by the same."""
    return "NaN" if isinstance(element, float) and math.isnan(element) else element


def _looked_up(x: Array, table: Mapping[Any, Any], default: Any, dtype: Any) -> Array:
    found = [table.get(_key(element), default) for element in x.reshape(-1).tolist()]
    return np.array(found, dtype).reshape(x.shape)


_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "BRANCH_LEQ": lambda x, value: x <= value,
    "BRANCH_LT": lambda x, value: x < value,
    "BRANCH_GTE": lambda x, value: x >= value,
    "BRANCH_GT": lambda x, value: x > value,
    "BRANCH_EQ": lambda x, value: x == value,
    "BRANCH_NEQ": lambda x, value: x != value,
    "BRANCH_MEMBER": lambda x, members: x in members,
}
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


class _Leaf(NamedTuple):
    """The targets and weights of a leaf."""

    votes: Sequence[tuple[int, float]]


class _Branch(NamedTuple):
    """A comparison of a feature, whether NaN passes it, and the keys of the nodes that follow."""

    feature: int
    mode: str
    value: Any
    missing: bool
    true: Any
    false: Any


_Nodes = Mapping[Any, _Leaf | _Branch]


def _check_transform(call: Call) -> None:
    """Refuse transformations: ONNX Runtime leaves out targets without a vote, or a single score."""
    if call.attrs["post_transform"] not in (0, "NONE"):
        raise NotSupported("runtimes differ in what they transform by post_transform")


@kernel("TreeEnsemble", 5, check=_check_transform)
def tree_ensemble(call: Call, x: Array) -> Array:
    """Follow each tree to a leaf, and aggregate the weights of the leaves."""
    given = call.attrs
    modes = [[*_COMPARISONS][mode] for mode in np.asarray(given["nodes_modes"]).reshape(-1)]
    splits = np.asarray(given["nodes_splits"]).reshape(-1)
    weights = np.asarray(given["leaf_weights"]).reshape(-1)
    missing = given.get("nodes_missing_value_tracks_true", ()) or (0,) * len(modes)
    sets = _sets(given.get("membership_values"))
    nodes: dict[Any, _Leaf | _Branch] = {
        (1, index): _Leaf([(target, weight)])
        for index, (target, weight) in enumerate(zip(given["leaf_targetids"], weights, strict=True))
    }
    for index, mode in enumerate(modes):
        sides = [
            (int(bool(given[f"nodes_{side}leafs"][index])), given[f"nodes_{side}nodeids"][index])
            for side in ("true", "false")
        ]
        value = sets.pop(0) if mode == "BRANCH_MEMBER" else splits[index]
        feature = given["nodes_featureids"][index]
        nodes[0, index] = _Branch(feature, mode, value, bool(missing[index]), *sides)
    return _scores(
        nodes,
        [(0, root) for root in given["tree_roots"]],
        x,
        given["n_targets"],
        _AGGREGATES[given["aggregate_function"]],
    )


def _sets(values: Any) -> list[list[Any]]:
    found: list[list[Any]] = [[]]
    for number in () if values is None else np.asarray(values).reshape(-1):
        if np.isnan(number):
            found.append([])
        else:
            found[-1].append(number)
    return found


@kernel("TreeEnsembleRegressor", 1, 3, check=_check_transform)
def tree_ensemble_regressor(call: Call, x: Array) -> Array:
    """Do the same as TreeEnsemble, by nodes of one numbering, and add the base values."""
    given = call.attrs

    def numbers(name: str) -> Any:
        tensor = given.get(f"{name}_as_tensor")
        if tensor is not None:
            return np.asarray(tensor).reshape(-1)
        return np.array(given.get(name, ()), np.float32)

    keys = list(zip(given["nodes_treeids"], given["nodes_nodeids"], strict=True))
    votes: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for tree, node, target, weight in zip(
        given["target_treeids"],
        given["target_nodeids"],
        given["target_ids"],
        numbers("target_weights"),
        strict=True,
    ):
        votes.setdefault((tree, node), []).append((target, weight))
    missing = given.get("nodes_missing_value_tracks_true", ()) or (0,) * len(keys)
    values = numbers("nodes_values")
    nodes: dict[Any, _Leaf | _Branch] = {}
    for index, (key, mode) in enumerate(zip(keys, given["nodes_modes"], strict=True)):
        if mode == "LEAF":
            nodes[key] = _Leaf(votes.get(key, ()))
            continue
        if mode not in _COMPARISONS:
            raise Invalid(f"its mode {mode!r} does not exist")
        sides = [(key[0], given[f"nodes_{side}nodeids"][index]) for side in ("true", "false")]
        feature = given["nodes_featureids"][index]
        nodes[key] = _Branch(feature, mode, values[index], bool(missing[index]), *sides)
    roots = {tree: (tree, node) for tree, node in reversed(keys)}
    order = [roots[tree] for tree in dict.fromkeys(given["nodes_treeids"])]
    wide = x.astype(np.float32) if x.dtype.kind == "i" else x
    scores = _scores(nodes, order, wide, given["n_targets"], given["aggregate_function"])
    base = numbers("base_values")
    if len(base):
        scores = scores + base.astype(scores.dtype)
    return scores.astype(np.float32)


def _scores(nodes: _Nodes, roots: Sequence[Any], x: Array, targets: int, aggregate: str) -> Array:
    """Return the aggregated weights of each row and target; 0 where no leaf votes for it."""
    if x.ndim != 2:
        raise Invalid(f"its input has shape {x.shape}, where it takes [N, F]")
    if aggregate not in _AGGREGATES:
        raise Invalid(f"aggregate_function {aggregate!r} does not exist")
    result = np.zeros((len(x), targets), x.dtype)
    add: Callable[[Any, Any], Any] = {"MIN": min, "MAX": max}.get(aggregate, operator.add)
    for row, features in enumerate(x):
        found: dict[int, Any] = {}
        for root in roots:
            for target, weight in _leaf(nodes, root, features).votes:
                number = x.dtype.type(weight)
                found[target] = add(found[target], number) if target in found else number
        for target, total in found.items():
            result[row, target] = total / len(roots) if aggregate == "AVERAGE" else total
    return result


def _leaf(nodes: _Nodes, key: Any, features: Array) -> _Leaf:
    for _ in range(len(nodes) + 1):
        node = nodes.get(key)
        if node is None:
            raise Invalid("a branch leads to no node")
        if isinstance(node, _Leaf):
            return node
        if not node.feature < len(features):
            raise Invalid(f"it looks at feature {node.feature} of {len(features)}")
        x = features[node.feature]
        passes = (node.missing and np.isnan(x)) or _COMPARISONS[node.mode](x, node.value)
        key = node.true if passes else node.false
    raise Invalid("its branches go round in a circle")
