"""The conversion of a model for a runtime: the choice of its opset and IR version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

from onnx import ModelProto

from onnxreduce_cli import schemas
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.conversion_request import ConversionRequest
from onnxreduce_cli.engine.operator_coverage import operator_coverage, operators_of_other_domains
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import ConversionError, UsageError
from onnxreduce_cli.model.graph.domains import LEARNING, default_opset, imported_version
from onnxreduce_cli.model.graph.ir_version import Wanted, choose, least_for_opset
from onnxreduce_cli.model.types.facts import Facts, admit
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.targets.verdict import TargetProblem
from onnxreduce_cli.text import LISTED, count

#: No opset below this one is tried: operators broadcast in other ways there.
_OLDEST = 7


def plan_for_runtime(model: ModelProto, options: Options, base_dir: str = "") -> Conversion:
    """Plan the conversion of a model to an opset at which a runtime takes it and computes it right.

    The model keeps its own opset if all is taken and right there. Else it gets the nearest opset at
    which nothing has to be rewritten that another opset would spare, and at which it is known of
    the most operators that they are taken. An operator that is taken at no opset is written in
    others where it is. Where nothing is known of operators, the opset that the runtime is best at
    comes first.

    Args:
        model: the model; it must not change before the conversion is applied.
        options: the options of the conversion, which name the runtime; without an opset one is
            chosen.
        base_dir: the folder that external data is relative to.

    Returns:
        the conversion, which says why the opset was chosen.

    Raises:
        UsageError: there is no such runtime, or it does not take the opset.
        ConversionError: the model cannot have an IR version that the runtime takes.
    """
    runtime, opset = options.target(), options.opset
    assert runtime is not None
    learned, most = options.ml_opset, runtime.ml_version
    if learned is not None and most is not None and learned > most:
        raise UsageError(
            f"{runtime.label} takes {LEARNING} {most} at most, not {learned}: leave --ml-opset "
            f"out, or say --ml-opset {most}"
        )
    facts = admit(model, base_dir)
    own = default_opset(model)

    def planned_at(target: int) -> Conversion:
        request = ConversionRequest(own, target, options, runtime=runtime)
        ir_version = _ir_version(model, facts, request)
        at = replace(options, ir_version=ir_version)
        return Conversion(model, target, at, base_dir=base_dir, facts=facts, runtime=runtime)

    possible = opsets_of(runtime, own)
    planned: dict[int, Conversion] = {}
    if opset is not None:
        if opset not in possible:
            raise UsageError(
                f"{runtime.label} takes opset {possible[0]} to {possible[-1]}, not {opset}; leave "
                "--opset out, and the best one is chosen"
            )
        found = planned_at(opset)
        found.choice = runtime.remark
    else:
        costs: dict[int, _Cost] = {}
        for item in sorted(possible, key=lambda item: preference(item, runtime, own)):
            planned[item] = planned_at(item)
            costs[item] = _cost(planned[item], runtime, possible)
            if not (any(costs[item]) or options.contracted() & {*options.contract}):
                break
        chosen = min(costs, key=lambda item: costs[item])
        found = planned[chosen]
        said = [f"for {runtime.label}: {_reason(chosen, runtime, own, planned)}", runtime.remark]
        found.choice = "; ".join(filter(None, said))
    found.runtime = runtime.title
    if not found.blockers:
        decided = [planned[own]] if own in planned else []
        problems = [problem for item in (*decided, found) for problem in item.avoided]
        found.coverage = operator_coverage(
            runtime,
            found.nodes_after(),
            operators_of_other_domains(found.facts, (node for _, node in found.all_nodes_after())),
            found.target,
            problems,
        )
    return found


def opsets_of(runtime: Target, own: int | None) -> range:
    """Return the opsets that a runtime is known to take."""
    newest = runtime.newest
    if newest is None:
        newest = max(runtime.best or 0, own or 0, _OLDEST)
    return range(max(runtime.oldest, _OLDEST), min(newest, schemas.newest_opset()) + 1)


def preference(opset: int, runtime: Target, own: int | None) -> tuple[bool, bool, int, int]:
    """Return a sort key: the first opset to try, then the nearest to the model's own.

    The first one is the model's own; where nothing is known of operators, the runtime's best.
    """
    first = own if runtime.knows_operators or runtime.best is None else runtime.best
    return opset != first, opset != own, abs(opset - (own or opset)), -opset


class _Cost(NamedTuple):
    """What speaks against an opset; less is better.

    Attributes:
        blockers: how many nodes block.
        rewritten: how many nodes are rewritten for the runtime that would not be at another opset.
        control_flow: how many nodes with subgraphs are added, which few runtimes take well.
        unknown: how many operators are not known to be taken that are known to be at another one.
        contracted: how many nodes contraction to named operators removes, negative.
    """

    blockers: int
    rewritten: int = 0
    control_flow: int = 0
    unknown: int = 0
    contracted: int = 0


def _cost(conversion: Conversion, runtime: Target, possible: Collection[int]) -> _Cost:
    blockers = len(conversion.blockers)
    if blockers:
        # It fails whatever is chosen; of equally many blockers the first opset's are reported.
        return _Cost(blockers)
    rewritten = sum(
        number
        for problem, number in conversion.avoided.items()
        if not problem.is_at_every_opset(runtime, possible)
    )
    unknown = 0
    if runtime.knows_operators:
        operators = {node.node.op_type for node in conversion.nodes_after()}
        unknown = sum(
            runtime.answer("", op_type, conversion.target).value == "not known"
            and any(
                runtime.answer("", op_type, opset).value not in ("not known", "not taken")
                for opset in possible
            )
            for op_type in operators
        )
    control_flow = sum(len(site.control_flow) for site in conversion.sites)
    return _Cost(0, rewritten, control_flow, unknown, -_contracted(conversion))


def _contracted(conversion: Conversion) -> int:
    """Return how many nodes go by contraction to operators that the user names.

    A group of operators does not move the model: it takes what there is at an opset.
    """
    named = conversion.options.contract
    return sum(len(site.absorbed) for site in conversion.sites if site.contraction in named)


def _ir_version(model: ModelProto, facts: Facts, request: ConversionRequest) -> Wanted:
    """Return the IR version for the model: as requested, or one that the runtime takes.

    Raises:
        ConversionError: the runtime takes none of those.
    """
    runtime, wanted = request.runtime, request.options.ir_version
    assert runtime is not None
    newest = runtime.ir_version
    if newest is None:
        return wanted
    if wanted == "auto":
        least = least_for_opset(request.target)
        if model.ir_version <= newest and least <= newest:
            return "auto"
        own = imported_version(model, LEARNING)
        learned = own and request.learning_target(own)
        needed, reason = choose("auto", model, facts.scopes, _OLDEST, learned=learned)
        if needed > newest:
            advice = (
                "say --inline-functions too"
                if model.functions
                else "leave --for out if that does not matter"
            )
            raise ConversionError(
                f"{runtime.label} takes IR version {newest} at most, and {needed} is {reason}: "
                f"{advice}"
            )
        return max(needed, min(least, newest))
    number = model.ir_version if wanted == "keep" else wanted
    if number > newest:
        raise ConversionError(
            f"{runtime.label} takes IR version {newest} at most, not {number}: leave --ir-version "
            "out"
        )
    return wanted


def _reason(chosen: int, runtime: Target, own: int | None, planned: dict[int, Conversion]) -> str:
    """Return why the model gets an opset, for people."""
    if chosen == own:
        avoided = planned[own].avoided
        text = f"the model's own opset, {own}, stays"
        if avoided:
            return f"{text}; it would get wrong or refuse {_counts_text(avoided)}"
        if runtime.knows_operators:
            return text
        what = "operators" if runtime.newest is not None else "opsets and operators"
        return f"{text}; which {what} it takes is not known"
    if own not in planned:
        if own not in opsets_of(runtime, own):
            return f"it does not take the model's own opset, {own}"
        return f"opset {chosen} is the one it is best at; which operators it takes is not known"
    wrong = planned[own].avoided
    if wrong:
        return (
            f"at the model's own opset, {own}, it would get wrong or refuse {_counts_text(wrong)}"
        )
    if planned[own].blockers:
        return f"at the model's own opset, {own}, {count(len(planned[own].blockers), 'node')} block"
    if _contracted(planned[chosen]) > _contracted(planned[own]):
        return f"at the model's own opset, {own}, fewer nodes can be contracted"
    return f"at the model's own opset, {own}, fewer operators are known to be taken"


def _counts_text(wrong: Counter[TargetProblem]) -> str:
    texts = [f"{number} {problem}" for problem, number in wrong.items()]
    more = [f"{len(texts) - LISTED} more"] if len(texts) > LISTED else []
    return "; ".join([*texts[:LISTED], *more])
