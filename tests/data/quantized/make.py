"""Make the models of this folder: exports as ONNX Runtime's quantizer writes them.

python -m tests.data.quantized.make cnn EXPORT.onnx INPUTS.npz
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)
from onnxruntime.quantization.matmul_nbits_quantizer import MatMulNBitsQuantizer

FOLDER = Path(__file__).parent


class OneInput(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types.
    """Reads one set of inputs."""

    def __init__(self, feeds: dict[str, Any]) -> None:
        self._feeds = iter([feeds])

    def get_next(self) -> dict[str, Any] | None:
        """Return the inputs, once."""
        return next(self._feeds, None)


def make(name: str, export: str, inputs: str) -> None:
    """Write NAME_static.onnx, NAME_qdq.onnx, NAME_dynamic.onnx, NAME_int4.onnx and NAME.npz.

    NAME_fused.onnx is the dynamic one as ONNX Runtime saves it with its extended optimisations.
    """
    feeds = dict(np.load(inputs))
    shutil.copy(inputs, FOLDER / f"{name}.npz")
    for kind, form in (("static", QuantFormat.QOperator), ("qdq", QuantFormat.QDQ)):
        quantize_static(
            export,
            FOLDER / f"{name}_{kind}.onnx",
            OneInput(feeds),
            quant_format=form,
            per_channel=form is QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            # Weights of 7 bits: products of 8 saturate in ONNX Runtime on a CPU without VNNI.
            reduce_range=form is QuantFormat.QOperator,
        )
    quantize_dynamic(export, FOLDER / f"{name}_dynamic.onnx")
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
    options.optimized_model_filepath = str(FOLDER / f"{name}_fused.onnx")
    ort.InferenceSession(str(FOLDER / f"{name}_dynamic.onnx"), options)
    quantizer = MatMulNBitsQuantizer(onnx.load(export), block_size=16, is_symmetric=False)
    quantizer.process()
    quantizer.model.save_model_to_file(str(FOLDER / f"{name}_int4.onnx"), False)


if __name__ == "__main__":
    make(*sys.argv[1:])
