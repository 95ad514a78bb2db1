"""Planning: the passes over the whole model where nodes block without them, then every node.

Few models need a pass: they are imported where one does.
"""

from __future__ import annotations

from onnxreduce_cli.engine.plan import SitePlan
from onnxreduce_cli.engine.subject import Route, Subject


def make_plan(subject: Subject, route: Route, *, write_out: bool = True) -> SitePlan:
    """Plan the conversion of a model, which is not edited.

    Args:
        subject: the model.
        route: where it is to be converted to.
        write_out: whether sequences and optional values that block may be written out.

    Returns:
        the plan, maybe of a copy that passes have edited: see `SitePlan.subject`.
    """
    # What might have been contracted is told of each function by itself.
    plan = SitePlan(subject if route.contract else subject.distinct(), route)
    if plan.subject.alike:
        if plan.blocked:  # So is what blocks.
            plan = SitePlan(subject, route)
        else:
            from onnxreduce_cli.engine.alike import add_alike

            add_alike(plan, subject)
    return completed(plan, write_out=write_out)


def completed(plan: SitePlan, *, write_out: bool = True) -> SitePlan:
    """Complete a plan of a model as it is: where nodes block, by a pass over the whole model.

    Args:
        plan: the plan.
        write_out: see `make_plan`.
    """
    if not plan.blocked:
        plan.finish()
        return plan
    from onnxreduce_cli.engine.passes.inlining import helps, inline_functions
    from onnxreduce_cli.engine.passes.sequences import write_out_sequences
    from onnxreduce_cli.engine.passes.specialisation import specialise_functions

    subject, route = plan.subject, plan.route
    found = write_out_sequences(plan) if write_out else None
    if found is not None:
        copy, written = found
        # What is still there afterwards is what the model takes and gives: it would come back. Only
        # a SequenceMap, which becomes a Loop by itself, leaves more to do.
        again = any(item.op_type == "SequenceMap" for item in written)
        copied = Subject.of(copy, subject.facts.base_dir)
        result = make_plan(copied, route, write_out=again)
        result.written = written + result.written
        return result
    plan = specialise_functions(plan) or plan
    for copy, functions, calls in inline_functions(subject, plan):
        result = make_plan(Subject.of(copy, subject.facts.base_dir), route)
        if helps(plan, result, functions):
            result.inlined = {**calls, **result.inlined}
            return result
    plan.finish()
    return plan
