"""The inputs that a site is run on: shapes and values that are valid for its node."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import NodeProto, numpy_helper

from onnxreduce_cli.engine.pairs.pair import Pair
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.domains import LEARNING
from onnxreduce_cli.model.graph.values import Dims, is_float
from onnxreduce_cli.verification.errors import RunFailedError
from onnxreduce_cli.verification.inputs.decisions import LEARNED, elements
from onnxreduce_cli.verification.inputs.drawing import Drawer, ShapeChoice
from onnxreduce_cli.verification.inputs.profiles import (
    LARGE,
    MULTIPLIED,
    NEAR_CONSTANTS,
    ORDERED,
    ORDINARY,
    SPECIAL,
    UNUSUAL,
    ZEROS,
)
from onnxreduce_cli.verification.inputs.random_arrays import RandomArrays
from onnxreduce_cli.verification.inputs.unfixed_dims import RANKS
from onnxreduce_cli.verification.running.runtime import NumpyRunner, Runner
from onnxreduce_cli.verification.running.single_node import single_node_model
from onnxreduce_cli.verification.sites.ties import rounds_products

#: It is not specified whether elements of weight zero count: NaN and infinities prove nothing.
_WEIGHING = frozenset({"DFT", "DeformConv", "GridSample", "Resize", "RoiAlign", "STFT", "Upsample"})
#: Operators whose result for an empty input is not specified.
_OF_SOMETHING = _WEIGHING | {"Col2Im", "GroupNormalization"}
#: Operators that sort: no definition says how NaN compares.
_ORDERING = frozenset({"NonMaxSuppression", "TopK", "Unique"})
#: Operators that multiply more than two numbers, in an order that no definition fixes.
_MULTIPLYING = frozenset({"CumProd", "Det", "Einsum", "QLinearConv", "QLinearMatMul", "ReduceProd"})
#: Operators with an input for the region that they read.
_REGIONS = frozenset({"Resize", "RoiAlign"})
#: Operators with a list input of this many numbers for each dimension of the first input.
_OF_EACH_DIMENSION = {"Pad": 2, "Resize": 1, "Upsample": 1}
#: Operators whose result for a window without elements is not defined.
_POOLS = frozenset({"AveragePool", "MaxPool"})
#: Reductions that give minus infinity or NaN for an empty set, which integers do not have.
_NO_INTEGER = frozenset({"ReduceLogSum", "ReduceLogSumExp", "ReduceMean"})

#: Operators whose result for integers is not defined in general: none holds it.
_OF_POSITIVE_INTEGERS = frozenset({"Erf", "ReduceLogSum"})

#: Halvings after which any number is 0.
_HALVINGS = 64

#: The number of choices of unfixed dimensions that are tried for one run.
_TRIES = 40

#: How many rows nodes of ai.onnx.ml get where that is free, and the share of elements that lie on
#: their keys and thresholds.
_ROWS = 64
_ON_VALUES = 0.8

#: The least and the greatest scale that is drawn.
_SCALES = (2.0**-8, 8.0)

#: The runs: the number of the shapes, where dimensions are not fixed, and the value profile.
_RUNS = ((0, ORDINARY), (1, NEAR_CONSTANTS), (2, LARGE), (0, SPECIAL), (1, ZEROS), (2, SPECIAL))


def special_profile(pair: Pair) -> str:
    """Return the profile of special values for which a site's results are defined."""
    op_types = {node.op_type for node in pair.reference.graph.node}
    if pair.is_of_finite or op_types & _WEIGHING:
        return ORDINARY
    if pair.moved:
        return SPECIAL
    if op_types & _MULTIPLYING:
        return MULTIPLIED
    return ORDERED if op_types & _ORDERING else UNUSUAL


def fit_shapes(pair: Pair, feeds: dict[str, Any], rng: RandomArrays) -> None:
    """Set the known elements of drawn lists of sizes, in place.

    The shape that a Reshape reads fits its data, and the output shape that the model states.
    """
    reshapes = [node for node in pair.reference.graph.node if node.op_type == "Reshape"]
    for node in reshapes:
        _fit_reshape(node, pair.promised.get(node.output[0], ()), feeds, rng)
    for name, known in pair.sizes.items() if not reshapes else ():
        for index, size in enumerate(known):
            if isinstance(size, tuple):
                source, axis = size
                feeds[name][index] = feeds[source].shape[axis]
            elif size is not None:
                feeds[name][index] = size


