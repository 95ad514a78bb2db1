"""Exports small models of many kinds, for what converts and runs them in older runtimes.

    python -m venv venv
    venv/bin/pip install torch==2.15.0 onnxscript skl2onnx onnxruntime onnx-ir
    venv/bin/python tests/data/exports/make.py

PyTorch's models are exported twice, by the TorchScript exporter (``ts_*``) and by the one that is
built on `torch.export` (``dyn_*``). Beside each model is an .npz of its inputs.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnx
import torch
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
from onnxruntime.quantization.matmul_nbits_quantizer import (
    DefaultWeightOnlyQuantConfig,
    MatMulNBitsQuantizer,
)
from onnxscript import opset18
from skl2onnx import to_onnx
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.mixture import GaussianMixture
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812
from vision import MobileNetV3, Swin

HERE = Path(__file__).parent


class Lambda(nn.Module):
    """A function as a module, with the modules that it calls."""

    def __init__(self, function: Callable[..., Any], *modules: nn.Module) -> None:
        super().__init__()
        self.function = function
        self.inner = nn.ModuleList(modules)

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*self.inner, *inputs)


class Attention(nn.Module):
    """Scaled dot-product attention of several heads."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.split = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, width = x.shape
        shape = (batch, length, 3, self.heads, width // self.heads)
        q, k, v = self.split(x).reshape(shape).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v)
        return self.join(y.transpose(1, 2).reshape(batch, length, width))


class Encoder(nn.Module):
    """A block of a transformer's encoder."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention = Attention(width, heads)
        self.dense = nn.Sequential(nn.Linear(width, 32), nn.GELU(), nn.Linear(32, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.dense(self.norms[1](x))


class ViT(nn.Module):
    """Patches, a class token, positions, two blocks, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.places = nn.Parameter(torch.randn(1, 17, 16))
        self.blocks = nn.Sequential(Encoder(16, 2), Encoder(16, 2), nn.LayerNorm(16))
        self.head = nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.blocks(x)[:, 0]).softmax(-1)


class UNet(nn.Module):
    """Down, up again, and across."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.SiLU())
        self.low = nn.Sequential(nn.Conv2d(8, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.Mish())
        self.up = nn.ConvTranspose2d(8, 8, 2, 2)
        self.out = nn.Conv2d(24, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.down(x)
        low = self.low(F.max_pool2d(x, 2))
        smooth = F.interpolate(low, scale_factor=2, mode="bilinear", align_corners=False)
        return self.out(torch.cat([x, self.up(low), smooth], 1)).log_softmax(1)


class ResNet(nn.Module):
    """A block with its way round, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1), nn.BatchNorm2d(8), nn.ReLU())
        self.block = nn.Sequential(
            nn.Conv2d(8, 8, 3, padding=1, groups=8), nn.Hardswish(), nn.Conv2d(8, 8, 1)
        )
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        return self.head(x + self.block(x))


class RMSNorm(nn.Module):
    """Written out, as the TorchScript exporter does not know it."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


class Embedding(nn.Module):
    """Words to a class, with a mask."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(30, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, words: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        kept = mask.unsqueeze(-1).to(torch.float32)
        mean = (self.words(words) * kept).sum(1) / kept.sum(1).clamp(min=1.0)
        scores = self.head(mean)
        return scores, scores.argmax(-1)


def _norms(*given: Any) -> tuple[Tensor, ...]:
    *modules, x = given
    return tuple(module(x) for module in modules)


def _reductions(x: Tensor) -> tuple[Tensor, ...]:
    return (
        x.sum(1),
        x.mean((0, 2), keepdim=True),
        x.amax(-1),
        x.amin(0),
        x.prod(1),
        x.logsumexp(2),
        torch.linalg.vector_norm(x, 2, -1),
        torch.linalg.vector_norm(x, 1, -1),
        x.var(-1),
        x.cumsum(1),
    )


def _indices(x: Tensor, places: Tensor) -> tuple[Tensor, ...]:
    best, which = x.topk(2, -1)
    return (
        best,
        which,
        x.gather(1, places),
        x.scatter_add(1, places, torch.ones_like(x)),
        torch.where(x > 0, x, -x).tril(),
        x[:, 1:-1:2].flip(0),
    )


