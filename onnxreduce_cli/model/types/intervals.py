"""The intervals that the elements of integer values lie in, as far as a model proves them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from onnx import NodeProto, TensorProto, helper, numpy_helper

from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.domains import LEARNING, is_default
from onnxreduce_cli.model.graph.scope import Scope
from onnxreduce_cli.model.graph.values import Dims
from onnxreduce_cli.model.types.facts import Facts

#: The dtypes whose own limits bound a value, whatever made it.
_BOUNDED = (
    TensorProto.BOOL,
    TensorProto.INT8,
    TensorProto.UINT8,
    TensorProto.INT16,
    TensorProto.UINT16,
    TensorProto.INT32,
    TensorProto.UINT32,
)


class Interval(NamedTuple):
    """The integers from `low` to `high`, both included."""

    low: int
    high: int

    def within(self, other: Interval) -> bool:
        """Return whether all integers of this interval lie in the other."""
        return other.low <= self.low and self.high <= other.high


#: What an int64 holds.
INT64 = Interval(-(2**63), 2**63 - 1)

#: What an int32 holds.
INT32 = Interval(-(2**31), 2**31 - 1)


class _Question(NamedTuple):
    """A node, and what is known of its inputs.

    Attributes:
        node: the node.
        opset: the opset of its scope.
        place: the number of the output that is asked for.
        given: the interval of each input; None where it is not known, or the input left out.
        dims: the dimensions of each input; None where its rank is not known.
        constants: a function that returns the elements of a constant input, by its number.
        named: the intervals of sizes that are not known, by the names of the dimensions.
    """

    node: NodeProto
    opset: int
    place: int
    given: tuple[Interval | None, ...]
    dims: tuple[Dims | None, ...]
    constants: Callable[[int], list[int] | None]
    named: Mapping[str, Interval]

    def attribute(self, name: str, default: Any) -> Any:
        found = attributes.find(self.node, name)
        return default if found is None else helper.get_attribute_value(found)

    def sizes(self, index: int) -> list[Interval | None] | None:
        """Return what is known of the sizes of an input; None if its rank is not."""
        dims = self.dims[index]
        if dims is None:
            return None
        return [
            Interval(dim, dim) if isinstance(dim, int) else self.named.get(dim or "")
            for dim in dims
        ]

    def size(self, axis: int, index: int = 0) -> Interval | None:
        """Return what is known of the size of an input along an axis."""
        sizes = self.sizes(index)
        return sizes[axis] if sizes and -len(sizes) <= axis < len(sizes) else None

    def all_sizes(self, index: int) -> list[Interval] | None:
        """Return what is known of the sizes of an input; None if nothing is of one of them."""
        sizes = self.sizes(index)
        known = [size for size in sizes or () if size is not None]
        return known if sizes is not None and len(known) == len(sizes) else None


_Rule = Callable[[_Question], "Interval | None"]


class Intervals:
    """The intervals of integer values of a model, computed when asked for."""

    def __init__(
        self,
        facts: Facts,
        known: Mapping[tuple[int, str], Interval] | None = None,
        sizes: Mapping[str, Interval] | None = None,
    ) -> None:
        """Prepare to answer; nothing is computed yet.

        Args:
            facts: what is known of the model.
            known: intervals that are known beside it, by the identity of a scope and a name.
            sizes: those of sizes, by the names of dimensions.
        """
        self._sizes = sizes or {}
        self._facts = facts
        self._known: dict[tuple[int, str], Interval | None] = dict(known or {})

    def of(self, scope: Scope, name: str) -> Interval | None:
        """Return an interval that holds each element of a value; None if none is proven.

        It also holds what the operator that makes the value computes on the way, so that a dtype
        that holds the interval computes the same.
        """
        found = scope.resolve(name)
        if found is None:
            return None
        waiting = [(found, name)]
        while waiting:
            owner, wanted = waiting[-1]
            key = (id(owner), wanted)
            node = owner.producer(wanted)
            needed = [] if key in self._known or node is None else self._needed(owner, node)
            missing = [item for item in needed if (id(item[0]), item[1]) not in self._known]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            if key not in self._known:
                self._known[key] = self._compute(owner, wanted, node)
        return self._known[id(found), name]

    def is_bounded_by_inputs(self, scope: Scope, name: str) -> bool:
        """Return whether a node's output has an interval once its inputs have narrow ones."""
        node = scope.producer(name)
        rule = None if node is None else _rule(node)
        if node is None or rule is None:
            return False
        asked = self._question(scope, node, name)
        narrow = tuple(Interval(0, 0) if item else None for item in node.input)
        return rule(asked._replace(given=narrow)) is not None

    def _needed(self, scope: Scope, node: NodeProto) -> list[tuple[Scope, str]]:
        """Return the inputs of a node that its rule asks about, each with its scope."""
        if _rule(node) is None:
            return []
        found = [(scope.resolve(name), name) for name in node.input if name]
        return [(owner, name) for owner, name in found if owner is not None]

    def _compute(self, scope: Scope, name: str, node: NodeProto | None) -> Interval | None:
        limits = _limits(self._facts.elem_type(scope, name))
        if limits is None:
            return None
        constant = self._facts.constant(scope, name)
        found = None if constant is None else interval_of(constant)
        if found is None and node is not None:
            rule = _rule(node)
            found = None if rule is None else rule(self._question(scope, node, name))
        if found is not None and found.within(limits):
            return found
        # Beyond the limits of its dtype a value wraps: it may be anything that the dtype holds.
        return None if limits == INT64 else limits

    def _question(self, scope: Scope, node: NodeProto, name: str) -> _Question:
        owners = [scope.resolve(item) if item else None for item in node.input]
        pairs = list(zip(owners, node.input, strict=True))
        given = [None if o is None else self._known.get((id(o), item)) for o, item in pairs]
        types = [None if o is None else self._facts.type(o, item) for o, item in pairs]

        def constants(index: int) -> list[int] | None:
            owner = owners[index] if index < len(owners) else None
            array = None if owner is None else self._facts.constant(owner, node.input[index])
            return None if array is None else [int(item) for item in np.ravel(array)]

        return _Question(
            node,
            scope.opset or 0,
            list(node.output).index(name),
            tuple(given),
            tuple(None if item is None else item.dims for item in types),
            constants,
            self._sizes,
        )


