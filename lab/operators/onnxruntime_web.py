"""ONNX Runtime Web's accelerators: `python -m lab.operators.onnxruntime_web FOLDER`.

The folder is the clone that `lab.operators.onnxruntime` reads. js/web/docs has a table for each of
WebGPU, WebGL and WebNN. What WebGPU and WebNN do not take runs in WebAssembly, on the CPU; WebGL
runs whole models.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from lab.operators.onnxruntime import (
    COMMITS,
    INTERNAL,
    INTERNAL_DOMAINS,
    MADE_UP,
    OPEN,
    Kernel,
    opsets_of_kernel,
)
from lab.operators.repositories import read
from lab.operators.restrictions import digest, restrictions_of
from lab.operators.writing import Facts, Release, Row, Source, write


class Line(NamedTuple):
    """A line of a table.

    Attributes:
        name: the operator.
        opsets: the text of the opsets, by domain.
        restriction: the sentence on it; may be empty.
    """

    name: str
    opsets: Mapping[str, str]
    restriction: str


CONDITIONS = {
    "2d-pool": ("the input is of rank 4", "rank 0 = 4"),
    "no-3d": ("the input is of rank 3 or 4", "rank 0 = 3-4"),
    "rank-2": ("the input is of rank 2 or more", "rank 0 = 2-"),
    "p-2": ("p is 2", "attribute p = 2 absent"),
    "one-output": ("only the first output is used", "outputs = 1"),
    "no-count-pad": ("count_include_pad is 0", "attribute count_include_pad = 0 absent"),
    "row-major": ("storage_order is 0", "attribute storage_order = 0 absent"),
    "inference": (
        "it is not for training",
        "attribute training_mode = 0 absent",
    ),
    "weights": ("the weights are constant", "constant 1"),
    "second": ("the second input is constant", "constant 1"),
    "axes": ("the axes are constant", "constant 1"),
    "bounds": ("starts, ends, axes and steps are constant", "constant 1 2 3 4"),
    "steps-1": ("all steps are 1", "elements 4 = 1"),
    "shape": ("the shape is constant and has no 0", "constant 1\nelements 1 = -1 1-"),
    "to-but-uint64": (
        "it does not cast to uint64, where WebNN runs on the CPU",
        "unless attribute to = 1 3 6 7 9 10 2 12",
    ),
    "clip-ranges": (
        "it clips to 0 and infinity, -1 and 1, or 0 and 6, where WebNN runs on the CPU",
        "",
    ),
    "alpha-1": ("alpha is 1, where WebNN runs on the CPU", "unless attribute alpha = 1 absent"),
    "plain-transposed": (
        "dilations and group are the defaults, where WebNN runs on the CPU",
        "",
    ),
    "blocks": ("the shape of the scale divides that of the input", ""),
    "recurrent": (
        "layout is 0, there is no clip, its activations are Relu, Tanh or Sigmoid, the same in "
        "both directions, and all sequences are of full length",
        "attribute layout = 0 absent\nattribute clip = absent\n"
        "attribute activations = Relu Tanh Sigmoid absent",
    ),
    "no-input-forget": ("input_forget is 0", "attribute input_forget = 0 absent"),
    "no-batch-dims": ("batch_dims is 0", "attribute batch_dims = 0 absent"),
    "c-rank-1": ("C is absent or of rank 1", "unless absent 2\nrank 2 = 1"),
    "no-broadcast": ("it broadcasts nothing, where WebNN runs on the CPU", ""),
    "modes": ("the mode is not wrap", "attribute mode = constant reflect edge"),
    "resize": (
        "the input is of rank 4, exclude_outside is 0, scales or sizes are constant, and the "
        "mode is nearest or linear",
        "rank 0 = 4\nattribute exclude_outside = 0 absent\nconstant 2 3\n"
        "attribute mode = nearest linear",
    ),
    "resize-plain": (
        "antialias is 0 and keep_aspect_ratio_policy is stretch",
        "attribute antialias = 0 absent\nattribute keep_aspect_ratio_policy = stretch absent",
    ),
    "resize-cpu": ("the mode is linear, where WebNN runs on the CPU", ""),
    "no-reduction": ("reduction is none", "attribute reduction = none absent"),
    "four-parts": ("there are 4 outputs at most, where WebNN runs on the CPU", "outputs = 1-4"),
    "same-last": ("input and slope have one last dimension, where WebNN runs on the CPU", ""),
    "shared-cache": (
        "the length of all is constant, past and present are of one length, and there are no "
        "cos_cache and sin_cache",
        "",
    ),
    "four-bits": (
        "B and zero_points are constant, there is no g_idx, and bits is 4",
        "constant 1 3\nabsent 4\nattribute bits = 4 absent",
    ),
    "no-mask": (
        "there is no bias, mask or length of the past, and no output qk",
        "absent 3 4\noutputs = 1-3",
    ),
    "no-past": ("there is no mask and no past", ""),
    "up-with-corners": (
        "it does not shrink with align_corners",
        "unless attribute coordinate_transformation_mode = half_pixel asymmetric "
        "pytorch_half_pixel tf_half_pixel_for_nn tf_crop_and_resize half_pixel_symmetric absent",
    ),
}

#: The marks of sentences that say that there is no kernel on the GPU.
_ON_CPU = {"ab7920", "13da82"}

RESTRICTIONS = """
Attention ef1a0f no-past
AveragePool 3b2025
Conv 61a95b no-3d
ConvTranspose ab0f03 no-3d
MaxPool 3b2025
MultiHeadAttention ef1a0f no-past
Resize 21e2cd up-with-corners
Transpose 966ee5
AveragePool 3ba818 2d-pool
AveragePool 572c75 2d-pool no-count-pad
BatchNormalization 6bc43d inference one-output
Cast 6fd27f to-but-uint64
Clip 6d49ff clip-ranges
Conv 93b7cd no-3d
Conv eb17e0 no-3d weights
ConvInteger 93b7cd no-3d
ConvTranspose 52337a no-3d plain-transposed
ConvTranspose 93b7cd no-3d
ConvTranspose eb17e0 no-3d weights
CumSum 5be86c axes
DequantizeLinear 8f593a blocks
Dropout 350e26
Elu cd6641 alpha-1
Expand adf600 second
GRU 8960b0 recurrent
GatherND ade441 no-batch-dims
Gemm 944e05 c-rank-1
GlobalAveragePool 154bf2 2d-pool
GlobalLpPool be84c4 2d-pool p-2
GlobalMaxPool 154bf2 2d-pool
GroupQueryAttention 384f94 shared-cache
LSTM 163865 recurrent no-input-forget
LpPool 6b516f 2d-pool p-2
MatMul a1be98 no-broadcast
MatMulNBits 5b31b5 four-bits
MaxPool 83e84c 2d-pool row-major one-output
MultiHeadAttention 3b2657 no-mask
PRelu 29f633 same-last
PRelu dfc7ac second
Pad cf993e modes
QuantizeLinear 8f593a blocks
ReduceL1 c1488c axes
ReduceL2 c1488c axes
ReduceLogSum c1488c axes
ReduceLogSumExp c1488c axes
ReduceMax c1488c axes
ReduceMean c1488c axes
ReduceMin c1488c axes
ReduceProd c1488c axes
ReduceSum c1488c axes
ReduceSumSquare c1488c axes
Reshape e99929 shape
Resize 077e3f resize resize-cpu
Resize 106f64 resize resize-plain
Resize 14e892 resize
ScatterElements ba27e5 no-reduction
ScatterND ba27e5 no-reduction
Slice 01f078 bounds steps-1
Slice d8f87d bounds
Softmax e258ca rank-2
Split 6d4daf second four-parts
Split aa0e84 second
Squeeze c1488c axes
Tile a89046 second
Trilu b298ff second
"""


def lines(text: str) -> Iterator[Line]:
    """Yield the lines of a table."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|") or cells[0] == "Operator" or set(cells[0]) <= set(":-"):
            continue
        found = re.search(r"\[(\w+)\]", cells[0])
        name = found[1] if found else cells[0]
        domains = dict(re.findall(r"([a-z.]+)\(([^)]*)\)", cells[1]))
        if found:
            domains = {"ai.onnx": ",".join(re.findall(r"\[([\d+-]+)\]", cells[1]))}
        yield Line(name, domains, cells[-1] if len(cells) > 2 else "")


