"""The equations of Einsum."""

from __future__ import annotations

import re

_TERM = re.compile(r"[A-Za-z]*(\.\.\.[A-Za-z]*)?")


def is_equation(equation: str) -> bool:
    """Return whether a text is an equation, such as ``"...ij,jk->...ik"``.

    All its terms are letters with an ellipsis at most, those of the output are among the others,
    each once.
    """
    left, _, output = equation.replace(" ", "").partition("->")
    labels = output.replace("...", "")
    return (
        all(_TERM.fullmatch(term) for term in (*left.split(","), output))
        and len(set(labels)) == len(labels)
        and set(labels) <= set(left)
    )
