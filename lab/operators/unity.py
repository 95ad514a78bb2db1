"""Unity's operators: `python -m lab.operators.unity BARRACUDA SENTIS ENGINE`.

The folders are clones of Unity-Technologies/barracuda-release, needle-mirror/com.unity.sentis and
needle-mirror/com.unity.ai.inference. Each release has a page of the operators that it imports;
Sentis, later Inference Engine, says the dtypes of each backend, of which the CPU has them all.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from lab.operators.repositories import read
from lab.operators.restrictions import digest, restrictions_of
from lab.operators.writing import Release, Row, Source, write

#: The tag of each release of Barracuda.
BARRACUDA = {
    "1.0": "1.0.4",
    "1.1": "1.1.2-preview",
    "1.2": "1.2.1-preview",
    "1.3": "1.3.3-preview",
    "1.4": "1.4.0-preview",
    "2.0": "2.0.0",
    "2.1": "2.1.0-preview",
    "2.2": "2.2.1-preview",
    "2.3": "2.3.1-preview",
    "2.4": "2.4.0-preview",
    "3.0": "3.0.0",
}

#: The tag of each release of Sentis, and of Inference Engine from 2.2 on.
SENTIS = {
    "1.0": "1.0.0-exp.6",
    "1.1": "1.1.1-exp.2",
    "1.2": "1.2.0-exp.2",
    "1.3": "1.3.0-pre.3",
    "1.4": "1.4.0-pre.3",
    "1.5": "1.5.0-pre.3",
    "1.6": "1.6.0-pre.1",
    "2.0": "2.0.0",
    "2.1": "2.1.3",
}
ENGINE = {"2.2": "2.2.2", "2.3": "2.3.0", "2.4": "2.4.0"}

#: An operator that no onnx has any more.
MADE_UP = {"ImageScaler"}

#: The dtypes that the importer reads as others, as its source has them.
CASTS = {
    "1.0-": "float16=float double=float bfloat16=float bool=int32 int8=int32 uint8=int32 "
    "int16=int32 uint16=int32 uint32=int32 int64=int32 uint64=int32"
}

DTYPES = {"float": "float", "int": "int32", "short": "int16", "byte": "uint8"}

#: The inputs that the dtypes of an operator are those of, where that is not the first.
_DATA = {"OneHot": "2", "Where": "1+2"}

CONDITIONS = {
    "average": (
        "ceil_mode and count_include_pad are 0",
        "attribute ceil_mode = 0 absent\nattribute count_include_pad = 0 absent",
    ),
    "flat": ("the input is not of rank 5", "rank 0 = 1-4"),
    "max": (
        "no dilation is other than 1, and ceil_mode and storage_order are 0",
        "attribute dilations = 1 absent\nattribute ceil_mode = 0 absent\n"
        "attribute storage_order = 0 absent",
    ),
    "last-index": ("select_last_index is 0", "attribute select_last_index = 0 absent"),
    "dense": ("the value is not sparse", "attribute sparse_value = absent"),
    "no-strings": (
        "the value is neither sparse nor strings",
        "attribute sparse_value = absent\nattribute value_string = absent\n"
        "attribute value_strings = absent",
    ),
    "constant": ("the input is constant", "constant 0"),
    "depthwise": (
        "group is 1, or the input is of rank 4 or less",
        "unless attribute group = 1\nrank 0 = 1-4",
    ),
    "transposed": (
        "group is 1, no dilation is other than 1, and there is no output_shape",
        "attribute group = 1 absent\nattribute dilations = 1 absent\n"
        "attribute output_shape = absent",
    ),
    "output-shape": ("there is no output_shape", "attribute output_shape = absent"),
    "first-axis": ("axis is 1", "attribute axis = 1 absent"),
    "last-axis": ("axis is -1", "attribute axis = -1 absent"),
    "default-axis": ("axis is left out", ""),
    "later-axes": ("no axis is 0 or 1", ""),
    "gemm": (
        "alpha and beta are 1, and transA is 0",
        "attribute alpha = 1 absent\nattribute beta = 1 absent\nattribute transA = 0 absent",
    ),
    "inference": (
        "training_mode is 0",
        "attribute training_mode = 0 absent\nattribute spatial = 1 absent",
    ),
    "epsilon": ("training_mode is 0, and epsilon is 1e-05", "attribute epsilon = 1e-05 absent"),
    "4d": ("the input is of rank 4 or less", "rank 0 = 0-4"),
    "6d": ("the input is of rank 6 or less", "rank 0 = 0-6"),
    "ml-agents": ("the model is one of ML-Agents", ""),
    "no-ones": ("the input is constant, or no dimension is 1", "unless constant 0"),
    "pad-3d": (
        "it pads with a constant, or the input is of rank 4 or less",
        "unless attribute mode = constant\nrank 0 = 1-4",
    ),
    "resize": (
        "coordinate_transformation_mode, nearest_mode and the others have their defaults, and an "
        "input of rank 5 is not made smaller",
        "",
    ),
    "old-resize": ("the opset is 10", ""),
    "sentis-resize": (
        "cubic_coeff_a, exclude_outside and extrapolation_value have their defaults, and no roi is "
        "cropped",
        "attribute cubic_coeff_a = -0.75 absent\nattribute exclude_outside = 0 absent\n"
        "attribute extrapolation_value = 0 absent\n"
        "attribute coordinate_transformation_mode = half_pixel pytorch_half_pixel asymmetric "
        "align_corners tf_half_pixel_for_nn half_pixel_symmetric absent",
    ),
    "no-symmetric": (
        "coordinate_transformation_mode is not half_pixel_symmetric",
        "attribute coordinate_transformation_mode = half_pixel pytorch_half_pixel asymmetric "
        "align_corners tf_half_pixel_for_nn tf_crop_and_resize absent",
    ),
    "upsample-3d": ("an input of rank 5 is not made smaller", ""),
    "roi": (
        "coordinate_transformation_mode is half_pixel",
        "attribute coordinate_transformation_mode = half_pixel absent",
    ),
    "roi-average": ("the mode is avg", "attribute mode = avg"),
}

#: The conditions that a page says of an operator, by a digest of the sentences.
RESTRICTIONS = """
ArgMax 844854 last-index
ArgMin 844854 last-index
AveragePool 771826 average flat
AveragePool a41424 average
AveragePool f640f5 average
BatchNormalization 67b7d1 inference epsilon
BatchNormalization bf6808 inference
Cast ab941d
Concat 5d7688
Constant 41a64e dense
Constant 4cff81 no-strings
Constant e291b5 dense
Constant f2f6bb dense
ConstantOfShape 22b77d constant
Conv 578dbe
Conv c8c07e depthwise
Conv e7f883
ConvTranspose 269fee transposed flat
ConvTranspose 3cb9c8 transposed
ConvTranspose c38908 transposed
ConvTranspose e7179c transposed
ConvTranspose f2126e output-shape
Dropout 7df8c4
Dropout ab941d
Dropout d2672a
Flatten 8753a4 first-axis
Gemm 269896 gemm
Gemm 3f14cd gemm
GlobalAveragePool 574378 flat
GlobalMaxPool 574378 flat
Identity ab941d
ImageScaler a08caa
InstanceNormalization ea9698 4d
LSTM 8caaa4 ml-agents
LSTM a84183 ml-agents
LogSoftmax 0cf005 default-axis 6d
LogSoftmax f5c2eb default-axis
MaxPool 3b85b0 max
MaxPool 921b83 max
MaxPool e03315 max flat
Mean 02c257
Mean f1ab72
NonZero 1b433f no-ones
OneHot 0cf005 last-axis 6d
OneHot f5c2eb last-axis
Pad 5e05c3 pad-3d
Resize 087440 sentis-resize no-symmetric
Resize 37b7d4 old-resize
Resize 6f1942 sentis-resize
Resize 969bfb resize
RoiAlign 872633 roi roi-average
RoiAlign c93e1b roi
Scatter 040886
Scatter 419272
Shape 4188d3 constant
Shape 897672
Size 897672
Softmax 1e256c 6d
Softmax f5c2eb default-axis
Squeeze f5c2eb later-axes
Sum 739bfa
Sum 9f6f81
TopK ea9698 4d
Unsqueeze f5c2eb later-axes
Upsample 09a69e upsample-3d
Upsample 87217f
Upsample ca2fc7
"""

#: Lines of a section that say nothing of what is taken.
_PLAIN = re.compile(r"ONNX specification|Maps to|^=>|^<br ?/>$|^---|^#")


def barracuda_facts(text: str) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of a page of Barracuda: a list of names, and sections with restrictions."""
    restrictions = restrictions_of(RESTRICTIONS)
    head, *sections = re.split(r'^#{4,5} <a name="', text, flags=re.MULTILINE)
    names = re.findall(r"^\* (?:<a href=\"#\w+\">)?(\w+)", head, re.MULTILINE)
    found = {("", name): [Row()] for name in names}
    for section in sections:
        name = section.partition('"')[0]
        lines = [
            line
            for line in section.splitlines()[1:]
            if line.strip() and not re.search(_PLAIN, line)
        ]
        said = re.sub(r"<[^>]*>", "", " ".join(lines))
        if name not in names:
            raise ValueError(f"there is a section of {name}, which is not in the list")
        if said:
            found["", name] = [Row(conditions=restrictions[name, digest(said)])]
    return found


