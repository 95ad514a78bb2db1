"""Planning: the passes over the whole model where nodes block without them, then every node.

Few models need a pass: they are imported where one does.
"""

from __future__ import annotations

from onnxreduce_cli.engine.conversion_request import ConversionInput, ConversionRequest
from onnxreduce_cli.engine.plan import SitePlan


def make_plan(
    model_input: ConversionInput, request: ConversionRequest, *, write_out: bool = True
) -> SitePlan:
    """Plan the conversion of a model, which is not edited.

    Args:
        model_input: the model.
        request: what is requested: to which opset, with which options.
        write_out: whether sequences and optional values that block may be written out.

    Returns:
        the plan, maybe of a copy that passes have edited: see `SitePlan.input`.
    """
    plan = SitePlan(model_input, request)
    if not plan.blocked:
        plan.finish()
        return plan
    from onnxreduce_cli.engine.passes.inlining import inline_functions, unblocks
    from onnxreduce_cli.engine.passes.sequences import write_out_sequences
    from onnxreduce_cli.engine.passes.specialisation import specialise_functions

    model_input, request = plan.input, plan.request
    found = write_out_sequences(plan) if write_out else None
    if found is not None:
        copy, written = found
        # What is still there afterwards is what the model takes and gives: it would come back. Only
        # a SequenceMap, which becomes a Loop by itself, leaves more to do.
        again = any(item.op_type == "SequenceMap" for item in written)
        copied = ConversionInput.of(copy, model_input.facts.base_dir)
        result = make_plan(copied, request, write_out=again)
        result.written = written + result.written
        return result
    plan = specialise_functions(plan) or plan
    for copy, functions, calls in inline_functions(model_input, plan):
        result = make_plan(ConversionInput.of(copy, model_input.facts.base_dir), request)
        if unblocks(plan, result, functions):
            result.inlined = {**calls, **result.inlined}
            return result
    plan.finish()
    return plan
