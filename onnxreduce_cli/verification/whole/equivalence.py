"""Comparing two models, or the executors on one; running a model once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.file.progress import Progress
from onnxreduce_cli.model.graph.values import from_proto, kind_of
from onnxreduce_cli.verification.compare.loop import Inputs
from onnxreduce_cli.verification.compare.outcomes import Side
from onnxreduce_cli.verification.compare.values import Tolerance
from onnxreduce_cli.verification.inputs.files import check_name, input_types
from onnxreduce_cli.verification.running.isolated import open_isolated
from onnxreduce_cli.verification.running.runtime import EXECUTORS
from onnxreduce_cli.verification.running.source import ModelOrPath, ModelSource
from onnxreduce_cli.verification.whole.results import VerifyReport
from onnxreduce_cli.verification.whole.trials import Trials
from onnxreduce_cli.verification.whole.verdict import Verdict


def run(model_or_path: ModelOrPath, inputs: Inputs, *, executor: str = "numpy") -> dict[str, Any]:
    """Run a model once.

    Args:
        model_or_path: the model, or its path.
        inputs: arrays by input name; lists for sequences, None for an empty optional.
        executor: ``numpy`` or ``onnxruntime`` (optimisations off).

    Returns:
        the outputs by name, in the model's order.

    Raises:
        CannotRunError: the executor cannot run the model.
        RunFailedError: it failed on these inputs.
        InvalidModelError: the file cannot be read, or is no model.
        ValueError: there is no such executor.
    """
    source = ModelSource(model_or_path, "the model")
    return open_isolated(source, executor).run(inputs, list(source.outputs))


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
    casting: bool = False,
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
        casting: whether `b` may take and give other dtypes, to which inputs and outputs are cast.
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
    interface = tuple(_interface(sources, casting))
    if interface:
        first, second = (source.label for source in sources.values())
        return VerifyReport(first, second, interface, (), (), (), None, (), (), equivalent=False)
    ran = Trials(sources, tuple(executors), tolerance or Tolerance(), progress, casting)
    ran.run(_sets(inputs, sources[Side.REFERENCE]), dims, trials, seed, special)
    return Verdict(ran).report(save_failure, idle=idle)


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


def _interface(sources: Mapping[Side, ModelSource], casting: bool) -> Iterator[str]:
    """Find the differences of two models in names, types and ranks of inputs and outputs.

    Args:
        sources: the models; none where there is but one.
        casting: whether dense tensors may have other dtypes.
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
            dense = all(side[name].HasField("tensor_type") for side in (first, second))
            if None not in kinds and kinds[0] != kinds[1] and not (casting and dense):
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
