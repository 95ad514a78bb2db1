"""Operators that ncnn computes, by pnnx: `python -m lab.operators.ncnn`.

onnx's own test cases of single nodes are converted and run: what comes out right in some form,
there or in the lab, is taken. pnnx takes others of other forms, LayerNormalization with a batch for
one, so that nothing is said of what was refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases
from onnx.backend.test.case.test_case import TestCase

from lab.installing import install
from lab.measured import load, pairs
from lab.operators.writing import Facts, Release, Row, Source, write
from lab.running import Told, told
from onnxreduce_cli import ConversionError, convert

WHEEL = "20261020"

DATE = "2026-11-25"

#: The opset at which most operators are asked, and the newest that pnnx takes.
_OPSET, _NEWEST = 13, 23

#: How many cases of an operator are run.
_CASES = 4


class Run(NamedTuple):
    """A case that is run.

    Attributes:
        op_type: the operator.
        model: the model.
        inputs: its inputs.
        right: the outputs that are right.
    """

    op_type: str
    model: ModelProto
    inputs: dict[str, np.ndarray]
    right: list[np.ndarray]


def runs() -> Iterator[Run]:
    """Yield cases of each operator: of float inputs, or with all but the first as constants."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    count: dict[str, int] = {}
    for case in cases:
        nodes = case.model.graph.node
        if len(nodes) != 1 or nodes[0].domain or count.get(nodes[0].op_type, 0) == _CASES:
            continue
        model = _at_opset(case.model)
        if model is not None and case.data_sets:
            found = list(_forms(nodes[0].op_type, model, case))
            count[nodes[0].op_type] = count.get(nodes[0].op_type, 0) + bool(found)
            yield from found


def _at_opset(model: ModelProto) -> ModelProto | None:
    own = model.opset_import[0].version
    for opset in (_OPSET, 17, 18, 20, 22, _NEWEST):
        try:
            made = convert(model, opset, check=False) if opset != own else model
        except ConversionError:
            continue
        if len(made.graph.node) == 1:
            return made
    return None


def _forms(op_type: str, model: ModelProto, case: TestCase) -> Iterator[Run]:
    inputs, outputs = case.data_sets[0]
    names = [item.name for item in model.graph.input]
    arrays = dict(zip(names, inputs, strict=False))
    right = [array for array in outputs if isinstance(array, np.ndarray)]
    plain = all(isinstance(array, np.ndarray) and array.size for array in arrays.values())
    floats_only = len(right) == len(outputs) and all(item.dtype == np.float32 for item in right)
    if not plain or not floats_only:
        return
    floats = [name for name in names if arrays[name].dtype == np.float32 and arrays[name].ndim]
    for kept in dict.fromkeys([tuple(floats[:1]), tuple(floats)]):
        if not kept:
            continue
        made = ModelProto()
        made.CopyFrom(model)
        del made.graph.input[:]
        made.graph.input.extend(item for item in model.graph.input if item.name in kept)
        made.graph.initializer.extend(
            numpy_helper.from_array(array, name)
            for name, array in arrays.items()
            if name not in kept
        )
        for item, array in zip(made.graph.output, right, strict=True):
            item.type.tensor_type.elem_type = TensorProto.FLOAT
            del item.type.tensor_type.shape.dim[:]
            for size in array.shape:
                item.type.tensor_type.shape.dim.add().dim_value = size
        yield Run(op_type, made, {name: arrays[name] for name in kept}, right)


def facts() -> Facts:
    """Return the rows of what came out right."""
    installed = install("ncnn", WHEEL)

    def outcome(run: Run) -> tuple[str, Told]:
        return run.op_type, told(installed, run.model, run.inputs, run.right)

    with ThreadPoolExecutor(2) as pool:
        right = {op_type for op_type, said in pool.map(outcome, runs()) if said.verdict == "right"}
    measured = load()
    right |= {
        measured["sources"][pair.source]["op"]
        for pair in pairs(measured)
        if pair.runtime == f"pnnx+ncnn-{WHEEL}" and pair.exported == "right"
    }
    return {("", op_type): [Row()] for op_type in right}


def main() -> None:
    """Write the file of ncnn."""
    where = "onnx's test cases of single nodes, in the packages of pnnx and ncnn from PyPI"
    release = Release(WHEEL, Source("measured", where, DATE), facts())
    path = write("ncnn", "ncnn", [release])
    print(path, path.stat().st_size)


if __name__ == "__main__":
    main()
