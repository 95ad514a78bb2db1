"""What CONTRIBUTING tells those who carry on: its files exist, and its example of a step works."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import numpy as np
import pytest

import onnxreduce_cli
from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.steps import registry
from tests.support import converts, model, op_types

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
PACKAGE = Path(onnxreduce_cli.__file__).parent


def test_the_files_exist() -> None:
    """Those of the picture and of the tables: a file or folder of the package, or of its layer."""
    drawn = TEXT[TEXT.index("## The way") : TEXT.index("## Writing a step")]
    named = set(re.findall(r"\b(?:\w+/)*\w+\.(?:py|json)\b|\b\w+/(?=[`\s])", drawn))
    assert len(named) > 25
    assert {name for name in named if not list(PACKAGE.rglob(name))} == set()


def test_the_example_is_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    start = TEXT.index('    @down("Flatten"')
    example = textwrap.dedent(TEXT[start : TEXT.index("\n- ", start)])
    for key in (("Flatten", 11, "down"), ("Mish", 18, "down")):
        monkeypatch.delitem(registry.STEPS, key)  # type: ignore[arg-type]
    names = {"Blocked": Blocked, "Context": Context}
    exec(example, {**names, "down": registry.down, "introduced": registry.introduced})
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
    g (float[2,3,4] x) => (float[6,4] y) { f = Flatten<axis=-1>(x) y = Mish(f) }""")
    data = np.linspace(-9, 9, 24, dtype=np.float32).reshape(2, 3, 4)
    result = converts(source, 10, {"x": data})
    assert op_types(result) == ["Flatten", "Softplus", "Tanh", "Mul"]
