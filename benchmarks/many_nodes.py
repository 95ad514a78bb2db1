"""Many nodes: a 100,000-node model from opset 13 to 18, side by side with what else does that.

    python benchmarks/many_nodes.py [--nodes N] [--rounds N]

Every contender reads a file and writes a file, each round in a process of its own; contenders take
turns, so that whatever else the machine does hits all alike. Shown are the least wall and CPU time
and peak memory of the work itself (imports excluded), and the ratio of the wall times to
`onnx.load` + `onnx.save`.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import onnx
from onnx import TensorProto, helper


def make_model(nodes: int) -> onnx.ModelProto:
    """A chain of 20% ReduceMean, 20% Softmax and 60% Add at opset 13."""
    made = []
    value = "x"
    for index in range(nodes):
        name = f"n{index}"
        if index % 5 == 0:
            made.append(helper.make_node("ReduceMean", [value], [name], name=name, axes=[1]))
        elif index % 5 == 1:
            made.append(helper.make_node("Softmax", [value], [name], name=name, axis=-1))
        else:
            made.append(helper.make_node("Add", [value, "x"], [name], name=name))
        value = name
    graph = helper.make_graph(
        made,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info(value, TensorProto.FLOAT, [2, 3])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def load_and_save(source: str, target: str) -> None:
    onnx.save(onnx.load(source), target)


def cpp_converter(source: str, target: str) -> None:
    from onnx import version_converter

    onnx.save(version_converter.convert_version(onnx.load(source), 18), target)


def onnxreduce(source: str, target: str) -> None:
    from onnxreduce_cli.conversion import Conversion
    from onnxreduce_cli.model.files import load, replacing, serialize

    document = load(source)
    Conversion(document.model, 18, base_dir=document.base_dir).apply()
    with replacing(target) as file:
        file.write(serialize(document.model, document.format))


CONTENDERS = {
    "onnx.load + onnx.save": load_and_save,
    "onnxreduce": onnxreduce,
    "onnx.version_converter": cpp_converter,
}


def measure(name: str, source: str, target: str) -> dict[str, float]:
    """Run one contender in this process."""

    if name == "onnxreduce":
        import onnxreduce_cli.conversion  # noqa: F401 - imports are not what is measured
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    CONTENDERS[name](source, target)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu, "memory": after.ru_maxrss / 1024}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--measure", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(*options.measure)))
        return
    with tempfile.TemporaryDirectory() as folder:
        source = str(Path(folder, "model.onnx"))
        onnx.save(make_model(options.nodes), source)
        results: dict[str, list[dict[str, float]]] = {name: [] for name in CONTENDERS}
        for _ in range(options.rounds):
            for name in CONTENDERS:
                target = str(Path(folder, "out.onnx"))
                call = [sys.executable, __file__, "--measure", name, source, target]
                shown = subprocess.run(call, check=True, capture_output=True, text=True).stdout
                results[name].append(json.loads(shown))
    least = {
        name: {key: min(r[key] for r in rounds) for key in ("wall", "cpu", "memory")}
        for name, rounds in results.items()
    }
    base = least["onnx.load + onnx.save"]["wall"]
    print(f"{options.nodes:,} nodes, opset 13 to 18, least of {options.rounds} rounds")
    print(f"{'':26}{'wall s':>8}{'cpu s':>8}{'peak MB':>9}{'ratio':>7}")
    for name, row in least.items():
        print(
            f"{name:26}{row['wall']:8.2f}{row['cpu']:8.2f}{row['memory']:9.0f}"
            f"{row['wall'] / base:7.2f}"
        )


if __name__ == "__main__":
    main()
