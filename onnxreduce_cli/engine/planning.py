"""Planning of a conversion: every node, and passes over the whole model if nodes block.

Few models need a pass, so the passes are imported only when one is needed.
"""

from __future__ import annotations

from onnxreduce_cli.engine.conversion_request import ConversionInput, ConversionRequest
from onnxreduce_cli.engine.node_converter import Drafts
from onnxreduce_cli.engine.plan import SitePlan


def make_plan(
    model_input: ConversionInput,
    request: ConversionRequest,
    *,
    write_out: bool = True,
    drafts: Drafts | None = None,
) -> SitePlan:
    """Plan the conversion of a model, which is not edited.

    Args:
        model_input: the model.
        request: the opsets and options of the conversion.
        write_out: whether sequences and optional values that block may be written out.
        drafts: what was written for the model's nodes in other plans of the same options.

    Returns:
        the plan of the model, or of a copy that passes have edited: see `SitePlan.input`.
    """
    plan = SitePlan(model_input, request, drafts)
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
        # The sequences that are left are inputs and outputs of the model: to write them out again
        # would change nothing. Only a SequenceMap, which becomes a Loop first, leaves more to do.
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
