"""Which runtimes take a model as it is, and which after a conversion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest

from onnxreduce_cli import ConversionError, convert
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.inspection import inspect
from onnxreduce_cli.engine.runtime_reach import Runtimes, runtimes_taking
from tests.support import model

SAMPLES = Path(__file__).parents[2] / "samples"


def runtimes(nodes: str, version: int, ir_version: int = 8, **_: Any) -> Runtimes:
    return inspect(graph(nodes, version, ir_version)).runtimes


def graph(nodes: str, version: int, ir_version: int = 8) -> Any:
    return model(f"""<ir_version: {ir_version}, opset_import: ["" : {version}]>
    g (float[2,3,4] x) => (float[a,b,c] y) {{ {nodes} }}""")


L1 = "a = Constant<value_ints=[1]>() y = ReduceL1(x, a)"


def test_as_it_is_and_converted() -> None:
    found = runtimes(L1, 18)
    assert found.as_it_is["opencv"] == "4.8 to 5.0"
    assert found.converted["opencv"] == "4.5 to 4.7"
    assert found.as_it_is["onnxruntime"] == "1.14 to 1.32"
    assert found.converted["onnxruntime"] == "1.3 to 1.13"
    assert "candle" not in {*found.as_it_is, *found.converted, *found.refused}


def test_the_ir_version_counts() -> None:
    assert runtimes(L1, 18, 10).as_it_is["onnxruntime"] == "1.18 to 1.32"


def test_what_cannot_be_converted() -> None:
    found = runtimes("y = ReduceProd(x)", 13)
    assert found.refused == {"jaxonnxruntime": "", "opencv": "4.5"}
    for name in ("jaxonnxruntime", "opencv==4.5"):
        try:
            convert(graph("y = ReduceProd(x)", 13), runtime=name)
        except ConversionError:
            continue
        raise AssertionError(name)


@pytest.mark.parametrize("sample", sorted(SAMPLES.glob("*.onnx")), ids=lambda path: path.stem)
@pytest.mark.parametrize("opset", [9, 13, 20])
def test_what_takes_a_model_is_known_before_it_is_converted(sample: Path, opset: int) -> None:
    conversion = Conversion(onnx.load(sample), opset)
    before = runtimes_taking(conversion)
    conversion.apply()
    assert before
    assert before == inspect(conversion.model).runtimes.as_it_is


def test_nothing_takes_what_cannot_be_converted() -> None:
    found = model("""<ir_version: 8, opset_import: ["" : 18]> g (string[3] x) => (string[3] y) {
    y = StringNormalizer<case_change_action="LOWER">(x) }""")
    assert runtimes_taking(Conversion(found, 7)) == {}
