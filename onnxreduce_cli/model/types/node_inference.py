"""What onnx infers of one node, from what is known of its inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from typing import Protocol

import onnx
from onnx import NodeProto, TypeProto, helper, numpy_helper

from onnxreduce_cli import schemas
from onnxreduce_cli.model.gate import attribute_ranges
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope
from onnxreduce_cli.model.graph.values import ValueType, from_proto, tensor_type
from onnxreduce_cli.model.types.constants import Array

#: Inference reads numbers and lists of sizes, axes and the like of at most as many, not data.
_READ = 1024

#: Lists that are said to be longer are left out: a shape of so many sizes takes all memory.
_LONGEST = 1 << 20

#: Inputs of rank 1, by the names that definitions give them.
_LISTS = frozenset({
    "axes", "block_shape", "ends", "image_shape", "output_shape", "pads", "repeats", "roi",
    "scales", "shape", "sizes", "starts", "steps",
})  # fmt: skip
#: Inputs of rank 1 whose names other operators give to something else.
_OTHER_LISTS = frozenset({("AffineGrid", "size"), ("ConstantOfShape", "input"), ("Split", "split")})
#: Runtimes read one number as a list of one for these.
_OR_NUMBERS = frozenset({"Squeeze", "Unsqueeze"})
#: Inputs of one element.
_NUMBERS: dict[str, frozenset[str]] = {
    "Clip": frozenset({"min", "max"}),
    "CumProd": frozenset({"axis"}),
    "CumSum": frozenset({"axis"}),
    "DFT": frozenset({"axis", "dft_length"}),
    "NonMaxSuppression": frozenset(
        {"iou_threshold", "max_output_boxes_per_class", "score_threshold"}
    ),
    "OneHot": frozenset({"depth"}),
    "Pad": frozenset({"constant_value"}),
    "Range": frozenset({"start", "limit", "delta"}),
    "TopK": frozenset({"K"}),
    "Trilu": frozenset({"k"}),
}

#: An input's name, its type where it is known to be of a dense one, and its constant value.
Input = tuple[str, ValueType | None, Array | None]


class KnownValues(Protocol):
    """What is known of a model's values."""

    def type(self, scope: Scope, name: str) -> ValueType | None:
        """A value's type, if known."""

    def constant(self, scope: Scope, name: str) -> Array | None:
        """A value that is the same for every run, if known."""


def infer_outputs(
    facts: KnownValues, scope: Scope, node: NodeProto, opset: int, ir_version: int
) -> dict[str, TypeProto]:
    """Return the types that inference gives for a node's outputs; none for those it cannot tell.

    Raises:
        InferenceError: the node cannot be there with inputs of these types.
        SchemaError: there is no such operator at `opset`.
        ValidationError: it holds what onnx cannot read.
        ValueError: it holds graphs deeper than onnx reads.
    """
    return infer_from(node, _known_inputs(facts, scope, node), opset, ir_version)


class Contradictions:
    """Finds the nodes of a model that cannot be there with inputs and outputs of known types."""

    def __init__(self, facts: KnownValues, ir_version: int) -> None:
        """Prepare.

        Args:
            facts: what is known of the values of a model.
            ir_version: the model's.
        """
        self._facts, self._ir_version = facts, ir_version

    def of(self, scope: Scope, node: NodeProto) -> str | None:
        """Return why a node cannot be there; None if nothing is wrong.

        Nothing is said of nodes with graphs, with references to attributes, and with inputs of
        which no dense type is known.

        Args:
            scope: where it is read.
            node: the node.
        """
        opset = scope.opset or 0
        # Looked at once more: a copy of a function has the values that its call gives attributes.
        problem = attribute_ranges.range_problem(node)
        problem = problem or self._of_another_form(scope, node, opset, node.input)
        if problem is not None:
            return problem
        if node.op_type in GRAPH_OPERATORS or any(item.ref_attr_name for item in node.attribute):
            return None
        inputs = _known_inputs(self._facts, scope, node)
        if any(name and known is None for name, known, _ in inputs):
            return None
        outputs = [self._made(scope, name) for name in node.output]
        try:
            inferred = infer_from(node, inputs, opset, self._ir_version)
        except onnx.shape_inference.InferenceError as error:
            said = str(error).strip().rpartition("Error] ")[2].partition("\n")[0]
            return _of_another_type(node, opset, inputs) or said
        except (onnx.defs.SchemaError, onnx.checker.ValidationError, ValueError):
            inferred = {}  # Inference cannot tell.
        return _stated_otherwise(node, outputs, inferred)

    def of_constants(self, scope: Scope, node: NodeProto, names: Collection[str]) -> str | None:
        """The same where no types are needed: nothing but the named constants is looked at."""
        opset = scope.opset or 0
        if not schemas.exists(node.op_type, opset):
            return None  # What onnx removed has no definition that tells.
        inputs = [(name, self._constant_type(scope, name, names), None) for name in node.input]
        return self._of_another_form(scope, node, opset, names) or _of_another_type(
            node, opset, inputs
        )

    def _of_another_form(
        self, scope: Scope, node: NodeProto, opset: int, names: Collection[str]
    ) -> str | None:
        """Return which of the named inputs of a node is no list or no number, though it must be."""
        for index, form in _input_forms(node.op_type, opset).items():
            name = node.input[index] if index < len(node.input) else ""
            array = self._facts.constant(scope, name) if name and name in names else None
            if array is not None and not _has_form(form, array.shape):
                return f"its input {name!r} must be {form}, and it has shape {list(array.shape)}"
        return None

    def _constant_type(self, scope: Scope, name: str, names: Collection[str]) -> ValueType | None:
        array = self._facts.constant(scope, name) if name in names else None
        if array is None:
            return None
        return tensor_type(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)

    def _made(self, scope: Scope, name: str) -> ValueType | None:
        """Return the type of what a node makes; without its shape where the graph gives it.

        Exporters do state such a shape wrong, and runtimes go by their own.
        """
        known = self._facts.type(scope, name)
        if known is None or name not in scope.outputs:
            return known
        return ValueType(known.kind, known.elem_type, None)


