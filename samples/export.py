"""Export the sample models, each with one set of inputs beside it.

    pip install torch==2.13.0 onnxscript==0.7.2 scikit-learn==1.9.1 skl2onnx==1.20.0
    python samples/export.py

Only this script needs those packages; the models are in the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import onnx
import torch
from skl2onnx import to_onnx
from sklearn.datasets import load_iris
from sklearn.mixture import GaussianMixture
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from torch import nn

HERE = Path(__file__).parent


class Attention(nn.Module):
    """Self-attention with a residual and a hand-written layer normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.out = nn.Linear(16, 16)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        weights = torch.softmax(q @ k.transpose(1, 2) / 4.0, dim=-1)
        y = x + self.out(weights @ v)
        centred = y - y.mean(dim=-1, keepdim=True)
        variance = (centred * centred).mean(dim=-1, keepdim=True)
        return centred / torch.sqrt(variance + 1e-5)


class Reductions(nn.Module):
    """Norms, extremes and logarithms of sums over several axes."""

    def forward(self, x):
        return (
            x.sum(dim=(1, 2)),
            x.amax(dim=1, keepdim=True),
            torch.logsumexp(x, dim=(0, 2)),
            torch.linalg.vector_norm(x, dim=-1),
            torch.log_softmax(x, dim=1),
            x.prod(dim=2),
        )


class Segmentation(nn.Module):
    """A small convolutional network with a softmax over channels, which is an inner axis."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, 4, 1)
        )

    def forward(self, image):
        return torch.softmax(self.layers(image), dim=1)


def export_torch(name: str, module: nn.Module, opset: int, *inputs: torch.Tensor) -> None:
    """Export with the exporter that a user of that opset would call."""
    module.eval()
    path = HERE / f"{name}.onnx"
    names = [f"input{index}" for index in range(len(inputs))]
    dynamo = opset >= 18
    options = {"external_data": False} if dynamo else {"dynamic_axes": {names[0]: {0: "batch"}}}
    torch.onnx.export(
        module, inputs, str(path), opset_version=opset, dynamo=dynamo, input_names=names, **options
    )
    save_inputs(name, dict(zip(names, (tensor.numpy() for tensor in inputs), strict=True)))


def export_sklearn(name: str, pipeline, data: np.ndarray, opset: int) -> None:
    """Export a fitted scikit-learn pipeline."""
    onnx.save(to_onnx(pipeline, data[:1], target_opset=opset), HERE / f"{name}.onnx")
    save_inputs(name, {"X": data[::15]})


def save_inputs(name: str, inputs: dict[str, np.ndarray]) -> None:
    """Write one set of inputs by name."""
    np.savez(HERE / f"{name}.npz", **inputs)


def main() -> int:
    """Export them all."""
    torch.manual_seed(0)
    x = torch.randn(2, 5, 16)
    export_torch("attention_opset18", Attention(), 18, x)
    export_torch("attention_opset13", Attention(), 13, x)
    export_torch("reductions_opset18", Reductions(), 18, torch.randn(2, 3, 4))
    export_torch("segmentation_opset11", Segmentation(), 11, torch.randn(1, 3, 8, 8))
    data = load_iris().data.astype(np.float32)
    mixture = make_pipeline(StandardScaler(), GaussianMixture(3, random_state=0)).fit(data)
    export_sklearn("mixture_opset18", mixture, data, 18)
    export_sklearn("normalizer_opset13", Normalizer("l2").fit(data), data, 13)
    return 0


if __name__ == "__main__":
    sys.exit(main())
