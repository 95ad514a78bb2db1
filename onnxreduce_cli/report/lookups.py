"""What `inspect`, `ops` and `targets` show, as functions of the library."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from onnxreduce_cli.api.keywords import with_keywords
from onnxreduce_cli.api.library import HoldsModel, ModelOrPath, read_model
from onnxreduce_cli.errors import UsageError, errors_about
from onnxreduce_cli.report.contents import contents
from onnxreduce_cli.report.data import InspectedModel, inspected_model
from onnxreduce_cli.report.reference import OperatorList, TargetList, operator_list, target_list
from onnxreduce_cli.text import did_you_mean, shortened

if TYPE_CHECKING:
    from onnxreduce_cli.model.file.document import Document


@with_keywords
def inspect(model_or_path: ModelOrPath | HoldsModel) -> InspectedModel:
    """Return what a model is made of, which opsets it can reach, and what blocks the others.

    Args:
        model_or_path: a model, or its path; no weights are loaded.

    Raises:
        InvalidModelError: the file cannot be read, or the model contradicts itself.
    """
    name = "the model"
    if isinstance(model_or_path, str | os.PathLike):
        name = os.fspath(model_or_path)
    return inspect_document(read_model(model_or_path), name)


def inspect_document(document: Document, name: str) -> InspectedModel:
    """Return what a model is made of, by the name that people know it by."""
    from onnxreduce_cli.engine.inspection import inspect

    with errors_about(name):
        found = inspect(document.model, document.base_dir)
    return inspected_model(found, contents(document, name), name)


@with_keywords
def ops(operator: str | None = None) -> OperatorList:
    """Return the versions of an operator, or of all, and the steps up and down between them.

    Args:
        operator: its name, whatever its case, also as ``ai.onnx.ml.Scaler``; None for all operators
            of the default domain.

    Raises:
        UsageError: there is no such operator.
    """
    from onnxreduce_cli import schemas

    return operator_list(schemas.operators() if operator is None else [operator_name(operator)])


def operator_name(operator: str) -> str:
    """Return the name of an operator of the default domain or ai.onnx.ml as they spell it.

    Raises:
        UsageError: there is no such operator.
    """
    from onnxreduce_cli import schemas
    from onnxreduce_cli.model.graph.domains import LEARNING

    listed = (*schemas.operators(), *schemas.operators(LEARNING))
    known = {name.lower(): name for name in listed}
    operator = operator.removeprefix("ai.onnx.").removeprefix("ml.")
    if operator.lower() not in known:
        raise UsageError(
            f"neither the default domain nor {LEARNING} has an operator "
            f"{shortened(operator)}{did_you_mean(operator, listed)}"
        )
    return known[operator.lower()]


@with_keywords
def targets(runtime: str | None = None) -> TargetList:
    """Return what a runtime takes and what it gets wrong, or all runtimes that are known.

    Args:
        runtime: its name, with versions as pip writes them: ``"opencv==4.6"``; None for all.

    Raises:
        UsageError: there is no such runtime or version.
    """
    from onnxreduce_cli.targets.requirement import find_target

    return target_list(None if runtime is None else find_target(runtime))
