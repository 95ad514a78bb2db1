"""A project's settings: ``[tool.onnxreduce]`` of its pyproject.toml."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from onnxreduce_cli.errors import UsageError

_TABLE = "[tool.onnxreduce]"


def _parse_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("a text")
    return value


def _parse_names(value: object) -> tuple[str, ...]:
    found = value.split(",") if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        raise TypeError("names of operators")
    return tuple(name.strip() for name in found)


def _parse_dtypes(value: object) -> dict[str, str]:
    pairs = [value] if isinstance(value, str) else value
    if not isinstance(pairs, list) or not all(isinstance(pair, str) for pair in pairs):
        raise TypeError("changes of dtypes, as bfloat16=float")
    found = {before: after for before, _, after in (pair.partition("=") for pair in pairs)}
    if len(found) < len(pairs) or not all((*found, *found.values())):
        raise TypeError("changes of dtypes, as bfloat16=float")
    return found


def _parse_number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0:
        raise TypeError("a number, 0 or more")
    return float(value)


#: The settings: the parameter that each sets, its parser, and the options that override it.
_SETTINGS: Mapping[str, tuple[str, Callable[[object], Any], tuple[str, ...]]] = {
    "for": ("runtime", _parse_text, ("opset", "allow_ops")),
    "contract": ("contract", _parse_names, ()),
    "dtype": ("dtypes", _parse_dtypes, ()),
    "rtol": ("rtol", _parse_number, ("exact", "ulp")),
    "atol": ("atol", _parse_number, ("exact", "ulp")),
}


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Fill in the project's settings for options that the command line does not give."""

    @wraps(command)
    def call(**given: Any) -> None:
        context = click.get_current_context()

        def is_given(name: str) -> bool:
            return context.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)

        path, stated = _read_settings()
        for name, value in stated.items():
            parameter, _, others = _SETTINGS[name]
            if parameter not in given or any(map(is_given, (parameter, *others))):
                continue
            # Tolerances are for comparing whole models: a conversion does so with --verify alone.
            if parameter in ("rtol", "atol") and not given.get("verify", True):
                continue
            # Not at the top: the import takes long, and most projects have no settings.
            from onnxreduce_cli.engine.options import Options

            try:
                Options(**{parameter: value}).check_names()
            except UsageError as error:
                raise click.UsageError(f"{path}: {name} of {_TABLE}: {error}") from error
            given[parameter] = value
        command(**given)

    return call


def _read_settings() -> tuple[Path | None, dict[str, Any]]:
    """Return the nearest pyproject.toml, from this folder upward, and its settings.

    Raises:
        UsageError: it is no TOML, or has an unknown setting or a wrong value.
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
    found = {}
    for name, value in table.items():
        if name not in _SETTINGS:
            known = ", ".join(_SETTINGS)
            raise click.UsageError(f"{path}: {_TABLE} has no {name!r}; it may have {known}")
        try:
            found[name] = _SETTINGS[name][1](value)
        except TypeError as error:
            raise click.UsageError(
                f"{path}: {name} of {_TABLE} must be {error}, not {value!r}"
            ) from None
    return path, found


def _parse_table(text: str) -> dict[str, Any]:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    found: dict[str, Any] = tomllib.loads(text).get("tool", {}).get("onnxreduce", {})
    return found
