"""Numbers known at conversion or else when the model runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.numbers import as_name, scalar, sizes, term
from onnxreduce_cli.emit.sizes import range_of, size_of
from tests.emit.test_context import context, nodes


def test_sizes_that_are_known_are_ints_and_emit_nothing() -> None:
    here = context()
    rows, columns = size_of(here, "i", 0), size_of(here, "i", -1)
    assert (rows * 5 + columns) // 2 - 1 == 7
    assert nodes(here) == []


def test_what_nobody_reads_is_not_emitted_and_what_two_read_once() -> None:
    here = context()
    size = size_of(here, "x", 1)
    twice = size * 2
    assert nodes(here) == []
    assert as_name(here, twice) == as_name(here, twice)
    assert [op for op, _ in nodes(here)] == ["Shape", "Gather", "Mul"]


def test_sizes_stay_as_they_are_beside_0_and_1() -> None:
    here = context()
    size = sizes(here, "n")
    assert size + 0 is size
    assert 0 + size is size
    assert size - 0 is size
    assert size * 1 is size
    assert 1 * size is size
    assert size // 1 is size
    assert (0 - size) is not size
    assert nodes(here) == []


def test_a_term_of_rank_0_is_written_even_beside_1() -> None:
    # Where it is -0.0, or an integer of another shape, x + 0 is not x.
    here = context()
    assert as_name(here, scalar(here, sizes(here, "n")) * 1) != "n"
    assert [op for op, _ in nodes(here)] == ["Squeeze", "Mul"]


def test_a_number_is_of_shape_1_beside_sizes_and_of_rank_0_elsewhere() -> None:
    here = context()
    (sizes(here, "n") + 3).name  # noqa: B018 - to have it emitted
    (scalar(here, sizes(here, "n")) + 3).name  # noqa: B018
    added = [node.input[1] for node, _ in here.emitted if node.op_type == "Add"]
    found = [here.constant(name) for name in added]
    assert [array is not None and (array.shape, array.dtype) for array in found] == [
        ((1,), np.int64),
        ((), np.int64),
    ]


def test_operands_keep_their_order() -> None:
    here = context()
    (5 - sizes(here, "n")).name  # noqa: B018 - to have it emitted
    (5 // sizes(here, "n")).name  # noqa: B018
    for node, _ in here.emitted:
        first = here.constant(node.input[0])
        assert first is not None
        assert first.tolist() == [5]
        assert node.input[1] == "n"


def test_terms_that_are_known_are_computed_in_their_dtype() -> None:
    here = context()
    found = (term(here, [7, 9], TensorProto.INT64) / 2).cast(TensorProto.FLOAT) * 0.5
    assert found.known is not None
    assert found.known.dtype == np.float32
    assert found.known.tolist() == [1.5, 2.0]
    counted = range_of(term(here, 3, TensorProto.INT64), TensorProto.FLOAT)
    assert counted.known is not None
    assert counted.known.tolist() == [0.0, 1.0, 2.0]
    assert nodes(here) == []


@pytest.mark.parametrize(
    "write",
    [
        lambda here: sizes(here, "n") * (1 << 63),
        lambda here: scalar(here, sizes(here, "n")) - (1 << 70),
        lambda here: term(here, 1 << 63, TensorProto.INT64),
        lambda here: here.scalar(1 << 64, "size"),
        lambda here: here.scalar(float("inf"), "size", TensorProto.INT64),
    ],
)
def test_numbers_beyond_their_dtype_block(write: Callable[[Context], object]) -> None:
    with pytest.raises(Blocked, match="beyond int64"):
        write(context())