def _limits(dtype: int | None) -> Interval | None:
    """Return the integers that a dtype holds; None of one whose values are not followed."""
    if dtype == TensorProto.INT64:
        return INT64
    if dtype == TensorProto.BOOL:
        return Interval(0, 1)
    if dtype not in _BOUNDED:
        return None
    info = np.iinfo(helper.tensor_dtype_to_np_dtype(dtype))
    return Interval(int(info.min), int(info.max))


def interval_of(array: np.ndarray[Any, Any]) -> Interval | None:
    """Return the interval of the integers of an array; None if it holds others."""
    if array.dtype.kind not in "iub":
        return None
    return Interval(int(array.min()), int(array.max())) if array.size else Interval(0, 0)


def hull(given: Sequence[Interval | None]) -> Interval | None:
    """Return the least interval around some; None if one is not known."""
    known = [item for item in given if item is not None]
    if len(known) < len(given) or not known:
        return None
    return Interval(min(item.low for item in known), max(item.high for item in known))


def _around(numbers: Sequence[int]) -> Interval:
    return Interval(min(numbers), max(numbers))


def _indices(*sizes: Interval | None) -> Interval | None:
    """Return the interval of the indices into as many elements as any of some sizes says."""
    most = hull([*sizes, Interval(1, 1)])
    return None if most is None else Interval(0, most.high - 1)


def _product(sizes: Iterable[Interval]) -> Interval:
    """Return the interval of the product of sizes."""
    known = list(sizes)
    return Interval(prod(size.low for size in known), prod(size.high for size in known))


def _passed(*places: int) -> _Rule:
    """Return the rule of an operator whose outputs hold elements of some inputs only."""

    def rule(asked: _Question) -> Interval | None:
        if max(places) >= len(asked.given):
            return None
        return hull([asked.given[place] for place in places])

    return rule


def _of_all(combine: Callable[[Interval, Interval], Interval | None]) -> _Rule:
    """Return the rule of an operator that combines its inputs from left to right."""

    def rule(asked: _Question) -> Interval | None:
        found = asked.given[0]
        for other in asked.given[1:]:
            found = None if found is None or other is None else combine(found, other)
        return found

    return rule


def _add(a: Interval, b: Interval) -> Interval:
    return Interval(a.low + b.low, a.high + b.high)


def _sub(a: Interval, b: Interval) -> Interval:
    return Interval(a.low - b.high, a.high - b.low)


def _mul(a: Interval, b: Interval) -> Interval:
    return _around([x * y for x in a for y in b])


def _product_of_two(asked: _Question) -> Interval | None:
    """Return the interval of Mul; the square of a value is not negative."""
    found = _of_all(_mul)(asked)
    if found is None or asked.node.input[0] != asked.node.input[1]:
        return found
    return Interval(max(found.low, 0), found.high)


def _pow(asked: _Question) -> Interval | None:
    """Return the interval of powers whose exponents are not negative."""
    base, exponent = asked.given[:2]
    if base is None or exponent is None or not 0 <= exponent.low <= exponent.high < 64:
        return None
    most = max(abs(base.low), abs(base.high), 1) ** exponent.high
    even = exponent.low == exponent.high and exponent.high % 2 == 0
    return Interval(0 if base.low >= 0 or even else -most, most)


