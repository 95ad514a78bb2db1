"""`onnxreduce inspect`."""

from __future__ import annotations

import click

from onnxreduce_cli.cli.streams import say, standard_input
from onnxreduce_cli.errors import about


@click.command(name="inspect")
@click.argument("model")
def command(model: str) -> None:
    """Show what MODEL is made of, which opsets it can reach, and what blocks the others."""
    from onnxreduce_cli.engine.inspection import inspect
    from onnxreduce_cli.model.files import STREAM, load
    from onnxreduce_cli.report.inspection import inspection_text

    document = load(model, standard_input() if model == STREAM else None)
    with about(model):
        found = inspect(document.model, document.base_dir)
    say(inspection_text(found, model))
