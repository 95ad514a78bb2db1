"""Running the command line in this process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from onnxreduce_cli.cli import main as command_line
from onnxreduce_cli.engine import carry
from tests import contract

carry.after_step = contract.check


@dataclass(frozen=True)
class Result:
    """How a run of the command ended."""

    code: int
    out: str
    err: str


@pytest.fixture
def onnxreduce(monkeypatch, capsys) -> Callable[..., Result]:
    """Call ``onnxreduce`` with arguments; what it prints never holds a traceback."""

    def call(*arguments: object) -> Result:
        monkeypatch.setattr(sys, "argv", ["onnxreduce", *map(str, arguments)])
        code = 0
        try:
            command_line.main()
        except SystemExit as error:
            code = error.code if isinstance(error.code, int) else 1
        out, err = capsys.readouterr()
        assert "Traceback" not in out + err
        return Result(code, out, err)

    return call
