"""Forms of a node that runtimes tell apart: the vocabulary of the quirks in `data/`.

Each is a question about one node, asked of its `NodeFacts`. What is not known counts as the form:
a runtime that gets it wrong may get this node wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from onnx import AttributeProto, NodeProto, TensorProto

from onnxreduce_cli.emit.dtypes import INTEGERS
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.model.values import Dims

Form = Callable[[NodeFacts], bool]

#: Of a node that has no such attribute.
_NO_AXES = AttributeProto()

#: Where the axes are among the inputs.
_AXES_AT = {"Pad": 3}


def _axes_input(node: NodeFacts) -> str:
    return node.input(_AXES_AT.get(node.node.op_type, 1))


def is_any(node: NodeFacts) -> bool:
    """Every node of the operator."""
    return True


def has_axes_input(node: NodeFacts) -> bool:
    """The axes are an input, and not an empty one."""
    name = _axes_input(node)
    if not name:
        return False
    axes = node.constant(name)
    return axes is None or axes.size > 0


def has_axes_attribute(node: NodeFacts) -> bool:
    """The axes are an attribute."""
    axes = node.attribute("axes")
    return axes is not None and (bool(axes.ref_attr_name) or bool(axes.ints))


def is_noop(node: NodeFacts) -> bool:
    """It reduces over none: noop_with_empty_axes=1, and no axes, or maybe none at run time."""
    if not node.value("noop_with_empty_axes", 0):
        return False
    name = _axes_input(node)
    return _names_no_axes(node) or (bool(name) and node.constant(name) is None)


def _names_no_axes(node: NodeFacts) -> bool:
    name = _axes_input(node)
    if name:
        axes = node.constant(name)
        return axes is not None and not axes.size
    return not has_axes_attribute(node)


def is_flattening(node: NodeFacts) -> bool:
    """A Softmax, LogSoftmax or Hardmax before opset 13 over more than its last dimension.

    Runtimes that take it for the newer operator normalise over the one dimension alone.
    """
    if node.source_opset >= 13:
        return False
    axis, dims = node.value("axis", 1), _dims(node)
    if dims is None:
        return bool(axis != -1)
    return any(dim != 1 for dim in dims[axis + 1 if axis != -1 else len(dims) :])


def is_flattening_from_the_end(node: NodeFacts) -> bool:
    """A flattening Softmax, LogSoftmax or Hardmax whose axis is negative."""
    return is_flattening(node) and bool(node.value("axis", 1) < 0)


def reduces_single_elements(node: NodeFacts) -> bool:
    """A reduction over dimensions that are known to be 1.

    Those that are not known are seldom 1: nobody reduces over them then.
    """
    dims, axes = _dims(node), _axes(node)
    if dims is None or axes is None:
        return False
    return all(dims[axis] == 1 for axis in axes or range(len(dims)))


def has_rank_but_3_to_5(node: NodeFacts) -> bool:
    """A reduction over some of the dimensions of data of a rank that images have not."""
    dims = _dims(node)
    return _axes(node) != () and (dims is None or not 3 <= len(dims) <= 5)


def has_outer_axes(node: NodeFacts) -> bool:
    """A reduction over several dimensions, batch or channels among them or out of order."""
    axes = _axes(node)
    if axes is None:
        return True
    return len(axes) > 1 and any(axis < 2 + place for place, axis in enumerate(axes))


def _axes(node: NodeFacts) -> tuple[int, ...] | None:
    """The axes of a reduction, counted from the front; none for all, None if not known."""
    if _names_no_axes(node):
        return ()
    name, attribute, dims = _axes_input(node), node.attribute("axes"), _dims(node)
    array = node.constant(name) if name else None
    found = [*(attribute or _NO_AXES).ints]
    if array is not None and array.dtype.kind in "iu":
        found = array.reshape(-1).tolist()
    if not found or dims is None or any(not -len(dims) <= axis < len(dims) for axis in found):
        return None
    return tuple(axis % len(dims) for axis in found)


def computes_integers(node: NodeFacts) -> bool:
    """Arithmetic of integers, of rank 2 or more, with a constant.

    What is of lower rank are sizes, which runtimes compute before the model runs.
    """
    made = node.node.output[0]
    # Most are not: that is told for all nodes of the same types.
    if node.elem_type(made) not in INTEGERS:
        return False
    rank = node.rank(made)
    if rank is not None and rank < 2:
        return False
    return [node.constant(name) is None for name in node.node.input].count(False) == 1


def is_inner(node: NodeFacts) -> bool:
    """A Softmax, LogSoftmax or Hardmax from opset 13 on over another dimension than the last."""
    if node.source_opset < 13:
        return False
    axis, dims = node.value("axis", -1), _dims(node)
    return bool(axis != -1 and (dims is None or axis != len(dims) - 1))


def _dims(node: NodeFacts) -> Dims | None:
    found = node.type(node.input(0))
    return None if found is None else found.dims


def follows_transpose(node: NodeFacts) -> bool:
    """What it reads is what a Transpose makes."""
    maker = node.maker(node.input(0))
    return maker is not None and maker.op_type == "Transpose"


def has_reduction(node: NodeFacts) -> bool:
    """A ScatterND or ScatterElements that adds, multiplies, or takes the least or the most."""
    return bool(node.value("reduction", "none") != "none")


def is_tanh(node: NodeFacts) -> bool:
    """A Gelu that is approximated by Tanh."""
    return bool(node.value("approximate", "none") == "tanh")


def is_exact(node: NodeFacts) -> bool:
    """A Gelu that is not approximated."""
    return not is_tanh(node)


def is_linear(node: NodeFacts) -> bool:
    """A Resize that interpolates linearly, and does no more."""
    return bool(node.value("mode", "nearest") == "linear") and not is_antialiased(node)


def leaves_coordinates_out(node: NodeFacts) -> bool:
    """A linear Resize whose coordinate_transformation_mode is left to its default."""
    return is_linear(node) and node.attribute("coordinate_transformation_mode") is None


def is_antialiased(node: NodeFacts) -> bool:
    """A Resize with antialias=1."""
    return bool(node.value("antialias", 0))


def has_num_outputs(node: NodeFacts) -> bool:
    """A Split into a number of parts, not into parts of given sizes."""
    return node.attribute("num_outputs") is not None


def has_no_epsilon(node: NodeFacts) -> bool:
    """The epsilon of a normalization is left to its default."""
    return node.attribute("epsilon") is None


def states_beta(node: NodeFacts) -> bool:
    """The HardSigmoid of a HardSwish, with its beta there though it is the default."""
    alpha, beta = node.value("alpha", 0.2), node.attribute("beta")
    return beta is not None and beta.f == 0.5 and abs(alpha - 1 / 6) < 1e-6


def has_smaller_constant(node: NodeFacts) -> bool:
    """An operand is constant, and broadcast along more than the channels of the other.

    Scalars and what has one value for each channel, [1, C, 1, 1], are so common that every runtime
    takes them.
    """
    names = [node.input(index) for index in (0, 1)]
    for name, other in (names, reversed(names)):
        array = node.constant(name)
        if array is None or array.size == 1:
            continue
        found = node.type(other)
        dims = None if found is None else found.dims
        if dims is None or (array.shape != dims and not _per_channel(array.shape, len(dims))):
            return True
    return False


def is_broadcast(node: NodeFacts) -> bool:
    """None of two operands is constant, and one is broadcast, but not along its last dimensions.

    What has the first dimensions of the other, the channels among them, and 1 for those after them
    is taken by every runtime: [N, C, H, 1]. So are matrices.
    """
    shapes = _broadcast(node)
    if shapes is None:
        return False
    smaller, larger = shapes
    if len(smaller) != len(larger):
        return True
    same = next(index for index, dim in enumerate(smaller) if dim != larger[index])
    return same < 2 or any(dim != 1 for dim in smaller[same:])


def is_smaller_first(node: NodeFacts) -> bool:
    """None of two operands is constant, and the first one is broadcast."""
    shapes = _broadcast(node)
    found = node.type(node.input(0))
    return shapes is not None and found is not None and found.dims == shapes[0]


def _broadcast(node: NodeFacts) -> tuple[Dims, Dims] | None:
    """The shapes of two operands that differ, that of the smaller first; None for matrices."""
    names = [node.input(index) for index in (0, 1)]
    if any(node.constant(name) is not None for name in names):
        return None
    found = (node.type(name) for name in names)
    first, second = (None if known is None else known.dims for known in found)
    if first is None or second is None or first == second or max(len(first), len(second)) < 3:
        return None
    smaller, larger = sorted((first, second), key=lambda dims: sum(dim != 1 for dim in dims))
    return smaller, larger


def has_constant_operand(node: NodeFacts) -> bool:
    """An operand is constant."""
    return any(node.constant(name) is not None for name in node.node.input)


def passes_input_on(node: NodeFacts) -> bool:
    """It makes an output of the model of an input."""
    scope = node.scope
    inputs = node.in_main_graph and node.input(0) in scope.inputs
    return inputs and node.node.output[0] in scope.outputs


def is_of_halves(node: NodeFacts) -> bool:
    """Its data are known to be float16 or bfloat16."""
    return node.elem_type(node.input(0)) in (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def is_scaled_next(node: NodeFacts) -> bool:
    """What it gives is multiplied by one constant number next, or one is added to it, or may be."""
    readers = node.readers(node.node.output[0])
    return readers is None or any(_scales(node, reader) for reader in readers)


def _scales(node: NodeFacts, reader: NodeProto) -> bool:
    if reader.op_type in _ARITHMETIC:
        given = reader.input[1:] if reader.op_type == "Div" else reader.input
        return any(_is_one_number(node, name) for name in given)
    return not (reader.op_type in _NEVER_SCALE or reader.op_type.startswith("Reduce"))


def _is_one_number(node: NodeFacts, name: str) -> bool:
    array = node.constant(name)
    if array is None:  # The runtime takes it for constant, even where a caller may override it.
        owner = node.scope.resolve(name)
        held = None if owner is None else owner.initializers.get(name)
        return held is not None and math.prod(held.dims) == 1
    return array.size == 1


#: Binary operators that scale or shift where one operand is a constant number.
_ARITHMETIC = {"Add", "Sub", "Mul", "Div"}

#: Operators that neither scale nor shift, nor are written by others that begin with that.
_NEVER_SCALE = {"Concat", "MatMul", "Pow", "Sqrt"}


def has_several_indices(node: NodeFacts) -> bool:
    """The indices of a Gather are not one number."""
    indices = node.constant(node.input(1))
    return indices is None or indices.size != 1


def _per_channel(shape: tuple[int, ...], rank: int) -> bool:
    places = [index + rank - len(shape) for index, dim in enumerate(shape) if dim != 1]
    return places == [1]


#: The forms by the names that `data/` has for them.
FORMS: Mapping[str, Form] = {
    "any": is_any,
    "axes input": has_axes_input,
    "axes attribute": has_axes_attribute,
    "noop": is_noop,
    "flattening": is_flattening,
    "flattening from the end": is_flattening_from_the_end,
    "inner axis": is_inner,
    "single elements": reduces_single_elements,
    "no image": has_rank_but_3_to_5,
    "outer axes": has_outer_axes,
    "integers with a constant": computes_integers,
    "after Transpose": follows_transpose,
    "reduction": has_reduction,
    "tanh": is_tanh,
    "exact": is_exact,
    "linear": is_linear,
    "linear, no coordinates": leaves_coordinates_out,
    "antialias": is_antialiased,
    "num_outputs": has_num_outputs,
    "no epsilon": has_no_epsilon,
    "default beta": states_beta,
    "smaller constant": has_smaller_constant,
    "constant operand": has_constant_operand,
    "input to output": passes_input_on,
    "broadcast": is_broadcast,
    "smaller first": is_smaller_first,
    "16-bit float": is_of_halves,
    "several indices": has_several_indices,
    "scaled next": is_scaled_next,
}
