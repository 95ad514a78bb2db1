"""Planning: the passes over the whole model where nodes block without them, then every node.

Few models need a pass: they are imported where one does.
"""

from __future__ import annotations

from onnxreduce_cli.engine.conversion_request import Route, Subject
from onnxreduce_cli.engine.plan import SitePlan


def make_plan(subject: Subject, route: Route) -> SitePlan:
    """Plan the conversion of a model, which is not edited.

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
    return completed(plan)


def completed(plan: SitePlan) -> SitePlan:
    """Complete a plan of a model as it is: where nodes block, by a pass over the whole model."""
    if not plan.blocked:
        plan.finish()
        return plan
    from onnxreduce_cli.engine.passes.inlining import helps, inline_functions
    from onnxreduce_cli.engine.passes.sequences import write_out_sequences
    from onnxreduce_cli.engine.passes.specialisation import specialise_functions

    subject, route = plan.subject, plan.route
    found = write_out_sequences(plan)
    if found is not None:
        copy, written = found
        result = make_plan(Subject.of(copy, subject.facts.base_dir), route)
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
