"""`onnxreduce targets`."""

from __future__ import annotations

import click

from onnxreduce_cli.cli.options import complete_runtimes
from onnxreduce_cli.cli.reporting import Reporter, WithOptionalValues, reporting


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