def _ranges(text: str) -> Iterator[tuple[int, int]]:
    for part in filter(None, (item.strip() for item in text.split(","))):
        first, dash, last = part.rstrip("+").partition("-")
        yield int(first), OPEN if part.endswith("+") else int(last if dash else first)


def facts(text: str, *, kernels: bool) -> Facts:
    """Return the rows of a table.

    Args:
        text: the table.
        kernels: whether its ranges are those of kernels, of which an open one runs one version.
    """
    restrictions = restrictions_of(RESTRICTIONS)
    found: dict[tuple[str, str], list[Row]] = {}
    for line in lines(text):
        mark = digest(line.restriction) if line.restriction else ""
        value = "cpu" if mark in _ON_CPU else ""
        conditions = restrictions[line.name, mark] if mark and not value else ()
        for domain, opsets in line.opsets.items():
            if domain in INTERNAL_DOMAINS or line.name in INTERNAL:
                continue
            name = ("" if domain == "ai.onnx" else domain, line.name)
            ranges = [(first, None if last == OPEN else last) for first, last in _ranges(opsets)]
            if kernels:
                ranges = [
                    span
                    for held in _ranges(opsets)
                    for span in opsets_of_kernel(Kernel(*name, held, {}))
                ]
            for first, last in _joined(ranges):
                span = (None, None) if first == 1 and last is None else (first, last)
                found.setdefault(name, []).append(Row(span, (), conditions, value))
    return found


def _joined(ranges: list[tuple[int, int | None]]) -> list[tuple[int, int | None]]:
    found: list[tuple[int, int | None]] = []
    for first, last in sorted(ranges, key=lambda held: held[0]):
        if found and (found[-1][1] is None or found[-1][1] + 1 >= first):
            ends = (found[-1][1], last)
            found[-1] = (found[-1][0], None if None in ends else max(filter(None, ends)))
        else:
            found.append((first, last))
    return found


def main(clone: Path) -> None:
    """Write the files of WebGPU, WebGL and WebNN."""
    for runtime, oldest in (
        ("onnxruntime-webgpu", "1.16"),
        ("onnxruntime-webgl", "1.16"),
        ("webnn", "1.18"),
    ):
        table = f"js/web/docs/{runtime.removeprefix('onnxruntime-')}-operators.md"
        own = list(COMMITS)[list(COMMITS).index(oldest) :]
        falls_back = runtime != "onnxruntime-webgl"
        releases = []
        for version in own:
            found = read(clone, COMMITS[version], table)
            where = f"microsoft/onnxruntime {table}, {found.commit}"
            domains = ("ai.onnx", "ai.onnx.ml", "com.microsoft")
            source = Source(
                "document", where, found.date, domains, "onnxruntime-web" if falls_back else ""
            )
            rows = facts(found.text, kernels=runtime == "onnxruntime-webgpu")
            releases.append(Release(version, source, rows))
        path = write(runtime, "onnxruntime_web", releases, conditions=CONDITIONS, made_up=MADE_UP)
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
