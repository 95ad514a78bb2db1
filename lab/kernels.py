"""Which operators an ONNX Runtime lacks: `python -m lab.kernels onnxruntime==1.15.1`.

onnx's own test cases of single nodes are converted to every version of their operator and loaded.
An operator is told, with the opset of its version, if no case of it loads, whatever the dtype: that
runtime knows its schema and has no kernel for it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import onnx
from onnx import ModelProto
from onnx.backend.test.case.node import collect_testcases

from lab.installing import install
from lab.running import environment
from onnxreduce_cli import ConversionError, convert, schemas
from onnxreduce_cli.targets.requirement import find_target

LOADER = Path(__file__).with_name("runners") / "load_onnxruntime.py"

#: The first opset that is tried, which every runtime takes.
_OLDEST = 7

#: Cases of different dtypes that are tried for one version of an operator.
_DTYPES = 8


def models(newest: int) -> Iterator[tuple[str, ModelProto]]:
    """One node each: the operator with the opset of its version, and the model.

    Args:
        newest: the newest opset.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [case.model for case in collect_testcases(None)]
    seen: dict[str, set[tuple[int, ...]]] = {}
    for model in found:
        nodes = model.graph.node
        if len(nodes) != 1 or nodes[0].domain:
            continue
        dtypes = tuple(item.type.tensor_type.elem_type for item in model.graph.input)
        versions = schemas.versions(nodes[0].op_type)
        for since, later in zip(versions, [*versions[1:], newest + 1], strict=True):
            name = f"{nodes[0].op_type}-{since}"
            known = seen.setdefault(name, set())
            if since > newest or later <= _OLDEST or dtypes in known or len(known) == _DTYPES:
                continue
            made = _converted(model, max(since, _OLDEST))
            if made is not None:
                known.add(dtypes)
                yield name, made


def _converted(model: ModelProto, opset: int) -> ModelProto | None:
    """The same single node at an opset; None where it takes several there, or none will do."""
    try:
        made = convert(model, opset, check=False)
    except ConversionError:
        return None
    nodes = made.graph.node
    return made if len(nodes) == 1 and nodes[0].op_type == model.graph.node[0].op_type else None


def lacking(version: str) -> list[str]:
    """The operators, each with the opset of its version, that a version has no kernels for."""
    installed, target = install("onnxruntime", version), find_target(f"onnxruntime=={version}")
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for number, (name, model) in enumerate(models(target.newest or 0)):
            model.ir_version = min(model.ir_version, target.ir_version or model.ir_version)
            onnx.save(model, Path(folder, f"{number:06}.onnx"))
            names.append(name)
        command = [installed.program, str(LOADER), folder]
        done = subprocess.run(
            command, env=environment(installed, folder), capture_output=True, text=True, check=True
        )
    loaded = [line == "loaded" for line in done.stdout.splitlines()]
    there = {name for name, is_there in zip(names, loaded, strict=True) if is_there}
    return sorted(set(names) - there)


if __name__ == "__main__":
    for text in sys.argv[1:]:
        print(text, *lacking(text.partition("==")[2]))
