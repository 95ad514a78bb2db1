"""What messages call executors and models, and why an executor has not run one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from onnxreduce_cli.verification.results import Comparison, ExecutorRun
from onnxreduce_cli.verification.runtime import EXECUTORS
from onnxreduce_cli.verification.source import Source

#: The packages that hold ONNX Runtime, of which one is installed.
_PACKAGES = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino")

#: What ONNX Runtime says of an opset that is newer than itself, its own limit last.
_TOO_NEW = re.compile(r"ONNX Runtime only \*guarantees\* support .* is till opset (\d+)")


@cache
def executor_name(executor: str) -> str:
    """An executor's name and, of ONNX Runtime, its version."""
    if executor != "onnxruntime":
        return "NumPy"
    for package in _PACKAGES:
        try:
            return f"ONNX Runtime {version(package)}"
        except PackageNotFoundError:
            continue
    return "ONNX Runtime"


def told(said: Exception | str, source: Source) -> str:
    """What an executor says of a model, short, and with the model's name in place of its path."""
    text = str(said)
    limit = _TOO_NEW.search(text)
    if limit is not None:
        return f"it takes opsets up to {limit[1]}"
    return text if source.path is None else source.label.join(text.split(source.path))


def judged_by(report: Sequence[Comparison], runs: Sequence[ExecutorRun], pair: bool) -> str:
    """The executors that compared, such as ``NumPy only: ONNX Runtime 1.31.1 takes ...``.

    Args:
        report: the comparisons.
        runs: how each executor fared with each model.
        pair: whether two models are compared, and not two executors on one.
    """
    found = [item for item in report if not pair or item.first[0] != item.second[0]]
    used = {side[1] for item in found for side in (item.first, item.second)}
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
