"""Messages for those who call the library: with its keywords, not the options of the command."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import ParamSpec, TypeVar

from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import ConversionError, OnnxreduceError
from onnxreduce_cli.text import did_you_mean

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

#: The options of the command whose keywords have other names.
_NAMES = {
    "--for": "target",
    "--dim": "dims",
    "--dtype": "dtypes",
    "--io-dtype": "io_dtypes",
    "--assume-range": "assume_ranges",
    "--type": "types",
    "--external-data-threshold": "threshold",
    "--allow-outside-data": "allow_outside",
    "-o": "out",
    "-i": "inputs",
}

#: The options that are on or off, with what their keywords are set to.
_FLAGS = {
    "--force": "force=True",
    "--in-place": "in_place=True",
    "--emulate": "emulate=True",
    "--dry-run": "dry_run=True",
    "--no-check": "check=False",
    "--strict": "strict=True",
    "--verify": "verify=True",
    "--special": "special=True",
    "--inline": "inline=True",
    "--fold": "fold=True",
    "--inline-functions": "inline_functions=True",
    "--keep-interface": "keep_interface=True",
    "--allow-outside-data": "allow_outside=True",
    "--verbose": "`blockers`",
}

#: The keywords that take values by names.
_MAPPINGS = frozenset({"dims", "dtypes", "io_dtypes", "assume_ranges", "types", "inputs"})

#: The keywords that take lists of names.
_LISTS = frozenset({"keep_dtype"})

#: Options of the command alone.
_OF_THE_COMMAND = {"--cluster", "--resume", "--jobs", "--out-dir"}

#: An option, with its value where one follows: in quotes, once or more, in capitals, a number, a
#: path, or with an equals sign.
_OPTION = re.compile(
    r"(?<![\w-])(?P<name>--[a-z][a-z-]*|-[io]\b)(?: (?P<value>'[^']+'(?:,'[^']+')*(?:,\.\.\.)?"
    r"|\S*/\S+|[A-Z]+\b(?!=)|\d\w*|\S+=[^\s,;:]+(?::[\w-]+)?))?"
)

#: Python's message on a keyword that a function does not have.
_UNKNOWN = re.compile(r"got an unexpected keyword argument '(\w+)'")

#: What keywords are called in other libraries, with those here.
_MEANT = {
    "target_opset": "opset",
    "target_version": "opset",
    "opset_version": "opset",
    "output": "convert_file(path, output)",
}

#: A command to type in a shell, which stays as it is.
_COMMAND = re.compile(r"\b(?:onnxreduce [a-z]+ |pip install |python -m )")


def in_keywords(text: str) -> str:
    """Return a message with keywords of the library for the options of the command.

    ``to overwrite it say --force`` becomes ``to overwrite it say force=True``, and
    ``fix it: --dim NAME=SIZE`` becomes ``fix it: dims={NAME: SIZE}``.
    """
    return "\n".join(
        line if _COMMAND.search(line) else _OPTION.sub(_keyword, line) for line in text.split("\n")
    )


def _keyword(found: re.Match[str]) -> str:
    option, value = found["name"], found["value"]
    if option in _OF_THE_COMMAND:
        return found[0]
    if option in _FLAGS:
        return f"{_FLAGS[option]}{f' {value}' if value else ''}"
    name = _NAMES.get(option, option.removeprefix("--").replace("-", "_"))
    if value is None:
        return name
    items = [item.strip("'") for item in value.split("','" if value[0] == "'" else ",")]
    more = ", ..." if items[-1].endswith("',...") else ""
    items[-1] = items[-1].removesuffix("',...")
    if name in _LISTS:
        return f"{name}={[part for item in items for part in item.split(',')]}"
    pairs = [item.rpartition("=") for item in items]
    if name == "assume_ranges":
        ends = [f"{_literal(key)}: ({text.replace(':', ', ')})" for key, _, text in pairs]
        return f"{name}={{{', '.join(ends)}{more}}}"
    if all(equals for _, equals, _ in pairs) and name in _MAPPINGS:
        sizes = [f"{_literal(key)}: {_literal(text)}" for key, _, text in pairs]
        return f"{name}={{{', '.join(sizes)}{more}}}"
    return f"{name}={_literal(value)}"


def _literal(text: str) -> str:
    """Return a value as Python writes it; one in capitals, which stands for others, as it is."""
    megabytes = re.fullmatch(r"(\d+)MB", text)
    if megabytes:
        return f"{megabytes[1]}_000_000"
    return text if re.fullmatch(r"\d+|[A-Z]+", text) or text == "FILE.npy" else repr(text)


def with_keywords(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate a function of the library, so that its errors name keywords, not options."""

    @wraps(function)
    def called(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            unknown = _UNKNOWN.search(str(error))
            if unknown is None or unknown[1] not in kwargs:
                raise
            name = unknown[1]
            known = [*signature(function).parameters, *Options.__dataclass_fields__]
            meant = _MEANT.get(name)
            advice = f"; it is {meant} here" if meant else did_you_mean(name, known)
            raise TypeError(f"{function.__name__}() has no keyword {name!r}{advice}") from None
        except OnnxreduceError as error:
            error.args = tuple(in_keywords(str(item)) for item in error.args)
            if isinstance(error, ConversionError):
                error.message = in_keywords(error.message)
            raise

    return called
