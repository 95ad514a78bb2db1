"""The help of the commands: their options in sections, examples, and what a wrong guess meant."""

from __future__ import annotations

from collections.abc import Mapping

import click

#: The options of all commands, by the section of the help that they are in.
_SECTIONS: Mapping[str, str] = {
    "Target": "opset ml_opset runtime allow_ops ir_version",
    "Rewriting": "expand contract emulate types",
    "Whole model": "strip_metadata inline_functions fold dims dtypes assume_ranges io_dtypes "
    "keep_interface keep_dtype",
    "Checks": "no_check strict verify pairs inputs trials seed rtol atol ulp special exact "
    "executor save_failure timeout memory",
    "Files": "output dry_run force in_place external_data allow_outside threshold inline",
    "Many models": "out_dir jobs cluster resume",
    "Reports": "verbose quiet json junit code_quality html",
}

#: Commands to try, by the command whose help shows them; those of the program are under "".
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "": (
        "onnxreduce inspect model.onnx",
        "onnxreduce convert model.onnx --opset 13",
        "onnxreduce convert model.onnx --for opencv==4.6 --verify",
        "onnxreduce verify model.onnx model.opset13.onnx",
        "onnxreduce targets opencv==4.6",
    ),
    "convert": (
        "onnxreduce convert model.onnx --opset 13",
        "onnxreduce convert model.onnx --for opencv==4.6 --verify -o for-opencv.onnx",
        "onnxreduce convert models --opset 17 --out-dir converted",
    ),
    "diff": (
        "onnxreduce diff a.onnx b.onnx",
        "onnxreduce diff a.onnx b.onnx --verbose",
        "onnxreduce diff a.onnx b.onnx --report differences.html",
    ),
    "inspect": (
        "onnxreduce inspect model.onnx",
        "onnxreduce inspect model.onnx --json",
        "onnxreduce inspect model.onnx --report model.html",
    ),
    "ops": (
        "onnxreduce ops ReduceSum",
        "onnxreduce ops --of model.onnx",
        "onnxreduce ops --json",
    ),
    "run": (
        "onnxreduce run model.onnx -i input0=x.npy",
        "onnxreduce run model.onnx -i input0=x.npy -o outputs.npz",
        "onnxreduce run model.onnx -i input0=x.npy --executor numpy",
    ),
    "targets": (
        "onnxreduce targets",
        "onnxreduce targets tensorrt",
        "onnxreduce targets 'onnxruntime>=1.8,<1.12'",
    ),
    "verify": (
        "onnxreduce verify a.onnx b.onnx",
        "onnxreduce verify a.onnx b.onnx --dim batch=1 --trials 20",
        "onnxreduce verify model.onnx",
    ),
}

#: What options are called in other tools, with the options here.
_MEANT = {
    "--fuse": "--contract",
    "--optimize": "--contract",
    "--decompose": "--expand",
    "--runtime": "--for",
    "--target": "--for",
    "--to": "--opset",
    "--target-opset": "--opset",
    "--target-version": "--opset",
    "--opset-version": "--opset",
    "--input-shape": "--dim",
    "--overwrite-input-shape": "--dim",
    "--shape": "--dim",
    "--simplify": "--fold",
    "--fold-constants": "--fold",
    "--constant-folding": "--fold",
    "--fp16": "--dtype float=float16",
    "--half": "--dtype float=float16",
    "--int32": "--dtype int64=int32",
    "--keep-io-types": "--keep-interface",
    "--save-as-external-data": "--external-data-threshold",
    "--output-dir": "--out-dir",
    "--overwrite": "--force",
}


class WithHelp(click.Command):
    """A command whose help shows its options in sections, and examples."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse what was typed; of an option of another tool the one here is named."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name, _, value = _MEANT.get(error.option_name.replace("_", "-"), "").partition(" ")
            found = next((item for item in self.params if name in item.opts), None)
            if found is None:
                raise
            value = value or getattr(found, "metavar", None) or ""
            meant = f"{name} {value}".rstrip()
            text = f"There is no option {error.option_name}; it is {meant} here."
            raise click.UsageError(text, ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        found: dict[str, list[tuple[str, str]]] = {name: [] for name in (*_SECTIONS, "Options")}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                found[section_of(str(parameter.name))].append(record)
        for section, records in found.items():
            if records:
                with formatter.section(section):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples."""
        write_examples(str(self.name), formatter)


def long_name(option: click.Parameter) -> str:
    """Return the long name of an option, without dashes."""
    return max(option.opts, key=len).lstrip("-")


def section_of(parameter: str) -> str:
    """Return the section of the help that an option is in, by the name of its parameter."""
    found = (name for name, members in _SECTIONS.items() if parameter in members.split())
    return next(found, "Options")


def write_examples(command: str, formatter: click.HelpFormatter) -> None:
    """Write the examples of a command, none of them wrapped."""
    with formatter.section("Examples"):
        for line in EXAMPLES[command]:
            formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
