"""Fewer nodes for what steps emitted: each step knows its own nodes alone, here are all of them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Sequence

from onnx import NodeProto, TensorProto

from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.dtypes import INTEGERS, UNSIGNED
from onnxreduce_cli.model import attributes
from onnxreduce_cli.model.dead_values import reads_within, without_unread
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.folding import OPERATORS
from onnxreduce_cli.model.scope import GRAPH_OPERATORS
from onnxreduce_cli.model.values import numpy_dtype

#: Values of more elements are computed when the model runs.
_SMALL = 64

_FOLDED = OPERATORS | {"Shape", "Size"}

#: What gives another result each time, or may.
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

#: By operator the element that leaves the other input as it is, and whether it may be the first.
_NEUTRAL = {
    "Add": (0, True),
    "And": (True, True),
    "Div": (1, False),
    "Mul": (1, True),
    "Or": (False, True),
    "Sub": (0, False),
}

#: Below it operators broadcast by attributes.
_BROADCASTING = 7

#: Below it a Constant of integers is one of floats and a Cast, of which runtimes have fewer kernels
#: than of what it would stand for.
_INTEGER_CONSTANTS = 9

#: For each float the most bits of an integer dtype that it holds exactly.
_HELD: dict[int, int] = {TensorProto.FLOAT16: 8, TensorProto.FLOAT: 16, TensorProto.DOUBLE: 32}

_FLOATS = frozenset(_HELD)
_WHOLE = INTEGERS | {TensorProto.BOOL}


def simplified(
    context: Context, nodes: Sequence[NodeProto], outputs: Collection[str]
) -> list[NodeProto]:
    """Return nodes that compute the same, without those that are not needed, in order.

    Values that are known become constants, and of nodes that give the same there is one. An
    Identity goes, as does an integer 0 that is added or 1 that is multiplied by, and a Cast whose
    input has that dtype, or had it before a wider one.

    Args:
        context: the site's node, bound to the opset of the nodes; constants are added through it.
        nodes: emitted nodes of one graph, which are edited.
        outputs: the values that must be given by these names.
    """
    return _Simplification(context, nodes, outputs).run(nodes)


class _Simplification:
    """The nodes of one graph that take the place of one node."""

    def __init__(
        self, context: Context, nodes: Iterable[NodeProto], outputs: Collection[str]
    ) -> None:
        self._context = context
        self._outputs = {*outputs}
        self._captured = {
            name for node in nodes if node.op_type in GRAPH_OPERATORS for name in reads_within(node)
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
        # Graphs within may still read what has another name here.
        return without_unread(kept, self._outputs)

    def _is_redundant(self, node: NodeProto, kept: Iterable[NodeProto]) -> bool:
        """Whether a node can go: then another value is read in place of what it gives."""
        name = node.output[0]
        found = self._other_name(node) if name and len(node.output) == 1 else None
        if found is None:
            return self._is_duplicate(node)
        if name in self._outputs:
            return self._take_over_name(found, node, kept)
        self._replacements[name] = found
        return name not in self._captured

    def _reroute(self, node: NodeProto) -> None:
        """Let a node read what stands for values that are not needed."""
        for index, name in enumerate(node.input):
            if name in self._replacements:
                node.input[index] = self._replacements[name]

    def _other_name(self, node: NodeProto) -> str | None:
        """The value that is the same as a node's output, if there is one."""
        if node.op_type == "Identity":
            return node.input[0]
        if node.op_type == "Cast":
            return self._cast_source(node)
        found = self._folded_constant(node) if node.op_type in _FOLDED else None
        if found is None and node.op_type in _NEUTRAL and self._context.op.opset >= _BROADCASTING:
            return self._non_neutral_input(node)
        return found

    def _folded_constant(self, node: NodeProto) -> str | None:
        """A constant of what a node gives, if that is known, of integers, and small."""
        name, context = node.output[0], self._context
        if context.op.opset < _INTEGER_CONSTANTS or name in self._outputs:
            return None
        if context.elem_type(name) not in _WHOLE:
            return None
        array = context.constant(name)
        if array is None or array.size > _SMALL:
            return None
        return context.array(array, "known")

    def _non_neutral_input(self, node: NodeProto) -> str | None:
        """The input that is all that a node gives, as its other one is neutral."""
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
        """What a Cast reads, or what was cast before to a wider dtype, if that is its result.

        A Cast of what was cast to a wider dtype reads what there was before.
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
        """Let the maker of a value take the place of a node that gives it by an output's name."""
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
        """Whether an earlier node gives the same as a node, which is then read in its place."""
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
    """Return whether a dtype has every value of another one."""
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
    """Return whether a Cast gives the same of a dtype and of a wider one that holds it.

    What floats become that are beyond an integer dtype is open, so that kernels of two floats may
    give two numbers; integers wrap.
    """
    if to not in INTEGERS:
        return to in _FLOATS or to == TensorProto.BOOL
    if wider in _FLOATS:
        return given in _WHOLE and _holds(to, given)
    return True
