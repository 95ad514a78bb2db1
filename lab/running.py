"""Runs models in runtimes, each in a process of its own, and compares with what is right."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
from onnx import ModelProto, TensorProto

from lab.installing import Installed
from lab.measured import Verdict
from onnxreduce_cli import run

RUNNERS = Path(__file__).with_name("runners")

#: Seconds that one model may take, the runtime's start included.
LONGEST = 90

#: How many characters of what a runtime says are kept.
_SAID = 300

#: How far a runtime may be off; several of them compute in an order of their own.
_RTOL, _ATOL = 1e-3, 1e-4

#: How far off may be what is computed in float16, or in eight bits for weights of four.
_COARSE = (1e-2, 3e-2)

#: Runtimes whose outputs have the dtypes that the model says; others have fewer of their own.
_OF_ALL_DTYPES = {"onnxruntime", "openvino"}

#: Runtimes that compute in float16 whatever is asked.
_OF_HALVES = {"rknn"}

_COARSE_DTYPES = {TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.UINT4, TensorProto.INT4}


def script_of(runtime: str) -> Path:
    """The script that runs models in a runtime."""
    return RUNNERS / f"run_{runtime.replace('-', '_')}.py"


def inputs_of(model: ModelProto) -> dict[str, np.ndarray]:
    """Inputs for the model of a source: the same every time, of both signs but for logarithms."""
    random = np.random.default_rng(0)
    graph, op_types = model.graph, {node.op_type for node in model.graph.node}
    least = 0.1 if "ReduceLogSum" in op_types else -2
    held = {tensor.name for tensor in graph.initializer}
    found = {}
    for item in graph.input:
        if item.name not in held:
            shape = [dim.dim_value for dim in item.type.tensor_type.shape.dim]
            assert item.type.tensor_type.elem_type == TensorProto.FLOAT
            found[item.name] = random.uniform(least, 2, shape).astype(np.float32)
    if "GridSample" in op_types:
        found["x1"] /= 2
    return found


def expected(model: ModelProto, inputs: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What a model gives, by the ONNX Runtime of this environment."""
    found = run(model, inputs, executor="onnxruntime")
    return list(found.values())


@dataclass(frozen=True)
class Told:
    """What a runtime made of a model.

    Attributes:
        verdict: what became of it.
        why: the end of what the runtime said where it refused the model, or died of it.
    """

    verdict: Verdict
    why: str = ""


def is_coarse(installed: Installed, exported: ModelProto) -> bool:
    """Whether a runtime computes with few digits, always or for the dtypes of the weights."""
    dtypes = {tensor.data_type for tensor in exported.graph.initializer}
    return installed.runtime in _OF_HALVES or not dtypes.isdisjoint(_COARSE_DTYPES)


def told(
    installed: Installed,
    model: ModelProto,
    inputs: dict[str, np.ndarray],
    right: list[np.ndarray],
    *,
    coarse: bool = False,
) -> Told:
    """Run a model in a runtime.

    Args:
        installed: the runtime.
        model: the model.
        inputs: its inputs.
        right: the outputs that are right; the runtime may give them in another order, and without
            dimensions of 1 in front.
        coarse: whether it may be off as far as float16 is.
    """
    with tempfile.TemporaryDirectory() as folder:
        onnx.save(model, Path(folder, "model.onnx"))
        np.savez(Path(folder, "inputs.npz"), **inputs)  # type: ignore[arg-type]
        status, outputs = _server(installed).run(folder), Path(folder, "outputs.npz")
        if status == signal.SIGALRM:
            return Told("crash", f"it took more than {LONGEST} seconds")
        if status or not outputs.exists():
            said = Path(folder, "said.txt")
            text = said.read_text(errors="replace").strip() if said.exists() else ""
            if os.WIFSIGNALED(status):
                return Told("crash", f"{signal.Signals(os.WTERMSIG(status)).name}: {text[-_SAID:]}")
            return Told("refused", text[-_SAID:] or f"it died, status {status}")
        try:
            with np.load(outputs) as file:
                given = [file[name] for name in sorted(file)]
        except ValueError:  # None, or a list of arrays.
            return Told("refused", "it gives no array for an output")
    close = _COARSE if coarse else (_RTOL, _ATOL)
    if installed.runtime in _OF_ALL_DTYPES and _dtypes(given) != _dtypes(right):
        return Told("wrong", f"{_dtypes(given)} instead of {_dtypes(right)}")
    return Told("right" if _agree(given, right, *close) else "wrong")


def _dtypes(arrays: list[np.ndarray]) -> list[str]:
    return sorted(array.dtype.name for array in arrays)


class _Server:
    """A process in which a runtime is imported, and that is forked for each model."""

    def __init__(self, installed: Installed) -> None:
        self._home = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [
                *without_network(),
                installed.program,
                str(RUNNERS / "serve.py"),
                str(script_of(installed.runtime)),
                str(LONGEST),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(installed, self._home.name),
        )

    def run(self, folder: str) -> int:
        """Run the model of a folder; return the status of the process, 1 if there is none."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            print(folder, file=self._process.stdin, flush=True)
        except BrokenPipeError:
            return 1
        return int(self._process.stdout.readline() or 1)


@functools.cache
def without_network() -> tuple[str, ...]:
    """What a command begins with that is to reach nothing; empty where the system cannot."""
    command = ("unshare", "--map-root-user", "--net")
    try:
        found = subprocess.run([*command, "true"], capture_output=True)
    except OSError:
        return ()
    return () if found.returncode else command


#: The servers of a thread, by what is installed.
_servers = threading.local()


def _server(installed: Installed) -> _Server:
    own: dict[Installed, _Server] = _servers.__dict__
    if installed not in own:
        own[installed] = _Server(installed)
    return own[installed]


def environment(installed: Installed, home: str) -> dict[str, str]:
    """The variables that a runtime's process gets."""
    # At home some runtimes keep what they found out, and one a record of its use; it would also
    # install what sends that, with the pip that it finds on the path or beside its Python.
    bin_folder = Path(home, "bin")
    bin_folder.mkdir(exist_ok=True)
    for name in ("pip", "pip3"):
        (bin_folder / name).write_text("#!/bin/sh\nexit 1\n")
        (bin_folder / name).chmod(0o755)
    return {
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(installed.folder.resolve()),
        "OMP_NUM_THREADS": "1",
        "HOME": home,
        "PIP_REQUIRE_VIRTUALENV": "1",
        "PIP_NO_INDEX": "1",
    }


def _agree(given: list[np.ndarray], right: list[np.ndarray], rtol: float, atol: float) -> bool:
    if len(given) != len(right):
        return False
    left = list(given)
    for array in right:
        for index, other in enumerate(left):
            if _equal(other, array, rtol, atol):
                del left[index]
                break
        else:
            return False
    return True


def _equal(given: np.ndarray, right: np.ndarray, rtol: float, atol: float) -> bool:
    squeezed = [tuple(dim for dim in array.shape if dim != 1) for array in (given, right)]
    if squeezed[0] != squeezed[1]:
        return False
    return bool(
        np.allclose(given.reshape(right.shape), right, rtol=rtol, atol=atol, equal_nan=True)
    )
