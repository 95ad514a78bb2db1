"""`onnxreduce ops`."""

from __future__ import annotations

import difflib

import click

from onnxreduce_cli.cli.options import complete_operators
from onnxreduce_cli.cli.reporting import Reporter, WithOptionalValues, reporting
from onnxreduce_cli.cli.streams import standard_input


@click.command(name="ops", cls=WithOptionalValues)
@click.argument("operator", required=False, shell_complete=complete_operators)
@click.option(
    "--of", "model", type=click.Path(), metavar="MODEL", help="List the operators of a model."
)
@reporting("ops")
def ops_command(reporter: Reporter, operator: str | None, model: str | None) -> int:
    """Show the versions of OPERATOR, or of all, and the steps up and down between them.

    What --of prints is a file for convert --allow-ops.
    """
    if model is not None:
        if operator is not None:
            raise click.UsageError("OPERATOR and --of MODEL exclude each other: leave one out")
        return _list(reporter, model)
    from onnxreduce_cli import schemas
    from onnxreduce_cli.report.operators import operator_text, operators_text
    from onnxreduce_cli.report.reference import operator_list

    if operator is None:
        reporter.content = lambda: operator_list(schemas.operators())
        reporter.say(operators_text())
        return 0
    known = {name.lower(): name for name in schemas.operators()}
    operator = operator.removeprefix("ai.onnx.")
    name = known.get(operator.lower())
    if name is None:
        close = difflib.get_close_matches(operator.lower(), known, 3)
        hint = f"; did you mean {', '.join(known[item] for item in close)}?" if close else ""
        raise click.UsageError(f"the default domain has no operator {operator}{hint}")
    reporter.content = lambda: operator_list([name])
    reporter.say(operator_text(name))
    return 0


def _list(reporter: Reporter, model: str) -> int:
    """Print the operators of a model, one per line."""
    from onnxreduce_cli.errors import errors_about
    from onnxreduce_cli.model.file.document import STREAM, load
    from onnxreduce_cli.model.types.facts import admit
    from onnxreduce_cli.report.operators import own_operators_text
    from onnxreduce_cli.report.reference import operators_of

    document = load(model, standard_input() if model == STREAM else None)
    with errors_about(model):
        facts = admit(document.model, document.base_dir)
    reporter.content = lambda: operators_of(facts, model)
    reporter.say(own_operators_text(facts, model))
    return 0
