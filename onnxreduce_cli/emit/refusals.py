"""Reasons and advice of steps that block, above all where they would need control flow."""

from __future__ import annotations

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import LARGEST_CONSTANT

#: Below this opset no Loop is emitted for other operators.
LOOPS_FROM = 7
#: From this opset on numbers are counted up to a size without a Loop, by NonZero.
COUNTING_FROM = 9

#: When a step blocks that counts up to a size, which takes a Loop before opset 9.
NO_COUNTING = f"a size or rank is only known at run time and it leads below opset {COUNTING_FROM}"
#: When a step blocks that needs a Loop for tensors of unknown rank only.
NO_RANK = f"its rank is not known and it leads below opset {LOOPS_FROM}"


def no_equivalent(context: Context, what: str) -> Blocked:
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
    context: Context, reason: str, since: int, advice: str = "", *, rank_of: str = ""
) -> None:
    """Raise `Blocked` unless control flow that was not there may be emitted for the node.

    Args:
        context: the node.
        reason: what only control flow could do, and before which opset.
        since: the first opset at which none is needed.
        advice: what helps besides a later opset, as the end of a sentence.
        rank_of: the value whose unknown rank is the reason, if any.
    """
    if context.may_loop and context.reaches(LOOPS_FROM):
        return
    if context.may_loop:
        reason, since = f"{reason}, and below opset {LOOPS_FROM} none is written", LOOPS_FROM
    raise Blocked(reason, f"choose opset {since} or later{advice}", rank_of=rank_of)


def need_few(count: int, what: str, advice: str = "") -> None:
    """Raise `Blocked` where a step would write out more elements than a constant may have.

    Args:
        count: the number of elements.
        what: what has them, as the beginning of a sentence.
        advice: what helps.
    """
    if count > LARGEST_CONSTANT:
        raise Blocked(f"{what} {count:,} elements, and {LARGEST_CONSTANT:,} are the most", advice)


#: Advice for what is known at run time only.
OR_STATE_SHAPES = ", or state the shapes that it depends on in the model's value_info or inputs"
