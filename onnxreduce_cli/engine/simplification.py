"""Simplification of emitted nodes, of several steps together: each step sees only its own."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence

from onnx import NodeProto, TensorProto

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS, UNSIGNED
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.dead_values import names_read_within, without_unread
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.folding import OPERATORS
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS
from onnxreduce_cli.model.graph.values import numpy_dtype

#: Values of more elements are computed when the model runs.
_SMALL = 64

_FOLDED = OPERATORS | {"Shape", "Size"}

#: Operators that may give another result each time.
_RANDOM = frozenset(
    {
        "Bernoulli",
        "Dropout",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)

#: The neutral element of an operator, and whether it may be the first input.
_NEUTRAL = {
    "Add": (0, True),
    "And": (True, True),
    "Div": (1, False),
    "Mul": (1, True),
    "Or": (False, True),
    "Sub": (0, False),
}

#: Below this opset operators broadcast by attributes.
_BROADCASTING = 7

#: Below this opset a Constant of integers is one of floats and a Cast, for which runtimes have
#: fewer kernels than for the nodes that it would replace.
_INTEGER_CONSTANTS = 9

#: The most bits of an integer dtype that a floating-point dtype holds exactly.
_HELD: dict[int, int] = {TensorProto.FLOAT16: 8, TensorProto.FLOAT: 16, TensorProto.DOUBLE: 32}

_FLOATS = frozenset(_HELD)
_WHOLE = INTEGERS | {TensorProto.BOOL}


def simplified(
    context: Context, nodes: Sequence[NodeProto], outputs: Collection[str]
) -> list[NodeProto]:
    """Return nodes that compute the same, without redundant ones, in order.

    Known values become constants, and of equal nodes one is kept. An Identity is removed, as are
    an integer addition of 0 or multiplication by 1, and a Cast whose input has that dtype, or had
    it before it was cast to a wider one.

    Args:
        context: the site's node at the opset of the nodes; constants are added through it.
        nodes: emitted nodes of one graph, which are edited.
        outputs: the values that must keep their names.
    """
    return _Simplification(context, nodes, outputs).run(nodes)


class _Simplification:
    """The simplification of the nodes of one graph that replace one node."""

    def __init__(
        self, context: Context, nodes: Iterable[NodeProto], outputs: Collection[str]
    ) -> None:
        self._context = context
        self._outputs = {*outputs}
        self._captured = {
            name
            for node in nodes
            if node.op_type in GRAPH_OPERATORS
            for name in names_read_within(node)
        }
        self._replacements: dict[str, str] = {}
        self._makers: dict[str, NodeProto] = {}
        self._seen: dict[Hashable, NodeProto] = {}

    def run(self, nodes: Sequence[NodeProto]) -> list[NodeProto]:
        kept = []
        for node in nodes:
            self._reroute(node)
            if not is_default(node.domain) or node.op_type in GRAPH_OPERATORS:
                kept.append(node)
                continue
            if not self._is_redundant(node, kept):
                kept.append(node)
                self._makers.update(dict.fromkeys(node.output, node))
        # Subgraphs may still read a value by its old name.
        return without_unread(kept, self._outputs)

    def _is_redundant(self, node: NodeProto, kept: Iterable[NodeProto]) -> bool:
        """Return whether a node is redundant, as another value is read in place of its output."""
        name = node.output[0]
        found = self._other_name(node) if name and len(node.output) == 1 else None
        if found is None:
            return self._is_duplicate(node)
        if name in self._outputs:
            return self._take_over_name(found, node, kept)
        self._replacements[name] = found
        return name not in self._captured

    def _reroute(self, node: NodeProto) -> None:
        """Replace the inputs of a node that another value stands in for."""
        for index, name in enumerate(node.input):
            if name in self._replacements:
                node.input[index] = self._replacements[name]

    def _other_name(self, node: NodeProto) -> str | None:
        """Return a value that equals a node's output; None if there is none."""
        if node.op_type == "Identity":
            return node.input[0]
        if node.op_type == "Cast":
            return self._cast_source(node)
        found = self._folded_constant(node) if node.op_type in _FOLDED else None
        if found is None and node.op_type in _NEUTRAL and self._context.reaches(_BROADCASTING):
            return self._non_neutral_input(node)
        return found

    def _folded_constant(self, node: NodeProto) -> str | None:
        """Return a constant in place of a node's output, if it is known, integer and small."""
        name, context = node.output[0], self._context
        if not context.reaches(_INTEGER_CONSTANTS) or name in self._outputs:
            return None
        if context.elem_type(name) not in _WHOLE:
            return None
        array = context.constant(name)
        if array is None or array.size > _SMALL:
            return None
        return context.array(array, "known")

    def _non_neutral_input(self, node: NodeProto) -> str | None:
        """Return the input that equals a node's output, as the other one is neutral."""
        neutral, either = _NEUTRAL[node.op_type]
        for first, second in ((0, 1), (1, 0)) if either else ((0, 1),):
            data, other = node.input[first], node.input[second]
            if not other or self._context.elem_type(other) not in _WHOLE:
                continue
            array = self._context.constant(other)
            if array is None or array.size != 1:
                continue
            rank = self._context.rank(data) if array.ndim else 0
            if array.reshape(()) == neutral and rank is not None and array.ndim <= rank:
                return data
        return None

    def _cast_source(self, node: NodeProto) -> str | None:
        """Return the input of a Cast if it has the Cast's dtype already.

        A Cast of a value that was cast to a wider dtype is made to read the original value first.
        """
        data, to = node.input[0], attributes.find(node, "to")
        if to is None or not to.i or to.ref_attr_name:
            return None
        maker = self._makers.get(data)
        if maker is not None and maker.op_type == "Cast":
            given, wider = (self._context.elem_type(name) for name in (maker.input[0], data))
            if given and wider and _holds(wider, given) and _casts_are_equal(given, wider, to.i):
                node.input[0] = data = maker.input[0]
        return data if self._context.elem_type(data) == to.i else None

    def _take_over_name(self, name: str, node: NodeProto, kept: Iterable[NodeProto]) -> bool:
        """Let the producer of a value replace a node that gives it the name of an output."""
        maker = self._makers.get(name)
        if maker is None or name in self._outputs or name in self._captured:
            return False
        new = node.output[0]
        for item in kept:
            for names in (item.input, item.output):
                for index, each in enumerate(names):
                    if each == name:
                        names[index] = new
        maker.name, maker.doc_string = node.name, node.doc_string
        del maker.metadata_props[:]
        maker.metadata_props.extend(node.metadata_props)
        self._replacements[name] = new
        for key, other in self._replacements.items():
            if other == name:
                self._replacements[key] = new
        self._makers[new] = maker
        self._seen.clear()
        return True

    def _is_duplicate(self, node: NodeProto) -> bool:
        """Return whether an earlier node gives the same; its outputs are then read instead."""
        if node.op_type in _RANDOM or not all(node.output):
            return False
        given = sorted(item.SerializeToString(deterministic=True) for item in node.attribute)
        key = (node.op_type, tuple(node.input), tuple(given), len(node.output))
        first = self._seen.setdefault(key, node)
        if first is node or not self._outputs.isdisjoint(node.output):
            return False
        self._replacements.update(zip(node.output, first.output, strict=True))
        return self._captured.isdisjoint(node.output)


def _holds(wide: int, narrow: int) -> bool:
    """Return whether a dtype holds every value of another one."""
    if wide == narrow or narrow == TensorProto.BOOL:
        return wide in INTEGERS | _FLOATS
    if narrow in INTEGERS:
        bits = numpy_dtype(narrow).itemsize * 8
        if wide in _FLOATS:
            return bits <= _HELD[wide]
        larger = wide in INTEGERS and numpy_dtype(wide).itemsize * 8 > bits
        return larger and (narrow in UNSIGNED or wide not in UNSIGNED)
    sizes = [numpy_dtype(item).itemsize for item in (wide, narrow) if item in _FLOATS]
    return len(sizes) == 2 and sizes[0] > sizes[1]


def _casts_are_equal(given: int, wider: int, to: int) -> bool:
    """Return whether a Cast gives the same from a dtype as from a wider one that holds it.

    What a float beyond the range of an integer dtype becomes is undefined, so the kernels of two
    floating-point dtypes may differ; integers wrap.
    """
    if to not in INTEGERS:
        return to in _FLOATS or to == TensorProto.BOOL
    if wider in _FLOATS:
        return given in _WHOLE and _holds(to, given)
    return True
