"""Sizes as users write them."""

from __future__ import annotations

import click
import pytest

from onnxreduce_cli.cli.convert import command
from onnxreduce_cli.cli.size import size


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1048576", 1 << 20),
        ("1MB", 1_000_000),
        ("1mb", 1_000_000),
        ("512KiB", 512 << 10),
        ("1.5 GB", 1_500_000_000),
        ("2GiB", 2 << 30),
        ("0", 0),
        ("3TB", 3 * 10**12),
        (None, None),
    ],
)
def test_sizes(text: str | None, expected: int | None) -> None:
    assert size(click.Context(command), command.params[0], text) == expected
