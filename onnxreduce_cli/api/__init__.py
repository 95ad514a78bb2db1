"""The library's face."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from onnx import ModelProto

from onnxreduce_cli.api.checks import check_conversion, prepare_checks
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.description import Plan
from onnxreduce_cli.model.files import Document, load
from onnxreduce_cli.model.ir_version import Wanted
from onnxreduce_cli.model.stating import stating

if TYPE_CHECKING:
    from onnxreduce_cli.verification import Tolerance, VerifyReport

ModelOrPath = ModelProto | str | os.PathLike[str]


def convert(
    model_or_path: ModelOrPath,
    opset: int,
    *,
    expand: Collection[str] = (),
    ir_version: Wanted = "auto",
    types: Mapping[str, str] | None = None,
    in_place: bool = False,
    check: bool = True,
    strict: bool = False,
) -> ModelProto:
    """Move a model to an opset of the default domain.

    Args:
        model_or_path: a model, or the path of one in any form that `onnx.load` reads. External
            data is not loaded; references to it stay as they are.
        opset: the opset to reach, up or down.
        expand: operators to replace by their function bodies, such as ``["LogSoftmax"]``.
        ir_version: the IR version of a model that changes: ``"auto"`` for the one that `opset` came
            with, or the least that the model needs; ``"keep"`` for its own; else a number.
        types: the types of values where nothing else tells, which the model then states in its
            value_info: ``{"y": "uint8"}``, or with a shape ``{"y": "float[N,3,224]"}``.
        in_place: edit the given model and return it; otherwise it is left untouched.
        check: run each distinct node that changes, before against after, on small inputs.
        strict: check, and refuse a conversion of which some node could not be.

    Returns:
        the model at `opset`.

    Raises:
        ConversionError: some nodes cannot reach the opset, or the model would be misread with the
            requested IR version; the model given is as it was.
        CheckError: a replacement does not compute the same; the model given is as it was.
        UncheckedError: a replacement could not be checked, with `strict`.
        InvalidModelError: the file cannot be read, or the model contradicts itself.
        UsageError: there is no such opset, no function body for an operator to expand, or no such
            value to state a type of, or it is known to be of another.
    """
    document = _read(model_or_path)
    if document.model is model_or_path and not in_place:
        document.model = ModelProto()
        document.model.CopyFrom(model_or_path)
    if check or strict:
        prepare_checks(document.model, opset)
    with _conversion(document, opset, expand, ir_version, types) as conversion:
        if check or strict:
            check_conversion(conversion, strict=strict)
        conversion.apply()
    return document.whole()


@contextmanager
def _conversion(
    document: Document,
    opset: int,
    expand: Collection[str],
    ir_version: Wanted,
    types: Mapping[str, str] | None,
    *,
    keep: bool = True,
) -> Iterator[Conversion]:
    """The conversion of a document, whose model states `types`: at the end only if `keep`."""
    model, base_dir = document.model, document.base_dir
    with stating(model, types or {}, base_dir, keep=keep) as stated:
        yield Conversion(
            model,
            opset,
            expand=expand,
            target_ir_version=ir_version,
            base_dir=base_dir,
            types=stated,
        )


def plan(
    model_or_path: ModelOrPath,
    opset: int,
    *,
    expand: Collection[str] = (),
    ir_version: Wanted = "auto",
    types: Mapping[str, str] | None = None,
) -> Plan:
    """Plan moving a model to an opset: the changes that it takes, and the nodes that block it.

    Args and exceptions are those of `convert`, but blockers are part of the result. The model is
    not touched.
    """
    document = _read(model_or_path)
    with _conversion(document, opset, expand, ir_version, types, keep=False) as conversion:
        return conversion.plan()


def verify(
    a: ModelOrPath,
    b: ModelOrPath | None = None,
    *,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    dims: Mapping[str, int] | None = None,
    trials: int = 5,
    seed: int = 0,
    special: bool = False,
    tolerance: Tolerance | None = None,
    executors: Sequence[str] = ("onnxruntime", "numpy"),
    save_failure: str | None = None,
) -> VerifyReport:
    """Say whether two models are the same function, or whether executors agree on one.

    Args:
        a: a model, or its path.
        b: the other model; None to compare ONNX Runtime and the NumPy executor on `a`.
        inputs: real data by input name, or several sets of it; what is missing is drawn.
        dims: sizes of symbolic dimensions by name, of others by ``input[axis]``.
        trials: how many sets of inputs to draw.
        seed: of what is drawn; equal seeds give equal inputs.
        special: whether the last trial of each five has NaN, infinities, both zeros and denormals.
        tolerance: the allowed difference of values; by default a table by dtype.
        executors: those to ask.
        save_failure: a folder for the first inputs on which the models differ.

    Raises:
        InvalidModelError: a file cannot be read, or is no model.
        InputError: the inputs or dimensions given do not fit the model, or cannot be drawn.
        UsageError: there is no such executor.
    """
    # Imported here: converting needs neither executor.
    from onnxreduce_cli import verification

    return verification.verify(
        a,
        b,
        inputs=inputs,
        dims=dims,
        trials=trials,
        seed=seed,
        special=special,
        tolerance=tolerance,
        executors=executors,
        save_failure=save_failure,
    )


def run(
    model_or_path: ModelOrPath, inputs: Mapping[str, Any], *, executor: str = "numpy"
) -> dict[str, Any]:
    """Run a model once, in the NumPy executor or in ONNX Runtime (``"onnxruntime"``).

    Args:
        model_or_path: the model, or its path.
        inputs: arrays by input name; lists for sequences, None for an empty optional.
        executor: ``numpy`` or ``onnxruntime`` (optimisations off).

    Returns:
        the outputs by name, in the model's order: `numpy.ndarray` of the dtype and shape that the
        specification says, lists for sequences.

    Raises:
        CannotRunError: the executor cannot run the model.
        RunFailedError: it failed on these inputs.
        UsageError: there is no such executor.
        InvalidModelError: the file cannot be read, or is no model.
    """
    from onnxreduce_cli import verification

    return verification.run(model_or_path, inputs, executor=executor)


def _read(model_or_path: ModelOrPath) -> Document:
    if isinstance(model_or_path, ModelProto):
        return Document(model_or_path)
    return load(model_or_path)
