"""The conversion of a model for a runtime: the choice of its opset and IR version."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from onnx import ModelProto

from onnxreduce_cli import schemas
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import ConversionError, UsageError
from onnxreduce_cli.model.graph.domains import default_opset
from onnxreduce_cli.model.graph.ir_version import Wanted, choose, least_for_opset
from onnxreduce_cli.model.types.facts import Facts, admit
from onnxreduce_cli.targets.requirement import Target
from onnxreduce_cli.text import count, listed

#: No opset below this one is tried: operators broadcast in other ways there.
_OLDEST = 7


def plan_for_runtime(model: ModelProto, options: Options, base_dir: str = "") -> Conversion:
    """Plan the conversion of a model to an opset at which a runtime takes it and computes it right.

    The model keeps its own opset if nothing is wrong there. Else the opset is chosen at which the
    fewest nodes block, then at which the fewest nodes must be rewritten, then at which the most
    nodes can be contracted; of several, the one that the runtime is best at, else the nearest to
    the model's own.

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
    facts = admit(model, base_dir)
    own = default_opset(model)

    def planned_at(target: int) -> Conversion:
        ir_version = _ir_version(model, facts, runtime, target, options.ir_version)
        at = replace(options, ir_version=ir_version)
        return Conversion(model, target, at, base_dir=base_dir, facts=facts, runtime=runtime)

    possible = opsets_of(runtime, own)
    if opset is not None:
        if opset not in possible:
            raise UsageError(
                f"{runtime.label} takes opset {possible[0]} to {possible[-1]}, not {opset}; leave "
                "--opset out, and the best one is chosen"
            )
        found = planned_at(opset)
        found.choice = runtime.remark
        return found
    planned = {}
    for item in sorted(possible, key=lambda item: preference(item, runtime, own)):
        planned[item] = planned_at(item)
        if not (planned[item].blockers or planned[item].avoided or options.contract):
            break
    chosen = min(planned, key=lambda item: _cost(planned[item]))
    found = planned[chosen]
    said = [f"for {runtime.label}: {_reason(chosen, runtime, own, planned)}", runtime.remark]
    found.choice = "; ".join(filter(None, said))
    return found


def opsets_of(runtime: Target, own: int | None) -> range:
    """Return the opsets that a runtime is known to take."""
    newest = runtime.newest
    if newest is None:
        newest = max(runtime.best or 0, own or 0, _OLDEST)
    return range(max(runtime.oldest, _OLDEST), min(newest, schemas.newest_opset()) + 1)


def preference(opset: int, runtime: Target, own: int | None) -> tuple[bool, bool, int]:
    """Return a sort key: the model's own opset first, then the runtime's best, then the nearest."""
    return opset != own, opset != runtime.best, abs(opset - (own or opset))


def _cost(conversion: Conversion) -> tuple[int, int, int]:
    blockers = len(conversion.blockers)
    if blockers:
        # It fails whatever is chosen; of equally many blockers the first opset's are reported.
        return blockers, 0, 0
    return 0, conversion.avoided.total(), -_contracted(conversion)


def _contracted(conversion: Conversion) -> int:
    """Return how many nodes contraction removes."""
    return sum(len(site.absorbed) for site in conversion.sites)


def _ir_version(
    model: ModelProto, facts: Facts, runtime: Target, opset: int, wanted: Wanted
) -> Wanted:
    """Return the IR version for the model: as requested, or one that the runtime takes.

    Raises:
        ConversionError: the runtime takes none of those.
    """
    newest = runtime.ir_version
    if newest is None:
        return wanted
    if wanted == "auto":
        least = least_for_opset(opset)
        if model.ir_version <= newest and least <= newest:
            return "auto"
        needed, reason = choose("auto", model, facts.scopes, _OLDEST)
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
        if runtime.newest is None and not avoided:
            return "which opsets it takes is not known, so the model's own stays"
        return "it takes the model's own opset" + (
            f", but for {_counts_text(avoided)}"
            if avoided
            else ", and nothing is known that it gets wrong there"
        )
    if own not in planned:
        return f"it does not take the model's own opset, {own}"
    wrong = planned[own].avoided
    if wrong:
        return (
            f"at the model's own opset, {own}, it would get wrong or refuse {_counts_text(wrong)}"
        )
    if planned[own].blockers:
        return f"at the model's own opset, {own}, {count(len(planned[own].blockers), 'node')} block"
    return f"at the model's own opset, {own}, fewer nodes can be contracted"


def _counts_text(wrong: Counter[str]) -> str:
    return listed([f"{number} {what}" for what, number in wrong.items()])
