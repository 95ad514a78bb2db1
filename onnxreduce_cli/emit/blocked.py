"""How a step says that there is no way across its boundary."""

from __future__ import annotations


class Blocked(Exception):  # noqa: N818 - an outcome, not an error
    """There is no way across the boundary for this node.

    Attributes:
        reason: why, as the end of a sentence that begins with the node.
        advice: what the user can do about it; may be empty.
        dtype_of: the value whose dtype is not known, where that is why; else empty.
        rank_of: the value whose rank is not known, where that is why; else empty.
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
        """The same without the calls that it went through, which hold on to all that was known."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self
