"""The options that commands share, their shell completion, and the settings of a project for them.

The settings are ``[tool.onnxreduce]`` of its pyproject.toml.
Files are completed by `click.Path`, the type of every argument that is a file.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from onnxreduce_cli.cli.help import long_name
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.text import did_you_mean

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_Command = TypeVar("_Command", bound=Callable[..., Any])


def each_of(options: Sequence[Callable[[Any], Any]]) -> Callable[[_Command], _Command]:
    """Return a decorator that adds options to a command, which its help shows in this order."""

    def decorate(command: _Command) -> _Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_UNITS = {"": 1, "b": 1}
_UNITS |= {f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)}
_UNITS |= {f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)}


def parse_size(_: click.Context, __: click.Parameter, value: str | None) -> int | None:
    """Parse a number of bytes: ``1048576``, ``1MB`` (a million), ``512KiB`` (of 1024 each)."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?) *([a-z]*)", value.strip().lower())
    if found is None or found[2] not in _UNITS:
        raise click.BadParameter(f"{value!r} is no size; give one like 1048576, 512KiB or 1MB")
    return int(float(found[1]) * _UNITS[found[2]])


def parse_names(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Parse lists of names, with commas between them."""
    return tuple(dict.fromkeys(_listed(values)))


#: A comma between the items of a list, and not between the dimensions of a type.
_COMMA = re.compile(r",(?![^\[]*\])")


def _listed(values: Iterable[str]) -> list[str]:
    """Return the items of lists with commas between them."""
    items = (item.strip() for value in values for item in _COMMA.split(value))
    return [item for item in items if item]


# Shell completion


def _completions(names: list[str], begun: str, before: str = "") -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    fitting = [name for name in names if name.lower().startswith(begun.lower())]
    return [CompletionItem(before + name) for name in fitting]


def complete_operators(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete operators of the default domain; of a list, its last item."""
    from onnxreduce_cli import schemas

    before, comma, last = begun.rpartition(",")
    return _completions(list(schemas.operators()), last, before + comma)


def complete_contracted(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete operators to contract to, and groups of them; of a list, its last item."""
    from onnxreduce_cli.idioms.registry import GROUPS

    before, comma, last = begun.rpartition(",")
    return _completions([*GROUPS, *sorted(GROUPS["all"])], last, before + comma)


def complete_runtimes(_: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete known runtimes; after ``==``, their versions."""
    from onnxreduce_cli.targets.reading import read_runtime, runtime_names

    name, sign, version = begun.partition("==")
    if sign and name in runtime_names():
        versions = [str(row.version) for row in read_runtime(name).rows]
        return _completions(versions, version, f"{name}==")
    return _completions([*runtime_names(), "installed"], begun)


def complete_dims(context: click.Context, __: click.Parameter, begun: str) -> list[CompletionItem]:
    """Complete symbolic dimensions of the model that was typed before."""
    from onnxreduce_cli.errors import OnnxreduceError
    from onnxreduce_cli.model.file.document import load

    # The option still lacks its value, so click has not parsed the words before it.
    try:
        graph = load(next(iter(context.args), "")).model.graph
    except (OnnxreduceError, OSError):
        return []
    infos = [*graph.input, *graph.output]
    found = [dim.dim_param for info in infos for dim in info.type.tensor_type.shape.dim]
    return _completions([f"{name}=" for name in dict.fromkeys(filter(None, found))], begun)


# The comparison of whole models


def _parse_dims(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, int]:
    """Parse texts such as ``batch=4`` into sizes by name."""
    found: dict[str, int] = {}
    for value in _listed(values):
        name, _sign, number = value.partition("=")
        if not name or not number.isdecimal():
            raise click.BadParameter(f"{value!r} is not of the form name=size, as batch=1")
        if found.setdefault(name, int(number)) != int(number):
            raise click.BadParameter(f"it says both {found[name]} and {int(number)} for {name}")
    return found


def _parse_tolerance(_: click.Context, __: click.Parameter, value: float | None) -> float | None:
    """Check a tolerance: with NaN or a negative number nothing, or anything, would agree."""
    if value is not None and not value >= 0:
        raise click.BadParameter(f"{value} is not 0 or more")
    return value


_COMPARING = (
    click.option(
        "-i", "--input", "pairs", multiple=True, metavar="NAME=FILE.npy", help="Real data."
    ),
    click.option(
        "--inputs",
        type=click.Path(),
        metavar="PATH",
        help="Real data: an .npz file or a test_data_set folder.",
    ),
    click.option(
        "--dim",
        "dims",
        multiple=True,
        shell_complete=complete_dims,
        callback=_parse_dims,
        metavar="NAME=SIZE,...",
        help="Fix a dimension.",
    ),
    click.option(
        "--trials",
        type=click.IntRange(1),
        help="How many sets of inputs to draw.  [default: 8, of a large model 6]",
    ),
    click.option(
        "--seed",
        type=click.IntRange(0),
        default=0,
        show_default=True,
        help="Seed of the inputs that are drawn.",
    ),
    click.option(
        "--rtol",
        type=float,
        callback=_parse_tolerance,
        help="Relative tolerance; by default it depends on the dtype.",
    ),
    click.option(
        "--atol",
        type=float,
        callback=_parse_tolerance,
        help="Absolute tolerance; by default it depends on the dtype.",
    ),
)


#: Adds `pairs`, `inputs`, `dims`, `trials`, `seed`, `rtol` and `atol` to a command.
comparing_options = each_of(_COMPARING)


# The limits of running a model


_LIMITS = (
    click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        default=60.0,
        show_default=True,
        metavar="SECONDS",
        help="How long a whole model may take to load, and to run once.",
    ),
    click.option(
        "--memory",
        callback=parse_size,
        default="8GB",
        show_default=True,
        metavar="SIZE",
        help="How much memory running a whole model may take.",
    ),
)

#: Adds `timeout` and `memory` to a command, the limits of running whole models.
limit_options = each_of(_LIMITS)


# The storage of weights


_WEIGHTS = (
    click.option(
        "--external-data",
        type=click.Choice(["link", "copy", "keep"]),
        default="copy",
        show_default=True,
        help="How external data goes along to another folder. onnx refuses hard links.",
    ),
    click.option(
        "--allow-outside-data",
        "allow_outside",
        is_flag=True,
        help="Data may lie outside the model's folder.",
    ),
    click.option(
        "--external-data-threshold",
        "threshold",
        callback=parse_size,
        metavar="SIZE",
        help="Put weights of at least this size, such as 1MB, into a file beside the output.",
    ),
    click.option("--inline", is_flag=True, help="Put external data into the model's file."),
)

#: Adds the options of the storage of weights to a command.
weight_options = each_of(_WEIGHTS)


# Changes of a whole model


def _parse_dtypes(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Parse texts such as ``bfloat16=float`` into new dtypes by old ones."""
    found: dict[str, str] = {}
    for value in _listed(values):
        before, sign, after = value.partition("=")
        if not (before and sign and after):
            raise click.BadParameter(f"{value!r} is not of the form FROM=TO")
        if found.setdefault(before, after) != after:
            raise click.BadParameter(f"it says both {found[before]} and {after} for {before}")
    return found


def _parse_types(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Parse texts such as ``y=uint8`` into types by name; names may have ``=`` in them."""
    found: dict[str, str] = {}
    for value in _listed(values):
        name, _sign, text = value.rpartition("=")
        if not name or not text:
            raise click.BadParameter(f"{value!r} is not of the form NAME=DTYPE")
        if found.setdefault(name, text) != text:
            raise click.BadParameter(f"it says both {found[name]} and {text} of {name!r}")
    return found


def _parse_ranges(
    _: click.Context, __: click.Parameter, values: tuple[str, ...]
) -> dict[str, tuple[int, int]]:
    """Parse texts such as ``ids=0:9`` into the ends of ranges by name; names may have ``=``."""
    found: dict[str, tuple[int, int]] = {}
    for value in _listed(values):
        match = re.fullmatch(r"(.+)=(-?\d{1,19}):(-?\d{1,19})", value)
        if match is None:
            raise click.BadParameter(
                f"{value!r} is not of the form NAME=MIN:MAX, with two integers, as in ids=0:30521"
            )
        ends = int(match[2]), int(match[3])
        if found.setdefault(match[1], ends) != ends:
            raise click.BadParameter(f"it says two ranges of {match[1]!r}")
    return found


_PREPARING = (
    click.option(
        "--strip-metadata",
        type=click.Choice(["nodes", "functions", "all"]),
        help="Drop metadata and doc strings: of nodes, of functions and all in them, or without a "
        "value of everything. PyTorch writes paths of the exporting machine into them.",
    ),
    click.option(
        "--inline-functions",
        is_flag=True,
        help="Put functions' bodies in place of their calls.",
    ),
    click.option(
        "--fold",
        is_flag=True,
        help="Compute what is constant; a branch whose condition is constant replaces its If.",
    ),
    click.option(
        "--dtype",
        "dtypes",
        multiple=True,
        callback=_parse_dtypes,
        metavar="FROM=TO,...",
        help="Change a dtype in values, weights and attributes, as in bfloat16=float; int64=int32 "
        "where it is proven that all values fit.",
    ),
    click.option(
        "--assume-range",
        "assume_ranges",
        multiple=True,
        callback=_parse_ranges,
        metavar="NAME=MIN:MAX,...",
        help="Take an input, value or dimension to lie in this range, for int64=int32; checked at "
        "its ends.",
    ),
    click.option(
        "--io-dtype",
        "io_dtypes",
        multiple=True,
        callback=_parse_types,
        metavar="NAME=DTYPE,...",
        help="Change the dtype of an input or output alone; a Cast inside restores the old one.",
    ),
    click.option(
        "--keep-interface", is_flag=True, help="Inputs and outputs keep their dtypes, by Cast."
    ),
    click.option(
        "--keep-dtype",
        multiple=True,
        callback=parse_names,
        metavar="OPERATOR|NODE,...",
        help="Nodes of this operator or name keep the dtype that --dtype changes, between Casts.",
    ),
)

#: Adds the options of changes of the whole model to a command.
preparation_options = each_of(_PREPARING)


#: Adds ``--type`` to a command, as `types`.
type_option = click.option(
    "--type",
    "types",
    multiple=True,
    callback=_parse_types,
    metavar="NAME=DTYPE[DIM,...],...",
    help="State the type of a value that cannot be inferred, as in y=uint8 or y=float[N,3,224].",
)


# The settings of a project


_TABLE = "[tool.onnxreduce]"

#: The options in place of which a command line may give others, which then win.
_INSTEAD: Mapping[str, tuple[str, ...]] = {
    "for": ("opset", "allow-ops"),
    "opset": ("for",),
    "allow-ops": ("for",),
    "out-dir": ("output", "in-place"),
    "in-place": ("output", "out-dir"),
    "jobs": ("cluster", "output"),
    "cluster": ("jobs", "output"),
    "resume": ("output",),
    "strict": ("no-check",),
    "no-check": ("strict",),
    "inline": ("external-data-threshold",),
    "external-data-threshold": ("inline",),
    "rtol": ("exact", "ulp"),
    "atol": ("exact", "ulp"),
    "ulp": ("exact", "rtol", "atol"),
    "exact": ("ulp", "rtol", "atol"),
}

#: What is for comparing whole models: a conversion does so with --verify alone.
_COMPARISON = ("input", "inputs", "trials", "seed", "rtol", "atol")


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Fill in the project's settings for options that the command line does not give."""

    @wraps(command)
    def call(**given: Any) -> None:
        context = click.get_current_context()
        path, stated = _read_settings(context)
        own = _options_of(context.command)

        def is_given(name: str) -> bool:
            source = context.get_parameter_source(str(own[name].name)) if name in own else None
            return source not in (None, ParameterSource.DEFAULT)

        # Whether models are compared decides about others.
        for name in sorted(stated, key=lambda name: name != "verify"):
            if name not in own:
                continue
            idle = name in _COMPARISON and not given.get("verify", True)
            parameter = str(own[name].name)
            try:
                typed = _typed(own[name], stated[name])
                if idle or any(map(is_given, (name, *_INSTEAD.get(name, ())))):
                    continue
                typed = _from_folder(path, own[name], typed)
                given[parameter] = own[name].process_value(context, typed)
                _check_names(parameter, given[parameter])
            except TypeError as error:
                wrong = f"must be {error}, not {stated[name]!r}"
                raise click.UsageError(f"{path}: {name} of {_TABLE} {wrong}") from None
            except (click.BadParameter, UsageError) as error:
                said = error.message if isinstance(error, click.BadParameter) else error
                raise click.UsageError(f"{path}: {name} of {_TABLE}: {said}") from error
        command(**given)

    return call


def _options_of(command: click.Command) -> dict[str, click.Option]:
    """Return a command's options by their long names, without dashes."""
    options = [item for item in command.params if isinstance(item, click.Option)]
    return {long_name(item): item for item in options}


def _typed(option: click.Option, value: object) -> Any:
    """Return a value of TOML as it would be typed.

    Raises:
        TypeError: it is none that the option takes; the message says what is.
    """
    if option.is_flag:
        if not isinstance(value, bool):
            raise TypeError("true or false")
        return value
    if option.multiple:
        if isinstance(value, dict):
            return tuple(f"{name}={item}" for name, item in value.items())
        found = [value] if isinstance(value, str) else value
        if not isinstance(found, list) or not all(isinstance(item, str) for item in found):
            raise TypeError("a text, a list of texts, or a table")
        return tuple(found)
    if isinstance(value, str):
        return value
    plain = isinstance(option.type, click.types.StringParamType | click.Path | click.Choice)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError("a text" if plain else "a number")
    if plain and option.callback is None:
        raise TypeError("a text")
    return str(value)


def _from_folder(settings: Path | None, option: click.Option, value: Any) -> Any:
    """Return the value of an option with paths from the folder of the settings, not from this one.

    Args:
        settings: the file that states it.
        option: the option.
        value: the value as it would be typed.
    """
    folder = "" if settings is None else os.path.relpath(settings.parent)

    def placed(path: str) -> str:
        return path if path == "-" else os.path.normpath(os.path.join(folder, path))

    if option.name == "pairs":
        halves = [item.partition("=") for item in value]
        return tuple(f"{name}{sign}{placed(path)}" for name, sign, path in halves)
    is_path = isinstance(option.type, click.Path)
    if option.name == "allow_ops":  # Operators, or a file with them.
        is_path = os.path.isfile(placed(value))
    return placed(value) if is_path else value


def _check_names(parameter: str, value: Any) -> None:
    """Check that what an option of a conversion names exists.

    Raises:
        UsageError: it does not.
    """
    # Not at the top: the import takes long, and most projects have no settings.
    from onnxreduce_cli.engine.options import Options

    if parameter in Options.__dataclass_fields__:
        Options(**{parameter: value}).check_names()


def _beside(context: click.Context, name: str) -> click.Command:
    """Return another command of the group that a command is called from."""
    group = context.find_root().command
    assert isinstance(group, click.Group)
    command = group.get_command(context.find_root(), name)
    assert command is not None
    return command


def _read_settings(context: click.Context) -> tuple[Path | None, dict[str, Any]]:
    """Return the nearest pyproject.toml, from this folder upward, and its settings.

    Raises:
        UsageError: it is no TOML, or has an unknown setting.
    """
    here = Path.cwd()
    path = next(
        (
            folder / "pyproject.toml"
            for folder in (here, *here.parents)
            if (folder / "pyproject.toml").is_file()
        ),
        None,
    )
    if path is None:
        return None, {}
    try:
        text = path.read_text(encoding="utf-8")
        # Parsing takes some milliseconds.
        table = _parse_table(text) if "onnxreduce" in text else {}
    except (OSError, ValueError) as error:  # It is not UTF-8, or no TOML.
        raise click.UsageError(f"{path} cannot be read: {error}") from error
    if table:
        known = {
            name: option
            for command in ("convert", "verify")
            for name, option in _options_of(_beside(context, command)).items()
        }
        del known["output"]  # It names one file of one call.
        for name in table:
            if name not in known:
                meant = did_you_mean(name, known) or ";"
                raise click.UsageError(
                    f"{path}: {_TABLE} has no {name!r}{meant} it may have the options of convert "
                    "and verify but -o, by their long names without dashes"
                )
    return path, table


def _parse_table(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    found: dict[str, Any] = tomllib.loads(text).get("tool", {}).get("onnxreduce", {})
    return found
