"""Mutations of a serialised model, by what protobuf's wire format is made of."""

from __future__ import annotations

import random
from collections.abc import Callable

_LARGE = (0, 1, 127, 128, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, (1 << 63) - 1, (1 << 64) - 1)


def mutated(content: bytes, rng: random.Random) -> bytes:
    """The content after one to four mutations."""
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        content = rng.choice(_MUTATIONS)(content, rng)
    return content


def _cut_short(content: bytes, rng: random.Random) -> bytes:
    return content[: _place(content, rng)]


def _flip_bits(content: bytes, rng: random.Random) -> bytes:
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 3, 10))):
        if found:
            found[_place(found, rng)] ^= 1 << rng.randrange(8)
    return bytes(found)


def _put_varint(content: bytes, rng: random.Random) -> bytes:
    """Put an extreme number, a length as likely as any other, in place of one byte."""
    place = _place(content, rng)
    return content[:place] + _varint(rng.choice(_LARGE)) + content[place + 1 :]


def _unending_varint(content: bytes, rng: random.Random) -> bytes:
    place = _place(content, rng)
    return content[:place] + b"\xff" * rng.choice((9, 10, 11, 100)) + content[place:]


def _repeat(content: bytes, rng: random.Random) -> bytes:
    start, end = sorted((_place(content, rng), _place(content, rng)))
    return content[:end] + content[start:end][:4096] * rng.choice((1, 2, 50)) + content[end:]


def _remove(content: bytes, rng: random.Random) -> bytes:
    start = _place(content, rng)
    return content[:start] + content[start + rng.choice((1, 2, 5, 50, 500)) :]


def _move(content: bytes, rng: random.Random) -> bytes:
    first, second, third = sorted(_place(content, rng) for _ in range(3))
    return content[:first] + content[second:third] + content[first:second] + content[third:]


def _nest(content: bytes, rng: random.Random) -> bytes:
    """Graphs in nodes in graphs, or groups in groups, that the content has not closed."""
    depth = rng.choice((10, 99, 101, 3000))
    place = _place(content, rng)
    start = b"\x0b" if rng.random() < 0.5 else b"\x3a\x7f\x0a\x7f\x2a\x7f"
    return content[:place] + start * depth + content[place:]


def _place(content: bytes | bytearray, rng: random.Random) -> int:
    """Where to mutate: near either end of what is large, whose middle is weights."""
    size = len(content)
    if size <= 1 << 17:
        return rng.randrange(max(size, 1))
    near = rng.randrange(1 << 16)
    return near if rng.random() < 0.5 else size - 1 - near


def _varint(number: int) -> bytes:
    found = bytearray()
    while number > 127:
        found.append(number & 127 | 128)
        number >>= 7
    return bytes([*found, number])


_MUTATIONS: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _cut_short, _flip_bits, _flip_bits, _put_varint, _put_varint, _unending_varint, _repeat,
    _remove, _move, _nest,
)  # fmt: skip
