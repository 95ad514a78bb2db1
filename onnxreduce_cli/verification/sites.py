"""Checking what a conversion does, site by site.

Each distinct site becomes two tiny models, the original node at its own opset and what replaces
it at the target; both run in ONNX Runtime and in the NumPy executor on inputs of several shapes
and value profiles. Weights are not needed: inputs are drawn, dimensions made small.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import ModelProto, NodeProto, numpy_helper

from onnxreduce_cli import schemas
from onnxreduce_cli.conversion import Conversion, Site
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.scope import subgraphs
from onnxreduce_cli.pause import collector_paused
from onnxreduce_cli.verification.compare import Errors, Tolerance
from onnxreduce_cli.verification.data import write_inputs
from onnxreduce_cli.verification.errors import CannotRunError, InputError
from onnxreduce_cli.verification.inputs import (
    LARGE,
    NEAR,
    ORDERED,
    ORDINARY,
    SPECIAL,
    UNUSUAL,
    ZEROS,
    Attempt,
    Drawer,
)
from onnxreduce_cli.verification.isolated import open_isolated
from onnxreduce_cli.verification.outcomes import (
    UNSUPPORTED,
    Judgement,
    Outcome,
    judge,
    run_once,
)
from onnxreduce_cli.verification.runtime import EXECUTORS, Runner, open_runner
from onnxreduce_cli.verification.site_models import Pair, PairMaker, UncheckableError
from onnxreduce_cli.verification.source import Source

#: For replacements that compute in another way, in one executor and between two.
_COMPUTED = Tolerance()
_BETWEEN = Tolerance().between_executors()
_EXACT = Tolerance(exact=True)

#: Tensors of more elements would make a check slow.
_LARGEST = 1 << 25

#: What a node refused of smaller tensors it will hardly take of larger ones.
_MOST = 1 << 20

#: Operators whose kernels in ONNX Runtime end the process on attributes that nobody has checked.
_ENDING = frozenset({"Attention"})

#: ULPs beyond this say little: the error is relative to a result that cancelled to nearly nothing.
_TELLING_ULPS = 64

#: Whether a neighbour of weight zero counts is not written down: NaN and infinities tell nothing.
_INTERPOLATING = frozenset({"GridSample", "Resize", "RoiAlign", "Upsample"})
#: No definition says where a NaN stands in an order, nor whether it does at all.
_ORDERING = frozenset({"TopK", "Unique"})
#: Reductions that give minus infinity or no number for nothing, which no integer stands for.
_NO_INTEGER = frozenset({"ReduceLogSum", "ReduceLogSumExp", "ReduceMean"})

_UNDETERMINED = (
    "ONNX Runtime and the NumPy executor differ from each other, before the conversion too, in "
    "what becomes of NaN or infinities; the replacement gives something else again"
)
_REFUSED = "no inputs were found that it accepts"
_TOO_LARGE = "its tensors are too large to try"

#: Ways to choose what is left open that are tried for one shape.
_TRIES = 18

#: Draws for one shape, where values decide whether the outputs are as the model says.
_DRAWS = 8

#: What is run where nothing is left open, and the shapes (by number) where something is.
_RUNS = ((0, ORDINARY), (1, NEAR), (2, LARGE), (0, SPECIAL), (1, ZEROS), (2, SPECIAL))


@dataclass(frozen=True)
class SiteFailure:
    """A distinct site whose replacement is not the same function.

    Attributes:
        node: the first such node's name, or a description by its output.
        op_type: its operator.
        scope: where it is: empty for the main graph.
        result: the operators that replace it.
        sites: how many sites are like it.
        reason: how the results differ.
        before: the node as a model.
        after: its replacement as a model.
        inputs: the inputs on which they differ; empty if the replacement is not even valid.
    """

    node: str
    op_type: str
    scope: str
    result: tuple[str, ...]
    sites: int
    reason: str
    before: ModelProto = field(repr=False)
    after: ModelProto = field(repr=False)
    inputs: dict[str, Any] = field(repr=False)

    def __str__(self) -> str:
        """One line."""
        place = f" in {self.scope}" if self.scope else ""
        others = f" (and {self.sites - 1} more like it)" if self.sites > 1 else ""
        return f"{self.op_type} node {self.node}{place}{others}: {self.reason}"

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Keep what reproduces the failure: both models and the inputs.

        ``verify before.onnx after.onnx --inputs test_data_set_0`` in that folder shows it again.
        """
        path = Path(folder)
        path.mkdir(parents=True, exist_ok=True)
        onnx.save(self.before, path / "before.onnx")
        onnx.save(self.after, path / "after.onnx")
        (path / "README.txt").write_text(f"{self}\n", encoding="utf-8")
        if self.inputs:
            write_inputs(path / "test_data_set_0", self.inputs, self.before)


