"""What is left out of a model when it is read comes back, byte for byte, when it is written."""

from __future__ import annotations

import io
import random
from pathlib import Path

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from onnx import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    SparseTensorProto,
    TensorProto,
    helper,
    numpy_helper,
)

from onnxreduce_cli.model.file import outline as module
from onnxreduce_cli.model.file import wire
from onnxreduce_cli.model.file.byte_ranges import FileRange, StoredFile, write
from onnxreduce_cli.model.file.outline import Outline
from onnxreduce_cli.model.file.tensors import tensors
from tests import share

#: A field that onnx does not know, in every kind of message.
UNKNOWN = wire.header(20_000, 3) + b"new"


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(module, "LARGE", 40)
    monkeypatch.setattr(module, "MOST_ELEMENTS", 4)


def read(content: bytes, folder: Path) -> tuple[Outline, ModelProto]:
    path = folder / "model.onnx"
    path.write_bytes(content)
    found = Outline()
    stored = StoredFile.at(str(path))
    with stored.opened() as file:
        return found, ModelProto.FromString(found.read(file, stored))


def embedded(found: Outline, model: ModelProto, folder: Path) -> bytes:
    with (folder / "out.onnx").open("wb") as file:
        write(found.embed(model.SerializeToString()), file)
    return (folder / "out.onnx").read_bytes()


def model_of(*initializers: TensorProto, **parts: object) -> ModelProto:
    graph = GraphProto(name="g", initializer=initializers)
    return ModelProto(ir_version=8, graph=graph, producer_name="test", **parts)


numbers = st.integers(0, 40)

FIELDS = [field.name for field in TensorProto.DESCRIPTOR.fields if field.name.endswith("_data")]
FIELDS[FIELDS.index("external_data")] = "none"


@st.composite
def some_tensors(draw: st.DrawFn) -> TensorProto:
    size = draw(numbers)
    tensor = TensorProto(name=draw(st.text(max_size=3)), dims=[size])
    field = draw(st.sampled_from(FIELDS))
    if field == "raw_data":
        tensor.data_type = TensorProto.INT32
        tensor.raw_data = draw(st.binary(min_size=4 * size, max_size=4 * size))
    elif field == "string_data":
        tensor.data_type = TensorProto.STRING
        tensor.string_data.extend(b"text" for _ in range(size))
    elif field != "none":
        tensor.data_type = TensorProto.DOUBLE
        values = range(1 << 10, (1 << 10) + size)
        getattr(tensor, field).extend(values)
    if draw(st.booleans()):
        tensor.doc_string = "later"
    if draw(st.booleans()):
        tensor.data_location = TensorProto.DEFAULT
    return draw(extended(tensor))


@st.composite
def extended(draw, message):
    """Maybe the message with a field that onnx does not know."""
    if draw(st.booleans()):
        message.MergeFromString(UNKNOWN)
    return message


@st.composite
def graphs(draw: st.DrawFn, depth: int = 2) -> GraphProto:
    graph = GraphProto(name=draw(st.text(max_size=3)))
    graph.initializer.extend(draw(st.lists(some_tensors(), max_size=3)))
    for _ in range(draw(st.integers(0, 2))):
        graph.node.append(draw(nodes(depth)))
    if draw(st.booleans()):
        sparse = SparseTensorProto(dims=[99])
        sparse.values.CopyFrom(draw(some_tensors()))
        sparse.indices.CopyFrom(draw(some_tensors()))
        graph.sparse_initializer.append(sparse)
    return draw(extended(graph))


@st.composite
def nodes(draw: st.DrawFn, depth: int) -> NodeProto:
    node = NodeProto(op_type="Op", name=draw(st.text(max_size=3)))
    for name in draw(st.sets(st.sampled_from(("t", "tensors", "g", "graphs", "floats")))):
        attribute = node.attribute.add(name=name)
        if name == "t":
            attribute.type = AttributeProto.TENSOR
            attribute.t.CopyFrom(draw(some_tensors()))
        elif name == "tensors":
            attribute.tensors.extend(draw(st.lists(some_tensors(), max_size=2)))
        elif name == "floats":
            attribute.floats.extend([1.0] * draw(numbers))
        elif depth and name == "g":
            attribute.g.CopyFrom(draw(graphs(depth - 1)))
        elif depth:
            attribute.graphs.extend(draw(st.lists(graphs(depth - 1), max_size=2)))
        draw(extended(attribute))
    return draw(extended(node))


@st.composite
def models(draw: st.DrawFn) -> ModelProto:
    model = ModelProto(ir_version=8, doc_string=draw(st.text(max_size=5)))
    model.graph.CopyFrom(draw(graphs()))
    for _ in range(draw(st.integers(0, 1))):
        function = FunctionProto(name="f", node=[draw(nodes(1))])
        attribute = function.attribute_proto.add(name="value", type=AttributeProto.TENSOR)
        attribute.t.CopyFrom(draw(some_tensors()))
        model.functions.append(function)
        model.training_info.add().algorithm.CopyFrom(draw(graphs(0)))
    return draw(extended(model))


