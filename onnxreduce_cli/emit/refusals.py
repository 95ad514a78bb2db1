"""Reasons and advice of steps that block, above all where they would need a Loop."""

from __future__ import annotations

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context

#: Below this opset no Loop is emitted for other operators.
LOOPS_FROM = 7

#: When a step blocks that emits a Loop for its operator.
NO_LOOP = f"it leads below opset {LOOPS_FROM}, as it takes a Loop"
#: When a step blocks that counts up to a size, which takes a Loop before opset 9.
NO_COUNTING = f"a size or rank is only known at run time and it leads below opset {LOOPS_FROM}"
#: When a step blocks that needs a Loop for tensors of unknown rank only.
NO_RANK = f"its rank is not known and it leads below opset {LOOPS_FROM}"


def refuse(context: Context, what: str) -> Blocked:
    """Return the exception for a node that no operators older than its own can replace.

    Args:
        context: the node.
        what: what none of them does, as the end of a sentence.
    """
    return Blocked(
        f"nothing before opset {context.op.opset + 1} {what}",
        f"choose opset {context.op.opset + 1} or later",
    )


def need_loops(
    context: Context,
    reason: str = "only a Loop could stand for it",
    advice: str = "",
    *,
    rank_of: str = "",
) -> None:
    """Raise `Blocked` where the conversion leads to an opset for which no Loop is emitted.

    Args:
        context: the node.
        reason: why a Loop is needed.
        advice: what helps besides a later opset, as the end of a sentence.
        rank_of: the value whose unknown rank is the reason for the Loop, if any.
    """
    if context.target_opset < LOOPS_FROM:
        raise Blocked(
            f"{reason}, and below opset {LOOPS_FROM} none is written",
            f"choose opset {LOOPS_FROM} or later{advice}",
            rank_of=rank_of,
        )


#: Advice for what is known at run time only.
OR_STATE_SHAPES = ", or state the shapes that it depends on in the model's value_info or inputs"
