"""Nodes that are those of an idiom, on data of other ranks: told apart, or left as they are."""

from __future__ import annotations

import pytest

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.idioms.registry import IDIOMS
from tests.idioms.written import written

PATTERNS = [pattern for idiom in IDIOMS for pattern in idiom.patterns]


@pytest.mark.parametrize("rank", [None, 0, 1, 2, 5])
def test_data_of_a_rank(rank: int | None) -> None:
    planned = 0
    for pattern in PATTERNS:
        found = written(pattern)
        for place, value in enumerate(found.graph.input):
            tensor = value.type.tensor_type
            tensor.ClearField("shape")
            if rank is not None:
                tensor.shape.SetInParent()
                for size in (2, 3, 4, 5, 8)[5 - rank :] if place == 0 or rank == 0 else (8,):
                    tensor.shape.dim.add(dim_value=size)
        try:
            Conversion(found, 24, Options(contract=("all",)))
        except InvalidModelError:
            continue
        planned += 1
    assert planned > len(PATTERNS) / 2
