"""Real models up to the newest opset and back to their own: the same results."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

import onnxreduce_cli
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.executor import ExecutorError, UnsupportedError
from tests.steps.checklist import newest_declared
from tests.support import Expected
from tests.test_models import NOT_RUN, OWN, check_shipped, close

SAMPLES = Path(__file__).parent.parent / "samples"
NEWEST = newest_declared()

#: Why a model may not get there or back, each the part of a reason that is true of the operator.
HONEST = (
    "is not known",
    "only known at run time",
    "came with opset",
    "does not take",
    "nothing before opset",
    "is deprecated from opset",
)


def round_trip(source: ModelProto, feeds: dict[str, object], counts: Counter[str]) -> None:
    """Convert up and back, and compare; whatever is blocked says why."""
    own = next(item.version for item in source.opset_import if not item.domain)
    try:
        expected = Expected(source, feeds)
    except ExecutorError:
        counts["not run"] += 1
        return
    converted = source
    for way, target in (("up", NEWEST), ("back", own)):
        plan = onnxreduce_cli.plan(converted, target)
        for blocker in plan.blockers:
            assert any(text in blocker.reason for text in HONEST), str(blocker)
            counts[f"{way}: {blocker.op_type}: {blocker.reason}"] += 1
        if plan.blockers:
            counts[f"blocked on the way {way}"] += 1
            return
        copy = ModelProto()
        copy.CopyFrom(converted)
        Conversion(copy, target, Options(emulate=True)).apply()
        converted = copy
        onnx.checker.check_model(converted, full_check=True)
        try:
            for name, before, after in expected.beside(converted):
                close(before, after, f"{name} {way}")
        except UnsupportedError:
            # ONNX Runtime has no kernels for the newest opset yet, NumPy none for ai.onnx.ml.
            assert way == "up"
            counts["not run at the newest"] += 1
    counts["there and back"] += 1


def samples(*folders: Path) -> list[Path]:
    """The models in folders that come with inputs: what a user converts there does not."""
    found = (path.with_suffix(".onnx") for folder in folders for path in folder.glob("*.npz"))
    return sorted(found)


@pytest.mark.parametrize("path", samples(OWN, SAMPLES), ids=lambda path: path.stem)
def test_models_of_exporters_come_back(path: Path) -> None:
    counts: Counter[str] = Counter()
    source = onnx.load(path)
    with np.load(path.with_suffix(".npz")) as feeds:
        round_trip(source, dict(feeds), counts)
    if any(node.domain for node in source.graph.node):
        del counts["not run at the newest"]
    assert counts == {"there and back": 1}


def test_there_are_models() -> None:
    assert len(samples(OWN)) >= 8
    assert len(samples(SAMPLES)) >= 6


def test_what_a_user_converts_is_no_sample(tmp_path: Path) -> None:
    """The README's first command writes beside a sample, and its second runs these tests."""
    for name in ("a.onnx", "a.npz", "a.opset13.onnx"):
        (tmp_path / name).touch()
    assert samples(tmp_path) == [tmp_path / "a.onnx"]


@pytest.mark.matrix
@pytest.mark.parametrize("kind", ["light", "pytorch-converted", "pytorch-operator", "simple"])
def test_models_that_onnx_ships_come_back(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    counts = check_shipped(kind, round_trip, capsys)
    assert counts["there and back"] > counts["not run"] + counts["blocked on the way back"]
    assert counts["not run"] <= NOT_RUN[kind]
