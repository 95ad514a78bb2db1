"""TensorRT's operators: `python -m lab.operators.tensorrt FOLDER TABLES`.

The folder is a clone of onnx/onnx-tensorrt, which has a branch for each release with a table,
docs/operators.md. Of the releases in `TABLES` the table alone was read: the second folder has it as
VERSION.md, from the commit that NVIDIA/TensorRT has as parsers/onnx at the tag of that release.

What a table says of an operator beside Y or N is put in words of our own: in `RESTRICTIONS`, by a
digest of the sentence, so that a new sentence fails. The parser's source says which operators it
has a function for: without one it looks for a plugin, and refuses the model.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

from lab.operators.repositories import files, read
from lab.operators.restrictions import digest, restrictions_of
from lab.operators.writing import Facts, Release, Row, Source, write

#: The branch of each release.
BRANCHES = {
    "5.1": "5.1",
    "6.0": "6.0",
    "7.0": "7.0",
    "7.1": "7.1",
    "7.2": "7.2.1",
    "8.0": "8.0-GA",
    "8.2": "8.2-GA",
    "8.4": "8.4-GA",
    "8.5": "8.5-GA",
    "8.6": "8.6-GA",
    "9.0": "9.0-GA",
    "9.1": "9.1",
    "9.2": "9.2",
    "9.3": "9.3",
    "10.0": "10.0-GA",
    "10.1": "10.1-GA",
}

#: The commit and the date of the table of each release of which the parser was not read.
TABLES = {
    "10.14": ("c72727708d", "2025-11-07"),
    "10.15": ("fa5aa9f61e", "2026-02-03"),
    "10.16": ("6bde6596ec", "2026-03-25"),
    "11.1": ("7c51a63a71", "2026-06-24"),
}

#: The files of the parser's source that name its operators.
_SOURCES = ("builtin_op_importers.cpp", "onnxOpImporters.cpp")

#: What the table calls operators, and what onnx calls them.
ALIASES = {"Argmax": "ArgMax", "Argmin": "ArgMin"}

#: Operators that no onnx has any more.
MADE_UP = {"ImageScaler", "ParametricSoftplus", "ScaledTanh"}

DTYPES = {
    "FP32": "float",
    "FP16": "float16",
    "BF16": "bfloat16",
    "INT32": "int32",
    "INT64": "int64",
    "INF64": "int64",
    "INT8": "int8",
    "UINT8": "uint8",
    "INT4": "int4",
    "FP8": "float8e4m3fn",
    "FP4": "float4e2m1",
    "BOOL": "bool",
}

#: The input that the dtypes of an operator are those of, where that is not the first.
_DATA = {"Where": "1+2"}

#: Operators whose dtypes are those of an output, or of what their graphs hold.
_UNTYPED = {
    "BlackmanWindow",
    "Constant",
    "ConstantOfShape",
    "EyeLike",
    "HammingWindow",
    "HannWindow",
    "If",
    "Loop",
    "OneHot",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
    "Scan",
}

_CASTS = {"5.1-7.1": "int64=int32", "7.2-8.6": "int64=int32 double=float", "9.0-": "double=float"}

CONDITIONS = {
    "table": ("the table is right, as the parser has no function for it", ""),
    "2d": ("the input is of rank 4", "rank 0 = 4"),
    "2d-3d": ("the input is of rank 4 or 5", "rank 0 = 4-5"),
    "3-to-5": ("the input is of rank 3 to 5", "rank 0 = 3-5"),
    "1d-2d": ("the input is of rank 3 or 4", "rank 0 = 3-4"),
    "dilations": ("no dilation is other than 1", "attribute dilations = 1 absent"),
    "weights": ("the weights are constant", "constant 1"),
    "one-output": ("only the first output is used", "outputs = 1"),
    "to-its-own": (
        "it casts to a dtype that TensorRT has",
        "attribute to = 1 3 6 7 9 10 11",
    ),
    "half-to-float": ("it casts float16 to float", "dtype 0 = float16\nattribute to = 1"),
    "bounds": ("min and max are constant", "constant 1 2"),
    "tensor-value": (
        "the value is a tensor or numbers",
        "attribute sparse_value = absent\nattribute value_string = absent\n"
        "attribute value_strings = absent",
    ),
    "axis": ("the axis is constant", "constant 1"),
    "axes": ("the axes are constant", "constant 1"),
    "axes-3": ("the axes are constant", "constant 3"),
    "split": ("the sizes of the parts are constant", "constant 1"),
    "depth": ("the depth is constant", "constant 1"),
    "k": ("k is constant", "constant 1"),
    "k-3840": ("k is less than 3840", "elements 1 = 0-3839"),
    "sorted": ("the elements are sorted", "attribute sorted = 1 absent"),
    "same-pads": ("each axis is padded by as much before as after", ""),
    "scales": ("scale and zero point are constant", "constant 1 2"),
    "scale-and-b": ("scale and bias are constant", "constant 1 2"),
    "no-zero-point": ("the zero point is 0", "elements 2 = 0"),
    "inference": ("training_mode is constant and false", "elements 2 = 0"),
    "plain-equation": (
        "the equation has no ellipsis and no repeated index, and broadcasts nothing",
        "",
    ),
    "static": ("the shape of the input is known", "static 0"),
    "static-axis": ("the dimension of its axis is known", "unless static 0"),
    "same-activations": (
        "both directions have the same activations",
        "unless attribute direction = forward reverse\nunless attribute activations = absent",
    ),
    "no-input-forget": ("input_forget is 0", "attribute input_forget = 0 absent"),
    "layout": ("layout is 0", "attribute layout = 0 absent"),
    "indices": ("no index is negative", "elements 1 = 0-"),
    "branches-broadcast": (
        "the outputs of both branches have shapes that broadcast, and different names",
        "",
    ),
    "branches-rank": ("the outputs of both branches have one rank, and different names", ""),
    "scan-length": (
        "the number of iterations is known for scan outputs, and no carried value changes shape",
        "",
    ),
    "boxes": (
        "the number of boxes and both thresholds are constant, and what reads the output takes "
        "it padded to that number",
        "constant 2 3 4",
    ),
    "zeros": (
        "it pads with zeros",
        "attribute mode = constant\nattribute value = 0 absent\nelements 2 = 0",
    ),
    "two-axes": ("it pads two axes at most", ""),
    "last-two-axes": ("it pads the last two axes only", ""),
    "constant-or-integers": (
        "it counts in integers, or its inputs are constant",
        "unless dtype 0 = int32 int64\nconstant 0 1 2",
    ),
    "asymmetric": (
        "coordinates are asymmetric",
        "attribute coordinate_transformation_mode = asymmetric absent",
    ),
    "coordinates": (
        "coordinates are half_pixel, pytorch_half_pixel, tf_half_pixel_for_nn, asymmetric or "
        "align_corners",
        "attribute coordinate_transformation_mode = half_pixel pytorch_half_pixel "
        "tf_half_pixel_for_nn asymmetric align_corners absent",
    ),
    "nearest-or-linear": ("the mode is nearest or linear", "attribute mode = nearest linear"),
    "floor": (
        "nearest_mode is floor",
        "unless attribute mode = linear\nattribute nearest_mode = floor absent",
    ),
    "stretch": (
        "keep_aspect_ratio_policy is stretch",
        "attribute keep_aspect_ratio_policy = stretch absent",
    ),
    "all-axes": ("scales are those of all axes in order", "unless attribute axes = absent"),
    "no-antialias": ("antialias is 0", "attribute antialias = 0 absent"),
    "4d-heads": (
        "query, key and value are of rank 4",
        "rank 0 = 4\nrank 1 = 4\nrank 2 = 4",
    ),
    "4d-mask": ("there is no mask, or it is of rank 4", "unless absent 3\nrank 3 = 4"),
    "plain-attention": (
        "there is nothing past and one output, and qk_matmul_output_mode and softcap are 0",
        "absent 4 5 6\noutputs = 1\nattribute qk_matmul_output_mode = 0 absent\n"
        "attribute softcap = 0 absent",
    ),
    "positions": ("the position ids are int64", "dtype 3 = int64"),
    "frames": ("frame_step and the window are constant", "constant 1 2"),
    "real": ("the input is real", ""),
    "cache": (
        "the cache and its update are of rank 4, and axis is -2",
        "rank 0 = 4\nrank 1 = 4\nattribute axis = -2 absent",
    ),
    "no-reduction": ("reduction is none", "attribute reduction = none absent"),
}

#: The conditions that a table's sentence on an operator says, by the operator and a digest of it.
#: Without any the sentence says nothing that a model can meet or miss.
RESTRICTIONS = """
Attention f36863 4d-heads 4d-mask plain-attention
AveragePool 287e26 3-to-5 dilations
AveragePool 338176 2d
AveragePool be4615 2d-3d
AveragePool e36872 3-to-5
Cast 528358 half-to-float
Cast 6dbf98 to-its-own
Cast 7947e0 to-its-own
Clip 22f7ee bounds
Clip 24ee71 bounds
Constant 401200 tensor-value
Conv 28a7ee 2d-3d weights
Conv 43b63a 2d weights
Conv 7d15a5 3-to-5
Conv fbc68d 3-to-5 weights
ConvTranspose 1ad306 2d weights
ConvTranspose 3d39a2 3-to-5 weights
ConvTranspose a4478e 2d-3d weights
ConvTranspose e3393f 3-to-5 weights
CumSum 97b43c axis
CumSum d5f529 axis
DeformConv 25927b 1d-2d same-pads
DequantizeLinear 8e959f scales
DequantizeLinear ac5285 no-zero-point
DequantizeLinear fa42cc scales
Dropout 39605c inference
Dropout 86b94f inference
Einsum 488a56 plain-equation
EyeLike b7739d static
GRU 2b4cf5 same-activations
Gather 94fac1 indices
GatherElements 1e536a indices
GatherElements 94fac1 indices
GlobalAveragePool 338176 2d
GlobalAveragePool be4615 2d-3d
GlobalMaxPool 338176 2d
GlobalMaxPool be4615 2d-3d
GridSample ca8836 2d
Hardmax e779ad static-axis
If 03cdbd branches-broadcast
If a4cc31 branches-rank
InstanceNormalization 2c250a scale-and-b
InstanceNormalization 41cc22 scale-and-b
InstanceNormalization 7cc78c scale-and-b 3-to-5
LSTM 553ad1 same-activations no-input-forget layout
LSTM 902583 same-activations
LayerNormalization bcc1ef one-output
Loop ff7468 scan-length
LpPool 9574a9 dilations
MaxPool 083d46 3-to-5 one-output dilations
MaxPool 338176 2d
MaxPool 8a884c 3-to-5 one-output
MaxPool be4615 2d-3d
NonMaxSuppression 446223 boxes
NonMaxSuppression 4ddbd0 boxes
OneHot b0d3e3 depth
Pad 20c892 zeros
Pad 9774f5 axes-3
Pad cb2f12 zeros two-axes
Pad fe1549 zeros last-two-axes
QuantizeLinear a4df6a scales
QuantizeLinear cff13a no-zero-point
QuantizeLinear fa42cc scales
RNN 1129e9 same-activations
RandomNormal 5a4e55
RandomNormalLike 5a4e55
RandomUniform 5a4e55
RandomUniformLike 5a4e55
Range 1eb0d3 constant-or-integers
Range 36be33 constant-or-integers
ReduceL1 9774f5 axes
ReduceL2 9774f5 axes
ReduceLogSum 9774f5 axes
ReduceLogSumExp 9774f5 axes
ReduceMax 9774f5 axes
ReduceMean 9774f5 axes
ReduceMin 9774f5 axes
ReduceProd 9774f5 axes
ReduceSum 9774f5 axes
ReduceSumSquare 9774f5 axes
Resize 8fcb64 asymmetric nearest-or-linear floor
Resize a90672 coordinates nearest-or-linear stretch all-axes no-antialias
Resize df0d07 coordinates nearest-or-linear
ReverseSequence da4861 static
RotaryEmbedding a55c58 positions
STFT cc2ab5 frames real
ScatterND 3f0016 no-reduction
ScatterND e8b99e no-reduction
Slice 9774f5 axes-3
Slice bca73d axes-3
Split 343995 split
Squeeze 9774f5 axes
Squeeze fc419f axes
TensorScatter 7f3ec7 cache
TopK 497161 k
TopK 5e5332 sorted k-3840
Unsqueeze bd0521 axes
Unsqueeze fc419f axes
"""

#: What an importer does not take yet, though others of its operators of the same table do: it adds
#: a dimension to data of rank 3, which the table does not say.
_STRICTER = {("7.0", "Conv"): ("2d-3d",)}


def facts(text: str, importers: Collection[str] | None, version: str) -> Facts:
    """Return the rows of a table.

    Args:
        text: the table.
        importers: the operators that the parser has a function for; None where that is not known.
        version: the release.
    """
    restrictions = restrictions_of(RESTRICTIONS)
    found: dict[tuple[str, str], list[Row]] = {}
    for name, taken, dtypes, restriction in _cells(text, version):
        op_type = ALIASES.get(name, name)
        if not taken:
            if importers and op_type in importers:
                found["", op_type] = [Row()]
            continue
        conditions: tuple[str, ...] = ()
        if restriction:
            conditions = restrictions[op_type, digest(restriction)]
        conditions = _STRICTER.get((version, op_type), conditions)
        if importers is not None and op_type not in importers:
            conditions = (*conditions, "table")
        found["", op_type] = [Row((None, None), _dtypes(op_type, dtypes), conditions)]
    return found


def _cells(text: str, version: str) -> Iterator[tuple[str, bool, str, str]]:
    """Yield the operator, whether it is taken, its dtypes and its restriction of each line."""
    old, typed = not _at_least(version, "7"), _at_least(version, "8")
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) == 1 and line.startswith("|"):
            cells = cells[0].split()  # One line lacks a bar.
        name = cells[0]
        heading = name in ("Operator", "ONNX Operator") or not name.strip("-")
        if not line.startswith("|") or heading or name.startswith("experimental "):
            continue
        if cells[1] not in ("Y", "N", "Y [EXPERIMENTAL]"):
            raise ValueError(f"neither Y nor N: {line!r}")
        rest = cells[3:] if old or typed else cells[2:]
        dtypes = cells[2] if typed and len(cells) > 2 else ""
        yield name, cells[1] != "N", dtypes, " ".join(rest).strip()


def _at_least(version: str, other: str) -> bool:
    return [*map(int, version.split("."))] >= [*map(int, other.split("."))]


def _dtypes(op_type: str, text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    words = re.findall(r"[A-Z]+[0-9]*", text)
    if not words or op_type in _UNTYPED:
        return ()
    return ((_DATA.get(op_type, "0"), frozenset(DTYPES[word] for word in words)),)


def main(clone: Path, tables: Path) -> None:
    """Write the file of TensorRT."""
    releases = []
    for version, branch in BRANCHES.items():
        path = "docs/operators.md" if _at_least(version, "7.2") else "operators.md"
        revision = f"origin/{branch}" if _is_remote(clone) else branch
        found = read(clone, revision, path)
        where = f"onnx/onnx-tensorrt {path} and its parser, branch {branch}, {found.commit}"
        source = Source("document", where, found.date, ("ai.onnx",))
        code = "".join(
            read(clone, revision, file).text
            for file in _SOURCES
            if file in files(clone, revision, ".")
        )
        importers = set(re.findall(r"^DEFINE_BUILTIN_OP_IMPORTER\((\w+)\)", code, re.MULTILINE))
        releases.append(Release(version, source, facts(found.text, importers, version)))
    for version, (commit, date) in TABLES.items():
        where = f"onnx/onnx-tensorrt docs/operators.md, {commit}"
        source = Source("document", where, date, ("ai.onnx",))
        text = (tables / f"{version}.md").read_text(encoding="utf-8")
        if f"TensorRT {version} supports" not in text:
            raise ValueError(f"that is not the table of {version}")
        releases.append(Release(version, source, facts(text, None, version)))
    written = write(
        "tensorrt", "tensorrt", releases, conditions=CONDITIONS, casts=_CASTS, made_up=MADE_UP
    )
    print(written, written.stat().st_size)


def _is_remote(clone: Path) -> bool:
    """Return whether the clone has a work tree, and the branches of others under origin/."""
    return (clone / ".git").exists()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
