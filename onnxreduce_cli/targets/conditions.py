"""Conditions on a node under which a runtime takes its operator, in words and as code.

A condition asks nothing, or one thing a line, all of which have to hold:

rank 0 = 4-5                       the rank of input 0; several ranks: ``2 4-5``
constant 1 2                       inputs 1 and 2 are constant, dequantized constants, or absent
absent 2                           there is no such input
inputs = 2                         how many inputs there are; ``outputs`` likewise
dtype 0 = float float16            the dtype of input 0
attribute mode = nearest linear    the value, or the definition's default; each element of a list
attribute axis = last              -1, or the last axis of input 0
attribute dilations = 1 absent     without a default, ``absent`` if it may be left out
elements 1 = 0 1                   every element of constant input 1
static 0                           every dimension of input 0 is known
unless rank 0 = 4                  if this holds, the condition does; if not, the other lines decide
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from onnx import TensorProto, helper

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.targets.rows import is_within, opset_range

#: What answers a line: the words before the equals sign, and those after it. It returns None
#: where the answer is not known.
Ask = Callable[[NodeFacts, Sequence[str], Sequence[str]], bool | None]

#: The beginning of a line that is enough for the condition to hold.
_UNLESS = "unless "

#: The most nodes behind a value that are looked at.
_LONGEST = 64


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition under which an operator is taken.

    Attributes:
        name: its name in the file.
        text: the condition in words, which complete "taken if".
        asks: the lines of what has to hold; empty where no node can be asked.
    """

    name: str
    text: str
    asks: tuple[str, ...]

    def holds(self, node: NodeFacts) -> bool | None:
        """Return whether a node meets the condition; None where that is not known."""
        if not self.asks:
            return None
        sufficient = [line for line in self.asks if line.startswith(_UNLESS)]
        if any(_answer(line.removeprefix(_UNLESS), node) for line in sufficient):
            return True
        answers = [_answer(line, node) for line in self.asks if line not in sufficient]
        return False if False in answers else None if None in answers or not answers else True


def condition_of_table(name: str, given: Mapping[str, str]) -> Condition:
    """Return the condition that a table of a file describes.

    Raises:
        ValueError: it has a key that there is not, or asks what nobody answers.
    """
    if odd := set(given) - {"text", "ask"}:
        raise ValueError(f"a condition has no {', '.join(sorted(odd))}")
    asks = tuple(line.strip() for line in given.get("ask", "").splitlines() if line.strip())
    for line in asks:
        if line.removeprefix(_UNLESS).split()[0] not in ASKS:
            raise ValueError(f"condition {name} asks {line!r}; known are {', '.join(ASKS)}")
    return Condition(name, given["text"], asks)


def _answer(line: str, node: NodeFacts) -> bool | None:
    name, words, allowed = _parsed(line)
    try:
        return ASKS[name](node, words, allowed)
    except Blocked:  # An attribute that the calls of a function set in several ways.
        return None


@cache
def _parsed(line: str) -> tuple[str, Sequence[str], Sequence[str]]:
    """Return the name of what answers a line, its words, and those behind the equals sign."""
    subject, _, allowed = line.partition("=")
    name, *words = subject.split()
    return name, words, allowed.split()


def _rank(node: NodeFacts, words: Sequence[str], allowed: Sequence[str]) -> bool | None:
    name = node.input(int(words[0]))
    rank = node.rank(name) if name else None
    return None if rank is None else _is_among(rank, allowed)


def _is_among(number: int, allowed: Sequence[str]) -> bool:
    return any(is_within(number, opset_range(item)) for item in allowed)


def _constant(node: NodeFacts, words: Sequence[str], allowed: Sequence[str]) -> bool | None:
    answers = [_is_constant(node, node.input(int(word))) for word in words]
    return False if False in answers else None if None in answers else True