@dataclass(frozen=True)
class Unchecked:
    """Sites that could not be checked, alike in operator and reason.

    Attributes:
        node: the first such node.
        op_type: its operator.
        sites: how many there are.
        reason: why.
    """

    node: str
    op_type: str
    sites: int
    reason: str

    def __str__(self) -> str:
        """One line."""
        others = f" (and {self.sites - 1} more like it)" if self.sites > 1 else ""
        return f"{self.op_type} node {self.node}{others}: {self.reason}"


@dataclass(frozen=True)
class SiteReport:
    """What checking the sites of a conversion found.

    Attributes:
        sites: how many there are.
        distinct: how many differ in operator, attributes, dtypes, ranks or replacement.
        exact: distinct sites that agree in every bit.
        errors: of each distinct site that agrees, but not in every bit, how far it is off.
        unchecked: sites that nothing could run.
        failures: distinct sites that do not agree.
        remarks: where ONNX Runtime deviates from the specification on a site.
    """

    sites: int
    distinct: int
    exact: int
    errors: tuple[Errors, ...]
    unchecked: tuple[Unchecked, ...]
    failures: tuple[SiteFailure, ...]
    remarks: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether no site fails; unchecked ones do not count as failing."""
        return not self.failures

    @property
    def checked(self) -> int:
        """Distinct sites that were run on both sides."""
        return self.exact + len(self.errors) + len(self.failures)

    @property
    def max_ulp(self) -> int:
        """The largest error of a site that agrees, in units in the last place."""
        return max((errors.max_ulp for errors in self.errors), default=0)

    def summary(self) -> str:
        """One line: ``12 sites, 4 distinct, all checked: 3 bit-exact, 1 within 2 ULP``."""
        if not self.sites:
            return "no sites to check"
        head = f"{self.sites} site{'s' * (self.sites != 1)}, {self.distinct} distinct, "
        if not self.checked:
            return f"{head}none checked"
        parts = [f"{self.exact} bit-exact"] if self.exact else []
        ulps = [errors.max_ulp for errors in self.errors if errors.max_ulp <= _TELLING_ULPS]
        if ulps:
            parts.append(f"{len(ulps)} within {max(ulps)} ULP")
        loose = [errors for errors in self.errors if errors.max_ulp > _TELLING_ULPS]
        if loose:
            worst = max(errors.max_abs for errors in loose)
            parts.append(f"{len(loose)} within tolerance (largest error {worst:.2g})")
        if self.failures:
            parts.append(f"{len(self.failures)} FAILED")
        left = self.distinct - self.checked
        how = "all checked" if not left else f"{self.checked} checked, {left} NOT checked"
        return f"{head}{how}: {', '.join(parts)}"

    def to_dict(self) -> dict[str, Any]:
        """The report as data that JSON can hold."""
        return {
            "sites": self.sites,
            "distinct": self.distinct,
            "checked": self.checked,
            "bit_exact": self.exact,
            "max_ulp": self.max_ulp,
            "max_abs": max((errors.max_abs for errors in self.errors), default=0.0),
            "unchecked": [vars(item) for item in self.unchecked],
            "failures": [
                {
                    "node": item.node,
                    "op_type": item.op_type,
                    "scope": item.scope,
                    "result": list(item.result),
                    "sites": item.sites,
                    "reason": item.reason,
                }
                for item in self.failures
            ],
            "remarks": list(self.remarks),
            "summary": self.summary(),
        }


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
    """What checking one pair found: `failure` and `unchecked` are reasons, empty if neither."""

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
        # What a model says of its values may be wrong; then agreement still tells something.
        without = _check_pair(replace(pair, promised={}), seed)
        if not without.failure:
            return without
    return found


def _elements(model: ModelProto) -> int:
    """The size of the largest tensor that the model reads or makes, as far as it is known."""
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
    sources = {"a": Source(pair.before, "before"), "b": Source(pair.after, "after")}
    runners, reasons = _open(sources)
    for model, what in (("a", "the node"), ("b", "what replaces it")):
        if not any(side == model for side, _ in runners):
            said = "; ".join(reasons[model, executor] for executor in EXECUTORS)
            found.unchecked = f"no executor can run {what}: {said}"
            return found
    names = list(sources["a"].outputs)
    compared = False
    try:
        for values, feeds, outcomes in _outcomes(pair, sources, runners, seed):
            for name in names:
                judgement = _judge(outcomes, name, pair.moved)
                if judgement.agree is None:
                    continue
                compared = True
                if not judgement.agree and values == UNUSUAL and _undetermined(judgement):
                    found.remarks = found.remarks or [_UNDETERMINED]
                    continue
                if not judgement.agree:
                    found.failure, found.inputs = _reason(judgement), feeds
                    return found
                if judgement.excused:
                    found.remarks = found.remarks or [_deviation(judgement)]
                    found.errors += judgement.pairs["numpy"]
                    continue
                for errors in judgement.pairs.values():
                    found.errors += errors
                if judgement.cross is not None:
                    found.errors += judgement.cross[2]
    except InputError as error:
        found.unchecked = str(error)
        return found
    if not compared:
        found.unchecked = _REFUSED
    return found


def _judge(outcomes: dict[tuple[str, str], Outcome], name: str, moved: bool) -> Judgement:
    """A site's judgement: where only attributes and inputs moved, every bit must agree.

    The NumPy executor is asked for that; ONNX Runtime may have another kernel for each version.
    """
    if not moved:
        return judge(outcomes, name, _COMPUTED, _BETWEEN, always=False)
    judgement = judge(outcomes, name, _EXACT, _BETWEEN, always=False)
    if judgement.agree is False and judgement.pairs.get("numpy", Errors(mismatches=1)).agree:
        return judge(outcomes, name, _COMPUTED, _BETWEEN, always=False)
    return judgement


def _undetermined(judgement: Judgement) -> bool:
    """Whether the executors differ on the original node itself, in where a NaN or infinity is.

    Then the specification does not say what becomes of them, as of an infinity whose weight in an
    interpolation is zero.
    """
    errors = judgement.deviations.get("a")
    return errors is not None and bool(errors.nan_mismatches or errors.inf_mismatches)


def _reason(judgement: Judgement) -> str:
    if judgement.cross is not None:
        first, second, errors = judgement.cross
        return f"it differs, before in {first} and after in {second}: {errors}"
    parts = [f"in {name}: {e}" for name, e in judgement.pairs.items() if not e.agree]
    return f"before and after differ {'; '.join(parts)}"


def _deviation(judgement: Judgement) -> str:
    sides = {"a": "before", "b": "after"}
    wrong = [sides[m] for m, errors in judgement.deviations.items() if not errors.agree]
    return (
        f"ONNX Runtime deviates {' and '.join(wrong)} the conversion from the NumPy executor, "
        f"which finds no difference ({judgement.pairs['onnxruntime']})"
    )


def _open(
    sources: dict[str, Source],
) -> tuple[dict[tuple[str, str], Runner], dict[tuple[str, str], str]]:
    runners: dict[tuple[str, str], Runner] = {}
    reasons: dict[tuple[str, str], str] = {}
    for model, source in sources.items():
        for executor in EXECUTORS:
            try:
                runners[model, executor] = _runner(source, executor)
            except CannotRunError as error:
                reasons[model, executor] = f"{executor}: {error}"
    return runners, reasons


def _runner(source: Source, executor: str) -> Runner:
    nodes = source.skeleton.graph.node
    if executor == "onnxruntime" and any(node.op_type in _ENDING for node in nodes):
        return open_isolated(source, executor)
    return open_runner(source, executor, threads=1)


def _outcomes(
    pair: Pair,
    sources: dict[str, Source],
    runners: dict[tuple[str, str], Runner],
    seed: int,
) -> Iterator[tuple[str, dict[str, Any], dict[tuple[str, str], Outcome]]]:
    """Run both sides on every set of inputs that the original node accepts.

    Yields:
        the value profile, the inputs, and the outcomes by side and executor.
    """
    drawer = Drawer(sources["a"])
    rng = np.random.default_rng(seed)
    names = list(sources["a"].outputs)
    accepted = False
    level = 0
    for attempts, values in _runs(drawer, rng, _special(pair), _asked(pair)):
        most = max(_MOST, drawer.elements(attempts[0]))
        # What another run needed comes first.
        order = sorted(range(len(attempts)), key=lambda index: (index != level, index))
        for index in (index for index in order for _ in range(_DRAWS if pair.promised else 1)):
            if index and drawer.elements(attempts[index]) > most:
                continue
            feeds = drawer.draw(attempts[index], values, rng, negative=True)
            _fit_shapes(pair, feeds, rng)
            if not _is_defined(pair, feeds):
                continue
            asked = _asked_about(feeds, runners)
            outcomes = {key: _run(asked, key, feeds, names) for key in asked if key[0] == "a"}
            if outcomes.get(("a", "numpy"), UNSUPPORTED).failure:
                continue  # Not legal, even if ONNX Runtime makes something of it.
            if any(_as_promised(outcome, pair) for outcome in outcomes.values()):
                for key in [key for key in asked if key[0] == "b"]:
                    outcomes[key] = _run(asked, key, feeds, names)
                accepted = True
                level = index
                yield values, feeds, outcomes
                break
        if not accepted and not drawer.open_ranks:
            return  # The shapes do not fit each other, whatever the values.


def _asked_about(
    feeds: dict[str, Any], runners: dict[tuple[str, str], Runner]
) -> dict[tuple[str, str], Runner]:
    """Who is asked about some inputs: of empty tensors only the NumPy executor.

    Kernels of ONNX Runtime divide by a size of 0 and end the process (LSTM, CumProd).
    """
    empty = any(isinstance(value, np.ndarray) and not value.size for value in feeds.values())
    return {key: item for key, item in runners.items() if not empty or key[1] == "numpy"}


def _as_promised(outcome: Outcome, pair: Pair) -> bool:
    """Whether the node ran and gave what the model says of its outputs."""
    if outcome.values is None:
        return False
    for name, dims in pair.promised.items():
        value = outcome.values[name]
        if isinstance(value, np.ndarray) and (
            len(dims) != value.ndim
            or any(
                isinstance(dim, int) and dim != size
                for dim, size in zip(dims, value.shape, strict=True)
            )
        ):
            return False
    return True


def _run(
    runners: dict[tuple[str, str], Runner],
    key: tuple[str, str],
    feeds: dict[str, Any],
    names: list[str],
) -> Outcome:
    try:
        return run_once(runners[key], feeds, names)
    except CannotRunError:
        return Outcome()


def _special(pair: Pair) -> str:
    """The profile of special values that a site's results are defined for."""
    op_types = {node.op_type for node in pair.before.graph.node}
    if op_types & _INTERPOLATING:
        return ORDINARY
    if pair.moved:
        return SPECIAL
    return ORDERED if op_types & _ORDERING else UNUSUAL


