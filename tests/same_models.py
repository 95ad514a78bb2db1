"""Conversions before and after a change to the code that must not change what comes out.

`python -m tests.same_models record FILE` writes what 2,000 conversions give, and
`python -m tests.same_models compare FILE` says which give something else now. Names that a
conversion made up do not count; those of the source do, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import Message
from onnx import GraphProto, ModelProto, NodeProto

import onnxreduce_cli
from tests import matrix, node_cases

COUNT = 2000

#: Where a message of one of these kinds keeps the names of values.
_VALUE_NAMES = {
    "NodeProto": ("input", "output"),
    "FunctionProto": ("input", "output"),
    "ValueInfoProto": ("name",),
    "TensorProto": ("name",),
    "TensorAnnotation": ("tensor_name",),
}


def canonical(model: ModelProto, source: ModelProto) -> ModelProto:
    """A copy of `model` in which names that `source` lacks are numbered in order of appearance.

    Nodes come before the initializers and types that are stated of what they read, so that the
    order of the latter does not count either.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    for graph in _messages(copy, GraphProto):
        for field in (graph.initializer, graph.value_info):
            listed = sorted(field, key=lambda item: item.name)
            del field[:]
            field.extend(listed)
    own, numbers = set(_names(source)), dict[str, str]()

    def renamed(name: str) -> str:
        if not name or name in own:
            return name
        return numbers.setdefault(name, f"generated:{len(numbers)}")

    # A node's name says no more than those of its outputs where it was made up.
    messages = [*_messages(copy, NodeProto)]
    messages += [item for item in _messages(copy) if item.DESCRIPTOR.name != "NodeProto"]
    for message in messages:
        for field in _VALUE_NAMES.get(message.DESCRIPTOR.name, ()):
            value = getattr(message, field)
            if isinstance(value, str):
                setattr(message, field, renamed(value))
            else:
                value[:] = map(renamed, value)
    for message in messages:
        if isinstance(message, (NodeProto, GraphProto)) and message.name not in own:
            message.name = ""
    for graph in _messages(copy, GraphProto):
        for field in (graph.initializer, graph.value_info):
            listed = sorted(field, key=_position)
            del field[:]
            field.extend(listed)
    return copy


def _position(item: Any) -> tuple[int, str]:
    head, _, number = item.name.partition("generated:")
    return (int(number), "") if not head and number else (-1, item.name)


def _names(model: ModelProto) -> Iterator[str]:
    for message in _messages(model):
        for field in (*_VALUE_NAMES.get(message.DESCRIPTOR.name, ()), "name"):
            value = getattr(message, field, "")
            yield from [value] if isinstance(value, str) else value


def _messages(message: Message, kind: type[Any] = Message) -> Iterator[Any]:
    """A message and all within it, of one kind."""
    if isinstance(message, kind):
        yield message
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for item in [value] if isinstance(value, Message) else value:
                yield from _messages(item, kind)


def conversions() -> Iterator[tuple[str, Callable[[], ModelProto], int]]:
    """A name, what makes the source, and the target of each conversion; the same ones each time."""
    draw = random.Random(0)
    folders = [Path(__file__).parent / "data" / "models", Path(__file__).parents[1] / "samples"]
    for path in sorted(path for folder in folders for path in folder.glob("*.onnx")):
        if path.with_suffix(".npz").exists():
            for target in (7, 9, 10, 11, 12, 13, 15, 17, 18, 20, 21, 24, node_cases.NEWEST):
                yield f"{path.stem} to {target}", lambda path=path: onnx.load(path), target
    family = [
        case
        for op in (*matrix.REDUCE, *matrix.SOFTMAX)
        for case in draw.sample([*matrix.cases(op, 1)], 40)
    ]
    for case in family:
        yield str(case), lambda case=case: matrix.build(case)[0], case.target
    pairs = [(case, target) for case in node_cases.cases() for target in range(1, 29)]
    for case, target in draw.sample(pairs, COUNT):
        if target <= node_cases.NEWEST and target != node_cases.opset_of(case.model):
            yield f"{case.name} to {target}", lambda case=case: case.model, target


def results() -> Iterator[tuple[str, str, ModelProto | None]]:
    """For each conversion its name, and a digest of what it gives, or that it is blocked."""
    for name, source, target in conversions():
        model = source()
        try:
            result = onnxreduce_cli.convert(model, target, check=False, emulate=True)
        except onnxreduce_cli.ConversionError as error:
            yield name, f"blocked: {len(error.blockers)}", None
            continue
        text = canonical(result, model).SerializeToString(deterministic=True)
        yield name, hashlib.sha256(text).hexdigest(), result


def main(action: str, file: str) -> int:
    """Record what conversions give, or compare it with a record; 1 if it is not the same."""
    path = Path(file)
    if action == "record":
        found = {name: digest for name, digest, _ in results()}
        path.write_text(json.dumps(found, indent=0), encoding="utf-8")
        print(f"{len(found)} conversions")
        return 0
    before = json.loads(path.read_text(encoding="utf-8"))
    other = []
    for name, digest, _ in results():
        if before.pop(name, None) != digest:
            other.append(name)
            print(f"not the same: {name}")
    for name in before:
        print(f"gone: {name}")
    print(f"{len(other)} differ, {len(before)} are gone")
    return 1 if other or before else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
