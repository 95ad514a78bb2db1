"""What a shell offers where an argument is begun: operators, groups, runtimes, dimensions.

Files are offered by `click.Path`, which every argument that is one has as its type.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _starting(names: list[str], begun: str, before: str = "") -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    fitting = [name for name in names if name.lower().startswith(begun.lower())]
    return [CompletionItem(before + name) for name in fitting]


def operators(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """The operators of the default domain."""
    from onnxreduce_cli import schemas

    return _starting(list(schemas.operators()), begun)


def contracted(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Operators to contract to, and groups of them; of a list with commas, its last."""
    from onnxreduce_cli.idioms.registry import GROUPS

    before, comma, last = begun.rpartition(",")
    return _starting([*GROUPS, *sorted(GROUPS["all"])], last, before + comma)


def runtimes(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """The runtimes that are known; with ``==``, their versions."""
    from onnxreduce_cli.targets.reading import names, runtime

    name, sign, version = begun.partition("==")
    if sign and name in names():
        versions = [str(row.version) for row in runtime(name).rows]
        return _starting(versions, version, f"{name}==")
    return _starting([*names(), "installed"], begun)


def dims(context: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """The dimensions of the model that was typed before."""
    from onnxreduce_cli.errors import OnnxreduceError
    from onnxreduce_cli.model.files import load

    # The option that is begun lacks its value, so that the words before it are not told apart yet.
    try:
        graph = load(next(iter(context.args), "")).model.graph
    except (OnnxreduceError, OSError):
        return []
    infos = [*graph.input, *graph.output]
    found = [dim.dim_param for info in infos for dim in info.type.tensor_type.shape.dim]
    return _starting([f"{name}=" for name in dict.fromkeys(filter(None, found))], begun)
