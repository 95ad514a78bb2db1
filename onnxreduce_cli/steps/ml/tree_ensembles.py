"""Tree ensembles of ai.onnx.ml: 3 (doubles as tensors), 5 (TreeEnsemble in place of two others)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto, numpy_helper

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps.registry import down, up

Array = npt.NDArray[Any]

_BOTH = ("TreeEnsembleClassifier", "TreeEnsembleRegressor")

#: The attributes that version 3 gives in double as well, as ``..._as_tensor``.
_DOUBLES = ("nodes_values", "nodes_hitrates", "base_values", "target_weights", "class_weights")

#: What TreeEnsemble numbers.
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
_MEMBER = len(_MODES)
_AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")

#: Those that ONNX Runtime takes for each other in TreeEnsemble, as it numbers them otherwise.
_SWAPPED = frozenset({"SOFTMAX", "LOGISTIC"})

#: How many nodes trees may get: those that share branches, and sets of members, are written out.
_MOST_NODES = 1 << 20

_IN_FLOAT = "export it in float"


@down(
    _BOTH,
    3,
    "doubles become floats",
    blocks="that may change a result: a double is no float, their sum may be none, or a score is "
    "transformed",
)
def doubles_as_floats(context: Context) -> None:
    """``nodes_values_as_tensor=[0.5]`` becomes ``nodes_values=[0.5]``."""
    names = [name for name in _DOUBLES if context.attribute(f"{name}_as_tensor") is not None]
    if not names:
        return
    floats: dict[str, Any] = {}
    for name in names:
        array = numpy_helper.to_array(context.value(f"{name}_as_tensor")).ravel()
        narrow = array.astype(np.float32)
        # Hit rates change no result.
        if name != "nodes_hitrates" and not np.array_equal(narrow, array, equal_nan=True):
            raise Blocked(f"a double of its {name}_as_tensor is no float", _IN_FLOAT, ml_opset=3)
        floats[name] = narrow.tolist()
    weights = [name for name in names if name not in ("nodes_values", "nodes_hitrates")]
    if weights:
        if context.value("post_transform", "NONE") != "NONE":
            raise Blocked("its scores are transformed in double", _IN_FLOAT, ml_opset=3)
        everything = [number for name in weights for number in floats[name]]
        if context.value("aggregate_function", "SUM") in ("SUM", "AVERAGE") and not (
            _sums_are_floats(everything)
        ):
            raise Blocked(
                "its weights are added up in double, which no float holds", _IN_FLOAT, ml_opset=3
            )
    context.replace(drop=[f"{name}_as_tensor" for name in names], **floats)


def _sums_are_floats(numbers: Sequence[float]) -> bool:
    """Return whether a float holds each sum of some of these numbers."""
    found = [number for number in numbers if number]
    if not found:
        return True
    if not all(map(math.isfinite, found)):
        return False
    # A common unit of them all: the least power of two that one of them is an odd multiple of.
    unit = min(math.frexp(number)[1] - _significant_bits(number) for number in found)
    return math.fsum(map(abs, found)) <= math.ldexp(1.0, unit + 24)


def _significant_bits(number: float) -> int:
    numerator, _ = number.as_integer_ratio()
    numerator = abs(numerator)
    return numerator.bit_length() - ((numerator & -numerator).bit_length() - 1)


@dataclass(slots=True)
class _Nodes:
    """The trees of a TreeEnsembleRegressor, by its attributes.

    Attributes:
        trees: the number of the tree of each node.
        ids: the number of each node in its tree.
        features: the feature that it looks at.
        modes: the comparison.
        values: the threshold.
        branches: the two nodes in its tree that follow, where true and where false.
        missing: 1 where NaN counts as true.
        votes: the tree, node, target and weight of each leaf.
    """

    trees: list[int] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    features: list[int] = field(default_factory=list)
    modes: list[str] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    branches: list[list[int]] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)
    votes: list[tuple[int, int, int, float]] = field(default_factory=list)

    def add(self, tree: int, number: int, feature: int, mode: str, value: float, nan: int) -> None:
        """Add a node, whose branches are not known yet."""
        self.trees.append(tree)
        self.ids.append(number)
        self.features.append(feature)
        self.modes.append(mode)
        self.values.append(value)
        self.branches.append([0, 0])
        self.missing.append(nan)
        if len(self.ids) > _MOST_NODES:
            raise Blocked(f"its trees would have more than {_MOST_NODES:,} nodes", ml_opset=5)

    def attributes(self) -> dict[str, Any]:
        """Return the attributes."""
        votes = list(zip(*self.votes, strict=True))
        return {
            "nodes_treeids": self.trees,
            "nodes_nodeids": self.ids,
            "nodes_featureids": self.features,
            "nodes_modes": self.modes,
            "nodes_values": self.values,
            "nodes_truenodeids": [pair[0] for pair in self.branches],
            "nodes_falsenodeids": [pair[1] for pair in self.branches],
            "nodes_missing_value_tracks_true": self.missing if any(self.missing) else None,
            "target_treeids": votes[0],
            "target_nodeids": votes[1],
            "target_ids": votes[2],
            "target_weights": votes[3],
        }


@down(
    "TreeEnsemble",
    5,
    "becomes TreeEnsembleRegressor, sets of members comparisons with each",
    blocks="its input is double or float16, or several scores are transformed by SOFTMAX or "
    "LOGISTIC",
)
def as_regressor(context: Context) -> None:
    """Each interior node and each leaf becomes a node of a tree with a number of its own."""
    if context.elem_type(context.node.input[0]) != TensorProto.FLOAT:
        raise Blocked(
            "its input is not known to be float, and TreeEnsembleRegressor gives float alone",
            ml_opset=5,
            dtype_of=context.node.input[0],
        )
    post_transform = _word(context, "post_transform", 0, _TRANSFORMS)
    _check_transform(context, post_transform, ml_opset=5)
    made, ensemble, roots = _Nodes(), _Ensemble(context), context.value("tree_roots")
    if not roots:
        raise Blocked("it has no trees", "mend the model: give it tree_roots")
    for tree, root in enumerate(roots):
        _write_tree(ensemble, made, tree, root)
    context.replace(
        "TreeEnsembleRegressor",
        keep=("n_targets",),
        aggregate_function=_word(context, "aggregate_function", 1, _AGGREGATES),
        post_transform=post_transform,
        **made.attributes(),
    )


def _word(context: Context, name: str, default: int, words: Sequence[str]) -> str:
    number: int = context.value(name, default)
    if not 0 <= number < len(words):
        raise Blocked(
            f"its {name}={number} does not exist",
            f"mend the model: set it to a number from 0 to {len(words) - 1}",
        )
    return words[number]


def _check_transform(context: Context, word: str, *, ml_opset: int) -> None:
    # It transforms a single score by neither of them, in any version.
    if word in _SWAPPED and context.value("n_targets", 1) != 1:
        (other,) = _SWAPPED - {word}
        raise Blocked(
            f"ONNX Runtime computes {other} where TreeEnsemble says {word}, against its definition",
            ml_opset=ml_opset,
        )


class _Ensemble:
    """The attributes of a TreeEnsemble."""

    def __init__(self, context: Context) -> None:
        """Read them."""
        value = context.value
        self.modes = numpy_helper.to_array(value("nodes_modes")).ravel().tolist()
        self.splits = numpy_helper.to_array(value("nodes_splits")).ravel().tolist()
        self.weights = numpy_helper.to_array(value("leaf_weights")).ravel().tolist()
        self.targets = value("leaf_targetids")
        self.features = value("nodes_featureids")
        self.missing = value("nodes_missing_value_tracks_true") or (0,) * len(self.modes)
        self.branches = (value("nodes_truenodeids"), value("nodes_falsenodeids"))
        self.leaves = (value("nodes_trueleafs"), value("nodes_falseleafs"))
        sets = iter(_sets(value("membership_values")))
        self.members = {
            index: next(sets, []) for index, mode in enumerate(self.modes) if mode == _MEMBER
        }
        _refuse_unequal(
            (self.modes, self.splits, self.features, self.missing, *self.branches, *self.leaves),
            (self.targets, self.weights),
        )

    def check(self, index: int, *, leaf: bool) -> None:
        """Refuse the number of a node or leaf that there is not.

        Raises:
            Blocked: there is no such node or leaf.
        """
        count = len(self.weights if leaf else self.modes)
        if not 0 <= index < count:
            raise Blocked(
                f"its {'leaf' if leaf else 'node'} {index} does not exist",
                f"mend the model: set it to a number from 0 to {count - 1}",
            )


def _refuse_unequal(*groups: Sequence[Sequence[object]]) -> None:
    """Refuse attributes of nodes, or of leaves, that have different lengths."""
    if any(len({*map(len, group)}) > 1 for group in groups):
        raise Blocked(
            "its attributes have different numbers of nodes, or of leaves",
            "mend the model: give each node and each leaf all of them",
        )


def _sets(tensor: TensorProto | None) -> Iterator[list[float]]:
    """Yield the sets of members, which NaN separates."""
    found: list[float] = []
    for number in () if tensor is None else numpy_helper.to_array(tensor).ravel().tolist():
        if math.isnan(number):
            yield found
            found = []
        else:
            found.append(number)
    yield found


def _write_tree(ensemble: _Ensemble, made: _Nodes, tree: int, root: int) -> None:
    count = 0
    waiting: list[tuple[int, bool, Callable[[int], None]]] = [(root, False, lambda _: None)]
    while waiting:
        index, leaf, link = waiting.pop()
        link(count)
        ensemble.check(index, leaf=leaf)
        if leaf:
            made.add(tree, count, 0, "LEAF", 0.0, 0)
            made.votes.append((tree, count, ensemble.targets[index], ensemble.weights[index]))
            count += 1
            continue
        mode = ensemble.modes[index]
        if not 0 <= mode <= _MEMBER:
            raise Blocked(
                f"its mode {mode} does not exist",
                f"mend the model: set it to a number from 0 to {_MEMBER}",
            )
        feature, nan = ensemble.features[index], ensemble.missing[index]
        values, word = [ensemble.splits[index]], _MODES[mode] if mode < _MEMBER else "BRANCH_EQ"
        if mode == _MEMBER:
            values = ensemble.members[index]
            if not values:
                raise Blocked("a set of its members is empty", ml_opset=5)
        for position, value in enumerate(values):
            made.add(tree, count, feature, word, value, nan)
            own = made.branches[-1]
            waiting.append(
                (ensemble.branches[0][index], bool(ensemble.leaves[0][index]), _into(own, 0))
            )
            count += 1
            if position + 1 < len(values):
                own[1] = count  # Not this member: compared with the next.
        waiting.append(
            (ensemble.branches[1][index], bool(ensemble.leaves[1][index]), _into(own, 1))
        )


def _into(branches: list[int], side: int) -> Callable[[int], None]:
    def link(number: int) -> None:
        branches[side] = number

    return link


@down(_BOTH, 5, "stays as it is")
def still_there(_: Context) -> None:
    """A model of version 5 that has it all the same means what it does at version 3."""


@up(
    "TreeEnsembleClassifier",
    5,
    "blocks",
    blocks="it is there: TreeEnsemble chooses no class",
)
def no_classifier(context: Context) -> None:
    """TreeEnsemble gives scores; which class they mean depends on how many of them there are."""
    raise Blocked("it is deprecated there, and TreeEnsemble chooses no class", ml_opset=3)


@up(
    "TreeEnsembleRegressor",
    5,
    "becomes TreeEnsemble",
    blocks="its input is not float, it has base values or doubles, a leaf has not one vote, or "
    "several scores are transformed by SOFTMAX or LOGISTIC",
)
def as_ensemble(context: Context) -> None:
    """Interior nodes and leaves, which shared one numbering, get one each."""
    if context.elem_type(context.node.input[0]) != TensorProto.FLOAT:
        raise Blocked(
            "its input is not known to be float, and TreeEnsemble gives what it takes",
            ml_opset=3,
            dtype_of=context.node.input[0],
        )
    value = context.value
    doubles = [
        f"{n}_as_tensor" for n in _DOUBLES if context.attribute(f"{n}_as_tensor") is not None
    ]
    if doubles or any(value("base_values", ())):
        what = doubles[0] if doubles else "base_values"
        raise Blocked(f"TreeEnsemble has no place for its {what}", ml_opset=3)
    post_transform = context.choice("post_transform", "NONE", _TRANSFORMS)
    _check_transform(context, post_transform, ml_opset=3)
    trees, numbers = value("nodes_treeids", ()), value("nodes_nodeids", ())
    modes, features = value("nodes_modes", ()), value("nodes_featureids", ())
    thresholds, missing = value("nodes_values", ()), value("nodes_missing_value_tracks_true", ())
    branches = value("nodes_truenodeids", ()), value("nodes_falsenodeids", ())
    voters = [value(f"target_{name}", ()) for name in ("treeids", "nodeids", "ids", "weights")]
    of_nodes = trees, numbers, modes, features, thresholds, missing or modes, *branches
    _refuse_unequal(of_nodes, voters)
    keys = list(zip(trees, numbers, strict=True))
    votes: dict[tuple[int, int], tuple[int, float]] = {}
    for tree, number, target, weight in zip(*voters, strict=True):
        if (tree, number) in votes:
            raise Blocked("a leaf has several votes, which TreeEnsemble cannot say", ml_opset=3)
        votes[tree, number] = target, weight
    inner = [index for index, mode in enumerate(modes) if mode != "LEAF"]
    leaves = [index for index, mode in enumerate(modes) if mode == "LEAF"]
    if any(keys[index] not in votes for index in leaves) or len(votes) != len(leaves):
        raise Blocked("a leaf has no vote, or another node has one", ml_opset=3)
    place = {keys[index]: at for items in (inner, leaves) for at, index in enumerate(items)}
    is_leaf = {keys[index] for index in leaves}
    reached: set[tuple[int, int]] = set()
    sides: list[tuple[list[int], list[int]]] = []
    for numbered in branches:
        following = [(trees[index], numbered[index]) for index in inner]
        if not place.keys() >= set(following):
            raise Blocked(
                "a branch leads to no node",
                "mend the model: let each branch name a node of its own tree",
            )
        reached.update(following)
        sides.append(([place[key] for key in following], [int(k in is_leaf) for k in following]))
    roots = [key for key in keys if key not in reached]
    if any(key in is_leaf for key in roots) or len(roots) != len(set(trees)):
        raise Blocked("a tree has no branch, or not one root", ml_opset=3)
    (true_nodes, true_leaves), (false_nodes, false_leaves) = sides
    context.replace(
        "TreeEnsemble",
        keep=("n_targets",),
        aggregate_function=_AGGREGATES.index(
            context.choice("aggregate_function", "SUM", _AGGREGATES)
        ),
        post_transform=_TRANSFORMS.index(post_transform),
        tree_roots=[place[key] for key in roots],
        nodes_featureids=[features[index] for index in inner],
        nodes_modes=_tensor([_MODES.index(modes[index]) for index in inner], np.uint8),
        nodes_splits=_tensor([thresholds[index] for index in inner], np.float32),
        nodes_truenodeids=true_nodes,
        nodes_trueleafs=true_leaves,
        nodes_falsenodeids=false_nodes,
        nodes_falseleafs=false_leaves,
        nodes_missing_value_tracks_true=[missing[i] for i in inner] if any(missing) else None,
        leaf_targetids=[votes[keys[index]][0] for index in leaves],
        leaf_weights=_tensor([votes[keys[index]][1] for index in leaves], np.float32),
    )


def _tensor(numbers: Sequence[float], dtype: Any) -> TensorProto:
    return numpy_helper.from_array(np.array(numbers, dtype))