@given(model=models())
@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_is_left_out_comes_back(model: ModelProto, tmp_path: Path) -> None:
    content = model.SerializeToString()
    found, outlined = read(content, tmp_path)
    assert len(found) == sum(found.of(tensor) is not None for tensor in tensors(outlined))
    assert embedded(found, outlined, tmp_path) == content
    found.fill(tensors(outlined))
    assert outlined == model


def raw(name: str = "w", size: int = 20) -> TensorProto:
    return numpy_helper.from_array(np.arange(size, dtype=np.int32), name)


def typed(elem_type: int, size: int = 50) -> TensorProto:
    values = np.arange(size)
    return helper.make_tensor("w", elem_type, [size], values)


@pytest.mark.parametrize(
    "tensor",
    [raw()]
    + [
        typed(elem_type)
        for elem_type in (
            TensorProto.FLOAT,
            TensorProto.FLOAT16,
            TensorProto.INT64,
            TensorProto.DOUBLE,
            TensorProto.UINT64,
            TensorProto.COMPLEX64,
        )
    ],
    ids=lambda tensor: TensorProto.DataType.Name(tensor.data_type),
)
def test_every_field_of_numbers_is_left_out_wherever_it_is(tensor, tmp_path) -> None:
    constant = helper.make_node("Constant", [], ["c"], value=tensor)
    inner = GraphProto(name="inner", initializer=[tensor], node=[constant])
    branches = helper.make_node("If", ["x"], ["y"], then_branch=inner, else_branch=inner)
    model = model_of(tensor, functions=[FunctionProto(name="f", node=[constant])])
    model.graph.node.extend([constant, branches])
    model.training_info.add().initialization.CopyFrom(inner)
    sparse = model.graph.sparse_initializer.add(dims=[99])
    sparse.values.CopyFrom(tensor)
    sparse.indices.CopyFrom(raw())
    found, outlined = read(model.SerializeToString(), tmp_path)
    assert len(found) == 11
    assert outlined.ByteSize() < 2500
    assert embedded(found, outlined, tmp_path) == model.SerializeToString()


def test_a_tensor_that_was_moved_copied_or_removed(tmp_path: Path) -> None:
    model = model_of(raw("a"), raw("b"), raw("c", 30))
    found, outlined = read(model.SerializeToString(), tmp_path)
    for changed in (outlined, model):
        copy = changed.graph.node.add(op_type="Constant").attribute.add(name="value")
        copy.t.CopyFrom(changed.graph.initializer[2])
        copy.t.name = "renamed"
        del changed.graph.initializer[1]
    assert embedded(found, outlined, tmp_path) == model.SerializeToString()


