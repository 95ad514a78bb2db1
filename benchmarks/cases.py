"""What the benchmarks measure, by name; the sizes that the name's number says."""

from __future__ import annotations

from functools import partial

from benchmarks import large_models, models
from benchmarks.contenders import (
    command,
    converters,
    copy,
    cpp_converter_down,
    down,
    down_checked,
    inspect,
    load_and_save,
    onnxreduce,
    onnxreduce_checked,
    plan,
    unchecked_command,
)
from benchmarks.harness import Case


def cases() -> dict[str, Case]:
    """Every case, by the name that the command line knows it by."""
    found = {
        f"nodes-{count}": Case(
            f"{count:,} nodes, opset 13 to 18",
            partial(models.many_nodes, count=count),
            converters(slow=count <= 100_000),
            rounds=5 if count <= 100_000 else 2,
        )
        for count in (10_000, 100_000, 1_000_000)
    }
    found["down-100000"] = Case(
        "100,000 nodes, opset 18 to 13",
        partial(models.many_nodes, count=100_000, opset=18),
        {
            "onnx.load + onnx.save": load_and_save,
            "onnxreduce --no-check": down,
            "onnxreduce": down_checked,
            "onnx.version_converter": cpp_converter_down,
        },
    )
    for count in (10_000, 100_000):
        found[f"inspect-{count}"] = Case(
            f"`inspect` of {count:,} nodes of opset 13",
            partial(models.many_nodes, count=count),
            {"one plan, to 18": plan, "inspect": inspect},
        )
    found["functions"] = Case(
        "10,000 functions, opset 13 to 18",
        partial(models.many_functions, count=10_000),
        converters(slow=False),
        rounds=3,
    )
    found["nested"] = Case(
        "30 levels of If, opset 13 to 18", partial(models.nested, levels=30), converters(), rounds=3
    )
    found["inline"] = Case(
        "1.5 GB of inline weights, opset 13 to 18",
        partial(large_models.inline, megabytes=1500),
        {
            "cp": copy,
            **converters(),
            "onnxreduce, start-up included": command,
            "onnxreduce --no-check, start-up included": unchecked_command,
        },
        rounds=3,
    )
    for gigabytes in (20, 200):
        found[f"tables-{gigabytes}"] = Case(
            f"{gigabytes} GB of external data (sparse) in 40 files, opset 13 to 18, same folder",
            partial(large_models.tables, gigabytes=gigabytes),
            {
                "cp of the graph": copy,
                "onnxreduce --no-check": onnxreduce,
                "onnxreduce": onnxreduce_checked,
                "onnxreduce, start-up included": command,
            },
            rounds=3,
        )
    found["external"] = Case(
        "20 GB of external data (sparse), opset 13 to 18, same folder",
        partial(large_models.external, gigabytes=20),
        {
            "cp of the graph": copy,
            "onnxreduce --no-check": onnxreduce,
            "onnxreduce": onnxreduce_checked,
            "onnxreduce, start-up included": command,
        },
        rounds=3,
    )
    return found
