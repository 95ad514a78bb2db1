"""Which operators a wheel knows by name: `python -m lab.operators.names openvino opencv`.

One node of each version of each operator is loaded in each wheel, with inputs that fit no operator
in particular. A wheel that does not know the name says so in words of its own; whatever else it
says is about the node. So what it takes here is a name: a form of it may still be refused.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import onnx
from onnx import AttributeProto, ModelProto, TensorProto, helper

from lab.installing import install
from lab.operators.writing import Facts, Release, Row, Source, write
from lab.running import RUNNERS, environment
from onnxreduce_cli.targets.operators import read_operators

DATE = "2026-11-25"

#: The wheels, by the series of their version.
WHEELS = {
    "openvino": {
        "2022.1": "2022.1.0",
        "2022.3": "2022.3.1",
        "2023.3": "2023.3.0",
        "2024.6": "2024.6.0",
        "2025.4": "2025.4.1",
        "2026.4": "2026.4.1",
    },
    "opencv": {
        "4.5": "4.5.5",
        "4.6": "4.6.0",
        "4.7": "4.7.0",
        "4.8": "4.8.1",
        "4.9": "4.9.0",
        "4.10": "4.10.0",
        "4.11": "4.11.0",
        "4.12": "4.12.0",
        "5.0": "5.0.0",
    },
}

#: What a runtime says of a name that it does not know.
UNKNOWN = {
    "openvino": r"(does not support the following ONNX operations|No conversion rule found for "
    r"operations): (\S+, )*(\S+\.)?{name}(-\d+)?\b",
    "opencv": r"Can't create layer .* of type \"(\S+\.)?{name}\"|"
    r"Assertion failed\) \(bool\)layer in function 'runLayer'",
}

#: Conditions that were measured with models, by the runtime and their name.
CONDITIONS = {
    "opencv": {
        "sizes": (
            "each size that the model leaves open is 1, as it takes them (--dim fixes them)",
            "unless static 0",
        )
    }
}

#: The conditions of an operator, by the runtime, the beginning of its version, and the operator.
RESTRICTED = {("opencv", "4", ("", "Shape")): ("sizes",)}

#: Operators of no onnx that models hold.
MADE_UP = {"SimplifiedLayerNormalization"}

#: The values of attributes that a definition requires, by their type.
_VALUES = {
    AttributeProto.FLOAT: 1.0,
    AttributeProto.INT: 1,
    AttributeProto.STRING: "a",
    AttributeProto.FLOATS: [1.0],
    AttributeProto.INTS: [1],
    AttributeProto.STRINGS: ["a"],
}

_SHAPE = (1, 2, 3, 4)

#: The oldest opset of a model: all runtimes take it.
_OLDEST = 7


class Asked(NamedTuple):
    """One version of an operator, and a model of it.

    Attributes:
        name: its domain and name.
        opsets: the first and the last opset of that version.
        model: the model.
    """

    name: tuple[str, str]
    opsets: tuple[int | None, int | None]
    model: ModelProto


def asked() -> Iterator[Asked]:
    """Yield each version of each operator that models hold."""
    definitions: dict[tuple[str, str], list[onnx.defs.OpSchema]] = {}
    for found in onnx.defs.get_all_schemas_with_history():
        if found.domain in ("", "ai.onnx.ml"):
            definitions.setdefault((found.domain, found.name), []).append(found)
    for (domain, op_type), versions in sorted(definitions.items()):
        ordered = sorted(versions, key=lambda found: found.since_version)
        for found, later in zip(ordered, [*ordered[1:], None], strict=True):
            # Those that are deprecated as well: exports have GroupNormalization of opset 18.
            last = later.since_version - 1 if later else None
            first = None if found.since_version == 1 and last is None else found.since_version
            yield Asked((domain, op_type), (first, last), _model_of(found))
    kernels = read_operators("onnxruntime")
    assert kernels is not None
    others = [name for name in kernels.facts if name[0] == "com.microsoft"]
    for domain, op_type in [*sorted(others), *(("", name) for name in sorted(MADE_UP))]:
        node = helper.make_node(op_type, ["x0", "x1"], ["y0"], domain=domain)
        yield Asked((domain, op_type), (None, None), _model(node, 1 if domain else 13))


def _model_of(found: onnx.defs.OpSchema) -> ModelProto:
    count = max(1, found.min_input) if found.inputs else 0
    attributes = {
        name: _VALUES[int(attribute.type)]
        for name, attribute in found.attributes.items()
        if attribute.required and int(attribute.type) in _VALUES
    }
    node = helper.make_node(
        found.name,
        [f"x{index}" for index in range(count)],
        [f"y{index}" for index in range(max(1, found.min_output))],
        domain=found.domain,
        **attributes,
    )
    return _model(node, found.since_version)


def _model(node: onnx.NodeProto, opset: int) -> ModelProto:
    values = [
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, _SHAPE) for name in names]
        for names in (node.input, node.output)
    ]
    graph = helper.make_graph([node], "graph", *values)
    imports = [helper.make_opsetid("", 13 if node.domain else max(opset, _OLDEST))]
    imports += [helper.make_opsetid(node.domain, opset)] if node.domain else []
    return helper.make_model(graph, opset_imports=imports, ir_version=4)


def said(runtime: str, version: str, models: list[ModelProto]) -> list[str]:
    """Return what a wheel says of each model."""
    installed = install(runtime, version)
    with tempfile.TemporaryDirectory() as folder:
        for number, model in enumerate(models):
            onnx.save(model, Path(folder, f"{number:06}.onnx"))
        done = subprocess.run(
            [installed.program, str(RUNNERS / "load_each.py"), runtime, folder],
            env=environment(installed, folder) | {"OPENCV_LOG_LEVEL": "SILENT"},
            capture_output=True,
            text=True,
            check=True,
        )
    return re.findall(r"^said: (.*)$", done.stdout, re.MULTILINE)


def is_unknown(runtime: str, op_type: str, answer: str) -> bool:
    """Return whether a runtime says of an operator that it does not know the name."""
    return re.search(UNKNOWN[runtime].replace("{name}", re.escape(op_type)), answer) is not None


def facts(runtime: str, version: str) -> Facts:
    """Return the operators that a wheel knows, with the opsets of their versions."""
    found: dict[tuple[str, str], list[Row]] = {}
    questions = list(asked())
    answers = said(runtime, version, [question.model for question in questions])
    for question, answer in zip(questions, answers, strict=True):
        if is_unknown(runtime, question.name[1], answer):
            continue
        rows = found.setdefault(question.name, [])
        conditions = RESTRICTED.get((runtime, version.split(".")[0], question.name), ())
        before = rows[-1].opsets if rows else (None, 0)
        if rows and before[1] is not None and before[1] + 1 == question.opsets[0]:
            last = question.opsets[1]
            whole = last is None and before[0] == 1
            rows[-1] = Row((None, None) if whole else (before[0], last), conditions=conditions)
        else:
            rows.append(Row(question.opsets, conditions=conditions))
    return found


def main(runtimes: list[str]) -> None:
    """Write the files of some runtimes."""
    for runtime in runtimes:
        where = "one node of each operator, loaded in the wheels from PyPI: lab/operators/names.py"
        source = Source("measured", where, DATE, ("ai.onnx", "ai.onnx.ml", "com.microsoft"))
        releases = [
            Release(series, source, facts(runtime, version))
            for series, version in WHEELS[runtime].items()
        ]
        path = write(
            runtime, "names", releases, made_up=MADE_UP, conditions=CONDITIONS.get(runtime, {})
        )
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main(sys.argv[1:])