def sentis_facts(text: str) -> dict[tuple[str, str], list[Row]]:
    """Return the rows of a page of Sentis, by the column of the CPU."""
    restrictions = restrictions_of(RESTRICTIONS)
    found: dict[tuple[str, str], list[Row]] = {}
    for name, rest in re.findall(r"^\| ?\[(\w+).*?\]\(.*?\) *\| *(.*)$", text, re.MULTILINE):
        cells = [cell.strip() for cell in rest.rstrip().rstrip("|").split("|")]
        note = cells[3] if len(cells) > 3 else ""
        conditions = restrictions[name, digest(note)] if note else ()
        found["", name] = [Row(dtypes=_dtypes(name, cells[0]), conditions=conditions)]
    return found


def _dtypes(name: str, text: str) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return the dtypes of the data of an operator: none where the page says none.

    Cast is of any dtype: what it says is what it casts to.
    """
    words = set(re.findall(r"\w+", text)) & DTYPES.keys()
    if not words or name in ("Cast", "CastLike"):
        return ()
    return ((_DATA.get(name, "0"), frozenset(DTYPES[word] for word in words)),)


def _releases(
    clone: Path, repository: str, path: str, tags: Mapping[str, str]
) -> list[tuple[str, str, Source]]:
    """Return the version, the page and the source of each release."""
    releases = []
    for version, tag in tags.items():
        found = read(clone, f"refs/tags/{tag}", path)
        source = Source("document", f"{repository} {path}, {tag}", found.date, ("ai.onnx",))
        releases.append((version, found.text, source))
    return releases


def main(barracuda: Path, sentis: Path, engine: Path) -> None:
    """Write the files of Barracuda and of Sentis."""
    pages = _releases(
        barracuda,
        "Unity-Technologies/barracuda-release",
        "Documentation~/SupportedOperators.md",
        BARRACUDA,
    )
    written = [
        write(
            "barracuda",
            "unity",
            [Release(version, source, barracuda_facts(text)) for version, text, source in pages],
            conditions=CONDITIONS,
            made_up=MADE_UP,
        )
    ]
    path = "Documentation~/supported-operators.md"
    pages = [
        *_releases(sentis, "needle-mirror/com.unity.sentis", path, SENTIS),
        *_releases(engine, "needle-mirror/com.unity.ai.inference", path, ENGINE),
    ]
    written.append(
        write(
            "unity",
            "unity",
            [Release(version, source, sentis_facts(text)) for version, text, source in pages],
            conditions=CONDITIONS,
            casts=CASTS,
        )
    )
    for file in written:
        print(file, file.stat().st_size)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:4]))
