"""The exception with which a step blocks a node."""

from __future__ import annotations


class Blocked(Exception):  # noqa: N818 - an outcome, not an error
    """The node cannot cross the boundary.

    Attributes:
        reason: why, as the end of a sentence that begins with the node.
        advice: what the user can do about it; may be empty.
        dtype_of: the value whose unknown dtype is the reason; else empty.
        rank_of: the value whose unknown rank is the reason; else empty.
    """

    def __init__(
        self, reason: str, advice: str = "", *, dtype_of: str = "", rank_of: str = ""
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice
        self.dtype_of = str(dtype_of)
        self.rank_of = str(rank_of)

    def kept(self) -> Blocked:
        """Return this exception without its traceback, whose frames keep large objects alive."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self
