"""Checking what a conversion does, site by site.

Each distinct site becomes two tiny models, the original node at its own opset and what replaces
it at the target; both run in ONNX Runtime and in the NumPy executor on inputs of several shapes
and value profiles. Weights are not needed: inputs are drawn, dimensions made small.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import onnx
from onnx import ModelProto, numpy_helper

from onnxreduce_cli import schemas
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pause import collector_paused
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.scope import subgraphs
from onnxreduce_cli.verification.compare import Errors, Tolerance
from onnxreduce_cli.verification.errors import InputError, UncheckableError
from onnxreduce_cli.verification.outcomes import Judgement, Outcome, Ran, Side, judge
from onnxreduce_cli.verification.profiles import UNUSUAL
from onnxreduce_cli.verification.runtime import EXECUTORS
from onnxreduce_cli.verification.site_models import Pair, PairMaker
from onnxreduce_cli.verification.site_report import SiteFailure, SiteReport, Unchecked
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


def check_sites(conversion: Conversion, *, seed: int = 0) -> SiteReport:
    """Check every distinct site of a conversion that has not been applied yet.

    Args:
        conversion: a conversion; its blocked sites are left out.
        seed: of the inputs that are drawn.
    """
    maker = PairMaker(conversion)
    sites = [site for site in conversion.sites if site.blocked is None]
    alike: dict[Any, list[Site]] = {}
    with collector_paused():
        for site in sites:
            alike.setdefault(maker.signature(site), []).append(site)
    unchecked: dict[tuple[str, str], Unchecked] = {}
    groups: dict[bytes, tuple[Pair, Site, int]] = {}
    distinct = 0
    for group in alike.values():
        try:
            pair = maker.pair(group[0])
        except UncheckableError as error:
            distinct += 1
            _leave(unchecked, group[0], len(group), str(error))
            continue
        _, first, count = groups.get(pair.key, (pair, group[0], 0))
        groups[pair.key] = (pair, first, count + len(group))
    exact, loose, failures = 0, [], []
    remarks: dict[str, None] = {}
    for pair, site, count in groups.values():
        found = _check(maker, site, pair, seed)
        remarks.update(dict.fromkeys(f"{_where(site)}: {text}" for text in found.remarks))
        if found.unchecked:
            _leave(unchecked, site, count, found.unchecked)
        elif found.failure:
            failures.append(_failure(site, found, count))
        elif found.errors.bit_exact:
            exact += 1
        else:
            loose.append(found.errors)
    return SiteReport(
        len(sites),
        distinct + len(groups),
        exact,
        tuple(loose),
        tuple(unchecked.values()),
        tuple(failures),
        tuple(remarks),
    )


def _where(site: Site) -> str:
    return f"{site.node.op_type} node {site.scope.describe(site.node)}"


def _leave(
    unchecked: dict[tuple[str, str], Unchecked], site: Site, count: int, reason: str
) -> None:
    key = (site.node.op_type, reason)
    known = unchecked.get(key)
    if known is None:
        node = site.scope.describe(site.node)
        unchecked[key] = Unchecked(node, site.node.op_type, count, reason)
    else:
        unchecked[key] = replace(known, sites=known.sites + count)


def _failure(site: Site, found: _Found, count: int) -> SiteFailure:
    assert found.pair is not None
    return SiteFailure(
        site.scope.describe(site.node),
        site.node.op_type,
        site.scope.label,
        tuple(node.op_type for node in site.result),
        count,
        found.failure,
        found.pair.before,
        found.pair.after,
        found.inputs,
    )


@dataclass
class _Found:
    """The result of checking one pair: `failure` and `unchecked` are reasons, empty if neither."""

    pair: Pair | None = None
    errors: Errors = field(default_factory=Errors)
    failure: str = ""
    unchecked: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    remarks: list[str] = field(default_factory=list)


def _check(maker: PairMaker, site: Site, pair: Pair, seed: int) -> _Found:
    if _elements(pair.before) > _LARGEST:
        return _Found(unchecked=_TOO_LARGE)
    found = _check_pair(pair, seed)
    if not pair.full and (found.failure or found.unchecked):
        # The replacement may rest on the true dimensions, so only they can tell.
        pair = maker.pair(site, full=True)
        if _elements(pair.before) > _LARGEST:
            return _Found(unchecked=_TOO_LARGE)
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


def _check_pair(pair: Pair, seed: int) -> _Found:
    found = _Found(pair)
    problem = _invalid(pair.after)
    if problem:
        found.failure = f"what replaces it is not valid: {problem}"
        return found
    sources = {
        Side.REFERENCE: Source(pair.before, "before", generated=True),
        Side.CANDIDATE: Source(pair.after, "after", generated=True),
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


def _take(found: _Found, judgement: Judgement, values: str) -> bool:
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
