"""Shape inference of a single node, and the contradictions that it reveals."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

import onnx
from onnx import NodeProto, TypeProto, helper, numpy_helper

from onnxreduce_cli import schemas
from onnxreduce_cli.model.gate import attribute_ranges
from onnxreduce_cli.model.graph import attributes
from onnxreduce_cli.model.graph.domains import is_default
from onnxreduce_cli.model.graph.miscounted_sizes import corrected, is_miscounted
from onnxreduce_cli.model.graph.scaled_sizes import scaled_dims, scales_in, uneven_scales
from onnxreduce_cli.model.graph.scope import GRAPH_OPERATORS, Scope, with_inner
from onnxreduce_cli.model.graph.values import ValueType, common_type, from_proto, tensor_type
from onnxreduce_cli.model.types.constants import Array, KnownConstants
from onnxreduce_cli.model.types.questions import array_key

#: The most elements of an input whose value is given to inference: sizes, axes and the like.
_READ = 1024

#: The longest list whose length is given to inference: a shape of so many sizes takes all memory.
_LONGEST = 1 << 20

#: Inputs of rank 1, by the names that definitions give them.
_LISTS = frozenset({
    "axes", "block_shape", "ends", "image_shape", "output_shape", "pads", "repeats", "roi",
    "scales", "shape", "sizes", "starts", "steps",
})  # fmt: skip
#: Inputs of rank 1 whose names mean something else in other operators.
_OTHER_LISTS = frozenset({("AffineGrid", "size"), ("ConstantOfShape", "input"), ("Split", "split")})
#: Operators for which runtimes accept a number in place of a list.
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

#: The exceptions of onnx for a node that it cannot infer.
INFERENCE_ERRORS = (
    onnx.shape_inference.InferenceError,
    onnx.defs.SchemaError,
    onnx.checker.ValidationError,
    ValueError,
)

#: The types of outputs, in order, by what they follow from; None for unknown ones.
InferenceMemo = dict[Hashable, tuple[ValueType | None, ...]]

#: An input's name, its type if it is a dense tensor, and its constant value, as far as known.
Input = tuple[str, ValueType | None, Array | None]


def infer_outputs(
    facts: KnownConstants, scope: Scope, node: NodeProto, opset: int, ir_version: int
) -> dict[str, ValueType]:
    """Return the inferred types of a node's outputs by name, without unknown ones.

    Of a node that refers to attributes of its function it is what all calls have in common.

    Raises:
        InferenceError: the node is invalid with inputs of these types.
        SchemaError: there is no such operator at `opset`.
        ValidationError: onnx cannot read the node.
        ValueError: its graphs nest deeper than onnx reads.
    """
    inputs = _known_inputs(facts, scope, node)
    references = _references(node) if scope.function is not None else {}
    if not references:
        return infer_from(node, inputs, opset, ir_version, facts.inferred)
    assert scope.function is not None
    calls = facts.calls.values_of_calls(scope.function, tuple(references))
    inferred = [
        infer_from(_bound(node, references, values), inputs, opset, ir_version, facts.inferred)
        for values in calls or [(None,) * len(references)]
    ]
    if calls and len(inferred) == 1:
        return inferred[0]
    found = {}
    for name in inferred[0]:
        common = common_type([each.get(name) for each in inferred])
        if common is not None and common.elem_type:
            found[name] = common if calls else common._replace(dims=None)
    return found


def _references(node: NodeProto) -> dict[str, int]:
    """Return the attributes of its function that a node refers to, each with its type."""
    return {
        item.ref_attr_name: item.type
        for inner in with_inner([node])
        for item in inner.attribute
        if item.ref_attr_name
    }


def _bound(node: NodeProto, types: Mapping[str, int], values: Sequence[Any]) -> NodeProto:
    """Return a copy of a node with values in place of references; None stands for no value."""
    copy = NodeProto()
    copy.CopyFrom(node)
    bound = {
        name: helper.make_attribute(name, value, attr_type=kind or None)
        for (name, kind), value in zip(types.items(), values, strict=True)
        if value is not None
    }
    attributes.bind(copy, bound)
    return copy


class Contradictions:
    """Finds nodes that are invalid with the known types and values of their inputs and outputs."""

    def __init__(self, facts: KnownConstants, ir_version: int) -> None:
        """Prepare.

        Args:
            facts: the facts of the model.
            ir_version: its IR version.
        """
        self._facts, self._ir_version = facts, ir_version

    def of(self, scope: Scope, node: NodeProto) -> str | None:
        """Return why a node is invalid; None if it is not.

        Nodes with graphs, with references to attributes, or with inputs of unknown type are not
        checked.

        Args:
            scope: its scope.
            node: the node.
        """
        opset = scope.opset or 0
        # Checked again, since in a copy of a function attributes have the values of its call.
        problem = attribute_ranges.range_problem(node)
        problem = problem or self._of_another_form(scope, node, opset, node.input)
        if problem is not None:
            return problem
        inputs = self._whole_inputs(scope, node)
        if inputs is None:
            return None
        outputs = [self._made(scope, name) for name in node.output]
        try:
            inferred = self._infer(node, inputs, opset)
        except onnx.shape_inference.InferenceError as error:
            said = str(error).strip().rpartition("Error] ")[2].partition("\n")[0]
            return _of_another_type(node, opset, inputs) or said
        except (onnx.defs.SchemaError, onnx.checker.ValidationError, ValueError):
            inferred = {}  # The types are unknown.
        return _stated_otherwise(node, outputs, inferred)

    def of_sizes(self, scope: Scope, node: NodeProto) -> str | None:
        """Return which output of a node is stated with a wrong size; None if none is.

        Nodes that `of` does not check, and those that onnx may count otherwise, are not checked.

        Args:
            scope: its scope.
            node: the node.
        """
        opset = scope.opset or 0
        inputs = self._whole_inputs(scope, node)
        if inputs is None or is_miscounted(node, opset) or scales_in(scope, node) is not None:
            return None
        try:
            inferred = self._infer(node, inputs, opset)
        except INFERENCE_ERRORS:
            return None  # `of` says what is wrong.
        for name in node.output:
            stated = scope.declared.get(name)
            made = inferred.get(name)
            if stated is not None and made is not None and stated.contradicts(made):
                return (
                    f"its output {name!r} is stated to have shape {list(stated.dims or ())}, and "
                    f"it makes {list(made.dims or ())}"
                )
        return None

    def accepts_ranks(self, scope: Scope, node: NodeProto, ranks: Mapping[str, int]) -> bool:
        """Return whether a node may read values of some ranks, by its definition and by inference.

        True for nodes of other domains, and for those with graphs or references to attributes.

        Args:
            scope: its scope.
            node: the node.
            ranks: ranks by name, of values whose rank is not known.
        """
        opset = scope.opset or 0
        references = any(item.ref_attr_name for item in node.attribute)
        if not is_default(node.domain) or node.op_type in GRAPH_OPERATORS or references:
            return True
        for index, form in _input_forms(node.op_type, opset).items():
            rank = ranks.get(node.input[index]) if index < len(node.input) else None
            if rank is not None and not _has_form(form, (1,) * rank):
                return False
        inputs: list[Input] = []
        for name, known, array in _known_inputs(self._facts, scope, node):
            if known is not None and name in ranks:
                known = known._replace(dims=(None,) * ranks[name])
            inputs.append((name, known, array))
        try:
            self._infer(node, inputs, opset)
        except onnx.shape_inference.InferenceError:
            return False
        except (onnx.defs.SchemaError, onnx.checker.ValidationError, ValueError):
            return True  # Nothing is known of it.
        return True

    def _infer(self, node: NodeProto, inputs: Iterable[Input], opset: int) -> dict[str, ValueType]:
        return infer_from(node, inputs, opset, self._ir_version, self._facts.inferred)

    def _whole_inputs(self, scope: Scope, node: NodeProto) -> list[Input] | None:
        """Return the known inputs of a node that can be checked; None of another."""
        if node.op_type in GRAPH_OPERATORS or any(item.ref_attr_name for item in node.attribute):
            return None
        inputs = _known_inputs(self._facts, scope, node)
        return None if any(name and known is None for name, known, _ in inputs) else inputs

    def of_constants(self, scope: Scope, node: NodeProto, names: Collection[str]) -> str | None:
        """Return the same as far as it follows from the named constants, without types."""
        opset = scope.opset or 0
        if not schemas.exists(node.op_type, opset):
            return None  # Operators that onnx removed have no definition.
        inputs = [(name, self._constant_type(scope, name, names), None) for name in node.input]
        return self._of_another_form(scope, node, opset, names) or _of_another_type(
            node, opset, inputs
        )

    def _of_another_form(
        self, scope: Scope, node: NodeProto, opset: int, names: Collection[str]
    ) -> str | None:
        """Return which of the named inputs of a node should be a list, or a number, and is not."""
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
        """Return the type of a node's output; without its shape if it is an output of the graph.

        Exporters may state a wrong shape there, which runtimes ignore.
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
        opset: its opset.

    Returns:
        the required forms by index: ``one number``, ``a list``, ``a list or one number``.
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
    """Return whether a shape fits a form of `_input_forms`."""
    if form == "one number":
        return shape in ((), (1,))
    return len(shape) == 1 or (not shape and form != "a list")


