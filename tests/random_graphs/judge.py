"""Whether a random model, converted there and back, still computes the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto

import onnxreduce_cli
from onnxreduce_cli import executor
from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.executor import ExecutorError
from onnxreduce_cli.model.graph.values import numpy_dtype, parse_dtype
from onnxreduce_cli.verification.sites.in_double import array_in_double, model_in_double
from onnxreduce_cli.verification.sites.report import SiteFailure
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

    What is converted for the same once more must stay as it is.

    Raises:
        WrongError: what the conversion gave is invalid, or computes something else.
    """
    try:
        onnx.checker.check_model(case.model, full_check=True)
    except INVALID as error:
        return f"invalid as drawn: {str(error).splitlines()[0]}"
    own = case.model.opset_import[0].version
    known = outcomes(case.model, case.feeds)
    if not known:
        return "not run"
    if len(known) > 1 and (not case.sized or _difference(*known.values(), Allowed())):
        # Where they do not agree on the model itself, the specification's words decide.
        del known["ONNX Runtime"]
    model = _converted(case, case.model, case.target, case.options)
    if model is None:
        return "blocked"
    allowed, feeds = _allowed(case), _feeds(case)
    _compare(known, outcomes(model, feeds), f"at {case.target}", allowed)
    if case.check and "contract" in case.options:
        _refuse_wrong_contractions(case)
    # What has been fixed cannot be named again.
    options = {name: value for name, value in case.options.items() if name != "dims"}
    again = _converted(case, model, case.target, options)
    if again is not None and "fold" in options:
        # What a step wrote of constants is folded the next time.
        model, again = again, _converted(case, again, case.target, options)
    if again is None or again != model:
        raise WrongError(f"converted to {case.target} once more, it is another")
    back = _converted(case, model, own, {"emulate": True})
    if back is None:
        return "blocked on the way back"
    _compare(known, outcomes(back, feeds), f"back at {own}", allowed)
    return "converted"


@dataclass(frozen=True)
class Allowed:
    """The differences from a model that a conversion may make.

    Attributes:
        dtypes: the new dtype of outputs, by the dtype that they had.
        scale: what tolerances are multiplied with.
        outer: the dtypes of inputs and outputs alone, by their names.
        computed: the dtypes that values were computed in, by the dtype that they had.
    """

    dtypes: Mapping[str, str] = field(default_factory=dict)
    scale: float = 1.0
    outer: Mapping[str, str] = field(default_factory=dict)
    computed: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str, dtype: str) -> str:
        """The dtype of an input or output, by its name and the dtype that it had."""
        return self.outer.get(name, self.dtypes.get(dtype, dtype))


def _allowed(case: Case) -> Allowed:
    changed = {numpy_name(a): numpy_name(b) for a, b in case.options.get("dtypes", {}).items()}
    kept = bool(case.options.get("keep_interface"))
    # Every value may be off by the rounding of the largest one among them.
    scale = max(1.0, case.largest) if changed and "int64" not in changed else 1.0
    outer = {name: numpy_name(text) for name, text in case.options.get("io_dtypes", {}).items()}
    return Allowed({} if kept else changed, scale, outer, changed)


def numpy_name(dtype: str) -> str:
    """NumPy's name of a dtype of an option."""
    return numpy_dtype(parse_dtype(dtype)).name


def _feeds(case: Case) -> dict[str, Any]:
    allowed = _allowed(case)
    return {
        name: array.astype(allowed.of(name, array.dtype.name)) for name, array in case.feeds.items()
    }


def _converted(
    case: Case, model: ModelProto, opset: int | None, options: Mapping[str, Any]
) -> ModelProto | None:
    """Convert a model; None if it blocks.

    Raises:
        WrongError: the check refuses it, or the result is invalid.
    """
    try:
        found = onnxreduce_cli.convert(model, opset, check=case.check, **options)
    except onnxreduce_cli.CheckError as error:
        raise WrongError(f"to {opset}, refused by the check: {error}") from error
    except onnxreduce_cli.ConversionError as error:
        if "a bug in onnxreduce" in str(error):
            raise WrongError(f"to {opset}: {error}") from error
        return None
    except Exception as error:
        raise WrongError(f"to {opset}, {type(error).__name__}: {error}") from error
    try:
        onnx.checker.check_model(found, full_check=True)
    except INVALID as error:
        raise WrongError(f"at {opset} it is invalid: {error}") from error
    return found


def _refuse_wrong_contractions(case: Case) -> None:
    """Look at the contractions that a conversion leaves out, as their checks fail.

    Raises:
        WrongError: one computes something else, and not only as it rounds in another way.
    """
    assert case.target is not None
    conversion = Conversion(case.model, case.target, Options(**case.options))
    if conversion.blockers:
        return
    for failure in check_sites(conversion).failures:
        if not _agrees_in_double(failure):
            raise WrongError(f"to {case.target}, wrongly contracted: {failure}")


def _agrees_in_double(failure: SiteFailure) -> bool:
    feeds = {name: array_in_double(array) for name, array in failure.inputs.items()}
    before, after = (model_in_double(side) for side in (failure.before, failure.after))
    try:
        with np.errstate(all="ignore"):
            return not _difference(
                executor.run(before, feeds), executor.run(after, feeds), Allowed()
            )
    except ExecutorError:
        return False


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


def _compare(before: dict[str, Any], after: dict[str, Any], where: str, allowed: Allowed) -> None:
    # Kernels are missing for the newest opsets, and for some of the oldest.
    found = {
        name: _difference(before[name], after[name], allowed) for name in before if name in after
    }
    if problems := [f"{where}, in {name}: {said}" for name, said in sorted(found.items()) if said]:
        raise WrongError("; ".join(problems))


def _difference(before: dict[str, Any], after: dict[str, Any], allowed: Allowed) -> str:
    if list(before) != list(after):
        return f"outputs {list(before)} became {list(after)}"
    for name, expected in before.items():
        actual, own = after[name], expected.dtype.name
        wanted = allowed.of(name, own)
        if wanted != actual.dtype.name or expected.shape != actual.shape:
            return (
                f"{name}: {expected.dtype}{list(expected.shape)} became "
                f"{actual.dtype}{list(actual.shape)}"
            )
        computed = (own, allowed.computed.get(own, own), allowed.outer.get(name, own))
        coarsest = max(TOLERANCE.get(dtype, 0.0) for dtype in computed)
        if name in allowed.outer:
            with np.errstate(all="ignore"):
                expected = expected.astype(wanted)
        if not _close(expected, actual, coarsest * allowed.scale):
            return f"{name}: {expected!r} became {actual!r}"
    return ""


def _close(expected: Any, actual: Any, tolerance: float) -> bool:
    if not tolerance:
        return bool(np.array_equal(expected, actual))
    left, right = expected.astype(np.float64), actual.astype(np.float64)
    finite = left[np.isfinite(left)]
    scale = max(1.0, float(np.abs(finite).max(initial=0.0)))
    return bool(np.allclose(left, right, rtol=tolerance, atol=tolerance * scale, equal_nan=True))