@cache
def _input_forms(op_type: str, opset: int) -> dict[int, str]:
    """Return which inputs of an operator of the default domain are lists or numbers.

    Args:
        op_type: the operator.
        opset: the opset that it is read by.

    Returns:
        what they must be, by their index: ``one number``, ``a list``, ``a list or one number``.
    """
    if not schemas.exists(op_type, opset):
        return {}
    found = {}
    for index, formal in enumerate(schemas.schema(op_type, opset).inputs):
        if formal.name in _NUMBERS.get(op_type, ()):
            found[index] = "one number"
        elif formal.name in _LISTS or (op_type, formal.name) in _OTHER_LISTS:
            found[index] = "a list or one number" if op_type in _OR_NUMBERS else "a list"
    return found


def _has_form(form: str, shape: tuple[int, ...]) -> bool:
    """Return whether a value of a shape is of a form of `_input_forms`."""
    if form == "one number":
        return shape in ((), (1,))
    return len(shape) == 1 or (not shape and form != "a list")


def _known_inputs(facts: KnownValues, scope: Scope, node: NodeProto) -> list[Input]:
    """Return what is known of each input of a node, as far as inference reads it."""
    found: list[Input] = []
    for name in node.input:
        known = facts.type(scope, name) if name else None
        if known is None or not known.elem_type:
            found.append((name, None, None))
            continue
        known = _of_length_in_reach(known)
        array = facts.constant(scope, name) if (known.rank or 0) <= 1 else None
        found.append((name, known, array if array is not None and array.size <= _READ else None))
    return found


def _of_length_in_reach(known: ValueType) -> ValueType:
    """Return the type of a list, without its length if inference would take all memory for it."""
    length = known.dims[0] if known.dims is not None and len(known.dims) == 1 else None
    if isinstance(length, int) and length > _LONGEST:
        return ValueType(known.kind, known.elem_type, (None,))
    return known


def infer_from(
    node: NodeProto, inputs: Iterable[Input], opset: int, ir_version: int
) -> dict[str, TypeProto]:
    """Return the types that inference gives for a node's outputs, from what is said of its inputs.

    Raises:
        InferenceError, SchemaError, ValidationError, ValueError: see `infer_outputs`.
    """
    types, constants = {}, {}
    for name, known, array in inputs:
        if name:  # An absent input has no type, not an empty one.
            types[name] = TypeProto() if known is None else known.to_proto()
        if array is not None:
            constants[name] = numpy_helper.from_array(array, name)
    return dict(
        onnx.shape_inference.infer_node_outputs(
            onnx.defs.get_schema(node.op_type, opset),
            node,
            types,
            constants,
            opset_imports=[onnx.helper.make_opsetid("", opset)],
            ir_version=min(ir_version, onnx.IR_VERSION),
        )
    )


def _of_another_type(node: NodeProto, opset: int, inputs: Iterable[Input]) -> str | None:
    """Return which input of a node its definition does not allow the type of, if there is one."""
    for index, (name, known, _) in enumerate(inputs):
        if known is not None and not schemas.takes(node.op_type, opset, index, known.kind):
            return f"its input {name!r} is {known.kind}, which {node.op_type} does not take"
    return None


def _stated_otherwise(
    node: NodeProto, known: Iterable[ValueType | None], inferred: Mapping[str, TypeProto]
) -> str | None:
    """Return which output of a node the model states to be what it is not, if there is one.

    Sizes are not looked at: runtimes go by their own.
    """
    for name, stated in zip(node.output, known, strict=True):
        made = from_proto(inferred[name]) if name in inferred else None
        if stated is None or made is None:
            continue
        if stated.kind != made.kind:
            return f"its output {name!r} is stated to be {stated.kind}, and it makes {made.kind}"
        if None not in (stated.rank, made.rank) and stated.rank != made.rank:
            ranks = f"{stated.rank}, and it makes one of rank {made.rank}"
            return f"its output {name!r} is stated to have rank {ranks}"
    return None
