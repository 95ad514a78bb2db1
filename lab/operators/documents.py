"""What documents list: `python -m lab.operators.documents FOLDER [RUNTIME ...]`.

The folder holds a clone of each repository, as OWNER+NAME/repo. What a document says of an operator
is put in words of our own: `SENTENCES` has, by a digest of each sentence, the conditions that stand
for it, so that a new sentence fails. A sentence without any says nothing that a model can meet or
miss.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from lab.operators.registries import Named, Registry, write_all
from lab.operators.restrictions import digest
from lab.operators.writing import Row

CONDITIONS = {
    "1d-2d": ("the input is of rank 3 or 4", "rank 0 = 3-4"),
    "4d": ("the input is of rank 4", "rank 0 = 4"),
    "to-4d": ("the input is of rank 4 or less", "rank 0 = 0-4"),
    "to-6d": ("the input is of rank 6 or less", "rank 0 = 0-6"),
    "2d-or-more": ("the input is of rank 2 or more", "rank 0 = 2-"),
    "2-variable": ("no more than 2 dimensions are other than 1", "unless rank 0 = 0-2"),
    "4-variable": ("no more than 4 dimensions are other than 1", "unless rank 0 = 0-4"),
    "6-variable": ("no more than 6 dimensions are other than 1", "unless rank 0 = 0-6"),
    "2d-3d-grid": ("the input is of rank 4 or 5", "rank 0 = 4-5"),
    "2d-grid": ("the input is of rank 4", "rank 0 = 4"),
    "static": ("the shape of the input is known", "static 0"),
    "static-spatial": ("height and width are known", "unless static 0"),
    "static-shape": ("the number of dimensions that the shape has is known", "unless constant 1"),
    "static-sizes": ("how many scales or sizes there are is known", "unless constant 2 3"),
    "static-output": (
        "the shape of the input is known, or output_shape is left out",
        "unless static 0\nattribute output_shape = absent",
    ),
    "static-k": ("k is one number", "unless constant 1"),
    "constant-weights": ("the weights are constant", "constant 1"),
    "constant-rnn": ("W, R and B are constant", "constant 1 2 3"),
    "constant-axes": ("the axes are constant", "constant 3"),
    "constant-slope": ("the slope is constant", "constant 1"),
    "constant-shape": ("the new shape is constant", "constant 1"),
    "constant-grid": ("the grid is constant", "constant 1"),
    "constant-k": ("k is constant", "constant 1"),
    "constant-slices": ("starts, ends, axes and steps are constant", "constant 1 2 3 4"),
    "one-variable": ("all inputs but the first are constant", "constant 1 2"),
    "one-constant": ("one of the inputs is constant", "unless constant 0\nconstant 1"),
    "variable": ("the input is not constant", ""),
    "vector": ("the constant is one number, or a vector of the channels or the width", ""),
    "bias-vector": ("the bias is a vector of the size of the output", ""),
    "scale-vector": ("scale and bias are vectors", ""),
    "two-inputs": ("there are two inputs", "inputs = 1-2"),
    "shapes-known": ("the shapes of its inputs are in the model", ""),
    "no-batch-broadcast": ("the batch is not broadcast", ""),
    "broadcast": ("the inputs are of one shape, or can be broadcast", ""),
    "inference": ("training_mode is 0", "attribute training_mode = 0 absent"),
    "no-training": ("there is no mask and no training", "outputs = 1\nelements 2 = 0"),
    "casts-floats": ("it casts between float and double", ""),
    "no-half": (
        "nothing is float16, or it runs on ppc64le or macOS",
        "unless dtype 0 = float double bool int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    ),
    "no-int4": (
        "nothing is int4 or uint4",
        "dtype 0 = float float16 double bfloat16 bool int8 int16 int32 int64 uint8 uint16 uint32 "
        "uint64 string",
    ),
    "long-integers": (
        "no integer has less than 32 bits",
        "dtype 0 = float float16 double bfloat16 bool int32 int64 uint32 uint64",
    ),
    "no-unsigned": ("nothing is unsigned", "dtype 0 = float float16 double int8 int16 int32 int64"),
    "float-double": ("the input is float or double", "dtype 0 = float double"),
    "float-or-half": ("the input is float, double or float16", "dtype 0 = float double float16"),
    "no-short-floats": (
        "no float has less than 32 bits",
        "dtype 0 = float double int8 int16 int32 int64 uint8 uint16 uint32 uint64",
    ),
    "float-power": ("the exponent is no integer", "dtype 0 = float double float16"),
    "quantized": ("the inputs are int8, uint8 or float", "dtype 0 = int8 uint8 float"),
    "per-tensor": ("scale and zero point are one number each", "unless rank 1 = 0"),
    "one-output": ("only the first output is used", "outputs = 1"),
    "no-sequences": ("it has no sequences and no optional values", ""),
    "ranked-sequences": ("the rank of the sequence's elements is known", ""),
    "unique-indices": ("no index is given twice", ""),
    "no-reduction": ("reduction is none", "attribute reduction = none absent"),
    "no-mul": ("reduction is not mul", "attribute reduction = none add max min absent"),
    "whole-shape": (
        "start and end are left out",
        "attribute start = 0 absent\nattribute end = absent",
    ),
    "no-empty-parts": ("no part is empty", ""),
    "old-loop": ("the opset is 11 or 12", ""),
    "keepdims": ("keepdims is 1", "attribute keepdims = 1 absent"),
    "later-axis": ("axis is given, and is not 0 or 1", ""),
    "given-axes": ("axes are given", ""),
    "no-axes": ("all axes are padded", "absent 3"),
    "nearest": (
        "the mode is nearest, nearest_mode is not floor, and coordinates are not "
        "tf_crop_and_resize or pytorch_half_pixel",
        "attribute mode = nearest absent\nattribute nearest_mode = round_prefer_floor "
        "round_prefer_ceil ceil absent\nattribute coordinate_transformation_mode = half_pixel "
        "asymmetric align_corners tf_half_pixel_for_nn absent",
    ),
    "nearest-only": ("the mode is nearest, and there is no roi", "attribute mode = nearest absent"),
    "nearest-or-linear": (
        "the mode is nearest or linear",
        "attribute mode = nearest linear absent",
    ),
    "grid-nearest": ("the mode is nearest", "attribute mode = nearest"),
    "grid-modes": (
        "the mode is nearest or linear",
        "attribute mode = nearest bilinear linear absent",
    ),
    "zeros": ("the padding mode is zeros", "attribute padding_mode = zeros absent"),
    "zeros-border": (
        "the padding mode is zeros or border",
        "attribute padding_mode = zeros border absent",
    ),
    "plain-resize": (
        "antialias, axes and keep_aspect_ratio_policy have their defaults",
        "attribute antialias = 0 absent\nattribute axes = absent\n"
        "attribute keep_aspect_ratio_policy = stretch absent",
    ),
    "antialias": ("antialias is 0", "attribute antialias = 0 absent"),
    "stretch": (
        "keep_aspect_ratio_policy is stretch",
        "attribute keep_aspect_ratio_policy = stretch absent",
    ),
    "excluded": ("exclude_outside is 0", "attribute exclude_outside = 0 absent"),
    "coordinates": (
        "coordinates are half_pixel, pytorch_half_pixel or asymmetric",
        "attribute coordinate_transformation_mode = half_pixel pytorch_half_pixel asymmetric "
        "absent",
    ),
    "asymmetric-floor": (
        "asymmetric coordinates are of nearest by floor, and half pixels of nearest by "
        "round_prefer_ceil",
        "unless attribute mode = linear",
    ),
    "asymmetric-linear": (
        "coordinates are not asymmetric, or the mode is nearest",
        "unless attribute mode = nearest absent\n"
        "attribute coordinate_transformation_mode = half_pixel pytorch_half_pixel absent",
    ),
    "scales": ("height and width grow alike by a power of two, and nothing else does", ""),
    "no-roi": ("there is no roi, and antialias is 0", "attribute antialias = 0 absent"),
    "no-same": (
        "auto_pad is not SAME_UPPER or SAME_LOWER",
        "attribute auto_pad = NOTSET VALID absent",
    ),
    "allowzero": ("allowzero is 0", "attribute allowzero = 0 absent"),
    "no-dilations": ("no dilation is other than 1", "attribute dilations = 1 absent"),
    "depthwise": ("group is 1, or the number of channels", "unless attribute group = 1 absent"),
    "no-group": ("group is 1", "attribute group = 1 absent"),
    "no-wrap": ("the mode is not wrap", "attribute mode = constant reflect edge absent"),
    "constant-mode": ("it pads with a constant", "attribute mode = constant absent"),
    "height-width": ("only height and width are padded", ""),
    "fmod": (
        "fmod is 1, or the input is an integer",
        "unless attribute fmod = 1\ndtype 0 = int8 int16 int32 int64 uint8",
    ),
    "storage": ("storage_order is 0", "attribute storage_order = 0 absent"),
    "last-index": ("select_last_index is 0", "attribute select_last_index = 0 absent"),
    "third-last-axis": ("axis is -3", ""),
    "last-axes": ("axis is one of the last three, not the batch", ""),
    "height": ("axis is that of the height", ""),
    "width": ("axis is that of the width", ""),
    "width-height": ("axis is that of the height or the width", ""),
    "sorted": ("the elements are sorted", "attribute sorted = 1 absent"),
    "gemm": (
        "transA is 0, and alpha and beta are 1",
        "attribute transA = 0 absent\nattribute alpha = 1 absent\nattribute beta = 1 absent",
    ),
    "batch": ("the batch size is 1", ""),
    "unit-steps": ("no step is other than 1", "elements 4 = 1"),
    "qdq": (
        "the model is quantized by QuantizeLinear and DequantizeLinear, with axis 1",
        "attribute axis = 1 absent",
    ),
    "terminal": ("it is at an input or an output of the model", ""),
    "fused": ("it is part of a combination that is fused", ""),
    "kernels": ("the document lists its kernel and stride", ""),
    "chip": ("the document lists it for the chip", ""),
    "signs": ("the signs of inputs and output go together", ""),
    "plane": ("height times width is 1024 at most", ""),
    "blocks": ("the sizes are multiples of the block size", ""),
    "line": ("it takes whole lines, and dimensions before its axis are 1", ""),
    "vector-indices": ("the indices are a vector", "rank 1 = 1"),
    "scatter": ("one channel is scattered along the width, into zeros", ""),
    "keep-batch": ("the batch stays where it is", ""),
    "clip": ("min is 0 or less, and max is more than 0", ""),
    "limits": ("it is within the limits of the document", ""),
    "first-axis": ("axis is 0", "attribute axis = 0 absent"),
    "last-axis": ("axis is -1", "attribute axis = -1 absent"),
    "pads": (
        "it pads with a constant, and no number is negative",
        "attribute mode = constant absent\nelements 1 = 0-",
    ),
    "no-broadcast": ("both inputs have one shape, and are float", "dtype 0 = float"),
    "even-sizes": ("the sizes of the matrices are even, or the first has one row", ""),
    "notset": ("auto_pad is NOTSET", "attribute auto_pad = NOTSET absent"),
    "half-pads": ("it is padded alike before and after, by half a kernel at most", ""),
    "counts-pads": (
        "count_include_pad is 1, or nothing is padded",
        "unless attribute pads = 0 absent\nattribute count_include_pad = 1",
    ),
    "relu6": ("min and max are 0 and 6, or -1 and 1", ""),
    "channels": ("axis is 1, or -3 of rank 4", "unless attribute axis = 1\nattribute axis = -3"),
    "square": (
        "group is 1, or the number of channels with a square kernel",
        "unless attribute group = 1 absent",
    ),
    "no-trans-a": ("transA is 0", "attribute transA = 0 absent"),
    "hard-sigmoid": ("alpha is 0.16666 and beta 0.5", ""),
    "slopes": ("the slope is one number, or one for each channel", ""),
    "spatial-pads": (
        "it pads height and width with a constant",
        "attribute mode = constant absent",
    ),
    "integer-scales": (
        "there is no roi, and linear scales are integers, alike",
        "attribute mode = nearest linear absent",
    ),
    "selu": ("alpha and gamma have their defaults", ""),
    "one-slice": ("one axis is given, and no steps", "absent 4"),
    "positive-axis": ("axis is more than 0", "attribute axis = 1-99"),
    "identity": ("perm is 0, 1, 2, 3", ""),
    "channel-operand": (
        "the other operand has the same shape, one value a channel, or one value",
        "",
    ),
}


def _conditions(sentences: str) -> dict[str, tuple[str, ...]]:
    """Read lines of a digest and the conditions that stand for its sentence."""
    lines = [line.split() for line in sentences.strip().splitlines()]
    return {mark: tuple(names) for mark, *names in lines}


def _cells(text: str) -> Iterator[list[str]]:
    """Yield the cells of each line of the tables of a document."""
    for line in text.splitlines():
        if line.startswith("|") and not re.fullmatch(r"[|: -]+", line):
            yield [cell.strip() for cell in line.strip()[1:].rstrip("|").split("|")]


ONNX_MLIR = _conditions("""
226837 2d-3d-grid
141ca3 plain-resize
6a9849 later-axis
2211bd constant-axes
0a653c casts-floats
4a38f3 casts-floats
82b49d
33c83d given-axes keepdims
34ef01 per-tensor
10a225 one-output long-integers
6abfcb unique-indices
3478fb static
c56d56 no-int4
86368c no-training
ad5833 per-tensor
7273fd no-reduction
6e1d2f no-short-floats no-unsigned
421ccf long-integers
f82b0c whole-shape
804478 no-empty-parts
87afe4
c331da ranked-sequences
2f4b0d no-unsigned
3a9c6a static
f42ce7 static-shape
4a7539 static-shape
71c268 static
3f0419 long-integers
981476 nearest
e08a71 old-loop
d02be3 per-tensor
332957 float-power
4684f8 no-short-floats no-unsigned
a3ffd4 long-integers
e9ba67 no-unsigned
54215a float-double
1149d1 no-half
668a7a per-tensor
5e95c6 quantized
edbb07 zeros-border
33a051 no-sequences
49c233 no-sequences
437645 static-spatial
f5e2cb float-or-half
ed81f0 one-output
22ebab inference
507d72 static-spatial
3e26b0 constant-rnn
01ebc2 constant-weights
f6bf7a static-k
917339 no-same
85e3e0 static-output
60d96a static
76f4d3 static-sizes
6fcea5 allowzero
d40bf4 no-axes
2a3995 keepdims
629cd4 keepdims
""")


def onnx_mlir(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the lines of onnx-mlir's table, of which older ones have no ranges of opsets."""
    for cells in (cells for text in texts.values() for cells in _cells(text)):
        name = re.fullmatch(r"\*\*(\w+)\*\*", cells[0])
        if name is None or cells[1] == "none" or cells[2] == "unsupported":
            continue
        said = [sentence for sentence in re.split(r"(?<=\.)\s+", cells[2]) if sentence]
        needed = [item for sentence in said for item in ONNX_MLIR[digest(sentence)]]
        opsets = re.fullmatch(r"(\d+) - (\d+|\*)", cells[1])
        first, last = opsets.groups() if opsets else (None, "*")
        span = (int(first) if first else None, None if last == "*" else int(last))
        yield name[1], Row(span, (), tuple(dict.fromkeys(needed)))


