"""Progress on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import click

from onnxreduce_cli.model.progress import Progress


@contextmanager
def progress_bar(label: str) -> Iterator[Progress | None]:
    """A progress bar on stderr, drawn from the first report on; None if that is no terminal."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield None
        return
    with ExitStack() as stack:
        bar = click.progressbar(length=1, label=label, file=sys.stderr)

        def progress(done: int, total: int, _: str) -> None:
            if not drawn:
                stack.enter_context(bar)
                drawn.append(True)
            bar.length = total
            bar.update(done - bar.pos)

        drawn: list[bool] = []
        yield progress
