"""The choice of a model's IR version, and the features for which it needs one.

Readers skip unknown fields. So metadata, training information, device configurations, quantization
annotations and value_info need no newer IR version; functions and dtypes do.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Literal

from onnx import (
    IR_VERSION,
    AttributeProto,
    FunctionProto,
    ModelProto,
    NodeProto,
    TensorProto,
    defs,
    helper,
)

from onnxreduce_cli.errors import ConversionError
from onnxreduce_cli.model.graph.dead_values import DeadValues
from onnxreduce_cli.model.graph.domains import LEARNING, is_default
from onnxreduce_cli.model.graph.imports import unread_imports
from onnxreduce_cli.model.graph.scope import Scope

#: The IR version to give a model: its opset's (``auto``), its own (``keep``), or a number.
Wanted = int | Literal["auto", "keep"]

#: From this IR version on initializers need not be listed among a graph's inputs, and a caller may
#: override those that are; before, all are listed, and constant.
INITIALIZERS = 4

#: From this IR version on a model imports operator sets.
IMPORTS = 3

#: Element types that came after IR version 3, by the IR version that brought them (onnx.proto).
_ELEM_TYPES = {
    "BFLOAT16": 4,
    "FLOAT8E4M3FN": 9,
    "FLOAT8E4M3FNUZ": 9,
    "FLOAT8E5M2": 9,
    "FLOAT8E5M2FNUZ": 9,
    "UINT4": 10,
    "INT4": 10,
    "FLOAT4E2M1": 11,
    "FLOAT8E8M0": 12,
    "UINT2": 13,
    "INT2": 13,
    "FLOAT6E2M3": 14,
    "FLOAT6E3M2": 14,
}
_BY_ELEM_TYPE = {
    number: (_ELEM_TYPES[name], name.lower())
    for name, number in TensorProto.DataType.items()
    if name in _ELEM_TYPES
}

#: The operators of the default domain with attributes that hold tensors or types.
_WITH_TENSORS = frozenset({"Constant", "ConstantOfShape", "Optional"})


#: An IR version, and a feature of a model that needs it.
Feature = tuple[int, str]


def least_for_opset(opset: int) -> int:
    """Return the IR version that came with an opset of the default domain, or before it.

    An opset that is in no release yet, which the installed onnx may know, has the newest.
    """
    versions = (item for _, item, released, *_ in helper.VERSION_TABLE if released >= opset)
    return min(versions, default=int(IR_VERSION))


def choose(
    wanted: Wanted,
    model: ModelProto,
    scopes: Sequence[Scope],
    opset: int,
    dead: DeadValues | None = None,
    learned: int | None = None,
) -> tuple[int, str]:
    """Return the IR version that a model gets at an opset, and which feature needs it.

    Args:
        wanted: ``"auto"`` for its own, but none above the opset's, unless the model needs a higher
            one; ``"keep"`` for the one that it has; else a number.
        model: the model before it changes.
        scopes: its scopes.
        opset: the opset of the default domain that it gets.
        dead: the initializers and nodes that are removed; None while that is not known: then the
            dtypes of tensors are not considered.
        learned: the version of ai.onnx.ml that it gets; None for its own.

    Returns:
        the number, and the feature that needs it; empty where the opset or the user decides.

    Raises:
        ConversionError: with the number wanted the model would be misread.
    """
    if wanted == "keep":
        if model.ir_version < IMPORTS and opset > 1:
            raise _misread(model.ir_version, (IMPORTS, f"the import of opset {opset}"))
        return model.ir_version, ""
    needed = max(_features(model, scopes, dead, learned), key=_number)
    overridable, constant = _initializers(model, scopes)
    if wanted == "auto":
        # An older number is read by more runtimes, and below 4 initializers stay constant.
        own = min(model.ir_version, least_for_opset(opset))
        number, what = max(((own, ""), needed, *overridable, *constant), key=_number)
        return number, f"needed by {what}" if what else ""
    # Below, constant initializers will be listed among the inputs.
    needed = max((needed, *overridable), key=_number)
    if wanted < needed[0]:
        raise _misread(wanted, needed)
    return wanted, ""


def _number(feature: Feature) -> int:
    return feature[0]


def _misread(wanted: int, needed: Feature) -> ConversionError:
    number, what = needed
    return ConversionError(
        f"IR version {wanted} has no place for {what}, which needs {number}: say "
        f"--ir-version {number}, or auto"
    )


def _features(
    model: ModelProto, scopes: Sequence[Scope], dead: DeadValues | None, learned: int | None
) -> Iterator[Feature]:
    yield IMPORTS, "operator set imports"
    unread = unread_imports(model)
    for entry in model.opset_import:
        version = learned if entry.domain == LEARNING and learned is not None else entry.version
        key = (entry.domain, version)
        if is_default(entry.domain) or entry.domain in unread:
            continue
        if key in helper.OP_SET_ID_VERSION_MAP:
            yield int(helper.OP_SET_ID_VERSION_MAP[key]), f"opset {key[1]} of {key[0]}"
    yield from _function_features(scopes)
    for scope in scopes:
        if dead is not None:
            yield from _tensor_features(scope, dead, _with_tensors(scope))
        yield from _scope_features(scope)


def _function_features(scopes: Sequence[Scope]) -> Iterator[Feature]:
    """Yield the features of functions, each for the first function that has it."""
    least = 0
    for scope in scopes:
        if scope.function_key is None:
            continue
        _, name, overload = scope.function_key
        if not least:
            least = 8
            yield least, f"model-local function {name!r}"
        function = scope.container if least < 9 else None
        if isinstance(function, FunctionProto) and function.attribute_proto:
            least = 9
            yield least, f"default attributes of function {name!r}"
        if overload:
            yield 10, f"overload {overload!r} of function {name!r}"
            return


def _with_tensors(scope: Scope) -> set[str]:
    """Return the operators whose attributes may hold tensors or types.

    Reading the attributes of all nodes would take as long as converting them.
    """
    return {kind for kind in {*scope.op_types} if kind in _WITH_TENSORS or not defs.has(kind)}


def _tensor_features(
    scope: Scope, dead: DeadValues, with_tensors: Collection[str]
) -> Iterator[Feature]:
    for op_type, node in zip(scope.op_types, scope.nodes, strict=True) if with_tensors else ():
        if op_type in with_tensors and node.attribute and not dead.covers(node):
            yield from _node_features(node)
    for name, tensor in scope.initializers.items():
        if tensor.data_type in _BY_ELEM_TYPE and name not in dead.of(scope)[1]:
            yield from _elem_type(tensor.data_type, f"initializer {name!r}")


def _scope_features(scope: Scope) -> Iterator[Feature]:
    container = scope.container
    if isinstance(container, FunctionProto):
        return
    if container.sparse_initializer:
        yield 6, f"sparse initializers in {scope.label or 'the main graph'}"
    for info in (*container.input, *container.output):
        kind = info.type.WhichOneof("value")
        if kind == "optional_type":
            yield 8, f"optional value {info.name!r}"
        elif kind == "sparse_tensor_type":
            yield 8, f"sparse value {info.name!r}"
        elif kind == "tensor_type":
            yield from _elem_type(info.type.tensor_type.elem_type, f"value {info.name!r}")


def _node_features(node: NodeProto) -> Iterator[Feature]:
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            yield from _elem_type(attribute.t.data_type, f"a tensor of node {node.name!r}")
        elif attribute.type == AttributeProto.SPARSE_TENSOR:
            yield 6, f"a sparse tensor of node {node.name!r}"
        elif attribute.type in (AttributeProto.TYPE_PROTO, AttributeProto.TYPE_PROTOS):
            yield 8, f"a type attribute of node {node.name!r}"


def _elem_type(elem_type: int, what: str) -> Iterator[Feature]:
    if elem_type in _BY_ELEM_TYPE:
        least, name = _BY_ELEM_TYPE[elem_type]
        yield least, f"{what} of dtype {name}"


def _initializers(
    model: ModelProto, scopes: Sequence[Scope]
) -> tuple[list[Feature], list[Feature]]:
    """Return the first initializer that a caller may override, and the first that is no input."""
    overridable: list[Feature] = []
    constant: list[Feature] = []
    for scope in scopes:
        if isinstance(scope.container, FunctionProto):
            continue
        for name in scope.initializers:
            if name not in scope.inputs:
                what = f"initializer {name!r}, which is no graph input"
                constant = constant or [(INITIALIZERS, what)]
            elif model.ir_version >= INITIALIZERS:
                what = f"initializer {name!r}, which a caller may override"
                overridable = overridable or [(INITIALIZERS, what)]
    return overridable, constant
