"""Messages between processes: what is written is what is read, or no message."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from onnxreduce_cli.verification.messages import Bits, read, write

TEXTS = np.array([["é", ""], ["\0", "long" * 99]], object)

VALUES: list[Any] = [
    None,
    np.arange(6, dtype=np.float32).reshape(2, 3),
    np.array(5, np.int8),
    np.zeros((2, 0, 3), np.float16),
    np.array([True, False]),
    np.array([np.nan, -0.0, np.inf]),
    np.array([1 + 2j], np.complex64),
    TEXTS,
    np.array(["fixed", "width"]),
    [],
    [np.array([1]), [np.array(2), None]],
    {"a": np.array([1.5]), np.int64(3): [np.array(["t"], object)]},
    Bits("float8_e4m3fn", np.array([[1, 2]], np.uint8)),
]


def written(header: dict[str, Any], values: list[Any]) -> bytes:
    stream = io.BytesIO()
    write(stream, header, values)
    return stream.getvalue()


def same(before: Any, after: Any) -> bool:
    if isinstance(before, list):
        return len(before) == len(after) and all(map(same, before, after))
    if isinstance(before, dict):
        return list(before) == list(after) and all(same(before[key], after[key]) for key in before)
    if isinstance(before, Bits):
        return before.dtype == after.dtype and same(before.array, after.array)
    if before is None:
        return after is None
    kind = np.dtype(object) if before.dtype.kind in "US" else before.dtype
    if (kind, before.shape) != (after.dtype, after.shape):
        return False
    return bool(before.tolist() == after.tolist() or before.tobytes() == after.tobytes())


def test_values_arrive_as_they_were_sent() -> None:
    stream = io.BytesIO(written({"n": [1, "é"]}, VALUES) + written({}, []))
    header, values = read(stream, lambda bits: bits)
    assert header == {"n": [1, "é"]}
    assert all(same(*pair) for pair in zip(VALUES, values, strict=True))
    assert read(stream, lambda bits: bits) == ({}, [])
    assert stream.read() == b""


def test_tensors_can_be_written_to() -> None:
    _, (found,) = read(io.BytesIO(written({}, [VALUES[1]])), lambda bits: bits)
    found[0, 0] = 7
    assert VALUES[1][0, 0] == 0


@pytest.mark.parametrize("order", ["big", "fortran", "strided"])
def test_tensors_however_they_lie_in_memory(order: str) -> None:
    given = np.arange(12, dtype=np.int32).reshape(3, 4)
    sent = {
        "big": given.astype(">i4"),
        "fortran": np.asfortranarray(given),
        "strided": np.repeat(np.repeat(given, 2, 0), 3, 1)[::2, ::3],
    }[order]
    _, (found,) = read(io.BytesIO(written({}, [sent])), lambda bits: bits)
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, given)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "int4"])
def test_dtypes_that_numpy_lacks_go_as_bits(name: str) -> None:
    given = np.array([[1, 0], [-2, 3]]).astype(np.dtype(getattr(ml_dtypes, name)))
    _, (found,) = read(io.BytesIO(written({}, [given])), lambda bits: bits)
    assert (found.dtype, found.array.dtype.kind) == (name, "u")
    assert found.array.view(given.dtype).tolist() == given.tolist()
    sent = [[given], {"k": given}]
    _, (listed, mapped) = read(io.BytesIO(written({}, sent)), lambda bits: bits.dtype)
    assert (listed, mapped) == ([name], {"k": name})


def test_part_of_a_message_is_none() -> None:
    whole = written({"n": 1}, [np.arange(3), TEXTS])
    for size in range(len(whole)):
        with pytest.raises(EOFError):
            read(io.BytesIO(whole[:size]), lambda bits: bits)


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", b"[]", b"[1, 2, 3]"])
def test_what_is_no_message(text: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - of JSON, of UTF-8 or of what it holds
        read(io.BytesIO(struct.pack("<Q", len(text)) + text), lambda bits: bits)


def test_headers_are_plain_json() -> None:
    whole = written({"n": 1}, [np.array(["a"], object)])
    (length,) = struct.unpack("<Q", whole[:8])
    assert json.loads(whole[8 : 8 + length]) == [{"n": 1}, [{"texts": ["a"], "shape": [1]}]]
    assert len(whole) == 8 + length