def _known_inputs(facts: KnownConstants, scope: Scope, node: NodeProto) -> list[Input]:
    """Return the known type and value of each input of a node, as far as inference reads them."""
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
    """Return a type, without the length of a list for which inference would take all memory."""
    length = known.dims[0] if known.dims is not None and len(known.dims) == 1 else None
    if isinstance(length, int) and length > _LONGEST:
        return ValueType(known.kind, known.elem_type, (None,))
    return known


def infer_from(
    node: NodeProto, inputs: Iterable[Input], opset: int, ir_version: int, memo: InferenceMemo
) -> dict[str, ValueType]:
    """Return the inferred types of a node's outputs, given types and values of its inputs.

    They follow from the operator, its attributes, and the inputs: `memo` has what was inferred of
    equal ones. Graphs of a node also read values by name, so such a node is inferred by itself; so
    is one without inputs, which may hold weights.

    Raises:
        InferenceError, SchemaError, ValidationError, ValueError: see `infer_outputs`.
    """
    inputs = list(inputs)
    key: Hashable = None
    if inputs and node.op_type not in GRAPH_OPERATORS:
        key = (
            (node.op_type, opset, ir_version, *map(bool, node.output)),
            tuple([item.SerializeToString(deterministic=True) for item in node.attribute]),
            tuple([(bool(name), known, array_key(name, array)) for name, known, array in inputs]),
        )
        if key in memo:
            pairs = zip(node.output, memo[key], strict=True)
            return {name: found for name, found in pairs if found is not None}
    inferred = _infer(node, inputs, opset, ir_version)
    if key is not None:
        memo[key] = tuple([inferred.get(name) for name in node.output])
    return inferred


