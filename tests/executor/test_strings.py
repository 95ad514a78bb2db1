"""StringNormalizer in the NumPy executor."""

from __future__ import annotations

import numpy as np
import pytest

from onnxreduce_cli import executor
from onnxreduce_cli.executor import ExecutionError
from tests.support import one_node, run

X = np.array(["monday", "", "Tuesday", "é", "MONDAY"], object)


@pytest.mark.parametrize("action", ["NONE", "LOWER", "UPPER"])
@pytest.mark.parametrize("sensitive", [0, 1])
@pytest.mark.parametrize("stopwords", [None, ["Monday", "monday"]])
def test_as_onnx_runtime(action: str, sensitive: int, stopwords: list[str] | None) -> None:
    settings = {"case_change_action": action, "is_case_sensitive": sensitive}
    if stopwords:
        settings["stopwords"] = stopwords
    for x in (X, X[None], X[:1]):
        source = one_node("StringNormalizer", 10, {"x": x}, **settings)
        expected, found = run(source, {"x": x})["y0"], executor.run(source, {"x": x})["y0"]
        assert found.shape == expected.shape
        assert found.tolist() == expected.tolist()


def test_shapes() -> None:
    x = np.array([["a"], ["b"]], object)
    source = one_node("StringNormalizer", 10, {"x": x[:1]})
    source.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    with pytest.raises(ExecutionError, match=r"takes \[C\] and \[1, C\]"):
        executor.run(source, {"x": x})
