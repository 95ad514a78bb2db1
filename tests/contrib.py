"""Operators of com.microsoft beside what takes their place, in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import ModelProto, helper, numpy_helper

from onnxreduce_cli.api.checks import check_sites
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options


def node(
    op_type: str,
    inputs: dict[str, Any],
    data: tuple[str, ...],
    output: type,
    outputs: Sequence[str] = ("y",),
    *,
    domain: str = "com.microsoft",
    sizes: bool = True,
    **attributes: Any,
) -> ModelProto:
    """Return a model of one node at opset 17; all inputs but `data` are initializers.

    Without `sizes` only the last dimension of data is stated.
    Outputs without a name are absent; each has the dtype `output`, but those called `f...` float,
    and those called `i...` int32.
    """
    given = [name if array is not None else "" for name, array in inputs.items()]
    made = helper.make_node(op_type, given, outputs, "node", domain=domain, **attributes)
    dtype = helper.np_dtype_to_tensor_dtype
    named = {"f": np.float32, "i": np.int32}
    of_outputs = {name: np.dtype(named.get(name[:1], output)) for name in outputs}
    graph = helper.make_graph(
        [made],
        "g",
        [
            helper.make_tensor_value_info(
                name,
                dtype(inputs[name].dtype),
                [
                    size if sizes or axis == inputs[name].ndim - 1 else None
                    for axis, size in enumerate(inputs[name].shape)
                ],
            )
            for name in data
        ],
        [helper.make_tensor_value_info(n, dtype(of_outputs[n]), None) for n in outputs if n],
        [
            numpy_helper.from_array(array, name)
            for name, array in inputs.items()
            if name not in data and array is not None
        ],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def run(model: ModelProto, feeds: dict[str, Any]) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    found: list[np.ndarray] = session.run(None, feeds)
    return found


def written_out(source: ModelProto, opset: int, name: str = "com.microsoft") -> ModelProto:
    """Write the node in the default domain; its site must agree."""
    result = ModelProto()
    result.CopyFrom(source)
    conversion = Conversion(result, opset, Options(expand=(name,)))
    assert not conversion.blockers, conversion.blockers
    report = check_sites(conversion)
    assert report.ok, report.failures
    assert not report.unchecked
    conversion.apply()
    assert {item.domain for item in result.opset_import} == {""}
    assert not any(item.domain for item in result.graph.node)
    return result


def agrees(
    source: ModelProto, inputs: dict[str, Any], data: tuple[str, ...], opset: int
) -> ModelProto:
    result = written_out(source, opset)
    feeds = {name: inputs[name] for name in data}
    for before, after in zip(run(source, feeds), run(result, feeds), strict=True):
        assert before.dtype == after.dtype
        assert before.shape == after.shape
        if before.dtype == np.float32:
            np.testing.assert_allclose(before, after, rtol=1e-4, atol=1e-4)
        elif before.dtype.kind == "f":
            np.testing.assert_allclose(before, after, rtol=2e-3 if before.itemsize == 2 else 1e-9)
        elif before.dtype == np.int32:
            np.testing.assert_array_equal(before, after)
        else:
            apart = np.abs(before.astype(int) - after.astype(int))
            assert apart.max() <= 1
            assert np.mean(apart) < 0.02
    return result


def reason(source: ModelProto, opset: int = 17) -> str:
    """Return why a node cannot be written in standard operators."""
    (blocker,) = Conversion(source, opset, Options(expand=("com.microsoft",))).blockers
    return blocker.reason
