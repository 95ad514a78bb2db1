"""Small models of vision for `make.py`: the blocks of MobileNetV3 and of Swin Transformer."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812


class SqueezeExcitation(nn.Module):
    """Channels weighted by what all places of the image have in common."""

    def __init__(self, channels: int, inner: int) -> None:
        super().__init__()
        self.weigh = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, inner, 1),
            nn.ReLU(),
            nn.Conv2d(inner, channels, 1),
            nn.Hardsigmoid(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weigh(x)


def _convolution(given: int, made: int, kernel: int, stride: int, groups: int) -> list[nn.Module]:
    padding = (kernel - 1) // 2
    return [
        nn.Conv2d(given, made, kernel, stride, padding, groups=groups, bias=False),
        nn.BatchNorm2d(made),
    ]


class InvertedResidual(nn.Module):
    """Wider, by channel, weighted, and narrow again; with its way round where sizes stay."""

    def __init__(self, given: int, wide: int, made: int, stride: int) -> None:
        super().__init__()
        self.goes_round = stride == 1 and given == made
        self.block = nn.Sequential(
            *_convolution(given, wide, 1, 1, 1),
            nn.Hardswish(),
            *_convolution(wide, wide, 5, stride, wide),
            nn.Hardswish(),
            SqueezeExcitation(wide, 4),
            *_convolution(wide, made, 1, 1, 1),
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.block(x)
        return x + y if self.goes_round else y


class MobileNetV3(nn.Module):
    """A stem, two inverted residuals, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            *_convolution(3, 8, 3, 2, 1),
            nn.Hardswish(),
            InvertedResidual(8, 16, 8, 1),
            InvertedResidual(8, 24, 12, 2),
            nn.AdaptiveAvgPool2d(1),
        )
        self.head = nn.Sequential(
            nn.Linear(12, 16), nn.Hardswish(), nn.Dropout(0.2), nn.Linear(16, 4)
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.flatten(self.features(x), 1))


class WindowAttention(nn.Module):
    """Attention within windows of an image, with a bias by the distance of two places.

    Args:
        width: how many channels.
        heads: how many heads.
        window: how many places a window has in each direction.
        shift: how far windows are shifted.
    """

    def __init__(self, width: int, heads: int, window: int, shift: int) -> None:
        super().__init__()
        self.heads, self.window, self.shift = heads, window, shift
        self.split = nn.Linear(width, 3 * width)
        self.join = nn.Linear(width, width)
        reach = 2 * window - 1
        self.biases = nn.Parameter(torch.randn(reach * reach, heads) * 0.02)
        places = torch.cartesian_prod(torch.arange(window), torch.arange(window))
        apart = places[:, None] - places[None] + window - 1
        self.register_buffer("index", (apart[..., 0] * reach + apart[..., 1]).flatten())

    def forward(self, x: Tensor) -> Tensor:
        batch, height, length, width = x.shape
        rows, columns, area = height // self.window, length // self.window, self.window**2
        if self.shift:
            x = torch.roll(x, (-self.shift, -self.shift), (1, 2))
        x = x.view(batch, rows, self.window, columns, self.window, width)
        x = x.permute(0, 1, 3, 2, 4, 5).reshape(-1, area, width)
        shape = (-1, area, 3, self.heads, width // self.heads)
        q, k, v = self.split(x).reshape(shape).permute(2, 0, 3, 1, 4)
        scores = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).transpose(-2, -1) * 10
        bias = self.biases[self.index].view(area, area, self.heads).permute(2, 0, 1)
        scores = scores + bias.unsqueeze(0)
        if self.shift:
            mask = self._mask(height, length)
            scores = scores.view(batch, -1, self.heads, area, area) + mask[None, :, None]
            scores = scores.view(-1, self.heads, area, area)
        y = (scores.softmax(-1) @ v).transpose(1, 2).reshape(-1, area, width)
        y = self.join(y).view(batch, rows, columns, self.window, self.window, width)
        y = y.permute(0, 1, 3, 2, 4, 5).reshape(batch, height, length, width)
        return torch.roll(y, (self.shift, self.shift), (1, 2)) if self.shift else y

    def _mask(self, height: int, length: int) -> Tensor:
        """What keeps apart [windows, area, area] that shifting has brought together."""
        regions = torch.zeros(height, length)
        bounds = ((0, -self.window), (-self.window, -self.shift), (-self.shift, None))
        for row, (top, bottom) in enumerate(bounds):
            for column, (left, right) in enumerate(bounds):
                regions[top:bottom, left:right] = 3 * row + column
        regions = regions.view(height // self.window, self.window, -1, self.window)
        regions = regions.permute(0, 2, 1, 3).reshape(-1, self.window**2)
        return (regions[:, None] != regions[:, :, None]).to(torch.float32) * -100


class SwinBlock(nn.Module):
    """Attention within windows and a dense layer, each with its way round."""

    def __init__(self, width: int, shift: int) -> None:
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention = WindowAttention(width, 2, 2, shift)
        self.dense = nn.Sequential(nn.Linear(width, 16), nn.GELU(), nn.Linear(16, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norms[0](x))
        return x + self.dense(self.norms[1](x))


class PatchMerging(nn.Module):
    """Each four neighbours become one, of twice as many channels."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(4 * width)
        self.reduce = nn.Linear(4 * width, 2 * width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        even, odd = x[:, 0::2], x[:, 1::2]
        parts = [even[:, :, 0::2], odd[:, :, 0::2], even[:, :, 1::2], odd[:, :, 1::2]]
        return self.reduce(self.norm(torch.cat(parts, -1)))


class Swin(nn.Module):
    """Patches, a plain and a shifted block, merged patches, a block, a head."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.blocks = nn.Sequential(
            SwinBlock(8, 0), SwinBlock(8, 1), PatchMerging(8), SwinBlock(16, 0), nn.LayerNorm(16)
        )
        self.head = nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.patches(x).permute(0, 2, 3, 1))
        return self.head(x.mean((1, 2)))
