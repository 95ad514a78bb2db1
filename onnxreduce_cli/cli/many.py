"""The options of `convert` that say where many models are converted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from onnxreduce_cli.cli.options import each_of
from onnxreduce_cli.cli.streams import say
from onnxreduce_cli.text import joined

if TYPE_CHECKING:
    from onnxreduce_cli.batch.pool import Pool
    from onnxreduce_cli.engine.options import Options


_OPTIONS = (
    click.option(
        "--jobs", type=click.IntRange(min=1), help="How many models at once; by default 1."
    ),
    click.option(
        "--cluster",
        metavar="ADDRESS",
        help="Convert on the workers of the Dask scheduler at this address, tcp://host:8786, which "
        "share --out-dir and the models' folders; pip install 'onnxreduce[cluster]'.",
    ),
    click.option(
        "--resume", is_flag=True, help="Skip what an earlier run into --out-dir has done."
    ),
)

#: Gives a command the options of many models.
many_options = each_of(_OPTIONS)


def check_cluster(address: str | None, jobs: int | None, out_dir: str | None) -> None:
    """Refuse what cannot be done on a cluster, which may have to do a model again."""
    if address is None:
        return
    if jobs is not None:
        raise click.UsageError("say either --jobs or --cluster, whose workers say how many at once")
    if out_dir is None:
        raise click.UsageError("--cluster needs a folder that all workers share: --out-dir DIR")


def make_pool(
    jobs: int | None,
    address: str | None,
    sources: Sequence[str],
    out_dir: str | None,
    options: Options,
    *,
    quiet: bool,
) -> Pool:
    """Where models are converted: in processes here, or on a cluster that was looked at."""
    from onnxreduce_cli.batch.run import memory_needed

    if address is None:
        from onnxreduce_cli.batch.processes import Processes

        return Processes(jobs or 1, memory=memory_needed)
    from onnxreduce_cli.batch.cluster import Cluster
    from onnxreduce_cli.model.files import make_folder

    cluster = Cluster(address, memory_needed)
    try:
        if out_dir is not None and not options.dry_run:
            make_folder(out_dir)
        cluster.check(sources, out_dir)
    except BaseException:
        cluster.shutdown()
        raise
    if not quiet:
        say(joined([f"dashboard: {cluster.dashboard}"]), err=True)
    return cluster
