"""Whatever a model's texts hold, the terminal gets lines that this program wrote."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
import onnx
import pytest
from google.protobuf.message import Message
from onnx import ModelProto, TensorProto, helper

#: A forged line, the sequence that clears a screen, one of a terminal's eight-bit ones, and one
#: that turns the reading direction round.
HOSTILE = "a\nOK: can be converted\r\x1b[2J\x9b31m\u202e\u2028\x7fz"

#: What other models than broken ones are given to.
COMMANDS = (
    ("inspect",),
    ("convert", "--opset", "7"),
    ("convert", "--opset", "13", "-o", "out.onnx"),
    ("convert", "--opset", "13", "--out-dir", "out"),
    ("run", "--inputs", "in.npz"),
    ("run",),
    ("verify", "--trials", "1"),
    ("verify", "other.onnx", "--trials", "1", "--json"),
    ("verify", "other.onnx", "--trials", "1"),
)


def rich_model() -> ModelProto:
    """A model that has a text in nearly every field, some nodes of which block below 13."""
    nodes = [
        helper.make_node("F", ["x"], ["f"], name="call", domain="loc"),
        helper.make_node("ReduceMax", ["f", "axes"], ["r"], name="r", doc_string="d"),
        helper.make_node("Unknown", ["r"], ["u"], name="u", domain="other", mode="text"),
        helper.make_node("If", ["c"], ["i"], name="i"),
        helper.make_node("Add", ["i", "w"], ["y"], name="add"),
    ]
    for arm in ("then_branch", "else_branch"):
        inner = helper.make_node("Identity", ["w"], [f"{arm}_y"], name=arm)
        out = helper.make_tensor_value_info(f"{arm}_y", TensorProto.FLOAT, ["N"])
        nodes[3].attribute.append(
            helper.make_attribute(arm, helper.make_graph([inner], arm, [], [out]))
        )
    body = [helper.make_node("Softmax", ["a"], ["b"], name="s")]
    body[0].attribute.append(
        onnx.AttributeProto(name="axis", ref_attr_name="axis", type=onnx.AttributeProto.INT)
    )
    function = helper.make_function(
        "loc", "F", ["a"], ["b"], body, [helper.make_opsetid("", 18)], attributes=["axis"]
    )
    function.metadata_props.add(key="k", value="v")
    float_info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes,
        "g",
        [
            float_info("x", TensorProto.FLOAT, ["N", 2]),
            float_info("axes", TensorProto.INT64, [1]),
            float_info("c", TensorProto.BOOL, []),
        ],
        [float_info("y", TensorProto.FLOAT, ["N"]), float_info("u", TensorProto.FLOAT, ["N"])],
        [helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])],
        value_info=[float_info("f", TensorProto.FLOAT, ["N", 2])],
    )
    opsets = [helper.make_opsetid(d, v) for d, v in (("", 18), ("loc", 1), ("other", 1))]
    model = helper.make_model(graph, opset_imports=opsets, functions=[function], ir_version=8)
    model.metadata_props.add(key="k", value="v")
    return model


def texts(message: Message, path: str = "") -> Iterator[tuple[str, Message, Any, int | None]]:
    """Every field of a message, at any depth, that holds a text: its path, and where it is."""
    for field, value in message.ListFields():
        here = f"{path}.{field.name}" if path else field.name
        many = not isinstance(value, (Message, str, bytes, int, float))
        for index, item in enumerate(value) if many else [(None, value)]:
            place = here if index is None else f"{here}[{index}]"
            if isinstance(item, Message):
                yield from texts(item, place)
            elif isinstance(item, str):
                yield place, message, field, index


def change(model: ModelProto, wanted: Collection[str]) -> None:
    """Make every text hostile that is the same as one of those given, so that names still meet."""
    for _, message, field, index in texts(model):
        old = value(message, field, index)
        if old in wanted and index is None:
            setattr(message, field.name, f"{old}{HOSTILE}")
        elif old in wanted:
            getattr(message, field.name)[index] = f"{old}{HOSTILE}"


def value(message: Message, field: Any, index: int | None) -> str:
    found = getattr(message, field.name)
    text: str = found if index is None else found[index]
    return text


def check(shown: str) -> None:
    """Assert that a text has no control character but newlines, and no line that is forged."""
    lines = shown.split("\n")
    assert all(line.isprintable() for line in lines), shown
    assert not any(line.startswith("OK") for line in lines), shown


#: The model's distinct texts, each with the path of one field that has it.
TEXTS = {value(*place): path for path, *place in texts(rich_model())}


@pytest.mark.parametrize("text", TEXTS, ids=list(TEXTS.values()))
def test_no_text_of_a_model_reaches_the_terminal_as_it_is(onnxreduce, tmp_path, monkeypatch, text):
    monkeypatch.chdir(tmp_path)
    model = rich_model()
    change(model, [text])
    onnx.save(model, "in.onnx")
    for command in (("inspect",), ("convert", "--opset", "11", "--dry-run")):
        result = onnxreduce(command[0], "in.onnx", *command[1:])
        assert result.out or result.err
        check(result.out)
        check(result.err)


@pytest.fixture
def runnable(tmp_path, monkeypatch):
    """A model with hostile names that every command gets far with, and another that differs."""
    monkeypatch.chdir(tmp_path)
    model = rich_model()
    del model.graph.node[2], model.graph.output[1]
    model.functions[0].attribute_proto.append(helper.make_attribute("axis", 1))
    del model.functions[0].attribute[:]
    fixed = {"", "loc", "other", "F", "ReduceMax", "If", "Add", "Identity", "Softmax", "axis"}
    fixed |= {"then_branch", "else_branch"}
    change(model, {value(*place) for _, *place in texts(model)} - fixed)
    onnx.save(model, "in.onnx")
    data = {"x": np.ones((1, 2), np.float32), "axes": np.array([1]), "c": np.array(True)}
    np.savez("in.npz", **{f"{name}{HOSTILE}": array for name, array in data.items()})
    model.graph.initializer[0].float_data[0] = 2
    onnx.save(model, "other.onnx")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_command_shows_texts_of_a_model_as_they_are(onnxreduce, runnable, command):
    result = onnxreduce(command[0], "in.onnx", *command[1:])
    assert result.out or result.err
    check(result.out)
    check(result.err)


def test_the_names_of_files_neither(onnxreduce, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = f"{HOSTILE}.onnx"
    (tmp_path / name).write_bytes(b"no model")
    for command in (
        ("inspect", name),
        ("convert", name, "--opset", "11"),
        ("convert", name, name, "--opset", "11"),
        ("convert", name, "--opset", "11", "--out-dir", "out"),
        ("verify", name),
        ("run", name),
        ("run", name, "-i", HOSTILE),
        ("convert", f"--{HOSTILE}"),
        ("ops", HOSTILE),
        (HOSTILE,),
    ):
        result = onnxreduce(*command)
        assert result.code
        assert result.err
        check(result.out)
        check(result.err)


def test_outputs_that_are_texts_neither(onnxreduce, tmp_path):
    tensor = helper.make_tensor("t", TensorProto.STRING, [], [HOSTILE.encode()])
    nodes = [
        helper.make_node("Constant", [], ["y"], value=tensor),
        helper.make_node("Constant", [], ["z"], value_strings=[HOSTILE]),
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.STRING, dims)
        for name, dims in (("y", []), ("z", [1]))
    ]
    opset = [helper.make_opsetid("", 17)]
    graph = helper.make_graph(nodes, "g", [], outputs)
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=8), tmp_path / "in.onnx")
    result = onnxreduce("run", tmp_path / "in.onnx")
    assert result.code == 0
    assert "OK: can be converted" in result.out
    check(result.out)
