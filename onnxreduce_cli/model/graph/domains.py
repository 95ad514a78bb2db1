"""Operator domains and opset imports."""

from collections.abc import Iterable

from onnx import FunctionProto, ModelProto, NodeProto, OperatorSetIdProto, helper

from onnxreduce_cli import schemas
from onnxreduce_cli.errors import InvalidModelError

DEFAULT_DOMAINS = ("", "ai.onnx")

#: The domain of the operators that ONNX Runtime adds, most of them when it optimises a model.
MICROSOFT = "com.microsoft"

#: The domain of the operators of classical machine learning.
LEARNING = "ai.onnx.ml"

#: A domain whose operators shape inference does not know.
UNKNOWN_DOMAIN = "onnxreduce.unknown"


def is_default(domain: str) -> bool:
    """Return whether `domain` names the default operator set, which has two spellings."""
    return domain in DEFAULT_DOMAINS


def domain_of(op_type: str) -> str:
    """Return the domain of an operator of the default domain or of ai.onnx.ml: no name is twice."""
    return "" if schemas.versions(op_type) else LEARNING


def operator_name(node: NodeProto) -> str:
    """Return a node's operator, with its domain where that is not the default one."""
    return node.op_type if is_default(node.domain) else f"{node.domain}.{node.op_type}"


def default_imports(owner: ModelProto | FunctionProto) -> list[OperatorSetIdProto]:
    """Return the entries of `opset_import` that import the default domain (normally one)."""
    return [entry for entry in owner.opset_import if is_default(entry.domain)]


def default_opset(owner: ModelProto | FunctionProto) -> int | None:
    """Return the default domain's opset in a model or a function; None where it is not imported.

    A model of IR version 1 or 2 has no imports and means opset 1 (onnx/docs/IR.md).

    Raises:
        InvalidModelError: the domain is imported twice, at different opsets, or at none that
            there can be.
    """
    versions = {entry.version for entry in default_imports(owner)}
    if len(versions) > 1:
        raise InvalidModelError(
            f"the default domain is imported at several opsets ({_listed(versions)}); "
            "a model may import each domain once"
        )
    if versions:
        opset = int(versions.pop())
        if opset < 1:
            raise InvalidModelError(
                f"the default domain is imported at opset {opset}; opsets begin at 1; mend the "
                "model's opset_import"
            )
        return opset
    if isinstance(owner, ModelProto) and owner.ir_version < 3:
        return 1
    return None


def imported_version(owner: ModelProto | FunctionProto, domain: str) -> int | None:
    """Return the version of another domain that a model or a function imports; None without it."""
    versions = (int(entry.version) for entry in owner.opset_import if entry.domain == domain)
    return next(versions, None)


def set_learning_version(owner: ModelProto | FunctionProto, version: int) -> None:
    """Import ai.onnx.ml at a version, if it is imported at all."""
    for entry in owner.opset_import:
        if entry.domain == LEARNING:
            entry.version = version


def learning_version_of(opset: int) -> int:
    """Return the version of ai.onnx.ml that onnx released together with an opset."""
    released = (row[2:4] for row in helper.VERSION_TABLE)
    return next(version for own, version in sorted(released) if own >= opset)


def _listed(values: Iterable[int]) -> str:
    return ", ".join(str(value) for value in sorted(values))
