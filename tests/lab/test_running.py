"""A model runs in a runtime, in a process of its own, and its outputs are compared."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto

from lab.__main__ import measured
from lab.cases import cases
from lab.graphs import graph
from lab.installing import Installed, NotThereError, install
from lab.matrix import NOT_RUN
from lab.models import model
from lab.recipes import RECIPES
from lab.running import (
    RUNNERS,
    Told,
    expected,
    inputs_of,
    script_of,
    told,
    without_network,
)

#: Nothing is to be found in its folder that is not installed beside this anyway.
HERE = Installed("onnxruntime", "1.31.1", sys.executable, Path(__file__).parent)


def verdict(given: ModelProto, right: list[np.ndarray]) -> str:
    return told(HERE, given, inputs_of(given), right).verdict


def right_of(given: ModelProto) -> list[np.ndarray]:
    return expected(given, inputs_of(given))


def test_right_and_wrong() -> None:
    given = model("TopK_f", 18)
    right = right_of(given)
    assert verdict(given, right) == "right"
    assert verdict(given, right[::-1]) == "right"
    assert verdict(given, [right[0] + 1, right[1]]) == "wrong"
    assert verdict(given, right[:1]) == "wrong"


def test_without_the_batch_axis_is_right() -> None:
    given = model("Clip_f", 13)
    (right,) = right_of(given)
    assert verdict(given, [right[0]]) == "right"
    assert verdict(given, [np.moveaxis(right, 1, 3)]) == "wrong"


def test_refused() -> None:
    given = model("Clip_f", 13)
    given.opset_import[0].version = 99
    assert verdict(given, []) == "refused"


def test_what_was_refused_says_why() -> None:
    given = model("Clip_f", 13)
    given.graph.node[0].op_type = "Clap"
    assert "Clap" in told(HERE, given, inputs_of(given), []).why


def test_what_is_no_array_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys\nimport numpy as np\nnp.savez(sys.argv[3], np.array(None, dtype=object))\n"
    found = in_a_runtime_of(script, tmp_path, monkeypatch)
    assert found.verdict == "refused"
    assert "no array" in found.why


def test_a_runtime_that_does_as_the_table_says() -> None:
    ((_, run),) = measured(HERE, cases(["Clip_f"], 0), exported=True)
    assert run.result.shortest == ("right", "right")
    assert not run.is_bad


def test_a_runtime_that_does_not() -> None:
    older = replace(HERE, version="1.8.1")
    ((_, run),) = measured(older, cases(["Mish_f"], 0), exported=True)
    assert run.surprises == ("right where the table says refused",)
    assert run.is_bad


def test_the_best_opset_by_hand() -> None:
    given = cases(["Mish_f"], 0)
    ((_, run),) = measured(HERE, given, exported=False, whole=True)
    assert run.result == (NOT_RUN, "right", "right", "")
    # No opset is written where it does not come to one.
    given["Mish_f"].model.graph.node[0].op_type = "Mush"
    ((_, run),) = measured(HERE, given, exported=True, whole=True)
    assert run.result.by_hand != "right"


def in_a_runtime_of(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Told:
    """What becomes of a model in a runtime whose script is the given one."""
    path = tmp_path / "run.py"
    path.write_text(script)
    monkeypatch.setattr("lab.running.script_of", lambda _: path)
    given = model("Clip_f", 13)
    own = replace(HERE, version=tmp_path.name)
    return told(own, given, inputs_of(given), right_of(given))


def test_a_runtime_that_dies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import os\nimport sys\nsys.argv\nprint('oh', flush=True)\nos.abort()\n"
    found = in_a_runtime_of(script, tmp_path, monkeypatch)
    assert found == Told("crash", "SIGABRT: oh")


def test_a_runtime_that_hangs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.running.LONGEST", 1)
    script = "import sys\nimport time\nsys.argv\ntime.sleep(60)\n"
    found = in_a_runtime_of(script, tmp_path, monkeypatch)
    assert found == Told("crash", "it took more than 1 seconds")


def test_a_runtime_reaches_no_network_and_installs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = (
        "import subprocess\nimport sys\nsys.argv\n"
        "pip = subprocess.run(['pip', 'install', 'six']).returncode\n"
        "devices = [line.split(':')[0].strip() for line in open('/proc/net/dev') if ':' in line]\n"
        "sys.exit(f'pip {pip}, {devices}')\n"
    )
    found = in_a_runtime_of(script, tmp_path, monkeypatch)
    assert found.why.startswith("pip 1, ")
    if without_network():
        assert found.why == "pip 1, ['lo']"


def test_dtypes_count_where_the_runtime_has_them() -> None:
    given = model("TopK_f", 18)
    values, places = right_of(given)
    found = told(HERE, given, inputs_of(given), [values, places.astype(np.int32)])
    assert found.verdict == "wrong"
    assert "int64" in found.why


def test_a_runtime_that_nobody_knows_how_to_install() -> None:
    with pytest.raises(NotThereError, match="how to install tinyrt is not known here"):
        install("tinyrt", "1.0")


def test_each_recipe_has_a_script() -> None:
    assert {script_of(recipe.runtime) for recipe in RECIPES} == set(RUNNERS.glob("run_*.py"))


@pytest.mark.newest  # ONNX Runtime 1.23 fails where noop_with_empty_axes=1 reduces nothing.
def test_drawn_models_are_valid_and_differ() -> None:
    drawn = [graph(seed) for seed in range(8)]
    for item in drawn:
        onnx.checker.check_model(item, full_check=True)
        assert all(np.isfinite(array).all() for array in right_of(item))
    assert len({item.SerializeToString() for item in drawn}) == 8
    assert graph(3) == drawn[3]
