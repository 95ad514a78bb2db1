"""A text of a model that is not UTF-8, in each field that holds one: every command ends well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from onnx import ModelProto, StringStringEntryProto, TensorProto, helper

from tests.support import model

#: What takes the place of a text in turn; then its Q becomes a byte that no text has.
MARK, NO_TEXT = "ZZQZZ", b"ZZ\xffZZ"

#: A field of a message within a model, by its name, and the number of the message where it repeats.
Step = tuple[str, int | None]


def whole() -> ModelProto:
    """A model with a text in each kind of message that a model is likely to have."""
    found = model("""<ir_version: 10, opset_import: ["" : 18, "local" : 1], producer_name: "by",
        producer_version: "1", model_version: 1, doc_string: "said", domain: "org",
        metadata_props: ["key": "value"]>
    g (float[N,3] x) => (float[N,m] y) <float[3] w = {1, 2, 3}, float[3] v = {1, 2, 3}> {
        [made] a = local.F<alpha = 1.0>(x)
        b = Mul(a, w)
        [reduced] d = ReduceMean<keepdims = 1>(b)
        y = Add(d, v)
    }
    <domain: "local", opset_import: ["" : 18], doc_string: "said">
    F <alpha> (p) => (q) { t = LeakyRelu<alpha: float = @alpha>(p) q = Sin(t) }""")
    graph, entry = found.graph, StringStringEntryProto(key="key", value="value")
    graph.value_info.append(helper.make_tensor_value_info("d", 1, ["N", None]))
    annotation = graph.quantization_annotation.add(tensor_name="a")
    annotation.quant_parameter_tensor_names.append(entry)
    graph.input[0].type.denotation = "TENSOR"
    graph.input[0].type.tensor_type.shape.dim[0].denotation = "BATCH"
    said = (graph, graph.node[0], graph.node[0].attribute[0], graph.input[0], graph.initializer[0])
    for item in said:
        item.doc_string = "said"
    function = found.functions[0]
    for item in (graph, graph.node[0], graph.input[0], graph.initializer[0], function):
        item.metadata_props.append(entry)
    apart = graph.initializer[1]
    apart.ClearField("float_data")
    apart.ClearField("raw_data")
    apart.data_location = TensorProto.EXTERNAL
    apart.external_data.append(StringStringEntryProto(key="location", value="v.bin"))
    return found


def texts(message: Any, path: tuple[Step, ...] = ()) -> Iterator[tuple[Step, ...]]:
    """Where a message holds texts."""
    for field, value in message.ListFields():
        items = enumerate(value) if field.is_repeated else [(None, value)]
        for index, item in items:
            if field.type == FieldDescriptor.TYPE_STRING:
                yield (*path, (field.name, index))
            elif field.type == FieldDescriptor.TYPE_MESSAGE:
                yield from texts(item, (*path, (field.name, index)))


def each_kind() -> dict[str, tuple[Step, ...]]:
    """One text for each way to get at some."""
    found: dict[str, tuple[Step, ...]] = {}
    for path in texts(whole()):
        found.setdefault(".".join(name for name, _ in path), path)
    return found


def with_no_text(path: tuple[Step, ...]) -> bytes:
    """The model with no text in one place."""
    found = whole()
    message: Any = found
    *around, (name, index) = path
    for field, number in around:
        message = getattr(message, field)
        message = message if number is None else message[number]
    if index is None:
        setattr(message, name, MARK)
    else:
        getattr(message, name)[index] = MARK
    content: bytes = found.SerializeToString()
    assert content.count(MARK.encode()) == 1
    return content.replace(MARK.encode(), NO_TEXT)


COMMANDS = (
    ("inspect", "{bad}"),
    ("inspect", "{bad}", "--json"),
    ("inspect", "{bad}", "--report", "page.html"),
    ("convert", "{bad}", "--opset", "13", "--no-check", "-o", "out.onnx", "--force"),
    ("convert", "{bad}", "--for", "onnxruntime==1.14", "--no-check", "-o", "o.onnx", "--force"),
    ("diff", "{bad}", "good.onnx"),
    ("diff", "good.onnx", "{bad}", "--json"),
    ("ops", "--of", "{bad}"),
)


@pytest.mark.parametrize("field", each_kind())
def test_every_command_ends_well(field, onnxreduce, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("v.bin").write_bytes(bytes(12))
    Path("good.onnx").write_bytes(whole().SerializeToString())
    Path("bad.onnx").write_bytes(with_no_text(each_kind()[field]))
    for command in COMMANDS:
        result = onnxreduce(*(item.format(bad="bad.onnx") for item in command))
        assert result.code in (0, 1, 2), command
        assert "bug in onnxreduce" not in result.err, (command, result.err)


def test_the_model_is_sound_otherwise(onnxreduce, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("v.bin").write_bytes(bytes(12))
    Path("good.onnx").write_bytes(whole().SerializeToString())
    for command in COMMANDS:
        assert onnxreduce(*(item.format(bad="good.onnx") for item in command)).code == 0, command
    assert len(each_kind()) > 30
