"""What functions of the library take by name, for type checkers and documentation."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal, TypedDict

from onnxreduce_cli.model.ir_version import Wanted
from onnxreduce_cli.model.metadata import Strip


class PreparationOptions(TypedDict, total=False):
    """What is done to a whole model first, before it is moved to an opset.

    Attributes:
        strip_metadata: of what to drop metadata and doc strings: ``"nodes"``, ``"functions"`` with
            all in them, or ``"all"``.
        inline_functions: put the bodies of model-local functions in the place of their calls.
        dims: sizes by the names of symbolic dimensions, which are fixed: ``{"batch": 1}``; those
            without a name are ``input[axis]``.
        dtypes: dtypes to change in values, weights and attributes: ``{"bfloat16": "float"}``.
        keep_interface: let inputs and outputs keep their dtypes, by a Cast each.
    """

    strip_metadata: Strip | None
    inline_functions: bool
    dims: Mapping[str, int]
    dtypes: Mapping[str, str]
    keep_interface: bool


class RequestOptions(PreparationOptions, total=False):
    """The parts of a `Request` but the opset, each by itself.

    Attributes:
        runtime: where the model is to run, as ``"onnxruntime==1.8"``.
        allow_ops: the only operators that may be left.
        expand: operators to replace by their function bodies.
        contract: operators, or groups, to put in place of nodes that stand for them.
        ir_version: the IR version of a model that changes.
        types: the types of values where nothing else tells.
        emulate: let control flow stand for a node that has none.
    """

    runtime: str | None
    allow_ops: Collection[str]
    expand: Collection[str]
    contract: Collection[str]
    ir_version: Wanted
    types: Mapping[str, str] | None
    emulate: bool


class ConvertOptions(RequestOptions, total=False):
    """What `convert` takes by name.

    Attributes:
        in_place: edit the given model and return it.
        check: run each distinct node that changes, before against after.
        strict: refuse a conversion of which some node could not be checked.
    """

    in_place: bool
    check: bool
    strict: bool


class FileOptions(RequestOptions, total=False):
    """What `convert_file` takes by name.

    Attributes:
        dry_run: write nothing: only plan, or also compare with `verify`.
        force: overwrite a file that exists.
        in_place: let the output be the input.
        check: run each distinct node that changes, before against after; the default.
        strict: write nothing if some node could not be checked.
        verify: compare the whole models, too.
        pairs: real data to compare with, ``name=file.npy`` each.
        inputs: real data to compare with: an .npz file or a test_data_set folder.
        trials: how many sets of inputs to draw.
        seed: of what is drawn.
        rtol: the relative tolerance of the comparison; None for the dtype's own.
        atol: the absolute tolerance of the comparison; None for the dtype's own.
        timeout: the seconds that a whole model may take to load, and to run.
        memory: the bytes of memory that running a whole model may take.
        external_data: how external data goes along to another folder.
        allow_outside: let external data lie outside the model's folder.
        threshold: weights of at least so many bytes become external data; None to leave them.
        inline: put external data into the model's file.
    """

    dry_run: bool
    force: bool
    in_place: bool
    check: bool
    strict: bool
    verify: bool
    pairs: tuple[str, ...]
    inputs: str | None
    trials: int
    seed: int
    rtol: float | None
    atol: float | None
    timeout: float
    memory: int
    external_data: Literal["link", "copy", "keep"]
    allow_outside: bool
    threshold: int | None
    inline: bool
