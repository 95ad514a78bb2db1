"""The fuzzer itself: its mutants can be made again, and it sees what goes wrong."""

from __future__ import annotations

import random

import numpy as np
import pytest
from onnx import ModelProto

from onnxreduce_cli.cli import main as command_line
from tests.fuzz import edge_mutants, field_mutations, subject, wire_mutations
from tests.fuzz.mutants import Mutant, _with_weights
from tests.support import one_node

SOUND = one_node("ReduceSum", 13, {"x": np.zeros((2, 3), np.float32)}).SerializeToString()


def test_a_mutant_is_the_same_each_time() -> None:
    for change in (
        lambda rng: wire_mutations.mutated(SOUND, rng),
        lambda rng: field_mutations.mutated(ModelProto.FromString(SOUND), rng),
    ):
        made = [change(random.Random(number)) for number in range(200)]
        assert made == [change(random.Random(number)) for number in range(200)]
        assert len(set(made)) > 100


def test_mutants_of_fields_are_read_as_models() -> None:
    for number in range(200):
        rng = random.Random(number)
        model = ModelProto.FromString(SOUND)
        changed = field_mutations.mutated(model, rng)
        assert b"\xff\xfe\x80" in changed or ModelProto.FromString(changed) == model


def test_a_broken_model_with_weights_is_as_broken() -> None:
    model = ModelProto.FromString(_with_weights(SOUND))
    assert model.graph.initializer.pop().name == "weights_of_64_MiB"
    assert model.SerializeToString() == SOUND
    broken = b"\x3a\x03\x0a\x01\xff"
    assert _with_weights(broken).startswith(broken)


def test_each_attribute_and_input_is_put_at_its_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    node = one_node("Softmax", 13, {"x": np.zeros((2, 3), np.float32)}, axis=1)
    given = node.SerializeToString()
    monkeypatch.setattr(edge_mutants, "seeds", lambda: ((given, given),))
    edge_mutants._edges.cache_clear()
    try:
        made = [edge_mutants.edge_mutant(number) for number in range(edge_mutants.count())]
    finally:
        edge_mutants._edges.cache_clear()
    # Each value of the attribute once; the input of both seeds without type, dtype and shape, and
    # once, checked, with other shapes.
    shapes = [(3, 2), (1, 2, 3), (4, 3), (6,), (1, 6)]
    assert len(made) == 4 * (7 + 3 + len(shapes) + 3)
    checked = ["--no-check" not in item.arguments for item in made[::4]]
    assert checked == [*[False] * 10, *[True] * len(shapes), *[False] * 3]
    assert {item.arguments[1] for item in made} == {"8", "12", "15", "20"}
    models = [ModelProto.FromString(item.content) for item in made[::4]]
    assert [item.graph.node[0].attribute[0].i for item in models[:7]] == [
        0,
        1,
        -1,
        2,
        7,
        -9,
        1 << 31,
    ]
    types = [item.graph.input[0].type for item in models[7:10]]
    assert [item.WhichOneof("value") for item in types] == [None, "tensor_type", "tensor_type"]
    assert [item.tensor_type.HasField("elem_type") for item in types] == [False, False, True]
    assert [item.tensor_type.HasField("shape") for item in types] == [False, True, False]
    dims = [item.graph.input[0].type.tensor_type.shape.dim for item in models[10:15]]
    assert [tuple(dim.dim_value for dim in item) for item in dims] == shapes
    assert all(item.graph.input[0].type.tensor_type.elem_type for item in models[:7])


def test_a_sound_model_has_no_problems() -> None:
    assert subject.ending(Mutant(SOUND, "convert", ("--opset", "11"))) == ("exit code 0", [])
    assert subject.ending(Mutant(SOUND[:9], "inspect", ())) == ("exit code 2", [])


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (TypeError("x"), "a bug: TypeError"),
        (SystemExit(7), "exit code 7"),
        (MemoryError(), None),
    ],
)
def test_what_goes_wrong_is_seen(
    monkeypatch: pytest.MonkeyPatch, error: BaseException, found: str | None
) -> None:
    def fails(**_: object) -> None:
        raise error

    monkeypatch.setattr(command_line, "cli", fails)
    monkeypatch.setattr(command_line, "_fail", command_line._fail)
    monkeypatch.setattr(subject, "_LIMIT", -1)  # As it is: this process goes on after the test.
    subject.prepare()
    wrong = subject.ending(Mutant(SOUND, "inspect", ())).problems
    assert len(wrong) == (found is not None)
    assert found is None or wrong[0].startswith(found)


def test_what_is_written_to_the_terminal_is_looked_at() -> None:
    assert subject._in_text("fine\nand well", "x\n" * 9000) == []
    assert subject._in_text("\x1b[2J", "")[0].startswith("control characters")
    assert subject._in_text("x\n" * 11_000, "") == []
    assert subject._in_text("", "x\n" * 11_000) == ["a message too long to read"]
    assert subject._in_text("x" * 3000, "") == ["a message too long to read"]


def test_a_report_is_json() -> None:
    assert subject.ending(Mutant(SOUND, "inspect", ("--json",))) == ("exit code 0", [])
    assert subject.ending(Mutant(SOUND[:9], "inspect", ("--json",))) == ("exit code 2", [])
    assert subject._in_json("{") == ["no JSON"]


def test_two_models_are_compared() -> None:
    assert subject.ending(Mutant(SOUND, "diff", (), SOUND)) == ("exit code 0", [])
    assert subject.ending(Mutant(SOUND, "diff", ())).how == "exit code 2"


def test_time_is_the_processor_s(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "SECONDS", 0.0)
    assert subject.ending(Mutant(SOUND, "inspect", ())).problems[0].startswith("more than 0 sec")
    monkeypatch.setattr(subject.time, "process_time", lambda: 0.0)
    assert subject.ending(Mutant(SOUND, "inspect", ())).problems == []
