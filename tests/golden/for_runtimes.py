"""What `convert --for` says of exports, for runtimes without wheels, as the text that is kept."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import onnx

import onnxreduce_cli
from onnxreduce_cli.engine.changes import grouped
from onnxreduce_cli.errors import blocker_lines
from tests.exports import EXPORTS

#: A version of each, as people name it.
RUNTIMES = (
    "tensorrt==8.4",
    "tensorrt==10.1",
    "rknn==2.0",
    "rknn-toolkit==1.7.5",
    "onnxruntime-qnn==1.20",
    "onnxruntime-coreml==1.18",
    "unity==2.1",
    "barracuda==3.0",
    "tidl==9.2",
    "ascend==8",
)

NAMES = (
    "dyn_lstm",
    "dyn_norms",
    "dyn_reductions",
    "dyn_resnet",
    "dyn_swin",
    "dyn_unet",
    "dyn_vit",
    "qdq_resnet",
    "ts_indices",
    "ts_nms",
)


def file_of(runtime: str) -> Path:
    """Where the text is kept."""
    return Path(__file__).parent / "runtimes" / f"{runtime.replace('==', '-')}.txt"


def text(runtime: str) -> str:
    """What is said of each export: the choice, what is not known, what changes or is in the way."""
    return "".join(f"{line}\n" for name in NAMES for line in _lines(runtime, name))


def _lines(runtime: str, name: str) -> Iterator[str]:
    plan = onnxreduce_cli.plan(onnx.load(EXPORTS / f"{name}.onnx"), runtime=runtime)
    yield f"== {name}: opset {plan.source} to {plan.target}"
    yield plan.choice
    yield from plan.coverage.lines() if plan.coverage else ()
    if plan.blockers:
        yield from (f"blocked: {line}" for line in blocker_lines(plan.blockers))
    else:
        yield from (group.summary for group in grouped(plan.changes))
    yield ""