def _div(a: Interval, b: Interval) -> Interval | None:
    """Return the quotients, towards zero; None where the divisor may be zero."""
    if b.low <= 0 <= b.high:
        return None
    quotients = [abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1) for x in a for y in b]
    return _around(quotients)


def _max(a: Interval, b: Interval) -> Interval:
    return Interval(max(a.low, b.low), max(a.high, b.high))


def _min(a: Interval, b: Interval) -> Interval:
    return Interval(min(a.low, b.low), min(a.high, b.high))


def _mod(asked: _Question) -> Interval | None:
    """Return the remainders by a positive divisor.

    By -1 the least number has none in some dtypes: the quotient is beyond them.
    """
    data, divisor = asked.given[:2]
    if data is None or divisor is None or divisor.low <= 0:
        return None
    signed = asked.attribute("fmod", 0) and data.low < 0
    return Interval(1 - divisor.high if signed else 0, divisor.high - 1)


def _neg(asked: _Question) -> Interval | None:
    data = asked.given[0]
    return None if data is None else Interval(-data.high, -data.low)


def _abs(asked: _Question) -> Interval | None:
    data = asked.given[0]
    if data is None:
        return None
    least = 0 if data.low <= 0 <= data.high else min(abs(data.low), abs(data.high))
    return Interval(least, max(abs(data.low), abs(data.high)))


def _clip(asked: _Question) -> Interval | None:
    """Return the interval of Clip, whose upper limit wins where they cross.

    Without an interval of the data the limits alone bound it.
    """
    found = asked.given[0] or INT64
    for place, combine in ((1, _max), (2, _min)):
        if len(asked.node.input) > place and asked.node.input[place]:
            limit = asked.given[place]
            if limit is None:
                return None
            found = combine(found, limit)
    return found


def _range(asked: _Question) -> Interval | None:
    """Return the interval of Range, with the distance that its length is computed from."""
    start, limit = asked.given[:2]
    if start is None or limit is None or asked.given[2] is None:
        return None
    return hull([start, limit, _sub(limit, start)])


def _shape(asked: _Question) -> Interval | None:
    sizes = asked.sizes(0)
    if sizes is None:
        return None
    kept = sizes[slice(asked.attribute("start", 0), asked.attribute("end", None))]
    return hull(kept) if kept else Interval(0, 0)


def _size(asked: _Question) -> Interval | None:
    sizes = asked.all_sizes(0)
    return None if sizes is None else _product(sizes)


def _arg(asked: _Question) -> Interval | None:
    return _indices(asked.size(asked.attribute("axis", 0)))


def _top_k(asked: _Question) -> Interval | None:
    """Return the interval of what TopK takes from its input, or of the indices."""
    if asked.place == 0:
        return asked.given[0]
    return _indices(asked.size(asked.attribute("axis", -1)))


def _non_zero(asked: _Question) -> Interval | None:
    sizes = asked.all_sizes(0)
    return None if sizes is None else _indices(*sizes)


def _non_max_suppression(asked: _Question) -> Interval | None:
    """Return the interval of its indices: of a batch, of a class and of a box."""
    boxes, scores = asked.all_sizes(0), asked.all_sizes(1)
    return None if boxes is None or scores is None else _indices(*boxes, *scores)


def _reduced(asked: _Question) -> Interval | None:
    """Return how many elements a reduction takes together; None if that is not known."""
    dims = asked.dims[0]
    if dims is None:
        return None
    axes = asked.attribute("axes", None)
    if len(asked.node.input) > 1 and asked.node.input[1]:
        axes = asked.constants(1)
        if axes is None:
            return None
    if not axes:
        axes = [] if asked.attribute("noop_with_empty_axes", 0) else range(len(dims))
    sizes = [asked.size(axis) for axis in axes]
    known = [size for size in sizes if size is not None]
    return _product(known) if len(known) == len(sizes) else None


def _extreme(asked: _Question) -> Interval | None:
    """Return the interval of an extreme; of no elements it is the end of the dtype."""
    number = _reduced(asked)
    return asked.given[0] if number is not None and number.low > 0 else None


def _total(data: Interval | None, number: Interval | None) -> Interval | None:
    """Return the interval of the sums of up to so many elements."""
    if data is None or number is None:
        return None
    return _around([0, data.low * number.high, data.high * number.high])


def _reduce_sum(asked: _Question) -> Interval | None:
    return _total(asked.given[0], _reduced(asked))


def _reduce_prod(asked: _Question) -> Interval | None:
    """Return the interval of the products, and of what comes up on the way to them."""
    data, number = asked.given[0], _reduced(asked)
    if data is None or number is None or number.high > INT64.high.bit_length():
        return None
    most = max(abs(data.low), abs(data.high), 1) ** number.high
    return Interval(-most if data.low < 0 else 0, most)


