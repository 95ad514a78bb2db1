"""`onnxreduce ops`."""

from __future__ import annotations

import difflib

import click

from onnxreduce_cli.cli.streams import say


@click.command(name="ops")
@click.argument("operator", required=False)
def command(operator: str | None) -> None:
    """Show the versions of OPERATOR, or of all, and the steps up and down between them."""
    from onnxreduce_cli import schemas
    from onnxreduce_cli.report.operators import operator_text, operators_text

    if operator is None:
        say(operators_text())
        return
    known = {name.lower(): name for name in schemas.operators()}
    operator = operator.removeprefix("ai.onnx.")
    name = known.get(operator.lower())
    if name is None:
        close = difflib.get_close_matches(operator.lower(), known, 3)
        hint = f"; did you mean {', '.join(known[item] for item in close)}?" if close else ""
        raise click.UsageError(f"the default domain has no operator {operator}{hint}")
    say(operator_text(name))
