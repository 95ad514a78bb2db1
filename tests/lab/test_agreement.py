"""What `targets/` says of runtimes is what was measured in them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest

from lab.measured import Pair, load, pairs
from lab.models import model
from lab.predict import predicted, target_of
from onnxreduce_cli import convert
from onnxreduce_cli.model.graph.domains import default_opset
from onnxreduce_cli.model.types.facts import Facts, admit
from onnxreduce_cli.schemas import versions

#: What became several nodes at an older opset, of which it is not known which one a runtime
#: refuses; some were written in others than now when they were measured.
WRITTEN_OUT = {
    "Attention_f",
    "Gelu_tanh",
    "GridSample_f",
    "GroupNormalization_g21",
    # OpenCV takes it for itself there; what reads something else it takes for that, too.
    "HardSwish_f",
    "Resize_f",
    "ScatterND_add",
}

#: What is no matter of a node: runtimes, and the node that the model consists of.
WHOLE_MODELS = {
    # It refuses a model that only passes its input on.
    ("pnnx+ncnn-20261020", "Identity"),
    # It gives zeros then, called in the way that Interpreter and Session are.
    ("mnn-3.0.0", "Identity"),
}

#: What was measured as wrong where the outputs, right under their names, were taken in order.
TAKEN_IN_ORDER = {("opencv-4.11.0", "TopK_f"), ("opencv-4.12.0", "TopK_f")}

#: What was measured as right where it is so by chance: each row has an element above 0.
RIGHT_BY_CHANCE = {("nncase-1.9.0", f"Hardmax_{name}") for name in ("axm1", "old1", "old3")}


@cache
def facts(source: str, source_opset: int, opset: int) -> Facts:
    given = model(source, source_opset)
    return admit(given if opset == source_opset else convert(given, opset, check=False))


def differences() -> Iterator[tuple[Pair, int, Facts]]:
    for pair in pairs(load()):
        if (pair.runtime, pair.source) in TAKEN_IN_ORDER | RIGHT_BY_CHANCE:
            continue
        target = target_of(pair.runtime)
        for opset, verdict in pair.verdicts.items():
            known = facts(pair.source, pair.source_opset, opset)
            if predicted(target, known) != verdict:
                yield pair, opset, known


@pytest.fixture(scope="module")
def found() -> list[tuple[Pair, int, Facts]]:
    return list(differences())


def is_written_out(pair: Pair, known: Facts) -> bool:
    """Whether the operator is not there at this opset, or not in the form that it had."""
    nodes = known.model.graph.node
    return pair.source in WRITTEN_OUT and len(nodes) > 1


def test_the_table_says_what_was_measured(found: list[tuple[Pair, int, Facts]]) -> None:
    unexplained = [
        f"{pair.runtime} {pair.source} at {opset}: {pair.verdicts[opset]}"
        for pair, opset, known in found
        if not is_written_out(pair, known)
        and (pair.runtime, known.model.graph.node[-1].op_type) not in WHOLE_MODELS
    ]
    assert unexplained == []


def test_each_exception_is_one(found: list[tuple[Pair, int, Facts]]) -> None:
    whole = {
        (pair.runtime, known.model.graph.node[-1].op_type)
        for pair, _, known in found
        if not is_written_out(pair, known)
    }
    assert whole == WHOLE_MODELS
    assert {pair.source for pair, _, known in found if is_written_out(pair, known)} == WRITTEN_OUT
    assert len(found) < 200


def test_what_differs_is_never_an_exported_model(found: list[tuple[Pair, int, Facts]]) -> None:
    assert all(opset != pair.source_opset for pair, opset, _ in found)


def test_sources_are_built_as_they_are_called() -> None:
    for name, said in load()["sources"].items():
        given = model(name, said["source_opset"])
        assert given.graph.node[-1].op_type == said["op"]
        assert default_opset(given) == said["source_opset"] >= versions(said["op"])[0]
