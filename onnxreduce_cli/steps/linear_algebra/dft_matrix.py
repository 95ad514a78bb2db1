"""The matrices that DFT multiplies with, where they are known at conversion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxreduce_cli.emit.node_facts import Array


@dataclass(frozen=True)
class Kind:
    """The kind of a transform.

    Attributes:
        inverse: whether it is the inverse.
        onesided: whether only the half of the frequencies is given, or taken by the inverse.
        parts: how many numbers each element of the signal has, 1 or 2.
    """

    inverse: bool
    onesided: bool
    parts: int

    @property
    def is_real(self) -> bool:
        """Return whether the result is a real signal."""
        return self.inverse and self.onesided

    @property
    def result_parts(self) -> int:
        """The count of numbers that each element of the result has, 1 or 2."""
        return 1 if self.is_real else 2

    def turned(self, cos: Array, sin: Array) -> Array:
        """The factors by which an element's parts, turned by angles, go into those of the result.

        Of shape [angles, parts, parts of the result].
        """
        rows = [[cos, sin], [-sin, cos]] if self.inverse else [[cos, -sin], [sin, cos]]
        return np.array([row[: self.result_parts] for row in rows[: self.parts]]).transpose(2, 0, 1)


def angle_table(kind: Kind, length: int) -> Array:
    """`Kind.turned` of each of `length` angles around the circle, double; see there for its shape.

    That of the inverse is divided by the length.
    """
    angles = 2 * np.pi * np.arange(length) / length
    table = kind.turned(np.cos(angles), np.sin(angles))
    return table / length if kind.inverse else table


def real_weights(length: int, taken: int) -> Array:
    """The weights of each frequency's real and imaginary part in a real signal, [taken, 2].

    All but the first and the middle one stand for two; these have no imaginary part.
    """
    frequencies = np.arange(taken)
    real = 2.0 - (frequencies == 0) - (2 * frequencies == length)
    return np.stack([real, 2 * (real - 1)], axis=1)


def constant_matrix(kind: Kind, length: int, taken: int, given: int) -> Array:
    """The matrix of shape [taken * kind.parts, given * kind.result_parts], double.

    Args:
        kind: which transform it is.
        length: the length of the transform.
        taken: how many elements of the signal are transformed.
        given: how many elements the result has.
    """
    angles = np.outer(np.arange(taken), np.arange(given)) % max(length, 1)
    values = angle_table(kind, length)[angles]
    if kind.is_real:
        values *= real_weights(length, taken)[:, None, : kind.parts, None]
    shape = (taken * kind.parts, given * kind.result_parts)
    matrix: Array = values.transpose(0, 2, 1, 3).reshape(shape)
    return matrix
