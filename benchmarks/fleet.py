"""Many small models: what each costs by itself, in processes here, and on a Dask cluster."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from benchmarks.models import SMALL

MODELS, WORKERS = 1000, 2


def main() -> None:
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        (folder / "hub").mkdir()
        for number in range(MODELS):
            shutil.copy(SMALL, folder / "hub" / f"{number}.onnx")
        print(f"| {MODELS} models of nine nodes | wall s | models a second | CPU s a model |")
        print("|---|--:|--:|--:|")
        for jobs in (1, 2):
            report(f"--jobs {jobs}", folder, ["--jobs", str(jobs)])
        address = cluster(folder, stack)
        report(f"--cluster, {WORKERS} workers of one thread", folder, ["--cluster", address])
        done = ["--out-dir", str(folder / "out--jobs-2"), "--resume", "--jobs", "1"]
        report("--resume, nothing to do", folder, done)


def report(title: str, folder: Path, options: list[str]) -> None:
    if "--out-dir" not in options:
        options = [*options, "--out-dir", str(folder / ("out" + title.replace(" ", "-")))]
    command = [sys.executable, "-m", "onnxreduce_cli", "convert", str(folder / "hub" / "*.onnx")]
    start, before = time.perf_counter(), os.times()
    subprocess.run([*command, "--opset", "13", "-q", *options], check=True)
    wall, after = time.perf_counter() - start, os.times()
    used = sum(after[2:4]) - sum(before[2:4])  # Of the workers of a cluster nothing is known here.
    print(f"| {title} | {wall:.1f} | {MODELS / wall:.1f} | {used / MODELS:.3f} |", flush=True)


def cluster(folder: Path, stack: ExitStack) -> str:
    """Start a scheduler and workers; return its address."""
    file = folder / "scheduler.json"
    start(stack, "scheduler", "--port", "0", "--scheduler-file", str(file))
    while not file.exists():
        time.sleep(0.1)
    address = str(json.loads(file.read_text())["address"])
    for _ in range(WORKERS):
        here = ["--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
        start(stack, "worker", address, *here)
    time.sleep(10)  # Until both have come.
    return address


def start(stack: ExitStack, *arguments: str) -> None:
    started = subprocess.Popen(
        [sys.executable, "-m", "dask", *arguments, "--no-dashboard"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    stack.callback(started.wait)
    stack.callback(started.kill)