def _fit_reshape(node: NodeProto, promised: Dims, feeds: dict[str, Any], rng: RandomArrays) -> None:
    """Let the shape that a Reshape reads hold as many elements as its data, one of them -1 or not.

    Args:
        node: the Reshape.
        promised: what is known of its output's dimensions; empty if nothing is.
        feeds: the inputs by name; the shape among them is replaced where one is found.
        rng: what decides where there is a choice.
    """
    name = node.input[1] if len(node.input) > 1 else ""
    data = feeds.get(node.input[0])
    if name not in feeds or not isinstance(data, np.ndarray):
        return
    length = feeds[name].size
    fixed = [dim if isinstance(dim, int) else 0 for dim in promised] or [0] * length
    free = [index for index, dim in enumerate(fixed) if not dim]
    if not length or not data.size or len(fixed) != length or not free:
        return
    rest, uneven = divmod(data.size, math.prod(dim for dim in fixed if dim))
    if uneven:
        return
    sizes = iter(data.shape)
    for index in free[:-1]:
        size = next(sizes, 1)
        fixed[index] = size if rest % size == 0 else 1
        rest //= fixed[index]
    fixed[free[-1]] = rest
    if rng.integers(0, 2):
        fixed[int(rng.choice(free))] = -1
    feeds[name] = np.array(fixed, np.int64)


