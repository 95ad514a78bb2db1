"""`onnxreduce diff`."""

from __future__ import annotations

import click

from onnxreduce_cli.cli.reporting import Reporter, WithOptionalValues, reporting


@click.command(name="diff", cls=WithOptionalValues)
@click.argument("a", type=click.Path())
@click.argument("b", type=click.Path())
@click.option("-v", "--verbose", is_flag=True, help="List each difference by itself.")
@click.option("-q", "--quiet", is_flag=True, help="Print nothing; the exit code tells.")
@reporting("diff", "junit", "code_quality", "html")
def diff_command(reporter: Reporter, a: str, b: str, verbose: bool, quiet: bool) -> int:
    """Show what differs between models A and B as graphs, whatever their nodes are called.

    Nothing is printed of a copy. Exit code 0: nothing differs; 1: something does; 2: wrong usage or
    unreadable.
    """
    from onnxreduce_cli.api.library import diff
    from onnxreduce_cli.model.file.document import load
    from onnxreduce_cli.report.comparison_picture import diff_picture
    from onnxreduce_cli.report.diff import diff_text

    found = diff(a, b)
    reporter.content = lambda: found
    reporter.pictures = lambda: [diff_picture(found, load(a).model, load(b).model)]
    text = diff_text(found, verbose=verbose)
    if text and not quiet:
        reporter.say(text)
    return 1 if found.differs else 0