def _infer(
    node: NodeProto, inputs: Sequence[Input], opset: int, ir_version: int
) -> dict[str, ValueType]:
    """Return the inferred types of a node's outputs; see `infer_from`."""
    counted = corrected(node, opset)
    if counted is None:
        return {}
    types, constants, arrays = {}, {}, {}
    for name, known, array in inputs:
        if name:  # An absent input has no type, not an empty one.
            types[name] = TypeProto() if known is None else known.to_proto()
        if array is not None:
            constants[name] = numpy_helper.from_array(array, name)
            arrays[name] = array
    found = dict(
        onnx.shape_inference.infer_node_outputs(
            onnx.defs.get_schema(node.op_type, opset),
            counted,
            types,
            constants,
            opset_imports=[onnx.helper.make_opsetid("", opset)],
            ir_version=min(ir_version, onnx.IR_VERSION),
        )
    )
    scales = uneven_scales(node, opset, arrays.get)
    data = inputs[0][1] if scales is not None else None
    if scales is not None and data is not None and data.dims is not None:
        dims = found.get(node.output[0], TypeProto()).tensor_type.shape.dim
        for axis, size in scaled_dims(node, data.dims, scales).items():
            if axis < len(dims):
                dims[axis].dim_value = size
    known_types = {name: from_proto(proto) for name, proto in found.items()}
    return {name: known for name, known in known_types.items() if known is not None}


def _of_another_type(node: NodeProto, opset: int, inputs: Iterable[Input]) -> str | None:
    """Return which input of a node has a type that its definition does not allow; None if none."""
    for index, (name, known, _) in enumerate(inputs):
        if known is not None and not schemas.takes(node.op_type, opset, index, known.kind):
            return f"its input {name!r} is {known.kind}, which {node.op_type} does not take"
    return None


def _stated_otherwise(
    node: NodeProto, known: Iterable[ValueType | None], inferred: Mapping[str, ValueType]
) -> str | None:
    """Return which output of a node is stated with a wrong type or rank; None if none is.

    Sizes are not compared, as runtimes infer their own.
    """
    for name, stated in zip(node.output, known, strict=True):
        made = inferred.get(name)
        if stated is None or made is None:
            continue
        if stated.kind != made.kind:
            return f"its output {name!r} is stated to be {stated.kind}, and it makes {made.kind}"
        if None not in (stated.rank, made.rank) and stated.rank != made.rank:
            ranks = f"{stated.rank}, and it makes one of rank {made.rank}"
            return f"its output {name!r} is stated to have rank {ranks}"
    return None
