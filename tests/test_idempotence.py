"""A model that was converted is left as it is by the same request."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import ModelProto

import onnxreduce_cli
from onnxreduce_cli.errors import ConversionError, UsageError
from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.steps.dispatch import expandable_operators
from tests import node_cases
from tests.share import share
from tests.support import model

pytestmark = pytest.mark.newest

FOLDERS = (Path(__file__).parent / "data" / "models", Path(__file__).parents[1] / "samples")
MODELS = sorted(path for folder in FOLDERS for path in folder.glob("*.onnx"))
OPSETS = (7, 9, 10, 11, 12, 13, 15, 17, 18, 20, 21, 24, node_cases.NEWEST)
RUNTIMES = (
    "onnxruntime==1.8",
    "onnxruntime==1.15",
    "opencv==4.6",
    "opencv==4.10",
    "openvino==2022.1",
    "tensorrt==8.4",
    "mnn",
    "ncnn",
)
CONTRACTED = (18, 20, 24)
EXPANDED = (13, 18, 24)
DTYPES = (
    {"float": "float16"},
    {"float": "double"},
    {"float16": "float"},
    {"double": "float"},
    {"int64": "int32"},
)

#: How many of the pairs of a node case and a request are tried by default.
SOME = 600

#: All of them are so many tests, which run beside each other.
PARTS = 20


def operators(model: ModelProto) -> set[str]:
    """Return the operators of all graphs and functions."""
    return {op_type for scope in scopes(model) for op_type in scope.op_types}


def requests(model: ModelProto) -> Iterator[dict[str, Any]]:
    """The options of each conversion of a model."""
    yield from ({"opset": opset} for opset in OPSETS)
    yield from ({"runtime": runtime} for runtime in RUNTIMES)
    yield from ({"contract": ["all"], "opset": opset} for opset in CONTRACTED)
    yield from ({"contract": ["all"], "runtime": runtime} for runtime in RUNTIMES)
    expand = sorted(operators(model).intersection(expandable_operators()))
    if expand:
        yield from ({"expand": expand, "opset": opset} for opset in EXPANDED)
    yield from ({"dtypes": dtypes} for dtypes in DTYPES)
    yield {"dtypes": {"float": "float16"}, "keep_interface": True}
    yield {"dtypes": {"float": "float16"}, "keep_dtype": sorted(operators(model))[:1]}
    names = [info.name for info in (*model.graph.input, *model.graph.output)]
    yield {"io_dtypes": dict.fromkeys(names, "double")}
    if model.functions:
        yield {"inline_functions": True}
    symbols = {
        dim.dim_param
        for value in model.graph.input
        for dim in value.type.tensor_type.shape.dim
        if dim.dim_param
    }
    if symbols:
        yield {"dims": dict.fromkeys(sorted(symbols), 2)}
    yield {"strip_metadata": "all"}
    yield {"fold": True}


def changes_again(source: ModelProto, options: Mapping[str, Any], counts: list[int]) -> bool:
    """Whether the same request changes what a conversion gives; counts those that give something.

    The sizes of dimensions can be fixed once, as none has that name then.
    """
    try:
        once = onnxreduce_cli.convert(source, check=False, emulate=True, **options)
    except (ConversionError, UsageError):
        return False
    counts[0] += 1
    assert operators(once).isdisjoint(options.get("expand", ()))
    content = once.SerializeToString(deterministic=True)
    if "dims" in options:
        with pytest.raises(UsageError, match="no such dimension"):
            onnxreduce_cli.convert(once, check=False, **options)
        return False
    twice = onnxreduce_cli.convert(once, check=False, emulate=True, **options)
    return twice.SerializeToString(deterministic=True) != content


@pytest.mark.parametrize(
    "path",
    sorted(path for folder in FOLDERS for path in folder.glob("*.onnx")),
    ids=lambda p: p.stem,
)
def test_models(path: Path) -> None:
    source, counts = onnx.load(path), [0]
    assert not [item for item in requests(source) if changes_again(source, item, counts)]
    assert counts[0] > len(OPSETS) / 2


def _node_cases(pairs: list[tuple[node_cases.Case, dict[str, Any]]]) -> None:
    counts = [0]
    assert not [
        f"{case.name}: {options}"
        for case, options in pairs
        if changes_again(case.model, options, counts)
    ]
    assert counts[0] > len(pairs) / 3


@functools.cache
def _pairs() -> list[tuple[node_cases.Case, dict[str, Any]]]:
    return [(case, options) for case in node_cases.cases() for options in requests(case.model)]


def test_some_node_cases() -> None:
    _node_cases(random.Random(0).sample(_pairs(), SOME))


def node_case_requests() -> list[tuple[node_cases.Case, dict[str, Any]]]:
    """Return what a landing tries: each request of each operator, with one of its cases."""
    return share(
        _pairs(),
        lambda pair: (pair[0].operator, str(pair[1])),
        name=lambda pair: f"{pair[0].name} {pair[1]}",
    )


@pytest.mark.matrix
@pytest.mark.parametrize("part", range(PARTS))
def test_every_node_case(part: int) -> None:
    _node_cases(node_case_requests()[part::PARTS])


def test_a_model_that_a_function_was_inlined_in() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["": 17, "f": 1]>
        agraph (float[N, 4] x) => (float[N, 4] z) { y = f.Twice(x) z = f.Twice(y) }
        <domain: "f", opset_import: ["": 17]> Twice (a) => (b) { b = Add(a, a) }"""
    )
    for options in ({"inline_functions": True}, {"inline_functions": True, "opset": 13}):
        once = onnxreduce_cli.convert(source, **options)
        assert not once.functions
        assert onnxreduce_cli.convert(once, **options) == once
