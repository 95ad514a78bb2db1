"""What `verify` sees of planted faults, and that harmless rewrites raise no alarm."""

from __future__ import annotations

import pytest

from onnxreduce_cli.verification.whole.equivalence import verify
from tests.share import share
from tests.verification.whole.planted.faults import FAULTS
from tests.verification.whole.planted.further import FURTHER_FAULTS, FURTHER_REWRITES
from tests.verification.whole.planted.rewrites import REWRITES

_SEEDS = [
    0,
    *(pytest.param(seed, marks=pytest.mark.matrix) for seed in share(range(1, 10), each=3)),
]


@pytest.mark.parametrize("seed", _SEEDS)
def test_nine_of_ten_faults_are_caught_with_each_seed(seed: int) -> None:
    faults = FAULTS + FURTHER_FAULTS
    missed = [pair.name for pair in faults if verify(*pair.models(), seed=seed).exit_code != 1]
    assert len(missed) <= len(faults) // 10, missed


@pytest.mark.parametrize("seed", _SEEDS)
def test_no_harmless_rewrite_raises_an_alarm(seed: int) -> None:
    rewrites = REWRITES + FURTHER_REWRITES
    alarms = [pair.name for pair in rewrites if verify(*pair.models(), seed=seed).exit_code]
    assert not alarms