WONNX = {
    "": (),
    "(axis=0)": ("first-axis",),
    "*": ("even-sizes",),
    "(axis=-1)": ("last-axis",),
    "(mode=constant, pads>=0)": ("pads",),
    "(broadcast=0 and data type is f32)": ("no-broadcast",),
}


def wonnx(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the operators of wonnx's table that are ticked, with what stands beside the tick."""
    for cells in (cells for text in texts.values() for cells in _cells(text)):
        name = re.fullmatch(r"<a [^>]*>(\w+)</a>", cells[0])
        if name and len(cells) > 2 and cells[2].startswith("✅"):
            needed = WONNX[cells[2].removeprefix("✅").strip()]
            yield name[1], Row((None, None), (), ("even-sizes",) if name[1] == "MatMul" else needed)


def pplnn(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the lines of the table of a platform of PPL.NN."""
    for text in texts.values():
        section = re.search(r"^\* ONNX$.*?(?=^\* |\Z)", text, re.MULTILINE | re.DOTALL)
        for cells in _cells(section[0] if section else ""):
            opsets = re.fullmatch(r"(\d+)(?:~(\d+))?", cells[1])
            if opsets and cells[2] == "&check;":
                first, last = opsets.groups()
                yield cells[0], Row((int(first), int(last or first)))


def burn(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the operators that Burn imports, of which it names some by their dimensions."""
    ranks: dict[str, set[str]] = {}
    for cells in (cells for text in texts.values() for cells in _cells(text)):
        name = re.match(r"\[(\w+?)([123]d)?\]\[\d+\]$", cells[0])
        if name and cells[1] == "✅":
            for op_type in ("ReduceL1", "ReduceL2") if name[1] == "ReduceL" else (name[1],):
                ranks.setdefault(op_type, set()).add(name[2] or "")
    for name, held in ranks.items():
        yield name, Row(conditions=("1d-2d",) if held == {"1d", "2d"} else ())


ESP_DL = _conditions("""
372aaf to-4d
17bb75 depthwise
c97804 no-wrap
527cde nearest-only
6a483f
5a06b4 1d-2d no-dilations
0b6488 1d-2d depthwise
bec465 1d-2d
9c495b 1d-2d nearest-or-linear no-roi
141b53 to-4d
5dc3b4
53b70d
07b284
3f848f to-4d fmod
c55aaa
""")


def esp_dl(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the lines of ESP-DL's table."""
    for cells in (cells for text in texts.values() for cells in _cells(text)):
        name = re.match(r"(\w+)\[\(ESP-DL\)\]", cells[0])
        if name:
            yield name[1], Row(conditions=ESP_DL[digest(cells[-1])] if cells[-1] else ())


TIDL = _conditions("""
d83eba asymmetric-linear
654bc9
6154e3 chip
8eda51 chip
1f0e47 vector
7b0925 chip
e8a6d9
4287d8 bias-vector
e6f0a0 bias-vector
b35868 one-constant
74b2f4 one-constant
ab3ba7 no-batch-broadcast
0d7727
4cc67c line
78cb1b shapes-known
ade1eb vector
92cdbb vector
e4b20c vector
30e24f variable
49dca6 qdq
74b888 kernels
33cfdb kernels
8abe90 bias-vector
307ecf scale-vector
14186b broadcast
f61435 broadcast
b819e4
a92eda
426f96
996b0c bias-vector
0c733d bias-vector
a52ef9 constant-grid
93171a plane
3a5334 constant-k
c4456f blocks
f7a4a9 2d-or-more
cff3a3 blocks
14f6ff line
68b12a 4d
9538bb variable
13563f
8d5634
83da11 kernels
ba4ee3 kernels
dafceb kernels
679dcf signs
c876f8 signs
ef6fd6 signs
7fe1a6 signs
2448c5 to-6d
2bd944 constant-slices
e78bc4 unit-steps
08c6dc last-axes
9b86b2 fused
d65cc9 fused
890d77 6-variable
db496f 2-variable
009842 4-variable
277acc 6-variable
837fe8 asymmetric-floor
e2da32 coordinates
53636f nearest-or-linear
6a7e24 no-reduction
2a6426 asymmetric-floor
2bfd75 vector-indices
2bb87d two-inputs
4a849b two-inputs
6628cd 2d-grid
53049b kernels
a2de96 kernels
814daf kernels
3a2b69 scales
15d53c antialias
331080 third-last-axis
80ddbe batch
fbe2aa blocks
109108 constant-mode
d439e1 antialias
ef6016 qdq
119f2c no-dilations
ed3fe8 excluded
d9d776 no-group
8c1a7f stretch
eeb632 storage
697e07 keepdims
f0421f keepdims
8f0ffa line
9030fc clip
fe886b grid-modes
79551f grid-nearest
c17c88 one-variable
9e2974 keep-batch
97bf32 scatter
e0bbdd last-index
93d9ec width-height
c129d8 width
b59876 gemm
2a27c1 gemm
2d75de width
d1239f terminal
8cc516 last-axes
a58cd7 stretch
df14ec scatter
8be67a zeros
ef8c07
aaa099 6-variable
d4ec7d constant-slope
1da036 chip
152d31 height-width
3bf782
51b42f qdq
c71e07 height
baa8e7 scales
8be43d scales
af4e48
4c929d no-mul
30c050
3efc1d kernels
7d64d5 kernels
6381f0 scatter
a8a22c broadcast
91809a broadcast
026c5c broadcast
2ce584 height
8ca454 sorted
037e84 keep-batch
a6d6a4 scatter
9a327e constant-shape
b3d945
28e5ad
9dab70 scales
747536 allowzero
8ed67e
50fb4f inference
""")


def tidl(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the operators of TIDL's tables: by sentences from 10.0 on, by a list before."""
    (text,) = texts.values()
    section = re.search(r"^#+ Operator Mapping \(ONNX\)$.*?(?=^#)", text, _SECTION)
    if section is None:
        older = re.search(r"^#+ Operator Mapping.*?(?=^#+ Supported model)", text, _SECTION)
        for cells in _cells(older[0]):
            names, note = (cells[2], cells[4]) if len(cells) > 4 else (cells[1], cells[3])
            for name in re.split(r"<br>|[/,]", names):
                if re.fullmatch(r"[A-Z][A-Za-z]+", name.strip()) and name.strip() != "NA":
                    yield name.strip(), Row(conditions=("limits",) if note else ())
        return
    for cells in _cells(section[0]):
        if not cells[0].isdigit():
            continue
        said = [re.sub(r"<[^>]*>", "", item).strip() for item in re.findall(_ITEM, cells[3])]
        needed = tuple(dict.fromkeys(name for item in said for name in TIDL[digest(item)]))
        for name in cells[1].split("/"):
            own = [
                item
                for item in needed
                if (item not in _OF_SUB or name == "Sub")
                and (item not in _OF_BINARY or name not in ("Sum", "Max"))
                and (item != "no-mul" or name == "ScatterND")
                and (item != "plane" or name == "GlobalAveragePool")
            ]
            if name == "ScatterElements" and "no-reduction" not in own:
                own.append("no-reduction")
            yield name, Row(conditions=tuple(own))


_SECTION = re.MULTILINE | re.DOTALL
_ITEM = re.compile(r"<li>(.*?)</li>", re.DOTALL)

#: Conditions in a line of several operators that are those of some.
_OF_SUB = {"one-constant", "vector"}
_OF_BINARY = {"two-inputs", "6-variable", "shapes-known"}


AXELERA = _conditions("""
f4d874 channel-operand
3dbe45 notset half-pads counts-pads
f0fa82 relu6
75a6c0 channels
c922c8 notset square
c65dd2 notset
1ecf88 no-trans-a
55b201 hard-sigmoid
f72741 notset storage
10eff6 slopes
f9de72 spatial-pads
715262 integer-scales
ae4e2d selu
de64b5 one-slice
4b22a7 positive-axis
7c85dd identity
""")


def axelera(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the operators of Axelera's page, each with a section that has rules."""
    for text in texts.values():
        rules = {}
        for section in re.split(r"^### ", text, flags=re.MULTILINE)[1:]:
            found = re.search(r"AIPU Acceleration Constraints\n(.*?)(?=^---|\Z)", section, _SECTION)
            if found:
                plain = re.sub(r"</?d[lt]>|</?tt>", " ", found[1])
                rules[section.split()[0]] = "" if "any configurations" in plain else plain
        for name in re.findall(r"^\|\[(\w+)\]\(#\w+\)\|", text, re.MULTILINE):
            yield name, Row(conditions=AXELERA[digest(rules[name])] if rules[name] else ())


def qnn(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the operators that a mapping names, which holds what a document of QNN says."""
    for text in texts.values():
        for name in json.loads(text)["mappings"]:
            yield name, Row()


def deepx(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the operators of DEEPX's tables, with the conditions of their lines as one."""
    for cells in (cells for text in texts.values() for cells in _cells(text)):
        name = re.match(r"([A-Z]\w+)", cells[0])
        if name and len(cells) == 2:
            free = re.match(r"No restrictions|Removed", cells[1])
            yield name[1], Row(conditions=() if free else ("limits",))


def axera(texts: Mapping[str, str]) -> Iterator[Named]:
    """Yield the operators of AXERA's list, with the limits of their attributes as one."""
    for cells in (cells for text in texts.values() for cells in _cells(text)):
        if re.fullmatch(r"[A-Z]\w+", cells[0]) and cells[0] != "Operators":
            limited = re.search(r"only|not supported|to:", cells[1], re.IGNORECASE)
            yield cells[0], Row(conditions=("limits",) if limited else ())


_PPLNN = {"0.6": "v0.6.3", "0.8": "v0.8.2", "0.9": "v0.9.2"}


def _platform(name: str, oldest: str = "0.6") -> Registry:
    tags = {version: tag for version, tag in _PPLNN.items() if version >= oldest}
    path = rf"^docs/en/{name}-doc/supported-ops-and-platforms\.md$"
    return Registry("OpenPPL/ppl.nn", tags, path, pplnn, conditions=CONDITIONS)


DOCUMENTS: Mapping[str, Registry] = {
    "onnx-mlir": Registry(
        "onnx/onnx-mlir",
        {
            "0.3.1": "v0.3.1",
            "0.3.2": "v0.3.2",
            "0.4.0": "v0.4.0",
            "0.4.1": "v0.4.1",
            "0.4.2": "v0.4.2.0",
            "0.4.3": "v0.4.3.0",
            "0.5.0": "v0.5.0.0",
            "0.5.1": "v.0.5.1.0",
        },
        r"^docs/SupportedONNXOps-cpu\.md$",
        onnx_mlir,
        conditions=CONDITIONS,
    ),
    "wonnx": Registry(
        "webonnx/wonnx",
        {"0.2": "v0.2.4", "0.3": "v0.3.1", "0.4": "v0.4.0", "0.5": "v0.5.1"},
        r"^README\.md$",
        wonnx,
        conditions=CONDITIONS,
    ),
    "pplnn": _platform("x86"),
    "pplnn-cuda": _platform("cuda"),
    "pplnn-riscv": _platform("riscv"),
    "pplnn-arm": _platform("arm", "0.8"),
    "burn": Registry(
        "tracel-ai/burn",
        {
            "0.12": "v0.12.1",
            **{f"0.{minor}": f"v0.{minor}.0" for minor in range(13, 21)},
        },
        r"^(crates/)?burn-import/SUPPORTED-ONNX-OPS\.md$",
        burn,
        aliases={"Linear": ""},
        conditions=CONDITIONS,
    ),
    "esp-dl": Registry(
        "espressif/esp-dl",
        {"3.0": "v3.0.0", "3.2": "v3.2.3", "3.3": "v3.3.9"},
        r"^operator_support_state\.md$",
        esp_dl,
        # It has a kernel for Relu, which the document lacks.
        partial=frozenset({"3.0"}),
        conditions=CONDITIONS,
    ),
    "tidl": Registry(
        "TexasInstruments/edgeai-tidl-tools",
        {
            "9.2": "09_02_09_00",
            "10.0": "10_00_08_00",
            "10.1": "10_01_04_00",
            "11.0": "11_00_06_00",
        },
        r"^docs/supported_ops_rts_versions\.md$",
        tidl,
        aliases={"DropOut": "Dropout", "Logistic": "", "UpSample": "Upsample"},
        # What they say that they have in them.
        fallback={
            "9.2": "onnxruntime==1.14",
            "10.0": "onnxruntime==1.14",
            "10.1": "onnxruntime==1.15",
            "11.0": "onnxruntime==1.15",
        },
        conditions=CONDITIONS,
    ),
    "axelera": Registry(
        "axelera-ai-hub/voyager-sdk",
        {"1.2": "v1.2.5"},
        r"^docs/reference/onnx-opset14-support\.md$",
        axelera,
        complete=False,
        conditions=CONDITIONS,
    ),
    "deepx": Registry(
        "DEEPX-AI/dx-compiler",
        {"2.0": "v2.0.0", "2.1": "v2.1.0", "2.2": "v2.2.1", "2.3": "v2.3.1", "2.4": "v2.4.1"},
        r"^source/docs/03_Building_Models\.md$",
        deepx,
        aliases={"Silu": ""},
        conditions=CONDITIONS,
    ),
    "axera": Registry(
        "AXERA-TECH/pulsar2-docs-en",
        {"0": "83fa86a48"},
        r"^source/appendix/op_support_list_ax650\.md$",
        axera,
        aliases={"InverseSigmoid": "", "Silu": "", "SpatialTransformer": "", "Topk": "TopK"},
        complete=False,
        conditions=CONDITIONS,
    ),
    "qnn": Registry(
        "microsoft/winml-cli",
        {"0": "0876e5ae1"},
        r"^src/winml/modelkit/analyze/rules/information_rules/onnx_to_qnn_mapping\.json$",
        qnn,
        complete=False,
    ),
}


if __name__ == "__main__":
    write_all(Path(sys.argv[1]), DOCUMENTS, sys.argv[2:], "documents")
