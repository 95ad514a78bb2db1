"""Each mutant by its number: of a seed model, and what is typed with it."""

from __future__ import annotations

import functools
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto

from onnxreduce_cli.idioms.registry import IDIOMS
from tests import node_cases
from tests.fuzz import field_mutations, wire_mutations
from tests.idioms.written import written

_TESTS = Path(__file__).parents[1]
_FOLDERS = (_TESTS / "data" / "models", _TESTS / "data" / "exports", _TESTS.parent / "samples")

#: Larger models are no better seeds, and slower.
_LARGEST = 50_000
#: Every n-th mutant is of a model that is read as large ones are, without its weights.
_OUTLINED = 25

_COMMANDS = (
    ("convert", "--no-check"), ("convert",), ("convert", "--verify", "--timeout", "10"),
    ("convert", "--for"), ("diff",), ("inspect",), ("run", "--timeout", "10"),
    ("verify", "--trials", "1", "--timeout", "10"),
)  # fmt: skip
_RUNTIMES = (
    "migraphx", "ncnn", "onnxruntime==1.8.1", "onnxruntime==1.14.1", "opencv==4.6.0", "openvino",
    "tensorrt==8.6.1", "tract",
)  # fmt: skip
_OPSETS = (1, 5, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 23, 25)
#: What more a conversion is told. To contract needs nodes that some seeds have.
_OPTIONS = (
    ("--emulate",), ("--emulate",), (), ("--contract", "all"), ("--contract", "all", "--emulate"),
    ("--expand", "LayerNormalization", "--expand", "Gelu", "--expand", "ReduceL2", "--emulate"),
    ("--dtype", "float=float16"), ("--dtype", "float=double", "--keep-interface"),
    ("--io-dtype", "x=double,y=float16"), ("--io-dtype", "X=int32", "--io-dtype", "Y=i64"),
    ("--dtype", "float=float16", "--keep-dtype", "Add"),
    ("--dtype", "float=bfloat16", "--keep-dtype", "Mul", "--keep-interface"),
    ("--dtype", "int64=int32"), ("--dtype", "int64=int32", "--keep-interface"),
    ("--dtype", "int64=int32", "--assume-range", "x=0:9,indices=-3:2147483648"),
    ("--dim", "N=2"), ("--dim", "batch=1"), ("--fold",),
)  # fmt: skip
#: A list of operators, which excludes a runtime.
_ALLOWED = (
    "--allow-ops", "Add,Sub,Mul,Div,Sqrt,Exp,Max,Where,Less,Gather,MatMul,Reshape,Transpose,Cast",
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A file's content, and a command for it.

    Attributes:
        content: the file.
        arguments: what is typed after its name.
        command: what is typed before it.
        second: the content of a file whose name is typed after the first one's; None for no file.
    """

    content: bytes
    command: str
    arguments: tuple[str, ...]
    second: bytes | None = None


@functools.cache
def seeds() -> tuple[tuple[bytes, ...], ...]:
    """Models of exporters, onnx's own cases, and idioms, serialised; the same order each time."""
    paths = sorted(path for folder in _FOLDERS for path in folder.glob("*.onnx"))
    cases = sorted(node_cases.cases(), key=lambda case: case.name)
    patterns = [pattern for idiom in IDIOMS for pattern in idiom.patterns]
    found = (
        [path.read_bytes() for path in paths if ".opset" not in path.name],
        [case.model.SerializeToString() for case in cases],
        [written(pattern).SerializeToString() for pattern in patterns],
    )
    return tuple(tuple(item for item in kind if len(item) <= _LARGEST) for kind in found)


def mutant(seed: int, number: int) -> Mutant:
    """The mutant of a number among those of a seed."""
    rng = random.Random(f"{seed} {number}")
    content = seed_model = rng.choice(rng.choices(seeds(), (1, 3, 1))[0])
    if rng.random() < 0.6:
        model = ModelProto.FromString(content)
        content = field_mutations.mutated(model, rng)
        if number % _OUTLINED == 0:
            content = _with_weights(content)
    else:
        if number % _OUTLINED == 0:
            content = _with_weights(content)
        content = wire_mutations.mutated(content, rng)
    command, *arguments = rng.choice(_COMMANDS)
    if "--for" in arguments:
        arguments += [rng.choice(_RUNTIMES), *rng.choice(_OPTIONS)]
    elif command == "convert":
        options = rng.choice((*_OPTIONS, _ALLOWED))
        arguments += ["--opset", str(rng.choice(_OPSETS)), *options]
    if rng.random() < 0.2:
        arguments.append("--json")
    return Mutant(content, command, tuple(arguments), seed_model if command == "diff" else None)


def _with_weights(content: bytes) -> bytes:
    """The model with 64 MiB of weights, so that it is read as large ones are; it may be broken."""
    model = ModelProto()
    weights = onnx.numpy_helper.from_array(np.zeros(1 << 24, np.float32), "weights_of_64_MiB")
    model.graph.initializer.append(weights)
    # What follows is merged with what there is.
    return content + bytes(model.SerializeToString())
