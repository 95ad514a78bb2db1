"""Whether a random model, converted there and back, still computes the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

import onnxreduce_cli
from onnxreduce_cli import executor
from onnxreduce_cli.executor import ExecutorError
from tests.apart import Apart, EndedError, LateError
from tests.random_graphs.graphs import Case
from tests.support import CannotRunError, run_ort

#: Relative to the largest number of an output: a net of a few nodes adds up errors.
TOLERANCE = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 1e-4, "float64": 1e-9}

#: How long ONNX Runtime may take for a model of a few nodes, its start included.
_SECONDS = 30.0

#: What the full checker raises.
INVALID = (onnx.checker.ValidationError, onnx.shape_inference.InferenceError)

_onnxruntime = Apart()


class WrongError(AssertionError):
    """A conversion gave something wrong or invalid, or failed as it must not."""


def judge(case: Case) -> str:
    """Convert a case to its target and back: ``converted``, ``blocked``, or why it tells nothing.

    Raises:
        WrongError: what the conversion gave is invalid, or computes something else.
    """
    try:
        onnx.checker.check_model(case.model, full_check=True)
    except INVALID as error:
        return f"invalid as drawn: {str(error).splitlines()[0]}"
    own = case.model.opset_import[0].version
    model = case.model
    known = outcomes(case.model, case.feeds)
    if not known:
        return "not run"
    if len(known) > 1 and (not case.sized or _difference(*known.values())):
        # Where they do not agree on the model itself, the specification's words decide.
        del known["ONNX Runtime"]
    for opset in (case.target, own):
        try:
            options = case.options if opset == case.target else {"emulate": True}
            model = onnxreduce_cli.convert(model, opset, check=case.check, **options)
        except onnxreduce_cli.CheckError as error:
            raise WrongError(f"to {opset}, refused by the check: {error}") from error
        except onnxreduce_cli.ConversionError:
            return "blocked" if opset == case.target else "blocked on the way back"
        try:
            onnx.checker.check_model(model, full_check=True)
        except INVALID as error:
            raise WrongError(f"at {opset} it is invalid: {error}") from error
        _compare(known, outcomes(model, case.feeds), opset)
    return "converted"


def in_onnxruntime(model: ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """What ONNX Runtime gives; to be called apart, by a name that no test replaces."""
    return run_ort(model, feeds)


def outcomes(model: ModelProto, feeds: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What each executor that can run it gives, by its name."""
    found = {}
    try:
        with np.errstate(all="ignore"):
            found["NumPy"] = executor.run(model, feeds)
    except ExecutorError:
        pass
    try:
        results = _onnxruntime.call(in_onnxruntime, model, dict(feeds), seconds=_SECONDS)
        names = [output.name for output in model.graph.output]
        found["ONNX Runtime"] = dict(zip(names, results, strict=True))
    except (CannotRunError, EndedError, LateError):
        pass
    except Exception as error:
        if "onnxruntime" not in type(error).__module__:
            raise
    return found


def _compare(before: dict[str, Any], after: dict[str, Any], opset: int) -> None:
    both = before.keys() & after.keys()
    if not both:
        # Kernels are missing for the newest opsets, and for some of the oldest.
        return
    problems = []
    for name in sorted(both):
        problem = _difference(before[name], after[name])
        if problem:
            problems.append(f"at {opset}, in {name}: {problem}")
    if problems:
        raise WrongError("; ".join(problems))


def _difference(before: dict[str, Any], after: dict[str, Any]) -> str:
    if list(before) != list(after):
        return f"outputs {list(before)} became {list(after)}"
    for name, expected in before.items():
        actual = after[name]
        if expected.dtype != actual.dtype or expected.shape != actual.shape:
            return (
                f"{name}: {expected.dtype}{list(expected.shape)} became "
                f"{actual.dtype}{list(actual.shape)}"
            )
        tolerance = TOLERANCE.get(expected.dtype.name, 0.0)
        if not _close(expected, actual, tolerance):
            return f"{name}: {expected!r} became {actual!r}"
    return ""


def _close(expected: Any, actual: Any, tolerance: float) -> bool:
    if not tolerance:
        return bool(np.array_equal(expected, actual))
    left, right = expected.astype(np.float64), actual.astype(np.float64)
    finite = left[np.isfinite(left)]
    scale = max(1.0, float(np.abs(finite).max(initial=0.0)))
    return bool(np.allclose(left, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
