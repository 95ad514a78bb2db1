"""Sliding windows over spatial dimensions, shared by convolution and pooling."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from onnxreduce_cli.executor.dtypes import Array
from onnxreduce_cli.executor.errors import Invalid
from onnxreduce_cli.executor.registry import Call


@dataclass(slots=True, frozen=True)
class WindowGeometry:
    """The sizes and positions of windows; each field has an entry for each spatial dimension.

    `before` and `after` are the pads; `extra` is how far the last window of ceil_mode reaches
    beyond them.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    extra: tuple[int, ...]
    output: tuple[int, ...]


def per_dimension(call: Call, name: str, count: int, default: int) -> tuple[int, ...]:
    """Return an attribute with `count` entries, which are `default` if it is absent."""
    given = tuple(call.attrs.get(name) or (default,) * count)
    if len(given) != count:
        raise Invalid(f"{name} has {len(given)} entries, {count} are needed")
    return given


def geometry(call: Call, spatial: tuple[int, ...], kernel: tuple[int, ...]) -> WindowGeometry:
    """Return pads and output sizes by the attributes and the input's spatial shape."""
    count = len(spatial)
    if len(kernel) != count or count == 0:
        raise Invalid(f"kernel {list(kernel)} does not fit spatial dimensions {list(spatial)}")
    strides = per_dimension(call, "strides", count, 1)
    dilations = per_dimension(call, "dilations", count, 1)
    pads = per_dimension(call, "pads", 2 * count, 0)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    mode = call.attrs.get("auto_pad", "NOTSET")
    before, after, extra, output = [], [], [], []
    for i in range(count):
        first, last, beyond = pads[i], pads[i + count], 0
        if mode in {"SAME_UPPER", "SAME_LOWER"}:
            size = -(-spatial[i] // strides[i])
            total = max((size - 1) * strides[i] + reach[i] - spatial[i], 0)
            first = total // 2 if mode == "SAME_UPPER" else total - total // 2
            last = total - first
        else:
            if mode == "VALID":
                first = last = 0
            elif mode != "NOTSET":
                raise Invalid(f"auto_pad {mode!r} is unknown")
            room = spatial[i] + first + last - reach[i]
            size = room // strides[i] + 1
            if call.attrs.get("ceil_mode", 0) and room % strides[i]:
                size += 1
                # A window must not start after the input and its first pad.
                if (size - 1) * strides[i] >= spatial[i] + first:
                    size -= 1
            beyond = max((size - 1) * strides[i] + reach[i] - spatial[i] - first - last, 0)
        if size < 0:
            raise Invalid(f"kernel {list(kernel)} is larger than the padded input {list(spatial)}")
        before.append(first)
        after.append(last)
        extra.append(beyond)
        output.append(size)
    return WindowGeometry(
        kernel, strides, dilations, tuple(before), tuple(after), tuple(extra), tuple(output)
    )


def windows(data: Array, place: WindowGeometry, fill: Any) -> Array:
    """Return padded data of shape (N, C, spatial...) as windows (N, C, output..., kernel...)."""
    count = len(place.kernel)
    widths = [(0, 0), (0, 0)] + [
        (b, a + e) for b, a, e in zip(place.before, place.after, place.extra, strict=True)
    ]
    if any(b or a for b, a in widths):
        padded: Array = np.full(
            [n + b + a for n, (b, a) in zip(data.shape, widths, strict=True)], fill, data.dtype
        )
        padded[tuple(slice(b, b + n) for n, (b, _) in zip(data.shape, widths, strict=True))] = data
    else:
        padded = np.ascontiguousarray(data)
    steps = padded.strides[2:]
    return as_strided(
        padded,
        (*data.shape[:2], *place.output, *place.kernel),
        (
            *padded.strides[:2],
            *(steps[i] * place.strides[i] for i in range(count)),
            *(steps[i] * place.dilations[i] for i in range(count)),
        ),
        writeable=False,
    )


def flat_windows(data: Array, place: WindowGeometry, fill: Any) -> Array:
    """Return windows with the kernel's dimensions flattened: (N, C, output..., elements)."""
    view = windows(data, place, fill)
    return view.reshape(*view.shape[: 2 + len(place.kernel)], prod(place.kernel))
