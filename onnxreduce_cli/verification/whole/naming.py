"""Names of executors in messages, and short reasons why one has not run a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from onnx import TensorProto, helper

from onnxreduce_cli.model.graph.domains import default_opset
from onnxreduce_cli.schemas import newest_opset
from onnxreduce_cli.verification.errors import CannotRunError
from onnxreduce_cli.verification.running.isolated import installed_version, open_isolated
from onnxreduce_cli.verification.running.runtime import EXECUTORS
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.whole.results import Comparison, ExecutorRun

#: ONNX Runtime's messages on a newer opset or IR version than it takes, its limit last.
_OPSET = re.compile(r"ONNX Runtime only \*guarantees\* support .* is till opset (\d+)")
_IR_VERSION = re.compile(r"Unsupported model IR version: \d+, max supported IR version: (\d+)")

#: The place in ONNX Runtime's source that its messages begin with: file, line, and function.
_SOURCE = re.compile(r"(Load model from .* failed: ?)?/onnxruntime_src/\S+:\d+ .*?\)(?: const)? ")


def executor_name(executor: str) -> str:
    """Return an executor's name, with the version of ONNX Runtime if it can be imported."""
    if executor != "onnxruntime":
        return "NumPy"
    try:
        return f"ONNX Runtime {installed_version()}"
    except CannotRunError:
        return "ONNX Runtime"


def short_message(error: Exception | str, source: ModelSource) -> str:
    """Return an executor's message on a model, short, with the model's label for its path."""
    text = str(error)
    limit = _OPSET.search(text)
    if limit is not None:
        return f"it takes opsets up to {limit[1]}"
    limit = _IR_VERSION.search(text)
    if limit is not None:
        newest = _newest_opset()
        if newest is not None and (default_opset(source.skeleton) or 0) > newest:
            return f"it takes opsets up to {newest}"
        return f"it takes IR versions up to {limit[1]}"
    text = _SOURCE.sub("", text)
    return text if source.path is None else source.label.join(text.split(source.path))


@cache
def _newest_opset() -> int | None:
    """Return the newest opset that ONNX Runtime takes, from its message on a newer one, or None.

    Of a newer model it refuses the IR version first, so it gets one of an old IR version.
    """
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1])],
    )
    imports = [helper.make_opsetid("", newest_opset())]
    model = helper.make_model(graph, opset_imports=imports, ir_version=8)
    try:
        open_isolated(ModelSource(model, "m", generated=True), "onnxruntime").run(
            {"x": np.zeros(1, np.float32)}, ["y"]
        )
    except CannotRunError as error:
        found = _OPSET.search(str(error))
        return None if found is None else int(found[1])
    return None


def judged_by(
    report: Sequence[Comparison],
    runs: Sequence[ExecutorRun],
    pair: bool,
    equivalent: bool | None = None,
) -> str:
    """Return the executors that compared, such as ``NumPy only: ONNX Runtime 1.31.1 takes ...``.

    Models that are equivalent are so by those executors alone that find no difference.

    Args:
        report: the comparisons.
        runs: the runs of each model in each executor.
        pair: whether two models are compared, and not two executors on one.
        equivalent: the verdict.
    """
    found = [item for item in report if not pair or item.first[0] != item.second[0]]
    used = {side[1] for item in found for side in (item.first, item.second)}
    differing = {
        item.first[1]
        for item in found
        if equivalent and pair and not item.agree and item.first[1] == item.second[1]
    }
    if differing and used - differing:
        own, other = (
            " and ".join(map(executor_name, sorted(some))) for some in (used - differing, differing)
        )
        return f"{own} only: {other} differs, by a deviation of its own"
    names = [executor_name(executor) for executor in EXECUTORS if executor in used]
    if len(names) != 1:
        return " and ".join(names)
    reasons = [run for run in runs if run.executor not in used and run.reason and not run.trials]
    if not reasons:
        return names[0]
    run = reasons[0]
    reason = run.reason.removeprefix("it ")
    what = reason if reason != run.reason else f"does not run {run.model}: {reason}"
    return f"{names[0]} only: {executor_name(run.executor)} {what}"
