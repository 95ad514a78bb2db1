"""What the benchmarks measure, by name."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from benchmarks import large_models, models
from benchmarks.contenders import COPY, contenders, onnxreduce
from benchmarks.harness import Case


class Graph(NamedTuple):
    """An export that is repeated, its opset, and the opsets that it is converted to."""

    title: str
    path: str
    opset: int
    targets: tuple[int, ...]


GRAPHS = {
    "swin": Graph("Swin", "exports/dyn_swin", 20, (13, 28)),
    "ts-swin": Graph("Swin by TorchScript", "exports/ts_swin", 17, (13,)),
    "vit": Graph("ViT", "exports/dyn_vit", 20, (13,)),
    "bert": Graph("BERT", "models/ts_bert_13", 13, (11, 18)),
    "reductions": Graph("15 reductions", "exports/dyn_reductions", 20, (13,)),
}

#: How many nodes repeated exports have.
COUNTS = (3_000, 30_000, 300_000)

#: A runtime that takes the opset named behind it.
_RUNTIME, _ITS_OPSET = "onnxruntime==1.8", 14


def cases() -> dict[str, Case]:
    """Every case, by the name that the command line knows it by."""
    found = {}
    for key, graph in GRAPHS.items():
        for target in graph.targets:
            for count in COUNTS:
                found[f"{key}-{target}-{count}"] = Case(
                    f"{graph.title}, {count:,} nodes, opset {graph.opset} to {target}",
                    partial(models.repeated, export=graph.path, count=count),
                    contenders(target, up=target > graph.opset, slow=count < COUNTS[-1]),
                    rounds=5 if count < COUNTS[-1] else 1,
                )
    found["for"] = Case(
        f"Swin, 30,000 nodes, opset 20 to {_ITS_OPSET}",
        partial(models.repeated, export=GRAPHS["swin"].path, count=30_000),
        {
            f"--opset {_ITS_OPSET}": onnxreduce("--opset", str(_ITS_OPSET)),
            f"--for {_RUNTIME}": onnxreduce("--for", _RUNTIME),
        },
    )
    for target in (13, 23):
        found[f"llm-{target}"] = Case(
            f"60 layers of a language model in float16, opset 18 to {target}",
            models.language_model,
            contenders(target, up=target > models.LANGUAGE_OPSET),
        )
    found["functions"] = Case(
        "10,000 functions, opset 13 to 18",
        partial(models.many_functions, count=10_000),
        contenders(18, up=True, slow=False),
        rounds=3,
    )
    found["nested"] = Case(
        "30 levels of If, opset 13 to 18",
        partial(models.nested, levels=30),
        contenders(18, up=True),
        rounds=3,
    )
    found["inline"] = Case(
        "1.5 GB of inline weights, opset 13 to 18",
        partial(large_models.inline, megabytes=1500),
        {**contenders(18, up=True), "cp": COPY},
        rounds=3,
    )
    outside = {
        "cp of the graph": COPY,
        "onnxreduce --no-check": onnxreduce("--opset", "18", "--no-check"),
        "onnxreduce": onnxreduce("--opset", "18"),
    }
    for gigabytes in (20, 200):
        found[f"tables-{gigabytes}"] = Case(
            f"{gigabytes} GB of external data (sparse) in 40 files, opset 13 to 18, same folder",
            partial(large_models.tables, gigabytes=gigabytes),
            outside,
            rounds=3,
        )
    found["external"] = Case(
        "20 GB of external data (sparse), opset 13 to 18, same folder",
        partial(large_models.external, gigabytes=20),
        outside,
        rounds=3,
    )
    return found