def fit_regions(pair: Pair, feeds: dict[str, Any], rng: RandomArrays) -> None:
    """Let the regions that a Resize or a RoiAlign takes begin before they end, within its input."""
    for node in pair.reference.graph.node:
        name = node.input[1] if node.op_type in _REGIONS and len(node.input) > 2 else ""
        if name not in feeds or not feeds[name].size:
            continue
        region = feeds[name]
        ends = np.sort(rng.random((2, region.size // 2)), axis=0)
        if node.op_type == "Resize":
            feeds[name] = ends.reshape(-1).astype(region.dtype)
            continue
        image = feeds.get(node.input[0])
        if region.shape[-1] == 4 and isinstance(image, np.ndarray) and image.ndim == 4:
            scale = attributes.find(node, "spatial_scale")
            height, width = image.shape[2:]
            size = np.array([width, height]) / (1.0 if scale is None else scale.f)
            corners = ends.reshape(2, -1, 2) * size
            feeds[name] = np.concatenate([*corners], axis=1).astype(region.dtype)


def fit_learned(pair: Pair, feeds: dict[str, Any], rng: RandomArrays) -> None:
    """Let inputs of ai.onnx.ml lie on keys and thresholds, and beside them, in many rows."""
    declared = {item.name: item.type.tensor_type.shape.dim for item in pair.reference.graph.input}
    for node in pair.reference.graph.node:
        name = node.input[0] if node.domain == LEARNING else ""
        array = feeds.get(name)
        if not isinstance(array, np.ndarray) or not array.size:
            continue
        values = _learned_values(node, array)
        if not len(values):
            continue
        features = attributes.find(node, "nodes_featureids")
        least = (_ROWS, 1 if features is None else max(features.ints, default=0) + 1)
        shape = [
            size if dim.HasField("dim_value") else max(size, few)
            for size, dim, few in zip(array.shape, declared[name], least, strict=False)
        ]
        shape += array.shape[len(shape) :]
        drawn = rng.choice(array.reshape(-1), (*shape,))
        feeds[name] = np.where(
            rng.random((*shape,)) < _ON_VALUES, rng.choice(values, (*shape,)), drawn
        )


def _learned_values(node: NodeProto, array: Any) -> Any:
    """Return the keys or thresholds of a node, as elements of its input; none where it has none."""
    found: list[Any] = []
    for item in node.attribute:
        texts = item.name in ("classes_strings", "keys_strings")
        if texts and array.dtype == object:
            found += [text.decode(errors="replace") for text in item.strings]
        elif texts:
            found += range(-1, len(item.strings) + 1)
        elif item.name in LEARNED.get(node.op_type, ()):
            found += elements(item)
    if array.dtype.kind not in "fi":
        return np.array(found, object) if array.dtype == object else ()
    values = np.array(found, np.float64)
    if array.dtype.kind == "i":
        values = np.floor(values[np.isfinite(values)])
        return np.concatenate([values - 1, values, values + 1]).astype(array.dtype)
    values = values.astype(array.dtype)
    beside = [np.nextafter(values, array.dtype.type(end)) for end in (-np.inf, np.inf)]
    return np.concatenate([values, *beside, np.full(1 + len(values) // 4, np.nan, array.dtype)])


def fit_scales(pair: Pair, feeds: dict[str, Any]) -> None:
    """Make drawn scales of quantized tensors positive and finite, in place.

    Calibration gives no others, and definitions do not say in which order scales are multiplied.
    """
    if not rounds_products(pair):
        return
    for name, array in feeds.items():
        if is_float(array.dtype):
            finite = np.where(np.isfinite(array), np.abs(array), np.ones_like(array))
            feeds[name] = np.clip(finite.astype(np.float64), *_SCALES).astype(array.dtype)


def fit_signs(pair: Pair, feeds: dict[str, Any]) -> None:
    """Turn the negative elements of inputs that have none, in place."""
    for name in pair.non_negative:
        array = feeds[name]
        # The lowest integer has no absolute value.
        turned = ~array if array.dtype.kind == "i" else np.abs(array)
        feeds[name] = np.where(array < 0, turned, array)


def fit_integers(pair: Pair, feeds: dict[str, Any]) -> None:
    """Change drawn integers, in place, until integers hold what becomes of them.

    Bases and exponents of a Pow are halved; a ReduceLogSum gets positive numbers.
    """
    for node in pair.reference.graph.node:
        drawn = [name for name in dict.fromkeys(node.input) if name in feeds]
        for _ in range(_HALVINGS if node.op_type == "Pow" and drawn else 0):
            if _hold_powers(node, pair, feeds):
                break
            for name in drawn:
                feeds[name] = (feeds[name].astype(np.float64) / 2).astype(feeds[name].dtype)
        if node.op_type == "ReduceLogSum" and drawn and feeds[drawn[0]].dtype.kind in "iu":
            array = feeds[drawn[0]]
            feeds[drawn[0]] = np.where(array < 1, np.where(array < 0, ~array, 0) | 1, array)


def _value(name: str, pair: Pair, feeds: dict[str, Any]) -> Any:
    """Return an input or a constant of a pair; None if it is neither."""
    if name in feeds:
        return feeds[name]
    tensors = (item for item in pair.reference.graph.initializer if item.name == name)
    return next(map(numpy_helper.to_array, tensors), None)


def _hold_powers(node: NodeProto, pair: Pair, feeds: dict[str, Any]) -> bool:
    """Return whether integers hold the powers of a Pow, which may be of floats."""
    base, exponent = (_value(name, pair, feeds) for name in node.input[:2])
    if base is None or exponent is None or base.dtype.kind not in "iu":
        return True
    limits = np.iinfo(base.dtype)
    try:
        with np.errstate(all="ignore"):
            powers = np.power(base.astype(np.float64), exponent.astype(np.float64))
    except ValueError:
        return True
    return bool(np.all((powers >= limits.min) & (powers <= limits.max)))


def is_defined(pair: Pair, feeds: dict[str, Any]) -> bool:
    """Return whether the node's result on `feeds` is defined.

    It is not for some reductions of an empty tensor of integers, for interpolation in an empty
    image, for empty groups, whose number the function body of GroupNormalization cannot compute,
    and for an Einsum whose sizes differ for one letter, even if kernels repeat a size of 1; nor for
    what integers cannot hold: some powers, the logarithm of 0, and Erf, which is next to 1.
    """
    for node in pair.reference.graph.node:
        array = feeds.get(node.input[0]) if node.op_type in _NO_INTEGER else None
        if isinstance(array, np.ndarray) and array.dtype.kind in "iu" and not array.size:
            return False
        data = feeds.get(node.input[0]) if node.op_type in _OF_SOMETHING else None
        if isinstance(data, np.ndarray) and not data.size:
            return False
        scores = feeds.get(node.input[1]) if node.op_type == "NonMaxSuppression" else None
        if isinstance(scores, np.ndarray) and np.unique(scores).size < scores.size:
            return False  # The order of two boxes of equal score is not specified.
        if node.op_type == "Pow" and not _hold_powers(node, pair, feeds):
            return False
        if node.op_type in _OF_POSITIVE_INTEGERS:
            array = _value(node.input[0], pair, feeds)
            integers = isinstance(array, np.ndarray) and array.dtype.kind in "iu"
            if integers and (node.op_type == "Erf" or bool(np.any(array < 1))):
                return False
        if node.op_type == "Einsum" and not _sizes_agree(node, _shapes(pair, feeds)):
            return False
    return True


def windows_hold_elements(pair: Pair, feeds: dict[str, Any], runner: Runner | None) -> bool:
    """Return whether each window of a pool has an element of its input, and there are windows.

    Args:
        pair: the site.
        feeds: its inputs.
        runner: the original node in the NumPy executor, if it runs there.
    """
    pools = [node for node in pair.reference.graph.node if node.op_type in _POOLS]
    if runner is None or not pools:
        return True
    # Run for it, as it may be an input, a constant or computed.
    data = runner.run(feeds, list(dict.fromkeys(node.input[0] for node in pools)))
    return all(_pools_ones(pair, node, data[node.input[0]]) for node in pools)


def _pools_ones(pair: Pair, pool: NodeProto, data: Any) -> bool:
    """Return whether a pool gives positive numbers if all elements of `data` are ones.

    The largest and the average of ones are above 0 where a window holds an element.
    """
    if not data.size:
        return True
    ones = {pool.input[0]: np.ones_like(data)}
    model = single_node_model(pool, ones, pair.reference)
    try:
        pooled = NumpyRunner(model).run(ones, [pool.output[0]])
    except RunFailedError:
        return False
    found = pooled[pool.output[0]]
    return bool(found.size) and bool(np.all(found > 0))


def _shapes(pair: Pair, feeds: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the inputs and constants, by name."""
    found = {tensor.name: tuple(tensor.dims) for tensor in pair.reference.graph.initializer}
    return found | {name: item.shape for name, item in feeds.items()}


def _sizes_agree(node: NodeProto, shapes: dict[str, tuple[int, ...]]) -> bool:
    """Return whether each letter of an Einsum's equation has one size."""
    equation = next(item.s.decode() for item in node.attribute if item.name == "equation")
    terms = equation.replace(" ", "").split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for name, term in zip(node.input, terms, strict=False):
        shape = shapes[name]
        before, _, behind = term.partition("...")
        pairs = [*zip(before, shape, strict=False)]
        pairs += zip(reversed(behind), reversed(shape), strict=False)
        if any(sizes.setdefault(letter, size) != size for letter, size in pairs):
            return False
    return True


def required_shapes(pair: Pair) -> list[ShapeChoice]:
    """Return shapes to try for tensors whose rank is not known, as the node requires them.

    They are the shape that its output is known to have, the sum of a Split's parts, 1 for an axis
    that a Squeeze drops, and the lengths of lists with numbers for each dimension.
    """
    shapes = [
        tuple(dim if isinstance(dim, int) else 2 for dim in dims) for dims in pair.promised.values()
    ]
    shapes += [
        tuple(1 if axis in (index, index - rank) else 2 for index in range(rank))
        for axis in _squeezed(pair)
        for rank in range(1, 5)
    ]
    shapes += _one_of_each_dimension(pair)
    sums = {
        sum(attribute.ints)
        for node in pair.reference.graph.node
        for attribute in node.attribute
        if node.op_type == "Split" and attribute.name == "split"
    }
    shapes += [(size,) * rank for size in sorted(sums) for rank in range(1, 5) if size <= 64]
    return [ShapeChoice({}, 2, len(shape), shape=shape) for shape in shapes]


def _one_of_each_dimension(pair: Pair) -> list[tuple[int, ...]]:
    """Return the shapes of lists that have numbers for each dimension of a node's first input."""
    ranks = {
        value.name: len(value.type.tensor_type.shape.dim)
        for value in pair.reference.graph.input
        if value.type.tensor_type.HasField("shape")
    }
    return [
        (_OF_EACH_DIMENSION[node.op_type] * ranks[node.input[0]],)
        for node in pair.reference.graph.node
        if node.op_type in _OF_EACH_DIMENSION and node.input[0] in ranks
    ]


def _squeezed(pair: Pair) -> set[int]:
    """Return the axes of the Squeeze nodes that drop one axis."""
    constants = {tensor.name: tensor for tensor in pair.reference.graph.initializer}
    found: set[int] = set()
    for node in pair.reference.graph.node:
        if node.op_type != "Squeeze":
            continue
        attribute = attributes.find(node, "axes")
        axes = [*attribute.ints] if attribute is not None else []
        for name in node.input[1:]:
            if name in constants:
                axes += numpy_helper.to_array(constants[name]).reshape(-1).tolist()
        found.update(axes if len(axes) == 1 else [])
    return found


def input_plan(
    drawer: Drawer, rng: RandomArrays, special: str, required: list[ShapeChoice]
) -> Iterator[tuple[list[ShapeChoice], str]]:
    """Yield for each run the choices of shapes to try in order, and the value profile."""
    if drawer.open_ranks:
        for rank in RANKS:
            rising = ShapeChoice({}, 2, rank, rising=True)
            same = rising._replace(rising=False)
            for values in (ORDINARY, special):
                usual = [rising, same, rising._replace(sizes=drawer.hints(rank))]
                yield [*usual, *(item for item in required if item.rank == rank)], values
        usual = [item for _, item in zip(range(_TRIES), drawer.choices(0, rng), strict=False)]
        yield usual, ORDINARY
        yield [ShapeChoice({}, 0, 2), ShapeChoice({}, 0, 1)], ORDINARY
        return
    shapes = []
    for trial in range(3):
        tries = [item for _, item in zip(range(_TRIES), drawer.choices(trial, rng), strict=False)]
        shapes.append(tries)
    for shape, values in _RUNS:
        yield shapes[shape], special if values == SPECIAL else values
    # Empty tensors, along each unfixed dimension.
    for key in drawer.symbols[:4]:
        yield [shapes[0][0]._replace(sizes={**shapes[0][0].sizes, key: 0})], ORDINARY
