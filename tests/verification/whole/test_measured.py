"""The models that the onnx package ships: converted, its sites checked, verified without flags."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest

from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.model.file.document import load
from onnxreduce_cli.verification.whole.equivalence import verify

DATA = Path(os.path.dirname(onnx.__file__)) / "backend" / "test" / "data"
#: Real models and exporters' output; releases differ in whether they ship one-node models too.
MODELS = sorted(path for path in DATA.glob("*/*/model.onnx") if path.parts[-3] != "node")

#: What no executor runs at all, and models that break the specification of their own opset.
UNKNOWN = {
    "test_gradient_of_add": "training operators",
    "test_gradient_of_add_and_mul": "training operators",
    "test_GLU": "a negative axis where the opset allows none",
    "test_log_softmax_lastdim": "a negative axis where the opset allows none",
    "test_operator_add_size1_broadcast": "shapes that the opset does not broadcast",
    "test_operator_add_size1_singleton_broadcast": "shapes that the opset does not broadcast",
}


@pytest.mark.parametrize("target", [11, 18])
def test_the_models_of_the_onnx_package(target: int) -> None:
    assert MODELS
    converted = 0
    for path in MODELS:
        document = load(path)
        conversion = Conversion(
            document.model, target, Options(emulate=True), base_dir=document.base_dir
        )
        if conversion.blockers:
            continue
        name = path.parent.name
        report = check_sites(conversion)
        assert report.ok, (name, [str(failure) for failure in report.failures])
        assert not report.unchecked or name in UNKNOWN, (name, report.unchecked)
        conversion.apply()
        found = verify(path, document.model, trials=2)
        expected = (0, 3) if name in UNKNOWN else (0,)
        assert found.exit_code in expected, (name, found)
        converted += 1
    assert converted > len(MODELS) // 2
