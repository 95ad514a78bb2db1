"""The exception with which a step blocks a node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class Blocked(Exception):  # noqa: N818 - an outcome, not an error
    """The node cannot cross the boundary.

    Attributes:
        reason: why, as the end of a sentence that begins with the node.
        advice: what the user can do about it; may be empty.
        ml_opset: the version of ai.onnx.ml that the model may keep instead; None for none.
        dtype_of: the value whose unknown dtype is the reason; else empty.
        rank_of: the value whose unknown rank is the reason; else empty.
    """

    def __init__(
        self,
        reason: str,
        advice: str = "",
        *,
        ml_opset: int | None = None,
        dtype_of: str = "",
        rank_of: str = "",
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.ml_opset = ml_opset
        self._other_advice = advice
        if ml_opset is not None:
            stay = f"leave ai.onnx.ml at {ml_opset}: --ml-opset {ml_opset}"
            advice = f"{advice}, or {stay}" if advice else stay
        self.advice = advice
        self.dtype_of = str(dtype_of)
        self.rank_of = str(rank_of)

    def kept(self) -> Self:
        """Return this exception without its traceback, whose frames keep large objects alive."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self

    def leave_out_ml_opset(self, otherwise: str) -> None:
        """Advise to keep no version of ai.onnx.ml; where nothing else is advised, `otherwise`."""
        self.ml_opset, self.advice = None, self._other_advice or otherwise

    @property
    def texts_beside_name(self) -> tuple[str, ...]:
        """The texts without the name of the value whose unknown type is the reason."""
        name = self.dtype_of or self.rank_of
        return self.reason.replace(repr(name), "", 1) if name else self.reason, self.advice

    def of_equal(self, names: Mapping[str, str]) -> Self:
        """Return why an equal node is blocked, by the names of its values."""
        dtype_of, rank_of = (names.get(name, name) for name in (self.dtype_of, self.rank_of))
        reason = self.reason
        if self.dtype_of or self.rank_of:
            old, new = repr(self.dtype_of or self.rank_of), repr(dtype_of or rank_of)
            reason = reason.replace(old, new, 1)
        other = type(self).__new__(type(self), reason)
        vars(other).update(vars(self), reason=reason, dtype_of=dtype_of, rank_of=rank_of)
        return other


class NotTaken(Blocked):
    """A node that the runtime does not take, nor any rewrite of it.

    Attributes:
        operators: the operators that it would have to take.
    """

    def __init__(self, reason: str, advice: str, operators: Sequence[str]) -> None:
        super().__init__(reason, advice)
        self.operators = tuple(dict.fromkeys(operators))

    def together_with(self, others: Sequence[NotTaken]) -> NotTaken:
        """Return the same reason, with the operators of other nodes."""
        operators = [op_type for item in (self, *others) for op_type in item.operators]
        return NotTaken(self.reason, self.advice, operators)