def _is_constant(node: NodeFacts, name: str) -> bool | None:
    """Return whether a runtime knows a value before a model runs; None if it may compute it.

    It may compute what comes from constants and from shapes.
    """
    waiting, seen, found = [name], {name, ""}, True
    while waiting:
        value = waiting.pop()
        if not value or node.constant(value) is not None or _is_held(node, value):
            continue
        maker = node.maker(value)
        if maker is None or len(seen) > _LONGEST:
            return None if maker is not None else False
        if maker.op_type != "DequantizeLinear":
            found = False
        if maker.op_type not in ("Shape", "Size"):
            waiting += [given for given in maker.input if given not in seen]
            seen.update(maker.input)
    return True if found else None


def _is_held(node: NodeFacts, name: str) -> bool:
    """Return whether a value is an initializer, which callers may override by an input."""
    return node.initializer_dims(name) is not None


def _absent(node: NodeFacts, words: Sequence[str], allowed: Sequence[str]) -> bool | None:
    return not any(node.input(int(word)) for word in words)


def _inputs(node: NodeFacts, words: Sequence[str], allowed: Sequence[str]) -> bool | None:
    return _is_among(sum(map(bool, node.node.input)), allowed)


def _outputs(node: NodeFacts, words: Sequence[str], allowed: Sequence[str]) -> bool | None:
    return _is_among(sum(map(bool, node.node.output)), allowed)


def _dtype(node: NodeFacts, words: Sequence[str], allowed: Sequence[str]) -> bool | None:
    name = node.input(int(words[0]))
    if not name:
        return True
    elem_type = node.elem_type(name)
    return TensorProto.DataType.Name(elem_type).lower() in allowed if elem_type else None


def _attribute(node: NodeFacts, words: Sequence[str], allowed: Sequence[str]) -> bool | None:
    value = node.value(words[0])
    if value is None:
        value = _default(node, words[0])
    if value is None:
        return "absent" in allowed
    if "last" in allowed:
        rank = node.rank(node.input(0))
        last = value == -1 or (None if rank is None else value == rank - 1)
        if last is not False:
            return last
    values = value if isinstance(value, (list, tuple)) else [value]
    return all(_is_value(item, allowed) for item in values)


def _is_value(value: Any, allowed: Sequence[str]) -> bool:
    if isinstance(value, int):
        return any(
            (item.lstrip("-").isdigit() and int(item) == value)
            or (item[0].isdigit() and "-" in item and is_within(value, opset_range(item)))
            for item in allowed
        )
    if isinstance(value, float):
        return any(_number(item) == value for item in allowed)
    text = value.decode() if isinstance(value, bytes) else str(value)
    return text in allowed


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _default(node: NodeFacts, name: str) -> Any:
    """Return the default that the definition of the node's operator gives an attribute."""
    op_type = node.node.op_type
    if not is_default(node.node.domain) or not schemas.exists(op_type, node.source_opset):
        return None
    found = schemas.schema(op_type, node.source_opset).attributes.get(name)
    if found is None or not found.default_value.type:
        return None
    return helper.get_attribute_value(found.default_value)


def _elements(node: NodeFacts, words: Sequence[str], allowed: Sequence[str]) -> bool | None:
    name = node.input(int(words[0]))
    if not name:
        return True
    array = node.constant(name)
    if array is None:
        return None
    return all(_is_value(item, allowed) for item in array.reshape(-1).tolist())


def _static(node: NodeFacts, words: Sequence[str], allowed: Sequence[str]) -> bool | None:
    found = node.type(node.input(int(words[0])))
    if found is None or found.dims is None:
        return None
    return all(isinstance(dim, int) for dim in found.dims)


#: The function that answers a line, by its first word.
ASKS: Mapping[str, Ask] = {
    "rank": _rank,
    "constant": _constant,
    "absent": _absent,
    "inputs": _inputs,
    "outputs": _outputs,
    "dtype": _dtype,
    "attribute": _attribute,
    "elements": _elements,
    "static": _static,
}
