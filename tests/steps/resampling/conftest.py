"""Replacements of any size, for what is computed to be looked at."""

from __future__ import annotations

import pytest

from onnxreduce_cli.engine import emulation


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let replacements have more nodes than `emulation.MOST_NODES`, which block otherwise."""
    monkeypatch.setattr(emulation, "MOST_NODES", 1_000)
