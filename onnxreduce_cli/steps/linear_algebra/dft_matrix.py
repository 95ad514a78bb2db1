"""The matrices that DFT multiplies with, where they are known at conversion."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnxreduce_cli.emit.node_facts import Array


@dataclass(frozen=True, slots=True)
class FourierTransform:
    """The kind of a Fourier transform and of its signal.

    Attributes:
        inverse: whether it is the inverse transform.
        onesided: whether the result, or of the inverse the signal, has only the first half of the
            frequencies.
        parts: the number of components of each element of the signal, 1 or 2.
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
        """Return how many numbers each element of the result has, 1 or 2."""
        return 1 if self.is_real else 2

    def turned(self, cos: Array, sin: Array) -> Array:
        """Return the factors by which an element's parts go into those of the result.

        Args:
            cos: the cosine of the angle by which each element is turned, double of shape [angles].
            sin: its sine, likewise.

        Returns:
            double of shape [angles, parts, result_parts].
        """
        rows = [[cos, sin], [-sin, cos]] if self.inverse else [[cos, -sin], [sin, cos]]
        return np.array([row[: self.result_parts] for row in rows[: self.parts]]).transpose(2, 0, 1)


def angle_table(kind: FourierTransform, length: int) -> Array:
    """Return `FourierTransform.turned` of `length` angles, evenly spaced around the circle.

    Returns:
        double of shape [length, parts, result_parts], for the inverse divided by the length.
    """
    angles = 2 * np.pi * np.arange(length) / length
    table = kind.turned(np.cos(angles), np.sin(angles))
    return table / length if kind.inverse else table


def real_weights(length: int, count: int) -> Array:
    """Return the weights of each frequency's real and imaginary part in a real signal.

    All but the first and the middle one stand for two; these have no imaginary part.

    Args:
        length: the length of the signal.
        count: the number of frequencies.

    Returns:
        double of shape [count, 2].
    """
    frequencies = np.arange(count)
    real = 2.0 - (frequencies == 0) - (2 * frequencies == length)
    return np.stack([real, 2 * (real - 1)], axis=1)


def constant_matrix(
    kind: FourierTransform, length: int, input_size: int, output_size: int
) -> Array:
    """Return the matrix that the signal is multiplied with, computed at conversion.

    Args:
        kind: which transform it is.
        length: the length of the transform.
        input_size: how many elements of the signal are transformed.
        output_size: how many elements the result has.

    Returns:
        double of shape [input_size * kind.parts, output_size * kind.result_parts].
    """
    angles = np.outer(np.arange(input_size), np.arange(output_size)) % max(length, 1)
    values = angle_table(kind, length)[angles]
    if kind.is_real:
        values *= real_weights(length, input_size)[:, None, : kind.parts, None]
    shape = (input_size * kind.parts, output_size * kind.result_parts)
    matrix: Array = values.transpose(0, 2, 1, 3).reshape(shape)
    return matrix