def _sampled(x: Tensor, grid: Tensor) -> tuple[Tensor, Tensor]:
    return (
        F.grid_sample(x, grid, align_corners=False),
        F.interpolate(x, size=(5, 9), mode="bicubic", align_corners=True),
    )


def _warped(unet: nn.Module, x: Tensor, grid: Tensor) -> Tensor:
    return F.grid_sample(unet(x), grid, padding_mode="border", align_corners=True)


@torch.library.custom_op("exports::suppress", mutates_args=())
def suppress(boxes: Tensor, scores: Tensor) -> Tensor:
    """The places [n] of the boxes [k, 4] that no better one overlaps by half: torchvision's nms."""
    kept: list[int] = []
    for place in scores.argsort(descending=True).tolist():
        corners = torch.maximum(boxes[place, :2], boxes[kept, :2])
        others = torch.minimum(boxes[place, 2:], boxes[kept, 2:])
        common = (others - corners).clamp(min=0).prod(1)
        areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        if bool((common <= 0.5 * (areas[place] + areas[kept] - common)).all()):
            kept.append(place)
    return torch.tensor(kept)


@suppress.register_fake
def _(boxes: Tensor, scores: Tensor) -> Tensor:
    return boxes.new_empty(torch.library.get_ctx().new_dynamic_size(), dtype=torch.int64)


def _suppress_in_script(g: Any, boxes: Any, scores: Any) -> Any:
    """What the TorchScript exporter writes, as torchvision has it."""
    first = g.op("Constant", value_t=torch.tensor([0]))
    given = [g.op("Unsqueeze", boxes, first)]
    given.append(g.op("Unsqueeze", scores, g.op("Constant", value_t=torch.tensor([0, 1]))))
    given.append(g.op("Constant", value_t=torch.tensor([2**31])))
    given.append(g.op("Constant", value_t=torch.tensor([0.5])))
    found = g.op("NonMaxSuppression", *given)
    column = g.op("Constant", value_t=torch.tensor([2]))
    one = g.op("Constant", value_t=torch.tensor([1]))
    return g.op("Squeeze", g.op("Gather", found, column, axis_i=1), one)


def _suppress_in_onnxscript(boxes: Any, scores: Any) -> Any:
    """What the exporter by `torch.export` writes, as torchvision has it."""
    found = opset18.NonMaxSuppression(
        opset18.Unsqueeze(boxes, [0]), opset18.Unsqueeze(scores, [0, 1]), [2**31], [0.5]
    )
    return opset18.Squeeze(opset18.Gather(found, [2], axis=1), [1])


def _suppressed(boxes: Tensor, scores: Tensor) -> Tensor:
    return boxes[suppress(boxes, scores)]


def torch_models() -> dict[str, tuple[nn.Module, tuple[Tensor, ...]]]:
    """By name a module and its inputs."""
    torch.manual_seed(0)
    image = torch.randn(1, 3, 16, 16)
    words = torch.randn(2, 5, 16)
    corners = torch.rand(8, 2) * 4
    boxes = torch.cat([corners, corners + 1 + torch.rand(8, 2) * 2], 1)
    tokens = torch.tensor([[1, 5, 29, 0], [7, 7, 2, 3]])
    mask = torch.tensor([[1, 1, 1, 0], [1, 0, 0, 0]])
    return {
        "encoder": (Encoder(16, 4), (words,)),
        "vit": (ViT(), (image,)),
        "unet": (UNet(), (image,)),
        "resnet": (ResNet(), (image,)),
        "lstm": (nn.LSTM(16, 8, batch_first=True, bidirectional=True), (words,)),
        "gru": (nn.GRU(16, 8, num_layers=2), (words,)),
        "nms": (Lambda(_suppressed), (boxes, torch.rand(8))),
        "half": (nn.Sequential(Encoder(16, 2), nn.Softmax(-1)).half(), (words.half(),)),
        "norms": (
            Lambda(
                _norms,
                nn.InstanceNorm2d(4, affine=True),
                nn.GroupNorm(2, 4),
                nn.LayerNorm([6, 8]),
                nn.BatchNorm2d(4),
                RMSNorm(),
            ),
            (torch.randn(2, 4, 6, 8),),
        ),
        "embedding": (Embedding(), (tokens, mask)),
        "reductions": (Lambda(_reductions), (torch.randn(2, 3, 4),)),
        "indices": (Lambda(_indices), (torch.randn(3, 6), torch.randint(0, 6, (3, 6)))),
        "sampled": (Lambda(_sampled), (torch.randn(1, 2, 6, 7), torch.rand(1, 4, 5, 2) * 2 - 1)),
        "mobilenet": (MobileNetV3(), (image,)),
        "swin": (Swin(), (image,)),
        "warped": (Lambda(_warped, UNet()), (image, torch.rand(1, 8, 8, 2) * 2 - 1)),
    }