def test_values_that_may_decide_something_stay(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_ELEMENTS", 20)
    found, outlined = read(model_of(raw(), raw("x", 21)).SerializeToString(), tmp_path)
    assert len(found) == 1
    assert outlined.graph.initializer[0] == raw()


def tensor_field(number: int, content: bytes) -> bytes:
    return wire.header(number, len(content)) + content


RAW = TensorProto(raw_data=b"another").SerializeToString()
GRAPH = ModelProto.DESCRIPTOR.fields_by_name["graph"].number
INITIALIZER = GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
NODE = GraphProto.DESCRIPTOR.fields_by_name["node"].number
ATTRIBUTE = NodeProto.DESCRIPTOR.fields_by_name["attribute"].number
T = AttributeProto.DESCRIPTOR.fields_by_name["t"].number
LARGE_RAW = raw().SerializeToString()

#: Tensors that protobuf reads in some way of its own: as messages, and how many are left out.
UNUSUAL = {
    "data twice": (LARGE_RAW + LARGE_RAW, 0),
    "data twice, once small": (LARGE_RAW + RAW, 0),
    "data in two fields": (LARGE_RAW + typed(TensorProto.FLOAT).SerializeToString(), 0),
    "data, and external data": (
        LARGE_RAW + TensorProto(data_location=TensorProto.EXTERNAL).SerializeToString(),
        0,
    ),
    "a group": (LARGE_RAW + b"\x83\x80\x01\x84\x80\x01", 0),
    "fields in any order": (LARGE_RAW + TensorProto(dims=[1], name="z").SerializeToString(), 1),
    "a name of no text": (LARGE_RAW + wire.header(8, 2) + b"\xff\xfe", 1),
    "numbers one by one": (
        TensorProto(dims=[20], data_type=1).SerializeToString() + 20 * b"\x25\0\0\x80\x3f",
        0,
    ),
    "numbers in two lots": (2 * typed(TensorProto.FLOAT).SerializeToString(), 0),
    "a place of the wrong kind": (LARGE_RAW + wire.header(14, 1) + b"w", 0),
    "a place that onnx does not know": (LARGE_RAW + b"\x70\x07", 0),
    "the same place twice": (LARGE_RAW + 2 * b"\x70\x00", 0),
    "a wide length": (
        TensorProto(dims=[20], data_type=6).SerializeToString()
        + b"\x4a\xd0\x80\x80\x00" + bytes(80),
        1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNUSUAL)
def test_what_is_unusual_means_the_same(name: str, tmp_path: Path) -> None:
    tensor, left_out = UNUSUAL[name]
    content = tensor_field(GRAPH, tensor_field(INITIALIZER, tensor))
    found, outlined = read(content, tmp_path)
    assert len(found) == left_out
    again = ModelProto.FromString(embedded(found, outlined, tmp_path))
    assert again == ModelProto.FromString(content)


def test_messages_that_protobuf_merges(tmp_path: Path) -> None:
    twice = tensor_field(T, LARGE_RAW) + tensor_field(T, RAW)
    in_node = tensor_field(NODE, tensor_field(ATTRIBUTE, twice))
    one, other = (
        tensor_field(GRAPH, part) for part in (in_node, tensor_field(INITIALIZER, LARGE_RAW))
    )
    for content, left_out in ((one, 0), (other, 1), (one + other, 0), (other + other, 0)):
        found, outlined = read(content, tmp_path)
        assert len(found) == left_out
        again = ModelProto.FromString(embedded(found, outlined, tmp_path))
        assert again == ModelProto.FromString(content)


def test_deep_nesting_and_what_is_no_model(tmp_path: Path) -> None:
    graph = GraphProto(initializer=[raw()])
    for _ in range(30):
        node = NodeProto(op_type="If")
        node.attribute.add(name="then_branch", type=AttributeProto.GRAPH).g.CopyFrom(graph)
        graph = GraphProto(node=[node])
    content = ModelProto(graph=graph).SerializeToString()
    found, outlined = read(content, tmp_path)
    assert len(found) == 1
    assert embedded(found, outlined, tmp_path) == content
    path = tmp_path / "junk"
    for junk in (b"\x3a\xff\x01" + bytes(50), content[:-1], b"", bytes(200), b"\xff" * 200):
        path.write_bytes(junk)
        stored = StoredFile.at(str(path))
        with stored.opened() as file:
            assert Outline().read(file, stored) == junk


def mutations(content: bytes, rng: random.Random) -> bytes:
    changed = bytearray(content)
    for _ in range(rng.randint(1, 3)):
        place, size = rng.randrange(len(changed)), rng.randint(1, 6)
        some = bytes(rng.randrange(256) for _ in range(size))
        kind = rng.randrange(4)
        if kind == 0:
            changed[place] ^= 1 << rng.randrange(8)
        elif kind == 1:
            changed[place : place + 1] = some[:1]
        else:
            changed[place : place + (size if kind == 2 else 0)] = b"" if kind == 2 else some
    return bytes(changed)


def parsed(content: bytes) -> ModelProto | None:
    try:
        return ModelProto.FromString(content)
    except DecodeError:
        return None


#: So many rounds, each with other bytes.
MANY = 30_000 if share.whole else 6_000


@pytest.mark.parametrize(
    "rounds", [150, pytest.param(MANY, marks=pytest.mark.matrix)], ids=("few", "many")
)
@pytest.mark.parametrize("elem_type", [1, 6, 7, 11, 13], ids=TensorProto.DataType.Name)
def test_a_damaged_file_means_what_it_means_to_protobuf(elem_type, rounds, tmp_path) -> None:
    """Whatever bytes change: it is unreadable in both ways, or the same in both."""
    tensor = raw() if elem_type == TensorProto.INT32 else typed(elem_type)
    constant = helper.make_node("Constant", [], ["c"], value=tensor)
    inner = GraphProto(name="inner", initializer=[tensor], node=[constant])
    branch = helper.make_node("If", ["x"], ["y"], then_branch=inner)
    model = model_of(tensor, functions=[FunctionProto(name="f", node=[constant])])
    model.graph.node.append(branch)
    model.graph.sparse_initializer.add(dims=[99]).values.CopyFrom(tensor)
    content, rng = model.SerializeToString(), random.Random(elem_type)
    left_out = 0
    for _ in range(rounds):
        damaged = mutations(content, rng)
        expected = parsed(damaged)
        try:
            found, outlined = read(damaged, tmp_path)
        except DecodeError:
            assert expected is None
            continue
        assert expected is not None
        left_out += len(found)
        again = parsed(embedded(found, outlined, tmp_path))
        assert again is not None
        assert again.SerializeToString() == expected.SerializeToString()
    assert left_out > rounds / 2


def test_a_placeholder_is_not_to_be_had_by_its_name(tmp_path: Path) -> None:
    """A model that has the names of an earlier reading in it gets nothing by them."""
    found, outlined = read(model_of(raw()).SerializeToString(), tmp_path)
    fake = outlined.SerializeToString()
    assert len(found) == 1
    other, again = read(fake, tmp_path)
    assert len(other) == 0
    assert embedded(other, again, tmp_path) == fake


def test_spans_are_of_the_data_alone(tmp_path: Path) -> None:
    found, outlined = read(model_of(raw()).SerializeToString(), tmp_path)
    left_out = found.of(outlined.graph.initializer[0])
    assert left_out is not None
    (span,) = left_out.byte_ranges
    assert isinstance(span, FileRange)
    assert span.read() == raw().raw_data
    target = io.BytesIO()
    write([span], target)
    assert target.getvalue() == raw().raw_data
