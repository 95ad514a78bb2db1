"""Checking a pair: both models run on many small inputs, and their outputs are compared.

Nothing that plans conversions is imported.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from onnx import NodeProto, TensorProto

from onnxreduce_cli import schemas
from onnxreduce_cli.engine.pairs.pair import Pair
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.domains import default_opset, is_default
from onnxreduce_cli.model.graph.scope import with_inner
from onnxreduce_cli.verification.compare.loop import Run, compare_models
from onnxreduce_cli.verification.compare.outcomes import Judgement, RunKey, RunOutcome, Side, judge
from onnxreduce_cli.verification.compare.values import Errors, Tolerance
from onnxreduce_cli.verification.errors import InputError
from onnxreduce_cli.verification.inputs.drawing import Drawer
from onnxreduce_cli.verification.inputs.profiles import MULTIPLIED, UNUSUAL
from onnxreduce_cli.verification.running.runtime import EXECUTORS
from onnxreduce_cli.verification.running.source import ModelSource
from onnxreduce_cli.verification.sites.runs import RefusalReasons, search_inputs
from onnxreduce_cli.verification.sites.site_runners import (
    add_worker_outcomes,
    open_runners,
    worker_failure,
)
from onnxreduce_cli.verification.sites.ties import excuse_ties, remark, rounds_products

#: For replacements that compute in another way, in one executor and between two.
_COMPUTED = Tolerance()
_BETWEEN = Tolerance().between_executors()
_EXACT = Tolerance(exact=True)

#: How much larger tolerances of doubles are where a float's precision is all that is defined.
_AS_FLOAT = 1e5
_COMPUTED_AS_FLOAT = replace(_COMPUTED, factor=_COMPUTED.factor * _AS_FLOAT)
_BETWEEN_AS_FLOAT = replace(_BETWEEN, factor=_BETWEEN.factor * _AS_FLOAT)

#: The opset from which on axes may be negative in general.
_NEGATIVE_AXES = 11

_UNDETERMINED = (
    "ONNX Runtime and the NumPy executor differ from each other, before the conversion too, in "
    "what becomes of NaN or infinities; the replacement gives something else again"
)


@dataclass(slots=True)
class PairResult:
    """The result of checking one pair.

    Attributes:
        pair: what was run.
        errors: the differences, where both sides agree.
        failure: why the sides are not the same; empty if they are, or nothing is known.
        unchecked: why nothing is known; empty if something is.
        refused: whether that is because the node accepted no inputs that were drawn.
        inputs: the inputs on which the sides differ.
        remarks: where executors deviate from each other.
        seconds: how long it took.
    """

    pair: Pair | None = None
    errors: Errors = field(default_factory=Errors)
    failure: str = ""
    unchecked: str = ""
    refused: bool = False
    inputs: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def decides(self) -> bool:
        """False where a pair of the site's true tensors may give another result."""
        return self.pair is None or self.pair.full or not (self.failure or self.unchecked)


def check_pair(pair: Pair, seed: int) -> PairResult:
    """Run both models of a pair on inputs that are drawn, and compare their outputs."""
    found = _compared(pair, seed)
    if found.refused and pair.promised:
        # The shapes that a model states may be wrong; agreement without them still counts.
        without = _compared(pair._replace(promised={}), seed)
        if not without.failure:
            return without
    return found


def _compared(pair: Pair, seed: int) -> PairResult:
    found = PairResult(pair)
    problem = _invalid(pair)
    if problem:
        found.failure = f"what replaces it is not valid: {problem}"
        return found
    sources = {
        Side.REFERENCE: ModelSource(pair.reference, "before", generated=True),
        Side.CANDIDATE: ModelSource(pair.candidate, "after", generated=True),
    }
    runners, reasons = open_runners(sources)
    for side, what in ((Side.REFERENCE, "the node"), (Side.CANDIDATE, "what replaces it")):
        if not any(ran == side for ran, _ in runners):
            why = "; ".join(reasons[side, executor] for executor in EXECUTORS)
            found.unchecked = f"no executor can run {what}: {why}"
            return found
    names = list(sources[Side.REFERENCE].outputs)
    ties: list[int] = []

    def complete(runs: Iterable[Run]) -> Iterator[Run]:
        for run in add_worker_outcomes(runs, runners, names):
            if pair.stabler:
                from onnxreduce_cli.verification.sites.stabler import excuse_overflows

                run.outcomes = excuse_overflows(pair, run.feeds, run.outcomes)
            if rounds_products(pair):
                run.outcomes, moved = excuse_ties(pair, run.feeds, run.outcomes)
                ties.append(moved)
            yield run

    try:
        compared = False
        drawer = Drawer(sources[Side.REFERENCE])
        refusals = RefusalReasons(sources[Side.REFERENCE], drawer)
        found_inputs = search_inputs(pair, drawer, runners, seed, refusals)
        for run in compare_models(found_inputs, complete, partial(_judge, pair), names):
            for judgement in run.judgements.values():
                compared |= judgement.agree is not None
                if not _take(found, judgement, run.values):
                    found.failure, found.inputs = _reason(judgement), run.feeds
                    return found
    except InputError as error:
        found.unchecked = str(error)
        return found
    before, after = (worker_failure(runners, side) for side in Side)
    if not compared:
        found.unchecked = before or after or str(refusals)
        found.refused = not (before or after)
    elif after:
        found.unchecked = f"as converted: {after}"
    elif before:
        found.remarks.append(f"before the conversion, {before}")
    _add_ties(found, max(ties, default=0))
    return found


def _add_ties(found: PairResult, number: int) -> None:
    if number:
        # What is rounded to whole numbers has a last place of 1.
        found.errors += Errors(max_abs=1.0, max_ulp=1, bit_exact=False)
        found.remarks.append(remark(number))


