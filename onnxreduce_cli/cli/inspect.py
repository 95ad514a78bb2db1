"""`onnxreduce inspect`."""

from __future__ import annotations

import click

from onnxreduce_cli.cli.reporting import Reporter, WithOptionalValues, reporting
from onnxreduce_cli.cli.streams import standard_input
from onnxreduce_cli.errors import errors_about


@click.command(name="inspect", cls=WithOptionalValues)
@click.argument("model", type=click.Path())
@reporting("inspect", "html")
def inspect_command(reporter: Reporter, model: str) -> int:
    """Show what MODEL is made of, which opsets it can reach, and what blocks the others."""
    from onnxreduce_cli.engine.inspection import inspect
    from onnxreduce_cli.model.file.document import STREAM, load
    from onnxreduce_cli.report.contents import contents
    from onnxreduce_cli.report.data import inspected_model
    from onnxreduce_cli.report.drawing import inspection_picture
    from onnxreduce_cli.report.inspection import inspection_text

    document = load(model, standard_input() if model == STREAM else None)
    with errors_about(model):
        found = inspect(document.model, document.base_dir)
    held = contents(document, model)
    reporter.content = lambda: inspected_model(found, held, model)
    reporter.pictures = lambda: [inspection_picture(found, document.model)]
    reporter.say(inspection_text(found, held, model))
    return 0
