"""`inspect` plans what `convert` does: facts that conversions share are of the model alone."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, numpy_helper

from onnxreduce_cli.engine.conversion import Conversion
from tests.node_cases import cases
from tests.support import conversions
from tests.test_models import OWN
from tests.test_round_trips import SAMPLES

#: Node cases whose plans differed while what was folded for one opset was read at the next.
STALE = (
    pytest.param("test_dft_rfft", marks=pytest.mark.newest),
    "test_cumsum_2d_axis_0",
    "test_constant_pad",
)

#: Every n-th of the other node cases is in the ordinary tests.
FEW, MANY = 180, 12


def planned(conversion: Conversion) -> tuple[object, ...]:
    """All that a conversion is about to do: its plan, the new nodes, and their constants."""
    return (
        conversion.plan(),
        [[node.SerializeToString() for node in site.result] for site in conversion.sites],
        [
            [
                numpy_helper.from_array(array, name).SerializeToString()
                for name, (array, *_) in constants.arrays.items()
            ]
            for constants in map(conversion.constants, conversion.scopes)
        ],
    )


def differing(model: ModelProto) -> list[int]:
    """The opsets to which a model is planned otherwise beside the others than alone."""
    return [
        beside.target
        for beside in conversions(model)
        if planned(beside) != planned(Conversion(model, beside.target))
    ]


@pytest.mark.parametrize("name", STALE)
def test_constants_of_generated_values_end_with_their_conversion(name: str) -> None:
    (case,) = (case for case in cases() if case.name == name)
    assert not differing(case.model)


@pytest.mark.parametrize(
    "inputs", sorted([*OWN.glob("*.npz"), *SAMPLES.glob("*.npz")]), ids=lambda path: path.stem
)
def test_models_are_planned_alike(inputs: Path) -> None:
    assert not differing(onnx.load(inputs.with_suffix(".onnx")))


def test_some_node_cases_are_planned_alike() -> None:
    assert not {case.name for case in cases()[::FEW] if differing(case.model)}


@pytest.mark.matrix
def test_many_node_cases_are_planned_alike() -> None:
    chosen = cases()[::MANY]
    found = {case.name: opsets for case in chosen if (opsets := differing(case.model))}
    assert not found