def _cum_sum(asked: _Question) -> Interval | None:
    axis = asked.constants(1)
    return None if not axis else _total(asked.given[0], asked.size(axis[0]))


def _pad(asked: _Question) -> Interval | None:
    value = len(asked.node.input) > 2 and asked.node.input[2]
    return hull([asked.given[0], asked.given[2] if value else Interval(0, 0)])


def _with_zero(asked: _Question) -> Interval | None:
    return hull([asked.given[0], Interval(0, 0)])


def _unique(asked: _Question) -> Interval | None:
    """Return the interval of the elements, of their places, or of how many are equal."""
    if asked.place == 0:
        return asked.given[0]
    sizes = asked.all_sizes(0)
    return None if sizes is None else Interval(0, _product(sizes).high)


def _concat(asked: _Question) -> Interval | None:
    return hull(asked.given)


def _scattered(asked: _Question) -> Interval | None:
    """Return the interval of what is there, or is put there without any arithmetic."""
    if asked.attribute("reduction", b"none") != b"none":
        return None
    return hull([asked.given[0], asked.given[2]])


def _constant_of_shape(asked: _Question) -> Interval | None:
    found = attributes.find(asked.node, "value")
    return None if found is None else interval_of(numpy_helper.to_array(found.t))


def _sign(asked: _Question) -> Interval | None:
    return Interval(-1, 1)


def _label(asked: _Question) -> Interval | None:
    """Return the interval of a classifier's labels; runtimes number some of two classes."""
    labels = [*asked.attribute("classlabels_ints", ()), *asked.attribute("classlabels_int64s", ())]
    return _around([-1, 1, *labels]) if labels and asked.place == 0 else None


def _encoded(asked: _Question) -> Interval | None:
    """Return the interval of the integers that labels are encoded as, the default among them."""
    tensors = [attributes.find(asked.node, name) for name in ("values_tensor", "default_tensor")]
    arrays = [numpy_helper.to_array(item.t) for item in tensors if item is not None]
    known = [interval_of(array) for array in arrays if array.dtype.kind != "O"]
    numbers = [asked.attribute("default_int64", -1), *asked.attribute("values_int64s", ())]
    classes = asked.attribute("classes_strings", ())
    return hull([_around([*numbers, len(classes)]), *known])


#: The interval of an operator's outputs by those of its inputs.
_RULES: dict[str, _Rule] = {
    "Abs": _abs,
    "Add": _of_all(_add),
    "ArgMax": _arg,
    "ArgMin": _arg,
    "Cast": _passed(0),
    "CastLike": _passed(0),
    "Clip": _clip,
    "Compress": _passed(0),
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "CumSum": _cum_sum,
    "DepthToSpace": _passed(0),
    "Div": _of_all(_div),
    "Expand": _passed(0),
    "Flatten": _passed(0),
    "Gather": _passed(0),
    "GatherElements": _passed(0),
    "GatherND": _passed(0),
    "Identity": _passed(0),
    "Max": _of_all(_max),
    "Min": _of_all(_min),
    "Mod": _mod,
    "Mul": _product_of_two,
    "Neg": _neg,
    "NonMaxSuppression": _non_max_suppression,
    "NonZero": _non_zero,
    "OneHot": _passed(2),
    "Pad": _pad,
    "Pow": _pow,
    "Range": _range,
    "ReduceMax": _extreme,
    "ReduceMin": _extreme,
    "ReduceProd": _reduce_prod,
    "ReduceSum": _reduce_sum,
    "Reshape": _passed(0),
    "ReverseSequence": _passed(0),
    "ScatterElements": _scattered,
    "ScatterND": _scattered,
    "Shape": _shape,
    "Sign": _sign,
    "Size": _size,
    "Slice": _passed(0),
    "SpaceToDepth": _passed(0),
    "Split": _passed(0),
    "Squeeze": _passed(0),
    "Sub": _of_all(_sub),
    "Tile": _passed(0),
    "TopK": _top_k,
    "Transpose": _passed(0),
    "Trilu": _with_zero,
    "Unique": _unique,
    "Unsqueeze": _passed(0),
    "Where": _passed(1, 2),
}

#: The same for ai.onnx.ml.
_LEARNING_RULES: dict[str, _Rule] = {
    "ArrayFeatureExtractor": _passed(0),
    "LabelEncoder": _encoded,
    "LinearClassifier": _label,
    "SVMClassifier": _label,
    "TreeEnsembleClassifier": _label,
}


def _rule(node: NodeProto) -> _Rule | None:
    """Return the rule of a node's operator, if it has one."""
    if is_default(node.domain):
        return _RULES.get(node.op_type)
    return _LEARNING_RULES.get(node.op_type) if node.domain == LEARNING else None


def is_followed(node: NodeProto) -> bool:
    """Return whether something may be known of the outputs of a node."""
    return _rule(node) is not None
