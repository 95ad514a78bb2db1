"""What `verify` sees of planted faults, and that harmless rewrites raise no alarm."""

from __future__ import annotations

import pytest

from onnxreduce_cli.verification.whole.equivalence import verify
from tests.verification.whole.planted.faults import FAULTS
from tests.verification.whole.planted.rewrites import REWRITES

_SEEDS = [pytest.param(seed, marks=[pytest.mark.matrix] if seed else []) for seed in range(10)]


@pytest.mark.parametrize("seed", _SEEDS)
def test_nine_of_ten_faults_are_caught_with_each_seed(seed: int) -> None:
    missed = [pair.name for pair in FAULTS if verify(*pair.models(), seed=seed).exit_code != 1]
    assert len(missed) <= len(FAULTS) // 10, missed


@pytest.mark.parametrize("seed", _SEEDS)
def test_no_harmless_rewrite_raises_an_alarm(seed: int) -> None:
    alarms = [pair.name for pair in REWRITES if verify(*pair.models(), seed=seed).exit_code]
    assert not alarms