def _fit_shapes(pair: Pair, feeds: dict[str, Any], rng: np.random.Generator) -> None:
    """Let a shape that a Reshape reads fit its data, and what the model says of its output."""
    for node in pair.before.graph.node:
        if node.op_type != "Reshape" or len(node.input) < 2 or node.input[1] not in feeds:
            continue
        data, length = feeds.get(node.input[0]), feeds[node.input[1]].size
        promised = pair.promised.get(node.output[0], ())
        if not isinstance(data, np.ndarray) or not length or not data.size:
            continue
        fixed = [dim if isinstance(dim, int) else 0 for dim in promised] or [0] * length
        rest, uneven = divmod(data.size, math.prod(dim for dim in fixed if dim))
        free = [index for index, dim in enumerate(fixed) if not dim]
        if uneven or len(fixed) != length or not free:
            continue
        sizes = iter(data.shape)
        for index in free[:-1]:
            size = next(sizes, 1)
            fixed[index] = size if rest % size == 0 else 1
            rest //= fixed[index]
        fixed[free[-1]] = rest
        if rng.integers(2):
            fixed[int(rng.choice(free))] = -1
        feeds[node.input[1]] = np.array(fixed, np.int64)


def _is_defined(pair: Pair, feeds: dict[str, Any]) -> bool:
    """Whether the node's result is defined.

    Of no integers at all some reductions have none, an image of no size none to interpolate, and of
    sizes that differ under one letter no Einsum has, even if kernels repeat a size of 1.
    """
    for node in pair.before.graph.node:
        array = feeds.get(node.input[0]) if node.op_type in _NO_INTEGER else None
        if isinstance(array, np.ndarray) and array.dtype.kind in "iu" and not array.size:
            return False
        image = feeds.get(node.input[0]) if node.op_type in _INTERPOLATING else None
        if isinstance(image, np.ndarray) and not image.size:
            return False
        if node.op_type == "Einsum" and not _sizes_agree(node, feeds):
            return False
    return True


