"""Checking one distinct site: both sides on many small inputs, and what their results say."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import onnx
from onnx import ModelProto, numpy_helper

from onnxreduce_cli import schemas
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.scope import subgraphs
from onnxreduce_cli.verification.compare import Errors, Tolerance
from onnxreduce_cli.verification.errors import InputError
from onnxreduce_cli.verification.outcomes import Judgement, Outcome, Ran, Side, judge
from onnxreduce_cli.verification.profiles import UNUSUAL
from onnxreduce_cli.verification.runtime import EXECUTORS
from onnxreduce_cli.verification.site_models import Pair, PairMaker
from onnxreduce_cli.verification.site_runs import both_sides, open_runners
from onnxreduce_cli.verification.source import Source

#: For replacements that compute in another way, in one executor and between two.
_COMPUTED = Tolerance()
_BETWEEN = Tolerance().between_executors()
_EXACT = Tolerance(exact=True)

#: Tensors of more elements would make a check slow.
_LARGEST = 1 << 25

_UNDETERMINED = (
    "ONNX Runtime and the NumPy executor differ from each other, before the conversion too, in "
    "what becomes of NaN or infinities; the replacement gives something else again"
)
_REFUSED = "no inputs were found that it accepts"
_TOO_LARGE = "its tensors are too large to try"


@dataclass
class Found:
    """The result of checking one pair: `failure` and `unchecked` are reasons, empty if neither."""

    pair: Pair | None = None
    errors: Errors = field(default_factory=Errors)
    failure: str = ""
    unchecked: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def check_site(maker: PairMaker, site: Site, pair: Pair, seed: int) -> Found:
    """Check one of some sites that are alike, of which `pair` is made."""
    if _elements(pair.before) > _LARGEST:
        return Found(unchecked=_TOO_LARGE)
    found = _check_pair(pair, seed)
    if not pair.full and (found.failure or found.unchecked):
        # The replacement may rest on the true dimensions, so only they can tell.
        pair = maker.pair(site, full=True)
        if _elements(pair.before) > _LARGEST:
            return Found(unchecked=_TOO_LARGE)
        found = _check_pair(pair, seed)
    if found.unchecked == _REFUSED and pair.promised:
        # The shapes that a model states may be wrong; agreement without them still counts.
        without = _check_pair(replace(pair, promised={}), seed)
        if not without.failure:
            return without
    return found


def _elements(model: ModelProto) -> int:
    """Return the number of elements of the model's largest tensor, as far as it is known."""
    try:
        graph = onnx.shape_inference.infer_shapes(model, data_prop=True).graph
    except (onnx.shape_inference.InferenceError, RuntimeError, ValueError):
        graph = model.graph  # Whoever runs it says what is wrong with it.
    sizes = [1]
    for value in (*graph.input, *graph.output):
        dims = value.type.tensor_type.shape.dim
        sizes.append(math.prod(max(dim.dim_value, 1) for dim in dims))
    constants = {tensor.name: tensor for tensor in model.graph.initializer}
    for node in model.graph.node:
        depth = constants.get(node.input[1]) if node.op_type == "OneHot" else None
        if depth is not None:  # Inference does not read it.
            sizes.append(int(numpy_helper.to_array(depth).reshape(-1)[0]))
    return max(sizes)


def _check_pair(pair: Pair, seed: int) -> Found:
    found = Found(pair)
    problem = _invalid(pair.after)
    if problem:
        found.failure = f"what replaces it is not valid: {problem}"
        return found
    sources = {
        Side.REFERENCE: Source(pair.before, "before"),
        Side.CANDIDATE: Source(pair.after, "after"),
    }
    runners, reasons = open_runners(sources)
    for side, what in ((Side.REFERENCE, "the node"), (Side.CANDIDATE, "what replaces it")):
        if not any(ran == side for ran, _ in runners):
            said = "; ".join(reasons[side, executor] for executor in EXECUTORS)
            found.unchecked = f"no executor can run {what}: {said}"
            return found
    try:
        compared = False
        for values, feeds, outcomes in both_sides(pair, sources, runners, seed):
            for name in sources[Side.REFERENCE].outputs:
                judgement = _judge(outcomes, name, pair.moved)
                compared |= judgement.agree is not None
                if not _take(found, judgement, values):
                    found.failure, found.inputs = _reason(judgement), feeds
                    return found
    except InputError as error:
        found.unchecked = str(error)
        return found
    if not compared:
        found.unchecked = _REFUSED
    return found


def _take(found: Found, judgement: Judgement, values: str) -> bool:
    """Add the result of one output on inputs of a profile; return whether the site passes."""
    if judgement.agree is None:
        return True
    if not judgement.agree:
        if values != UNUSUAL or not _undetermined(judgement):
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


def _judge(outcomes: dict[Ran, Outcome], name: str, moved: bool) -> Judgement:
    """A site's judgement: where only attributes and inputs moved, every bit must agree.

    The NumPy executor decides that; ONNX Runtime may have another kernel for each version.
    """
    if not moved:
        return judge(outcomes, name, _COMPUTED, _BETWEEN, always=False)
    judgement = judge(outcomes, name, _EXACT, _BETWEEN, always=False)
    if judgement.agree is False and judgement.pairs.get("numpy", Errors(mismatches=1)).agree:
        return judge(outcomes, name, _COMPUTED, _BETWEEN, always=False)
    return judgement


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


def _invalid(model: ModelProto) -> str:
    """Return why a replacement is invalid at its opset or lacks an output; empty if it is valid."""
    made = {tensor.name for tensor in model.graph.initializer}
    made.update(name for node in model.graph.node for name in node.output)
    for output in model.graph.output:
        if output.name not in made:
            return "an output of the node is lost"
    opset = next(entry.version for entry in model.opset_import if not entry.domain)
    waiting = list(model.graph.node)
    while waiting:
        node = waiting.pop()
        waiting += [inner for _, graph in subgraphs(node) for inner in graph.node]
        if not is_default(node.domain):
            continue
        if not schemas.exists(node.op_type, opset):
            return f"opset {opset} has no {node.op_type}"
        problem = schemas.invalid(node, opset)
        if problem is not None:
            return f"{node.op_type}: {problem}"
    return ""
