"""`onnxreduce run`."""

from __future__ import annotations

import zipfile

import click

from onnxreduce_cli.cli.options import limit_options
from onnxreduce_cli.cli.reporting import Reporter, WithOptionalValues, reporting


@click.command(name="run", cls=WithOptionalValues)
@click.argument("model", type=click.Path())
@click.option(
    "--executor",
    type=click.Choice(["onnxruntime", "numpy"]),
    default="onnxruntime",
    show_default=True,
    help="What runs it.",
)
@click.option("-i", "--input", "pairs", multiple=True, metavar="NAME=FILE.npy", help="One input.")
@click.option(
    "--inputs", type=click.Path(), metavar="PATH", help="All inputs: an .npz file or a folder."
)
@click.option(
    "-o", "--output", type=click.Path(), metavar="FILE.npz", help="Where to keep the outputs."
)
@limit_options
@reporting("run")
def run_command(
    reporter: Reporter,
    model: str,
    executor: str,
    pairs: tuple[str, ...],
    inputs: str | None,
    output: str | None,
    timeout: float,
    memory: int,
) -> int:
    """Run MODEL once in ONNX Runtime, or in NumPy, and show or keep its outputs."""
    import numpy as np

    from onnxreduce_cli.model.file.digest import digests, document_digests
    from onnxreduce_cli.model.file.document import load, replacing
    from onnxreduce_cli.report.outputs import kept_text, outputs_text, run_outputs
    from onnxreduce_cli.verification.inputs.files import input_files, read_inputs
    from onnxreduce_cli.verification.running.limits import Limits, limited
    from onnxreduce_cli.verification.whole.equivalence import run

    document = load(model)
    found = document.model
    reporter.used(lambda: document_digests(document, model))
    reporter.used(lambda: digests(input_files(pairs, inputs), "read"))
    sets = read_inputs(found, pairs, inputs)
    if len(sets) > 1:
        raise click.UsageError(f"{inputs} holds {len(sets)} sets of inputs; name one")
    stored = {tensor.name for tensor in found.graph.initializer}
    missing = [v.name for v in found.graph.input if v.name not in {*stored, *sets[0]}]
    if missing:
        raise click.UsageError(
            f"no data for input {missing[0]!r}; give it: -i {missing[0]}=FILE.npy"
        )
    with limited(Limits(timeout, memory)):
        outputs = run(model, sets[0], executor=executor)
    results = run_outputs(model, executor, outputs)
    reporter.content = lambda: results
    if output is None:
        reporter.say(outputs_text(results))
        return 0
    others = [name for name, value in outputs.items() if not isinstance(value, np.ndarray)]
    if others:
        raise click.UsageError(f"output {others[0]!r} is no tensor, which an .npz file cannot hold")
    with replacing(output) as file, zipfile.ZipFile(file, "w") as archive:
        # Not np.savez: its keyword arguments cannot have every name that an output can.
        for name, value in outputs.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, value, allow_pickle=value.dtype == object)
    reporter.used(lambda: digests([output], "written"))
    reporter.say(kept_text(results, output))
    return 0