def _take(found: PairResult, judgement: Judgement, values: str) -> bool:
    """Add the result of one output on inputs of a profile; return whether the site passes."""
    if judgement.agree is None:
        return True
    if not judgement.agree:
        if values not in (UNUSUAL, MULTIPLIED) or not _undetermined(judgement):
            return False
        found.remarks = found.remarks or [_UNDETERMINED]
    elif judgement.excused:
        found.remarks = found.remarks or [_deviation(judgement)]
        found.errors += judgement.pairs["numpy"]
    else:
        for errors in judgement.pairs.values():
            found.errors += errors
        if judgement.cross is not None:
            found.errors += judgement.cross[2]
    return True


def _judge(pair: Pair, run: Run, name: str) -> Judgement:
    """Judge an output: where only attributes and inputs moved, no more than rounding may differ.

    Every bit agrees, in the NumPy executor, as ONNX Runtime may have another kernel for each
    version. If not, both sides agree in double: then one adds up in another order, or gives another
    sign to a zero.
    """
    outcomes = run.outcomes
    computed, between = _COMPUTED, _BETWEEN
    if _is_as_float(outcomes, name, pair):
        computed, between = _COMPUTED_AS_FLOAT, _BETWEEN_AS_FLOAT
    if not pair.moved:
        return judge(outcomes, name, computed, between, always=False)
    exact = judge(outcomes, name, _EXACT, between, always=False)
    if exact.agree is not False:
        return exact
    rounded = judge(outcomes, name, computed, between, always=False)
    in_numpy = exact.pairs.get("numpy")
    if in_numpy is not None and in_numpy.agree:
        return rounded
    from onnxreduce_cli.verification.sites.in_double import agrees_in_double

    return rounded if rounded.agree and agrees_in_double(pair, run.feeds, name) else exact


def _is_as_float(outcomes: dict[RunKey, RunOutcome], name: str, pair: Pair) -> bool:
    """Return whether a double need only have the precision of a float.

    The definitions of LayerNormalization, GroupNormalization and RMSNormalization compute their
    first stage in `stash_type`, by default float, whatever the input is. Some kernels compute
    doubles in double all the same, function bodies do not: both are right. onnx.reference, by which
    the NumPy executor runs GridSample, has its coordinates in float.
    """
    opset = default_opset(pair.reference)
    assert opset is not None
    for node in pair.reference.graph.node:
        if not schemas.exists(node.op_type, opset):
            continue  # An operator that ONNX removed.
        defined = schemas.schema(node.op_type, opset).attributes
        if "stash_type" not in defined and node.op_type != "GridSample":
            continue
        stash = attributes.find(node, "stash_type")
        arrays = [outcome.values[name] for outcome in outcomes.values() if outcome.values]
        return (stash is None or stash.i != TensorProto.DOUBLE) and any(
            isinstance(array, np.ndarray) and array.dtype == np.float64 for array in arrays
        )
    return False


def _undetermined(judgement: Judgement) -> bool:
    """Return whether the executors place NaN or infinity differently on the original node itself.

    Then the specification leaves them undefined, such as an infinity whose weight in an
    interpolation is zero.
    """
    errors = judgement.deviations.get(Side.REFERENCE)
    return errors is not None and bool(errors.nan_mismatches or errors.inf_mismatches)


def _reason(judgement: Judgement) -> str:
    if judgement.cross is not None:
        first, second, errors = judgement.cross
        return f"it differs, before in {first} and after in {second}: {errors}"
    parts = [f"in {name}: {e}" for name, e in judgement.pairs.items() if not e.agree]
    return f"before and after differ {'; '.join(parts)}"


def _deviation(judgement: Judgement) -> str:
    sides = {Side.REFERENCE: "before", Side.CANDIDATE: "after"}
    wrong = [sides[side] for side, errors in judgement.deviations.items() if not errors.agree]
    return (
        f"ONNX Runtime deviates {' and '.join(wrong)} the conversion from the NumPy executor, "
        f"which finds no difference ({judgement.pairs['onnxruntime']})"
    )


def _invalid(pair: Pair) -> str:
    """Return why a replacement is invalid at its opset or lacks an output; empty if it is valid."""
    model = pair.candidate
    made = {tensor.name for tensor in model.graph.initializer}
    made.update(name for node in model.graph.node for name in node.output)
    for output in model.graph.output:
        if output.name not in made:
            return "an output of the node is lost"
    before, opset = default_opset(pair.reference), default_opset(model)
    assert before is not None
    assert opset is not None
    for node in with_inner(model.graph.node):
        if not is_default(node.domain):
            continue
        if not schemas.exists(node.op_type, opset):
            return f"opset {opset} has no {node.op_type}"
        problem = schemas.invalid(node, opset)
        if problem is None and opset < _NEGATIVE_AXES <= before and _counts_back(node, opset):
            problem = f"opset {opset} knows no negative axis"
        if problem is not None:
            return f"{node.op_type}: {problem}"
    return ""


def _counts_back(node: NodeProto, opset: int) -> bool:
    """Return whether a node has a negative axis that its definition does not allow.

    Executors take what exporters wrote; what this program writes keeps to the definition. That
    knows negative axes where its default is one, where it says what a "negative value" means, or
    where its text, but for this, came later.
    """
    versions = schemas.versions(node.op_type)
    if _NEGATIVE_AXES not in versions:
        return False
    axes = [
        axis
        for item in node.attribute
        if item.name in ("axis", "axes")
        for axis in (item.i, *item.ints)
    ]
    defined = schemas.schema(node.op_type, opset).attributes.get("axis")
    if defined is not None and (
        defined.default_value.i < 0 or "negative value" in defined.description.lower()
    ):
        return False
    return any(axis < 0 for axis in axes)