def export_torch() -> Iterator[tuple[str, onnx.ModelProto, dict[str, np.ndarray]]]:
    """Each module, by each exporter."""
    torch.onnx.register_custom_op_symbolic("exports::suppress", _suppress_in_script, 17)
    table = {torch.ops.exports.suppress.default: _suppress_in_onnxscript}
    for name, (module, inputs) in torch_models().items():
        module.eval()
        for prefix, modern in (("ts", False), ("dyn", True)):
            names = [f"input_{number}" for number in range(len(inputs))]
            with TemporaryDirectory() as folder:
                path = f"{folder}/model.onnx"
                torch.onnx.export(
                    module,
                    inputs,
                    path,
                    input_names=names,
                    dynamo=modern,
                    external_data=False,
                    opset_version=20 if modern else 17,
                    custom_translation_table=table if modern else None,
                )
                model = onnx.load(path)
            feeds = dict(zip(names, (value.numpy() for value in inputs), strict=True))
            yield f"{prefix}_{name}", model, feeds


def export_sklearn() -> Iterator[tuple[str, onnx.ModelProto, dict[str, np.ndarray]]]:
    """Estimators that are written in operators of the default domain, of ai.onnx.ml, of both."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 4)).astype(np.float32)
    y = (x[:, 0] + x[:, 1] > 0).astype(np.int64) + (x[:, 2] > 1)
    estimators = {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "mlp": MLPClassifier((8,), max_iter=300, random_state=0),
        "forest": RandomForestClassifier(4, max_depth=3, random_state=0),
        "mixture": GaussianMixture(2, random_state=0),
        "means": KMeans(3, random_state=0, n_init=1),
        "naive": GaussianNB(),
        "process": make_pipeline(PCA(2), GaussianProcessRegressor()),
    }
    for name, estimator in estimators.items():
        estimator.fit(x, y)
        options = {"zipmap": False} if hasattr(estimator, "classes_") else None
        yield f"skl_{name}", to_onnx(estimator, x[:1], options=options), {"X": x[:5]}


class Once(CalibrationDataReader):
    """One set of inputs to calibrate on."""

    def __init__(self, feeds: dict[str, np.ndarray]) -> None:
        self.waiting = [feeds]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self.waiting.pop() if self.waiting else None


def quantized(source: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> onnx.ModelProto:
    """A model with QuantizeLinear and DequantizeLinear around its operators."""
    with TemporaryDirectory() as folder:
        onnx.save(source, f"{folder}/in.onnx")
        quantize_static(
            f"{folder}/in.onnx", f"{folder}/out.onnx", Once(feeds), quant_format=QuantFormat.QDQ
        )
        return onnx.load(f"{folder}/out.onnx")


def in_blocks(source: onnx.ModelProto) -> onnx.ModelProto:
    """A model whose matrices are of four bits, with a scale for each block of 16 numbers."""
    quantizer = DefaultWeightOnlyQuantConfig(
        block_size=16, is_symmetric=False, quant_format=QuantFormat.QDQ
    )
    made = MatMulNBitsQuantizer(source, algo_config=quantizer)
    made.process()
    return made.model.model


def main() -> None:
    """Export all, or those that are named."""
    found = {name: (model, feeds) for name, model, feeds in export_torch()}
    found |= {name: (model, feeds) for name, model, feeds in export_sklearn()}
    model, feeds = found["ts_resnet"]
    found["qdq_resnet"] = (quantized(model, feeds), feeds)
    model, feeds = found["dyn_encoder"]
    found["int4_encoder"] = (in_blocks(model), feeds)
    for name, (model, feeds) in found.items():
        if not sys.argv[1:] or name in sys.argv[1:]:
            onnx.save(model, HERE / f"{name}.onnx")
            np.savez(HERE / f"{name}.npz", **feeds)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
