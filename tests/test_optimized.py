"""Files that ONNX Runtime's own optimiser and quantizer wrote, in standard operators."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from tests.contrib import run
from tests.optimized import FILES, Way, dynamically, in_halves, statically

MADE = [(name, way) for name, (_, ways) in FILES.items() for way in ways]

#: The quantizer of older runtimes does not take these exports, and what they compute of decoders in
#: 8 bits is far from what floats give, unlike what takes its place.
NEWEST = {
    ("dyn_vit", dynamically),
    ("dyn_mobilenet", dynamically),
    ("decoder_1_13", statically),
    ("decoder_2_17", statically),
}


@pytest.mark.parametrize(
    ("name", "way"),
    [
        pytest.param(
            *item,
            id=f"{item[0]}-{item[1].__name__}",
            marks=[pytest.mark.newest] if item in NEWEST else [],
        )
        for item in MADE
    ],
)
def test_no_operator_of_its_own_is_left(tmp_path: Path, name: str, way: Way) -> None:
    make, _ = FILES[name]
    model, feeds = make()
    onnx.save(model, tmp_path / "model.onnx")
    way(tmp_path / "model.onnx", tmp_path / "written.onnx", feeds)
    before = run(onnx.load(tmp_path / "written.onnx"), feeds)
    for opset in (17, 13):
        result = onnx.load(tmp_path / "written.onnx")
        conversion = Conversion(result, opset, Options(expand=("com.microsoft",)))
        assert not conversion.blockers, conversion.blockers
        conversion.apply()
        assert {entry.domain for entry in result.opset_import} == {""}
        onnx.checker.check_model(result, full_check=True)  # It knows standard operators alone.
        for own, other in zip(before, run(result, feeds), strict=True):
            assert (own.dtype, own.shape) == (other.dtype, other.shape)
            apart, most = np.abs(own - other), np.abs(own).max()
            if way is statically:  # A step at ties goes on to what follows.
                assert apart.max() <= 0.03 * most
                assert np.mean(apart > 1e-4 * most) <= 0.25
            else:
                assert apart.max() <= (2e-3 if way is in_halves else 1e-5) * most


def test_there_are_at_least_forty() -> None:
    assert len(MADE) >= 40
