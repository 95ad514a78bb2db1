"""The keywords of the library's functions, for type checkers and documentation.

Each name is a field of `Options`, whose docstring says what it means.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from inspect import cleandoc
from typing import Any, Literal, TypedDict

from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.model.graph.ir_version import Wanted
from onnxreduce_cli.model.graph.metadata import Strip


class PreparationOptions(TypedDict, total=False):
    """The keywords for changes of a whole model, which come before its conversion."""

    strip_metadata: Strip | None
    inline_functions: bool
    dims: Mapping[str, int]
    fold: bool
    dtypes: Mapping[str, str]
    assume_ranges: Mapping[str, tuple[int, int]]
    io_dtypes: Mapping[str, str]
    keep_interface: bool
    keep_dtype: Collection[str]


class PlanOptions(PreparationOptions, total=False):
    """The keywords of `plan`."""

    ml_opset: int | None
    target: str | None
    runtime: str | None
    allow_ops: Collection[str]
    expand: Collection[str]
    contract: Collection[str]
    ir_version: Wanted
    types: Mapping[str, str] | None
    emulate: bool


class ConvertOptions(PlanOptions, total=False):
    """The keywords of `convert`."""

    in_place: bool
    check: bool
    strict: bool


class FileOptions(PlanOptions, total=False):
    """The keywords of `convert_file`."""

    dry_run: bool
    force: bool
    in_place: bool
    check: bool
    strict: bool
    verify: bool
    pairs: tuple[str, ...]
    inputs: str | None
    trials: int | None
    seed: int
    rtol: float | None
    atol: float | None
    timeout: float
    memory: int
    external_data: Literal["link", "copy", "keep"]
    allow_outside: bool
    threshold: int | None
    inline: bool


def _document(owner: Any) -> None:
    """Add the descriptions of a class's keywords, from the docstring of `Options`, to its own."""
    said = cleandoc(Options.__doc__ or "").partition("Attributes:\n")[2]
    entries = re.findall(r"^    (\w+): (.*\n(?:     +.*\n)*)", said + "\n", re.MULTILINE)
    entries += [("target", "the runtime that the model is for; `runtime` is another name of it.\n")]
    lines = [f"    {name}: {text}" for name, text in entries if name in owner.__annotations__]
    owner.__doc__ = f"{owner.__doc__}\n\nAttributes:\n{''.join(lines)}"


for _owner in (PreparationOptions, PlanOptions, ConvertOptions, FileOptions):
    _document(_owner)
