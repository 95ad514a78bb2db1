"""The ranges of integer inputs that are indices, counts or axes.

An input is followed through operators that keep its elements, into subgraphs and functions, to
the nodes that use it so; the dimensions of what it indexes bound it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import NamedTuple

from onnx import FunctionProto, ModelProto, NodeProto, TensorProto

from onnxreduce_cli.model.graph.domains import MICROSOFT, is_default, operator_name
from onnxreduce_cli.model.graph.scope import Scope, scopes, subgraphs
from onnxreduce_cli.model.types.facts import Facts
from onnxreduce_cli.schemas import REDUCE
from onnxreduce_cli.verification.inputs.node_use import Dim, NodeUse


class IntegerRange(NamedTuple):
    """The integers that an input may hold, both ends included.

    Attributes:
        low: the least.
        high: the largest.
        dims: dimensions that it must also stay below (`inclusive`: not exceed); where one is not
            known, only `low` is safe.
        inclusive: whether a dimension itself is allowed.
        unique: whether no value may come twice, as in a list of axes.
        rest: the value of all but the first element; None where they are drawn too.
        from_end: whether negative ones count from the end.
    """

    low: int
    high: int
    dims: tuple[Dim, ...] = ()
    inclusive: bool = False
    unique: bool = False
    rest: int | None = None
    from_end: bool = False


#: The inputs whose elements an operator passes on unchanged, by operator.
PASSING: dict[str, tuple[int, ...]] = {
    "Cast": (0,),
    "CastLike": (0,),
    "Compress": (0,),
    "Concat": tuple(range(64)),
    "Expand": (0,),
    "Flatten": (0,),
    "Gather": (0,),
    "GatherElements": (0,),
    "GatherND": (0,),
    "Identity": (0,),
    "Max": tuple(range(64)),
    "Min": tuple(range(64)),
    "ReduceMax": (0,),
    "ReduceMin": (0,),
    "Reshape": (0,),
    "Slice": (0,),
    "Split": (0,),
    "Squeeze": (0,),
    "Tile": (0,),
    "Transpose": (0,),
    "Unsqueeze": (0,),
    "Where": (1, 2),
}


_LARGEST = 1 << 30

FLOATS = frozenset(
    {TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16}
)


def _below(dim: Dim) -> IntegerRange:
    return IntegerRange(0, _LARGEST, (dim,))


def _counts_from_end(use: NodeUse) -> bool:
    """Return whether negative indices count from the end, as they do from opset 11 on."""
    return use.scope.opset is not None and use.scope.opset >= 11


def _at_axis(use: NodeUse) -> IntegerRange:
    found = _below(use.dim(0, use.integer("axis")))
    return found._replace(from_end=_counts_from_end(use))


def _nd(use: NodeUse) -> IntegerRange:
    """Return the range of GatherND's and ScatterND's indices, by the smallest dimension."""
    start = use.integer("batch_dims")
    dims = use.dims(0)
    last = use.dim(1, -1)
    if dims is None or not isinstance(last, int):
        return IntegerRange(0, 0)
    return IntegerRange(0, _LARGEST, tuple(dims[start : start + last]))


def _axes(use: NodeUse) -> IntegerRange:
    dims = use.dims(0)
    high = max(0, len(dims) - 1) if dims is not None else 0
    return IntegerRange(0, high, unique=True, from_end=dims is not None)


def _signal_axis(use: NodeUse) -> IntegerRange:
    """Return the range of axes without the last, which holds the parts of complex numbers."""
    return IntegerRange(0, max(0, len(use.dims(0) or ()) - 2))


def _one_hot(use: NodeUse) -> IntegerRange:
    depth = use.constant(1)
    high = 0 if depth is None else max(0, depth - 1)
    return IntegerRange(0, high, from_end=_counts_from_end(use))


def _new_axes(use: NodeUse) -> IntegerRange:
    dims = use.dims(0)
    return IntegerRange(0, len(dims) if dims is not None else 0, unique=True)


def _written_from(use: NodeUse) -> IntegerRange:
    """Return the range of starts at which what is written into a cache ends within it."""
    cache, written = (use.dim(index, use.integer("axis", -2)) for index in (0, 1))
    if not isinstance(cache, int) or not isinstance(written, int):
        return IntegerRange(0, 0)
    return IntegerRange(0, max(0, cache - written))


def _whole_length(use: NodeUse) -> IntegerRange | None:
    """Return the length of the queries of an attention, which it states once more."""
    length = use.dim(0, 1)
    return IntegerRange(length, length) if isinstance(length, int) else None


def _places(use: NodeUse) -> IntegerRange:
    """Return the range of places, or of the first place, of tokens that are rotated."""
    places, length, cache = use.dims(1), use.dim(0, -2), use.dim(2, 0)
    if places is not None and len(places) == 2:
        return _below(cache)
    if not isinstance(length, int) or not isinstance(cache, int):
        return IntegerRange(0, 0)
    return IntegerRange(0, max(0, cache - length))


def _top_k(use: NodeUse) -> IntegerRange:
    return IntegerRange(1, _LARGEST, (use.dim(0, use.integer("axis", -1)),), inclusive=True)


def _lengths(index: int, axis_attribute: str, default: int) -> Callable[[NodeUse], IntegerRange]:
    def bound(use: NodeUse) -> IntegerRange:
        axis = use.integer(axis_attribute, default)
        return IntegerRange(1, _LARGEST, (use.dim(index, axis),), inclusive=True)

    return bound


def _of_integers(low: int, high: int) -> Callable[[NodeUse], IntegerRange | None]:
    """Return a range for integers only, whose results would overflow without one."""

    def bound(use: NodeUse) -> IntegerRange | None:
        elem_type = use.facts.elem_type(use.scope, use.node.input[0])
        return None if elem_type is None or elem_type in FLOATS else IntegerRange(low, high)

    return bound


def _counts(low: int, high: int) -> Callable[[NodeUse], IntegerRange]:
    return lambda use: IntegerRange(low, high)


_RANGES: dict[tuple[str, int], Callable[[NodeUse], IntegerRange | None]] = {
    ("Gather", 1): _at_axis,
    ("GatherElements", 1): _at_axis,
    ("Scatter", 1): _at_axis,
    ("ScatterElements", 1): _at_axis,
    ("GatherND", 1): _nd,
    ("ScatterND", 1): _nd,
    ("OneHot", 0): _one_hot,
    ("OneHot", 1): _counts(2, 9),
    ("SoftmaxCrossEntropyLoss", 1): lambda use: _below(use.dim(0, 1)),
    ("NegativeLogLikelihoodLoss", 1): lambda use: _below(use.dim(0, 1)),
    ("RoiAlign", 1): _counts(0, 9),
    ("RoiAlign", 2): lambda use: _below(use.dim(0, 0)),
    ("NonMaxSuppression", 2): _counts(1, 4),
    ("TopK", 1): _top_k,
    ("ReverseSequence", 1): _lengths(0, "time_axis", 0),
    ("RNN", 4): _lengths(0, "", 0),
    ("GRU", 4): _lengths(0, "", 0),
    ("LSTM", 4): _lengths(0, "", 0),
    ("SequenceAt", 1): _counts(0, 1),
    ("SequenceErase", 1): _counts(0, 1),
    ("SequenceInsert", 2): _counts(0, 1),
    ("RotaryEmbedding", 3): lambda use: _below(use.dim(1, 0)),
    ("TensorScatter", 2): _written_from,
    **{(operator, 1): _axes for operator in ("CumProd", "CumSum")},
    ("Squeeze", 1): _axes,
    ("Unsqueeze", 1): _new_axes,
    ("Loop", 0): _counts(1, 4),
    ("Range", 0): _counts(0, 1),
    ("Range", 1): _counts(2, 9),
    ("Range", 2): _counts(1, 2),
    ("Expand", 1): _counts(1, 1),
    ("Tile", 1): _counts(1, 3),
    ("ConstantOfShape", 0): _counts(1, 4),
    ("Pad", 1): _counts(0, 2),
    ("Pad", 3): _axes,
    ("Slice", 1): _counts(0, 0),
    ("Slice", 2): _counts(1, 9),
    ("Slice", 3): _axes,
    ("Slice", 4): _counts(1, 2),
    # One dimension may be left open, and that takes any number of elements.
    ("Reshape", 1): lambda use: IntegerRange(-1, -1, rest=1),
    ("Resize", 1): lambda use: IntegerRange(1, 2) if use.scope.opset == 10 else None,
    ("Resize", 2): _counts(1, 2),
    ("Resize", 3): _counts(1, 9),
    ("Upsample", 1): _counts(1, 2),
    ("CenterCropPad", 1): _counts(1, 5),
    ("AffineGrid", 1): _counts(1, 4),
    ("Col2Im", 1): _counts(2, 6),
    ("Col2Im", 2): _counts(1, 2),
    ("SplitToSequence", 1): _counts(1, 2),
    ("HannWindow", 0): _counts(1, 12),
    ("HammingWindow", 0): _counts(1, 12),
    ("BlackmanWindow", 0): _counts(1, 12),
    ("DFT", 1): _counts(1, 9),
    ("DFT", 2): _signal_axis,
    ("MelWeightMatrix", 0): _counts(1, 4),
    ("MelWeightMatrix", 1): _counts(8, 20),
    ("MelWeightMatrix", 2): _counts(8000, 16000),
    ("MelWeightMatrix", 3): _counts(0, 99),
    ("MelWeightMatrix", 4): _counts(2000, 4000),
    ("STFT", 1): _counts(1, 2),
    ("STFT", 3): _counts(2, 4),
    # Dividing by zero, or the lowest number by -1, may end the process.
    **{(operator, 0): _of_integers(-99, 99) for operator in ("Div", "Mod")},
    **{(operator, 1): _of_integers(1, 9) for operator in ("Div", "Mod")},
    ("Pow", 1): _of_integers(0, 3),
    ("ReduceLogSum", 0): _of_integers(1, 9),
    ("ReduceLogSumExp", 0): _of_integers(0, 9),
    ("Trilu", 1): _counts(-2, 2),
    # A ratio, which is less than 1.
    ("Dropout", 1): _counts(0, 0),
    ("BitShift", 1): _counts(0, 7),
    **{(operator, 1): _axes for operator in REDUCE},
}

_RANGES |= {
    (f"{MICROSOFT}.{op_type}", index): found
    for (op_type, index), found in {
        ("EmbedLayerNormalization", 0): lambda use: _below(use.dim(2, 0)),
        ("EmbedLayerNormalization", 1): lambda use: _below(use.dim(4, 0)),
        ("EmbedLayerNormalization", 8): lambda use: _below(use.dim(3, 0)),
        ("GroupQueryAttention", 5): lambda use: _below(use.dim(0, 1)),
        ("GroupQueryAttention", 6): _whole_length,
        ("RotaryEmbedding", 1): _places,
    }.items()
}


def integer_ranges(model: ModelProto, names: Iterable[str]) -> dict[str, tuple[IntegerRange, ...]]:
    """Find the ranges that the model's graph sets to the elements of its inputs.

    Args:
        model: the model; its large tensors may be left out.
        names: the inputs to follow.

    Returns:
        the ranges by input, without inputs that may hold any value.
    """
    found_scopes = scopes(model)
    facts = Facts(model, found_scopes)
    readers = readers_by_value(found_scopes)
    main = found_scopes[0]
    inner = {id(scope.container): scope for scope in found_scopes}
    result = {}
    for name in names:
        found = _follow(main, name, facts, readers, inner)
        if found:
            result[name] = found
    return result


Readers = dict[tuple[int, str], list[tuple[Scope, NodeProto, int]]]


def readers_by_value(found: list[Scope]) -> Readers:
    """Return the uses of each value, by its scope and name: scope, node, and input index."""
    readers: Readers = defaultdict(list)
    for scope in found:
        for node in scope.nodes:
            for index, name in enumerate(node.input):
                owner = scope.resolve(name) if name else None
                if owner is not None:
                    readers[id(owner), name].append((scope, node, index))
    return readers


def _follow(
    main: Scope, start: str, facts: Facts, readers: Readers, inner: dict[int, Scope]
) -> tuple[IntegerRange, ...]:
    found: dict[IntegerRange, None] = {}
    waiting, seen = [(main, start)], {(id(main), start)}

    def reach(scope: Scope, name: str) -> None:
        if name and (id(scope), name) not in seen:
            seen.add((id(scope), name))
            waiting.append((scope, name))

    while waiting:
        owner, name = waiting.pop()
        for scope, node, index in readers.get((id(owner), name), ()):
            function = facts.calls.function_of(node)
            if function is not None:
                body = inner.get(id(function))
                if body is not None and index < len(function.input):
                    reach(body, function.input[index])
                continue
            role = _RANGES.get((operator_name(node), index))
            bound = None if role is None else role(NodeUse(node, scope, facts))
            if bound is not None:
                found[bound] = None
            if not is_default(node.domain):
                continue
            if index in PASSING.get(node.op_type, ()):
                for output in node.output:
                    reach(scope, output)
            enter_body(node, index, inner, reach)
    return tuple(found)


def enter_body(
    node: NodeProto, index: int, inner: dict[int, Scope], reach: Callable[[Scope, str], None]
) -> None:
    """Follow a value that a Loop or Scan passes to its body."""
    if node.op_type not in ("Loop", "Scan") or (node.op_type == "Loop" and index == 0):
        return  # Loop: the trip count is not what the body gets first.
    for _, graph in subgraphs(node):
        body = inner[id(graph)]
        if not isinstance(body.container, FunctionProto) and index < len(graph.input):
            reach(body, graph.input[index].name)
