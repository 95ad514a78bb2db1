"""Arrays of pseudo-random numbers, by the generator of Python's standard library.

NumPy's own generators are a package with OpenSSL behind it, whose import takes a twentieth of
converting and checking an ordinary model.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]

#: The bits of a double's significand.
_PRECISION = 53


class RandomArrays:
    """A generator whose arrays depend on its seeds and on what was drawn before.

    The methods are named as those of `numpy.random.Generator`; without a shape they return one
    element.
    """

    def __init__(self, *seeds: int) -> None:
        """Begin a sequence of its own for each combination of seeds."""
        self._bytes = random.Random(repr(seeds)).randbytes

    def _bits(self, shape: tuple[int, ...]) -> npt.NDArray[np.uint64]:
        return np.frombuffer(self._bytes(8 * math.prod(shape)), "<u8").reshape(shape)

    def random(self, shape: tuple[int, ...] = ()) -> Any:
        """Draw doubles from 0 to below 1."""
        return (self._bits(shape) >> np.uint64(64 - _PRECISION)) * 2.0**-_PRECISION

    def integers(self, low: int, high: int, shape: tuple[int, ...] = ()) -> Any:
        """Draw int64 from `low` to below `high`; ranges of up to 2**63 - 1 integers."""
        return (self._bits(shape) % np.uint64(high - low)).astype(np.int64) + low

    def uniform(self, low: float, high: float, shape: tuple[int, ...] = ()) -> Any:
        """Draw doubles from `low` to below `high`."""
        return low + (high - low) * self.random(shape)

    def standard_normal(self, shape: tuple[int, ...] = ()) -> Any:
        """Draw doubles of mean 0 and variance 1, by the transform of Box and Muller."""
        radius = np.sqrt(-2.0 * np.log1p(-self.random(shape)))
        return radius * np.cos(2.0 * math.pi * self.random(shape))

    def permutation(self, count: int) -> Array:
        """Draw an order of the integers from 0 to below `count`."""
        return np.argsort(self.random((count,)), kind="stable")

    def choice(self, values: Any, shape: tuple[int, ...] = ()) -> Any:
        """Draw elements of a list or of an array of rank 1."""
        return np.asarray(values)[self.integers(0, len(values), shape)]
