"""How a step says that there is no way across its boundary."""

from __future__ import annotations


class Blocked(Exception):  # noqa: N818 - an outcome, not an error
    """There is no way across the boundary for this node.

    Attributes:
        reason: why, as the end of a sentence that begins with the node.
        advice: what the user can do about it; may be empty.
    """

    def __init__(self, reason: str, advice: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.advice = advice
