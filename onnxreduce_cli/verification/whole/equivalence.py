"""Comparing two models, or the executors on one; running a model once."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from onnx import TensorProto

from onnxreduce_cli.engine.options import INTEGERS, dtype_pairs
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.file.progress import Progress
from onnxreduce_cli.model.graph.values import dtype_name, from_proto, kind_of, numpy_dtype
from onnxreduce_cli.text import count
from onnxreduce_cli.verification.compare.in_double import (
    ChangedDtypes,
    NotInDoubleError,
    coarsest,
    constants,
    in_double,
    input_in_double,
)
from onnxreduce_cli.verification.compare.loop import Inputs
from onnxreduce_cli.verification.compare.outcomes import Side
from onnxreduce_cli.verification.compare.values import Tolerance
from onnxreduce_cli.verification.errors import CannotRunError, InputError, LimitError
from onnxreduce_cli.verification.inputs.files import check_name, input_types
from onnxreduce_cli.verification.running.isolated import open_isolated
from onnxreduce_cli.verification.running.runtime import EXECUTORS
from onnxreduce_cli.verification.running.source import ModelOrPath, ModelSource
from onnxreduce_cli.verification.whole.naming import executor_name, short_message
from onnxreduce_cli.verification.whole.results import VerifyReport
from onnxreduce_cli.verification.whole.trials import Trials
from onnxreduce_cli.verification.whole.verdict import Verdict

#: What was done to weights before models were compared in double.
_WEIGHTS = "with weights rounded to the new dtype"

#: The dtypes that hold fewer digits than double, in which models are compared.
_ROUNDED = (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16)

#: How many sets of inputs are drawn to compare models in double.
_IN_DOUBLE = 3

#: In bytes: a model with more in it is not copied to be run in double.
_LARGE = 1 << 30


def run(
    model_or_path: ModelOrPath, inputs: Inputs, *, executor: str = "onnxruntime"
) -> dict[str, Any]:
    """Run a model once.

    Args:
        model_or_path: the model, or its path.
        inputs: arrays by input name; lists for sequences, None for an empty optional.
        executor: ``onnxruntime`` (optimisations off) or ``numpy``.

    Returns:
        the outputs by name, in the model's order.

    Raises:
        CannotRunError: the executor cannot run the model.
        RunFailedError: it failed on these inputs.
        InvalidModelError: the file cannot be read, or is no model.
        ValueError: there is no such executor.
    """
    source = ModelSource(model_or_path, "the model")
    try:
        return open_isolated(source, executor).run(inputs, list(source.outputs))
    except CannotRunError as error:
        if executor == "numpy" or isinstance(error, LimitError):
            raise
        what = f"{executor_name(executor)} cannot run {source.label}"
        reason = short_message(error, source).rstrip(".")
        raise CannotRunError(f"{what}: {reason}; NumPy may: --executor=numpy") from error


def verify(
    a: ModelOrPath | ModelSource,
    b: ModelOrPath | ModelSource | None = None,
    *,
    inputs: Inputs | Sequence[Inputs] | None = None,
    dims: Mapping[str, int] | None = None,
    trials: int | None = None,
    seed: int = 0,
    special: bool = False,
    tolerance: Tolerance | None = None,
    executors: Sequence[str] = EXECUTORS,
    save_failure: str | None = None,
    progress: Progress | None = None,
    labels: tuple[str, str] = ("", ""),
    changed: Mapping[str, str] | None = None,
    recast: Collection[str] = (),
    ranges: Mapping[str, tuple[int, int]] | None = None,
    idle: bool = True,
) -> VerifyReport:
    """Compare two models, or one model in two executors, on the same inputs.

    Args:
        a: a model, its path, or a model that is open.
        b: the other model; None to compare the executors on `a`.
        inputs: real data by input name, or several sets of it; missing inputs are drawn.
        dims: sizes of symbolic dimensions by name, of others by ``input[axis]``.
        trials: how many sets of inputs to draw; None for 8, of a large model 6. More are drawn
            where reductions of inputs, or their sizes, are compared with constants.
        seed: of what is drawn; equal seeds give equal inputs.
        special: whether to add trials with NaN, infinities, both zeros and denormals.
        tolerance: the allowed difference of values; by default the table of `compare`.
        executors: the executors to run, among `EXECUTORS`.
        save_failure: a folder for the first inputs on which the models differ.
        progress: called with the steps done, the steps in all, and the current one.
        labels: what the report calls the models; empty for a path, or ``a`` and ``b``.
        changed: the dtypes that a conversion changed, and what to. `b` may take and give the new
            ones; both must also compute the same in double precision, with the same weights.
        recast: the inputs and outputs whose dtypes a conversion changed alone. Both models run on
            inputs that `b` can be given, and outputs are compared in the narrower dtype.
        ranges: the ranges that integers are taken to lie in, by the names of values: inputs are
            drawn there, and at the ends.
        idle: whether to look for weights on which no output depends.

    Raises:
        InvalidModelError: a file cannot be read, or is no model.
        InputError: the inputs or dimensions given do not fit the model, or cannot be drawn.
        UsageError: there is no such executor.
    """
    for executor in executors:
        if executor not in EXECUTORS:
            raise UsageError(f"there is no executor {executor!r}")
    sources = _sources(a, b, labels)
    pairs = dtype_pairs(changed or {})
    numbers = {before: after for before, after in pairs if (before, after) != INTEGERS}
    interface = tuple(_interface(sources, bool(pairs), recast))
    if interface:
        first, second = (source.label for source in sources.values())
        return VerifyReport(first, second, interface, (), (), (), None, (), (), equivalent=False)
    sets = _sets(inputs, sources[Side.REFERENCE])
    wide, unknown = (
        _in_double(sources, numbers, recast, sets, dims, seed) if numbers else (None, "")
    )
    if wide is not None and wide.equivalent is False:
        return wide
    limit, coarse = replace(tolerance or Tolerance(), narrowed=INTEGERS in pairs), 0
    if numbers:
        coarse = coarsest({*numbers, *numbers.values()})
        limit = replace(limit, coarse=numpy_dtype(coarse).name)
    ran = Trials(
        sources,
        tuple(executors),
        limit,
        progress,
        numbers,
        frozenset(recast),
        _narrowed(sources) if INTEGERS in pairs else frozenset(),
        ranges or {},
    )
    ran.run(sets, dims, trials, seed, special)
    report = Verdict(ran).report(save_failure, idle=idle)
    report = replace(
        report,
        remarks=(*ran.recast_remarks(), *ran.range_remarks(), *report.remarks),
        warnings=(*report.warnings, *ran.recast_warnings(sets), *ran.range_warnings(sets)),
    )
    if wide is not None and wide.equivalent:
        told = count(sum(not trial.void for trial in wide.trials), "input")
        remark = f"in double precision the models compute the same on {told}, {_WEIGHTS}"
        return replace(report, remarks=(remark, *report.remarks), in_double=True)
    if numbers:
        unknown = (
            f"not compared in double precision, where nothing is rounded: {unknown}; a difference "
            f"smaller than what {dtype_name(coarse)} explains is not seen"
        )
        return replace(report, warnings=(*report.warnings, unknown))
    return report


def _in_double(
    sources: Mapping[Side, ModelSource],
    changed: ChangedDtypes,
    recast: Collection[str],
    sets: Sequence[Inputs],
    dims: Mapping[str, int] | None,
    seed: int,
) -> tuple[VerifyReport | None, str]:
    """Compare two models in double precision, in which a change of dtypes changes nothing.

    Returns:
        the report; None where one cannot be run so, and why.
    """
    if any(_bytes(source) > _LARGE for source in sources.values()):
        return None, "a model is too large"
    try:
        known, own = (constants(source) for source in sources.values())
        wide = {
            side: in_double(source, changed=changed, rounded=known)
            for side, source in sources.items()
        }
    except NotInDoubleError as error:
        return None, str(error)
    taken = wide[Side.REFERENCE].inputs
    feeds: list[Inputs] = [
        {name: input_in_double(value, changed) for name, value in given.items() if name in taken}
        for given in sets
    ]
    # One executor, as ONNX Runtime has few kernels of double.
    new = {kind for name, kind in own.items() if name not in known}
    tolerance = Tolerance(coarse=_coarsest_of(new))
    ran = Trials(wide, EXECUTORS[1:], tolerance, recast=frozenset(recast))
    try:
        ran.run(feeds, dims, _IN_DOUBLE, seed, special=False)
    except InputError as error:
        return None, str(error)
    report = Verdict(ran).report(None, idle=False)
    remark = f"both were run in double precision, {_WEIGHTS}: rounding does not explain it"
    reason = next((run.reason for run in report.runs if run.reason), "no inputs")
    told = replace(report, remarks=(*report.remarks, remark), in_double=report.equivalent)
    return told, reason


def _coarsest_of(kinds: Collection[str]) -> str:
    """Return the name in NumPy of the coarsest dtype in some types; empty without floats.

    Constants that stand for what an operator holds exactly are rounded to their own dtype.
    """
    numbers = [number for number in _ROUNDED if f"tensor({dtype_name(number)})" in kinds]
    return numpy_dtype(coarsest(numbers)).name if numbers else ""


def _narrowed(sources: Mapping[Side, ModelSource]) -> frozenset[str]:
    """Return the inputs and outputs that are int64 in the first model and int32 in the second."""
    first, second = (sources[side] for side in Side)
    found = set[str]()
    for before, after in ((first.inputs, second.inputs), (first.outputs, second.outputs)):
        for name in before.keys() & after.keys():
            if (before[name].tensor_type.elem_type, after[name].tensor_type.elem_type) == INTEGERS:
                found.add(name)
    return frozenset(found)


def _bytes(source: ModelSource) -> int:
    own = os.path.getsize(source.path) if source.path is not None else 0
    return own + source.mapped


def _sources(
    a: ModelOrPath | ModelSource, b: ModelOrPath | ModelSource | None, labels: tuple[str, str]
) -> dict[Side, ModelSource]:
    """Open the models, under labels that differ."""

    def opened(given: ModelOrPath | ModelSource, label: str, called: str) -> ModelSource:
        if isinstance(given, ModelSource):
            return given
        return ModelSource(given, label, called=called)

    found = {Side.REFERENCE: opened(a, "a", labels[0])}
    if b is not None:
        found[Side.CANDIDATE] = candidate = opened(b, "b", labels[1])
        if candidate.label == found[Side.REFERENCE].label:
            candidate.label += " (b)"
    return found


def _sets(inputs: Inputs | Sequence[Inputs] | None, source: ModelSource) -> list[Inputs]:
    if inputs is None:
        return [{}]
    sets = [inputs] if isinstance(inputs, Mapping) else list(inputs)
    types = input_types(source.skeleton)
    for given in sets:
        for name in given:
            check_name(name, types)
    return sets or [{}]


def _interface(
    sources: Mapping[Side, ModelSource], casting: bool, recast: Collection[str]
) -> Iterator[str]:
    """Find the differences of two models in names, types and ranks of inputs and outputs.

    Args:
        sources: the models; none where there is but one.
        casting: whether dense tensors may have other dtypes.
        recast: those that may in any case.
    """
    if len(sources) < len(Side):
        return
    a, b = sources[Side.REFERENCE], sources[Side.CANDIDATE]
    for what, first, second in (("input", a.inputs, b.inputs), ("output", a.outputs, b.outputs)):
        for name in [*first, *(name for name in second if name not in first)]:
            if name not in second or name not in first:
                yield f"{what} {name!r} is only in {a.label if name in first else b.label}"
                continue
            kinds = [kind_of(side[name]) for side in (first, second)]
            may_differ = casting or name in recast
            dense = all(side[name].HasField("tensor_type") for side in (first, second))
            if None not in kinds and kinds[0] != kinds[1] and not (may_differ and dense):
                yield f"{what} {name!r} is {kinds[0]} in one, {kinds[1]} in the other"
                continue
            known = [from_proto(side[name]) for side in (first, second)]
            dims = [None if item is None else item.dims for item in known]
            if dims[0] is None or dims[1] is None or not all(kinds):
                continue
            if len(dims[0]) != len(dims[1]):
                yield (
                    f"{what} {name!r} has rank {len(dims[0])} in one, {len(dims[1])} in the other"
                )
            elif what == "input" and any(
                isinstance(x, int) and isinstance(y, int) and x != y
                for x, y in zip(*dims, strict=True)
            ):
                shapes = [list(item or ()) for item in dims]
                yield f"input {name!r} has shape {shapes[0]} in one, {shapes[1]} in the other"
