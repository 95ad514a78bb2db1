"""The commands that show a model, two models, operators, or runtimes, and write nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from onnxreduce_cli.cli.options import complete_operators, complete_runtimes
from onnxreduce_cli.cli.reporting import Reporter, WithOptionalValues, reporting
from onnxreduce_cli.cli.streams import standard_input
from onnxreduce_cli.errors import InvalidModelError, errors_about

if TYPE_CHECKING:
    from onnxreduce_cli.model.file.document import Document


@click.command(name="inspect", cls=WithOptionalValues)
@click.argument("model", type=click.Path())
@reporting("inspect", "html")
def inspect_command(reporter: Reporter, model: str) -> int:
    """Show what MODEL is made of, which opsets it can reach, and what blocks the others."""
    from onnxreduce_cli.report.drawing import inspection_picture
    from onnxreduce_cli.report.inspection import inspection_text
    from onnxreduce_cli.report.lookups import inspect_document

    document = _load(reporter, model)
    inspected = inspect_document(document, model)
    reporter.content = lambda: inspected
    reporter.pictures = lambda: [inspection_picture(inspected.found, document.model)]
    reporter.say(inspection_text(inspected.found, inspected.contents, model))
    return 0


@click.command(name="diff", cls=WithOptionalValues)
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@click.option("-v", "--verbose", is_flag=True, help="List each difference by itself.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing: see the exit code.")
@reporting("diff", "junit", "code_quality", "html")
def diff_command(reporter: Reporter, a: str, b: str, verbose: bool, quiet: bool) -> int:
    """Show what differs between models A and B as graphs, whatever their nodes are called.

    Nothing is printed of a copy. Exit code 0: nothing differs; 1: something does; 2: wrong usage or
    unreadable.
    """
    from onnxreduce_cli.api.library import diff
    from onnxreduce_cli.model.file.digest import model_digests
    from onnxreduce_cli.model.file.document import load
    from onnxreduce_cli.report.comparison_picture import diff_picture
    from onnxreduce_cli.report.diff import diff_text

    reporter.used(lambda: model_digests(a, b))
    found = diff(a, b)
    reporter.content = lambda: found
    reporter.pictures = lambda: [diff_picture(found, load(a).model, load(b).model)]
    text = diff_text(found, verbose=verbose)
    if text and not quiet:
        reporter.say(text)
    return 1 if found.differs else 0


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
        return _list_operators(reporter, model)
    from onnxreduce_cli import schemas
    from onnxreduce_cli.report.lookups import operator_name
    from onnxreduce_cli.report.operators import operator_text, operators_text
    from onnxreduce_cli.report.reference import operator_list

    if operator is None:
        reporter.content = lambda: operator_list(schemas.operators())
        reporter.say(operators_text())
        return 0
    name = operator_name(operator)
    reporter.content = lambda: operator_list([name])
    reporter.say(operator_text(name))
    return 0


def _load(reporter: Reporter, model: str) -> Document:
    """Read a model, and note the digests of its files, or that of a file that is none."""
    from onnxreduce_cli.model.file.digest import digests, document_digests
    from onnxreduce_cli.model.file.document import STREAM, load

    try:
        document = load(model, standard_input() if model == STREAM else None)
    except InvalidModelError:
        reporter.used(lambda: digests([model], "read"))
        raise
    reporter.used(lambda: document_digests(document, model))
    return document


def _list_operators(reporter: Reporter, model: str) -> int:
    """Print the operators of a model, one per line."""
    from onnxreduce_cli.model.types.facts import admit
    from onnxreduce_cli.report.operators import own_operators_text
    from onnxreduce_cli.report.reference import operators_of

    document = _load(reporter, model)
    with errors_about(model):
        facts = admit(document.model, document.base_dir)
    reporter.content = lambda: operators_of(facts, model)
    reporter.say(own_operators_text(facts, model))
    return 0


@click.command(name="targets", cls=WithOptionalValues)
@click.argument("runtime", required=False, shell_complete=complete_runtimes)
@reporting("targets")
def targets_command(reporter: Reporter, runtime: str | None) -> int:
    """Show what RUNTIME takes and what it gets wrong, or which runtimes are known.

    RUNTIME may name versions as pip does: opencv, opencv==4.6, 'onnxruntime>=1.8,<1.12'.
    """
    from onnxreduce_cli.report.reference import target_list
    from onnxreduce_cli.report.targets import target_text, targets_text
    from onnxreduce_cli.targets.requirement import find_target

    target = None if runtime is None else find_target(runtime)
    reporter.content = lambda: target_list(target)
    if target is None:
        reporter.say(targets_text())
        return 0
    if target.remark:
        reporter.say(target.remark, err=True)
    reporter.say(target_text(target, whole=not target.conditions))
    return 0
