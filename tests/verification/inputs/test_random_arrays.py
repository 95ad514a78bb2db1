"""Arrays of pseudo-random numbers."""

from __future__ import annotations

import numpy as np
import pytest

from onnxreduce_cli.verification.inputs.random_arrays import RandomArrays

MANY = (20_000,)


@pytest.mark.parametrize("name", ["random", "standard_normal"])
def test_the_seeds_decide(name):
    def drawn(*seeds):
        return getattr(RandomArrays(*seeds), name)((4, 5))

    assert np.array_equal(drawn(3), drawn(3))
    assert not np.array_equal(drawn(3), drawn(4))
    assert not np.array_equal(drawn(3, 1), drawn(31))
    assert drawn(3).dtype == np.float64


def test_each_draw_is_another():
    rng = RandomArrays(0)
    assert not np.array_equal(rng.random(MANY), rng.random(MANY))


def test_random_numbers_fill_their_range_evenly():
    found = RandomArrays(0).random(MANY)
    assert 0 <= found.min() < 0.001
    assert 0.999 < found.max() < 1
    counts, _ = np.histogram(found, 10, (0, 1))
    assert np.all(abs(counts - 2000) < 200)


def test_normal_numbers_have_the_moments_of_the_normal_distribution():
    found = RandomArrays(0).standard_normal(MANY)
    assert abs(found.mean()) < 0.03
    assert abs(found.var() - 1) < 0.05
    assert abs((found**3).mean()) < 0.1
    assert abs((found**4).mean() - 3) < 0.3
    assert np.isfinite(found).all()


def test_integers_reach_both_ends():
    found = RandomArrays(0).integers(-3, 4, MANY)
    assert found.dtype == np.int64
    assert sorted(set(found.tolist())) == [-3, -2, -1, 0, 1, 2, 3]
    low = -(1 << 62)
    assert np.all(RandomArrays(0).integers(low, low + 2, (9,)) - low < 2)


def test_a_permutation_has_each_integer_once():
    found = RandomArrays(0).permutation(100)
    assert sorted(found.tolist()) == list(range(100))
    assert found.tolist() != list(range(100))


def test_a_choice_is_of_the_values():
    found = RandomArrays(0).choice((3, 5, 9), (50, 2))
    assert found.shape == (50, 2)
    assert set(found.reshape(-1).tolist()) == {3, 5, 9}
    assert RandomArrays(0).choice([7]) == 7


def test_an_empty_array_can_be_drawn():
    assert RandomArrays(0).integers(0, 5, (0, 3)).shape == (0, 3)
    assert RandomArrays(0).standard_normal((2, 0)).shape == (2, 0)
