"""ONNX Runtime's operators on Core ML and NNAPI: `python -m lab.operators.coreml FOLDER`.

The folder is a clone with the whole history of ONNX Runtime, which has a table for each format of
Core ML from 1.19 on, and one before. An operator is taken if one of the formats takes it. NNAPI has
one table.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from lab.operators.onnxruntime import COMMITS
from lab.operators.repositories import read
from lab.operators.restrictions import digest, restrictions_of
from lab.operators.writing import Facts, Release, Row, Source, write

#: The tables of each runtime, of which a release has one or two.
TABLES = {
    "onnxruntime-coreml": tuple(
        f"tools/ci_build/github/apple/coreml_supported_{kind}ops.md"
        for kind in ("", "neuralnetwork_", "mlprogram_")
    ),
    "onnxruntime-nnapi": ("tools/ci_build/github/android/nnapi_supported_ops.md",),
}

ALIASES = {"Argmax": "ArgMax"}

CONDITIONS = {
    "2d": ("the input is of rank 4", "rank 0 = 4"),
    "1d-2d": ("the input is of rank 3 or 4", "rank 0 = 3-4"),
    "weights": ("weights and bias are constant", "constant 1 2"),
    "bias": ("the bias is constant", "constant 2"),
    "transposed": (
        "auto_pad is not SAME_UPPER or SAME_LOWER, and kernel_shape, output_shape and "
        "output_padding are left out",
        "attribute auto_pad = NOTSET VALID absent\nattribute output_shape = absent",
    ),
    "static": ("the mode is DCR, or the shape is known", "unless attribute mode = DCR\nstatic 0"),
    "dcr": ("the mode is DCR", "attribute mode = DCR absent"),
    "indices": ("the indices are no scalar", "rank 1 = 1-"),
    "b": ("the second input is constant", "constant 1"),
    "grid": (
        "the mode is linear or bilinear, and it does not reflect without align_corners",
        "attribute mode = linear bilinear",
    ),
    "slope": ("the slope is constant, and one number or one for each channel", "constant 1"),
    "pad": (
        "it pads the last two axes with a constant, by constant numbers",
        "attribute mode = constant\nconstant 1 2 3",
    ),
    "float": ("both inputs are float", "dtype 0 = float\ndtype 1 = float"),
    "resize": (
        "the input is of rank 4, coordinates are asymmetric, the mode is linear or nearest by "
        "floor, and scales or sizes are constant",
        "rank 0 = 4\nattribute coordinate_transformation_mode = asymmetric\n"
        "attribute mode = linear nearest\nconstant 2 3",
    ),
    "resized": ("the builder of ONNX Runtime takes its attributes", ""),
    "shape": (
        "start and end are left out",
        "attribute start = 0 absent\nattribute end = absent",
    ),
    "slice": ("starts, ends, axes and steps are constant", "constant 1 2 3 4"),
    "split": ("the sizes of the parts are constant", "constant 1"),
    "axes": ("the axes are constant", "constant 1"),
    "even": ("all parts are of one size", ""),
    "int32-indices": ("the indices are int32, or constant", "unless dtype 1 = int32\nconstant 1"),
    "transposed-b": (
        "the second input is constant, or transB is 1",
        "unless constant 1\nattribute transB = 1",
    ),
    "pads": (
        "it pads with a constant, by constant numbers of which none is negative",
        "attribute mode = constant absent\nconstant 1 2\nelements 1 = 0-",
    ),
    "scale": ("scale and zero point are constant", "constant 1 2"),
    "scales": ("all scales and zero points are constant", "constant 1 2 4 5 6 7"),
    "two-scales": ("all scales and zero points are constant", "constant 1 2 3 4"),
    "quantized-weights": (
        "weights, bias, scales and zero points are constant",
        "constant 1 2 3 4 5 6 7 8",
    ),
    "parts": ("the sizes are constant, and there are two parts or more", "constant 1"),
}

#: The conditions that a note says, by the operator and a digest of it.
RESTRICTIONS = """
AveragePool d13f59 2d
AveragePool fa6f51 2d
Conv 4622fb 1d-2d bias
Conv 69a39d 1d-2d weights
Conv f3c56a 2d weights
ConvTranspose 6c635a weights transposed
DepthToSpace d66509 static
DepthToSpace e3f4f4 dcr
DequantizeLinear 2ea7de scale
Gather 5c02af indices
Gather fee2a0 int32-indices
Gemm 02db5a b
Gemm 05372f transposed-b
Gemm 8f1126 b
GlobalAveragePool d13f59 2d
GlobalAveragePool fa6f51 2d
GlobalMaxPool d13f59 2d
GlobalMaxPool fa6f51 2d
GridSample 11e964 2d grid
MatMul 3a7527
MatMul 8f1126 b
MaxPool d13f59 2d
MaxPool fa6f51 2d
PRelu 163c79 slope
Pad 2895cf pad
Pad 4c927b pads
Pow 214cb6 float
QLinearAdd 2ea7de scales
QLinearAveragePool 021e78 2d two-scales
QLinearConv f0f3bd 2d quantized-weights
QLinearMatMul 2ea7de scales
QLinearSigmoid 2ea7de two-scales
QuantizeLinear 2ea7de scale
Reciprocal 0f37a2
Resize 18f85e resize
Resize 4c702f 2d
Resize c8963f resized
Shape 5637c0 shape
Slice 5e3a7a slice
Slice 80bfed slice
Split 91bbde split
Split b68289 parts
Split e098ad split even
Squeeze 307cc0 axes
Unsqueeze 307cc0 axes
"""


def facts(text: str) -> Facts:
    """Return the rows of the tables of a release."""
    restrictions = restrictions_of(RESTRICTIONS)
    found: dict[tuple[str, str], list[Row]] = {}
    lines = re.findall(r"^\|(ai\.onnx|com\.microsoft)[:.](\w+)\|(.*)\|$", text, re.MULTILINE)
    for domain, name, note in lines:
        conditions = restrictions.get((name, digest(note[:230])), None) if note else ()
        if conditions is None:
            raise ValueError(f"no conditions stand for what is said of {name}: {note}")
        row = Row(conditions=conditions)
        key = ("" if domain == "ai.onnx" else domain, ALIASES.get(name, name))
        rows = found.setdefault(key, [])
        if row not in rows:
            rows.append(row)
    return found


def main(clone: Path) -> None:
    """Write the files of Core ML and NNAPI."""
    for runtime, tables in TABLES.items():
        releases = []
        for version, commit in COMMITS.items():
            texts = []
            for table in tables:
                try:
                    texts.append(read(clone, commit, table))
                except LookupError:
                    continue
            if texts:
                where = f"microsoft/onnxruntime {Path(tables[0]).parent}, {texts[0].commit}"
                source = Source("document", where, texts[0].date, ("ai.onnx",), "onnxruntime")
                joined = "\n".join(found.text for found in texts)
                releases.append(Release(version, source, facts(joined)))
        path = write(runtime, "coreml", releases, conditions=CONDITIONS)
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