def _sizes_agree(node: NodeProto, feeds: dict[str, Any]) -> bool:
    """Whether each letter of an Einsum's equation stands for one size."""
    equation = next(item.s.decode() for item in node.attribute if item.name == "equation")
    terms = equation.replace(" ", "").split("->")[0].split(",")
    sizes: dict[str, int] = {}
    for name, term in zip(node.input, terms, strict=False):
        if name not in feeds:
            continue
        shape = feeds[name].shape
        before, _, behind = term.partition("...")
        pairs = [*zip(before, shape, strict=False)]
        pairs += zip(reversed(behind), reversed(shape), strict=False)
        if any(sizes.setdefault(letter, size) != size for letter, size in pairs):
            return False
    return True


def _asked(pair: Pair) -> list[Attempt]:
    """What the node itself asks of tensors whose rank is not known.

    That is the shape that its output is known to have, and for a Split the sum of its parts.
    """
    shapes = [
        tuple(dim if isinstance(dim, int) else 2 for dim in dims) for dims in pair.promised.values()
    ]
    sums = {
        sum(attribute.ints)
        for node in pair.before.graph.node
        for attribute in node.attribute
        if node.op_type == "Split" and attribute.name == "split"
    }
    shapes += [(size,) * rank for size in sorted(sums) for rank in range(1, 5) if size <= 64]
    return [Attempt({}, 2, len(shape), shape=shape) for shape in shapes]


def _runs(
    drawer: Drawer, rng: np.random.Generator, special: str, asked: list[Attempt]
) -> Iterator[tuple[list[Attempt], str]]:
    """For each run the attempts to make, until the node accepts one, and the value profile."""
    if drawer.open_ranks:
        for rank in range(6):
            rising = Attempt({}, 2, rank, rising=True)
            same = replace(rising, rising=False)
            for values in (ORDINARY, special):
                usual = [rising, same, replace(rising, sizes=drawer.hints)]
                yield [*usual, *(item for item in asked if item.rank == rank)], values
        yield [Attempt({}, 0, 2), Attempt({}, 0, 1)], ORDINARY
        return
    shapes = []
    for trial in range(3):
        tries = [item for _, item in zip(range(_TRIES), drawer.attempts(trial, rng), strict=False)]
        shapes.append(tries)
    for shape, values in _RUNS:
        yield shapes[shape], special if values == SPECIAL else values
    # Empty tensors, along each open dimension.
    for key in drawer.symbols[:4]:
        yield [replace(shapes[0][0], sizes={**shapes[0][0].sizes, key: 0})], ORDINARY


def _invalid(model: ModelProto) -> str:
    """Why the replacement is no model of its opset, or lacks an output; empty if it is well."""
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
