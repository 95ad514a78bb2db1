"""RKNN's operators: `python -m lab.operators.rknn TOOLKIT2 TOOLKIT1`.

The folders are clones of airockchip/rknn-toolkit2 and rockchip-linux/rknn-toolkit, which have a
table of operators for each release. Limits of the NPU are left out: beyond them the CPU helps.
Of toolkit 1 from 1.7.3 on there is a spreadsheet of what PyTorch exports at opset 12.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from xml.etree import ElementTree

from lab.measured import load, pairs
from lab.operators.repositories import Read, files, git, read
from lab.operators.restrictions import digest, restrictions_of
from lab.operators.writing import Facts, Release, Row, Source, write

#: The tag of each release of toolkit 2.
TAGS = {
    "1.4.0": "v1.4.0",
    "1.5.0": "v1.5.0",
    "1.5.2": "v1.5.2",
    "1.6.0": "v1.6.0",
    "2.0.0": "v2.0.0-beta0",
    "2.1.0": "v2.1.0",
    "2.2.0": "v2.2.0",
    "2.3.0": "v2.3.0",
    "2.3.2": "v2.3.2",
}

#: The releases of toolkit 1 with a list, and the one with a spreadsheet.
LISTS = ("1.6.0", "1.6.1", "1.7.0", "1.7.1")
SPREADSHEET = ("1.7.5", "doc/RKNN_OP_Support_And_Limit.xlsx")

#: The first release of toolkit 2 that the lab ran.
_MEASURED = "2.2.0"

#: What the lists call operators, and what onnx calls them. Relu6 is no operator of onnx.
ALIASES = {
    "Dequantizelinear": "DequantizeLinear",
    "Hardswish": "HardSwish",
    "Quantizelinear": "QuantizeLinear",
    "SpaceToDetph": "SpaceToDepth",
    "Relu6": "",
}

#: The operators that are quantized, by the row that says so.
QUANTIZED = {"Conv": "QLinearConv", "MatMul": "QLinearMatMul"}

#: The operator of onnx that a row of the spreadsheet is about, where it is one.
EXPORTED = {
    "abs": "Abs",
    "adaptive_avg_pool2d": "GlobalAveragePool",
    "add": "Add",
    "argmax": "ArgMax",
    "argmin": "ArgMin",
    "avg_pool2d": "AveragePool",
    "batchnorm2d": "BatchNormalization",
    "cat": "Concat",
    "ceil": "Ceil",
    "celu": "Celu",
    "clamp": "Clip",
    "constant_pad_2d": "Pad",
    "convolution 2D": "Conv",
    "cos": "Cos",
    "cumsum": "CumSum",
    "deconvolution 2D": "ConvTranspose",
    "div": "Div",
    "elu": "Elu",
    "embedding": "Gather",
    "eq": "Equal",
    "erf": "Erf",
    "exp": "Exp",
    "expand": "Expand",
    "flatten": "Flatten",
    "floor": "Floor",
    "gru": "GRU",
    "gt": "Greater",
    "hard_sigmoid": "HardSigmoid",
    "instancenorm2d": "InstanceNormalization",
    "leaky_relu": "LeakyRelu",
    "linear": "Gemm",
    "log": "Log",
    "log_softmax": "LogSoftmax",
    "logical_not": "Not",
    "logical_xor": "Xor",
    "lstm": "LSTM",
    "lt": "Less",
    "matmul": "MatMul",
    "max": "ReduceMax",
    "max_pool2d": "MaxPool",
    "mean": "ReduceMean",
    "min": "ReduceMin",
    "mul": "Mul",
    "permute": "Transpose",
    "pow": "Pow",
    "prelu": "PRelu",
    "prod": "ReduceProd",
    "relu": "Relu",
    "reshape": "Reshape",
    "round": "Round",
    "selu": "Selu",
    "sigmoid": "Sigmoid",
    "sin": "Sin",
    "slice": "Slice",
    "softmax": "Softmax",
    "softplus": "Softplus",
    "softsign": "Softsign",
    "split": "Split",
    "sqrt": "Sqrt",
    "squeeze": "Squeeze",
    "sub": "Sub",
    "sum": "ReduceSum",
    "tan": "Tan",
    "tanh": "Tanh",
    "topk": "TopK",
    "unsqueeze": "Unsqueeze",
    "upsample_nearest2d": "Resize",
    "where": "Where",
}

CONDITIONS = {
    "batch": ("the batch size is 1", ""),
    "bool-int8-float": (
        "it casts bool, int8 and floats",
        "dtype 0 = bool int8 float float16 double\nattribute to = 1 3 9 10 11",
    ),
    "constant": ("the input is constant", "constant 0"),
    "no-broadcast": ("nothing is broadcast", ""),
    "nearest-or-linear": (
        "the mode is nearest or linear, and the input is of rank 4",
        "attribute mode = nearest linear\nrank 0 = 4",
    ),
    "average": ("the mode is avg", "attribute mode = avg"),
    "no-input-forget": ("input_forget is 0", "attribute input_forget = 0 absent"),
    "slope": ("the slope is one number, or one for each channel", ""),
    "unit-steps": ("no step is other than 1", "elements 4 = 1"),
    "size": ("channels, height and width are 8176 at most", ""),
    "kernel": ("height and width are 343 at most", ""),
    "simulator": ("the chip takes it as the simulator of the toolkit does", ""),
    "quantized": ("it is as ONNX Runtime 1.5.2 quantizes", ""),
    "square-dilations": ("the dilations of both axes are the same", ""),
    "one-divisor": ("both inputs have one shape", ""),
    "keepdims": ("keepdims is 0", "attribute keepdims = 0"),
    "alpha": ("alpha is 1", "attribute alpha = 1"),
    "no-ceil": (
        "no dilation is other than 1, ceil_mode is 0, and only the first output is used",
        "attribute dilations = 1 absent\nattribute ceil_mode = 0 absent\noutputs = 1",
    ),
    "one-bound": ("min and max are one number each", ""),
    "rank": ("the input is of rank 2 or more", "rank 0 = 2-"),
    "exponent": ("no exponent is negative, and one input is one number", ""),
    "padding": ("the batch is not padded", ""),
    "scales": (
        "the mode is nearest or linear, the input is of rank 4, and scales give whole sizes",
        "attribute mode = nearest linear\nrank 0 = 4",
    ),
    "inference": ("it uses its stored mean and variance", ""),
    "whole-batch": ("the batch is not expanded", ""),
}

#: The conditions that a remark says, by the operator and a digest of the remark. Remarks that
#: limit the NPU alone say nothing of the toolkit.
RESTRICTIONS = """
AveragePool 9dfab2
BatchNormalization 7ea377
Cast 0a246a bool-int8-float
Conv 8a24d6
ConvTranspose 0f627d
Div 6d8e52
Elu 2a8931 size
EyeLike 03dd7d constant
GRU eaafa2 batch
GlobalAveragePool 968098 kernel
GlobalMaxPool 968098 kernel
Greater 6d8e52
If 03dd7d constant
LSTM 417fcf batch no-input-forget
Less 6d8e52
LogSoftmax eaafa2 batch
Max 7ea377
MaxPool 150974
Min 7ea377
Mul 1db9f5
PRelu 37cb7e slope
Pad 8cad3a
ReduceMean 4c7542
ReduceSum 4c7542
Reshape 7ea377
Resize a88116 nearest-or-linear
Resize faa3ad
RoiAlign 6da623 average batch
Slice 886561 batch
Slice eaafa2 batch
Softmax c7a26c batch
Softmax eaafa2 batch
Sub 1db9f5
Tile 218696 batch no-broadcast
Transpose 7ea377
"""

#: The conditions that the spreadsheet says of an operator, in its columns of limits.
LIMITS: Mapping[str, tuple[str, ...]] = {
    "ArgMax": ("keepdims",),
    "ArgMin": ("keepdims",),
    "BatchNormalization": ("inference",),
    "Clip": ("one-bound",),
    "Conv": ("square-dilations",),
    "ConvTranspose": ("square-dilations",),
    "Div": ("one-divisor",),
    "Elu": ("alpha",),
    "Expand": ("whole-batch",),
    "LSTM": ("batch",),
    "MaxPool": ("no-ceil",),
    "Pad": ("padding",),
    "Pow": ("exponent",),
    "Resize": ("scales",),
    "Softmax": ("rank",),
}

#: Operators whose limits speak of accuracy, of PyTorch alone, or of what a quantized model holds.
_UNLIMITED = {
    "Add",
    "Ceil",
    "CumSum",
    "Gather",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceSum",
    "Round",
    "Sub",
}

_SHEET = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"


def toolkit2_facts(text: str) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of a table of toolkit 2, which names what it does not take as well."""
    restrictions = restrictions_of(RESTRICTIONS)
    found = {}
    section = re.search(r"^## ONNX OPs.*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    if section is None:
        raise ValueError("the document has no table of ONNX's operators")
    for line in section[0].splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if not line.startswith("|") or cells[0].startswith("*") or not cells[0].strip("-"):
            continue
        name, remark = cells[0], cells[1] if len(cells) > 1 else ""
        if remark.lower() == "not supported":
            found["", name] = [Row(value="not")]
        else:
            conditions = restrictions[name, digest(remark)] if remark else ()
            found["", name] = [Row(conditions=conditions)]
    return found


#: What is right at another opset than it was exported at, or is what others become.
_RIGHT_AT_OTHERS = {"Abs", "GridSample"}


def simulated() -> tuple[set[str], set[str]]:
    """Return what toolkit 2 computes right in some form, and what it refuses in all, in the lab."""
    measured = load()
    found: dict[str, set[str]] = {}
    for pair in pairs(measured):
        if pair.runtime.startswith("rknn"):
            found.setdefault(measured["sources"][pair.source]["op"], set()).add(pair.exported)
    return (
        {name for name, said in found.items() if "right" in said} | _RIGHT_AT_OTHERS,
        {name for name, said in found.items() if said == {"refused"}},
    )


def toolkit1_facts(text: str) -> Facts:
    """Return the rows of a list of toolkit 1."""
    found: dict[tuple[str, str], list[Row]] = {}
    section = re.search(r"^## ONNX OPs.*?(?=^## )", text, re.MULTILINE | re.DOTALL)
    names = re.findall(r"^\| *(\w[\w/]*)(.*?)\|", section[0] if section else "", re.MULTILINE)
    for joined, remark in names:
        for name in joined.split("/"):
            if op_type := ALIASES.get(name, name):
                found["", op_type] = [Row()]
            if "Quantize" in remark and name in QUANTIZED:
                found["", QUANTIZED[name]] = [Row(conditions=("quantized",))]
    if not found:
        raise ValueError("the document has no list of ONNX's operators")
    return found


def spreadsheet_facts(content: bytes) -> Facts:
    """Return the rows of the spreadsheet."""
    found, limited = {}, set()
    for cells in _cells(content):
        op_type = EXPORTED.get(cells.get("B", ""))
        if op_type is None or cells.get("G") not in ("Y", "N"):
            continue
        if cells["G"] == "N":
            found["", op_type] = [Row(value="not")]
            continue
        if cells.get("D") or cells.get("H"):
            limited.add(op_type)
        found["", op_type] = [Row(conditions=LIMITS.get(op_type, ()))]
    if odd := limited - LIMITS.keys() - _UNLIMITED:
        raise ValueError(f"no condition stands for the limits of {', '.join(sorted(odd))}")
    if odd := set(EXPORTED.values()) - {name for _, name in found}:
        raise ValueError(f"the spreadsheet has no row of {', '.join(sorted(odd))}")
    return found


def _cells(content: bytes) -> Iterator[dict[str, str]]:
    """Yield the texts of each row of a spreadsheet, by column."""
    book = zipfile.ZipFile(io.BytesIO(content))
    strings = [
        "".join(text.text or "" for text in item.iter(f"{_SHEET}t"))
        for item in ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
    ]
    sheet = ElementTree.fromstring(book.read("xl/worksheets/sheet1.xml"))
    for row in sheet.iter(f"{_SHEET}row"):
        values = ((cell, cell.find(f"{_SHEET}v")) for cell in row)
        yield {
            str(cell.get("r")).rstrip("0123456789"): strings[int(value.text or 0)]
            for cell, value in values
            if value is not None and cell.get("t") == "s"
        }


def main(toolkit2: Path, toolkit1: Path) -> None:
    """Write the files of both toolkits."""
    simulator, refused = simulated()
    releases = []
    for version, tag in TAGS.items():
        (path,) = (
            file
            for file in files(toolkit2, f"refs/tags/{tag}", "doc/")
            if re.search(r"OP_Support.*\.md$", file)
        )
        found = read(toolkit2, f"refs/tags/{tag}", path)
        rows = toolkit2_facts(found.text)
        where = f"airockchip/rknn-toolkit2 {path}, {tag}"
        if [*TAGS].index(version) >= [*TAGS].index(_MEASURED):
            where += ", and what its simulator computed in the lab"
            for name in simulator:
                if rows.get(("", name), [Row(value="not")])[0].value == "not":
                    rows["", name] = [Row(conditions=("simulator",))]
            rows |= {("", name): [Row(value="not")] for name in refused}
        releases.append(Release(version, Source("document", where, found.date), rows))
    _report(write("rknn", "rknn", releases, conditions=CONDITIONS))

    releases = []
    for version in LISTS:
        path = f"doc/RKNN_OP_Support_V{version}.md"
        found = read(toolkit1, f"refs/tags/v{version}", path)
        releases.append(
            Release(version, _source1(path, found, ("ai.onnx",)), toolkit1_facts(found.text))
        )
    version, path = SPREADSHEET
    done = subprocess.run(
        ["git", "-C", str(toolkit1), "show", f"refs/tags/v{version}:{path}"],
        capture_output=True,
        check=True,
    )
    commit = git(toolkit1, "log", "-1", "--format=%h %cs", "--abbrev=10", f"refs/tags/v{version}")
    source = _source1(path, Read("", *commit.split()), ())
    releases.append(Release(version, source, spreadsheet_facts(done.stdout)))
    _report(write("rknn-toolkit", "rknn", releases, conditions=CONDITIONS))


def _source1(path: str, found: Read, complete: tuple[str, ...]) -> Source:
    where = f"rockchip-linux/rknn-toolkit {path}, {found.commit}"
    return Source("document", where, found.date, complete)


def _report(path: Path) -> None:
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
