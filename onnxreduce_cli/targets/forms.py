"""Forms of a node that matter to runtimes: the values of ``form`` in the quirks of `data/`.

Each form is a function of one node's `NodeFacts`. It returns True where the answer is not known,
because the runtime may get that node wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from onnx import NodeProto, TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.dtypes import FLOATS_WITH_BFLOAT16, INTEGERS
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.targets import binary_forms, fusion_forms, reduction_forms

_NARROW = frozenset(
    {
        TensorProto.INT8,
        TensorProto.UINT8,
        TensorProto.INT16,
        TensorProto.UINT16,
        TensorProto.UINT32,
    }
)

Form = Callable[[NodeFacts], bool]

#: The numbers in TensorProto.DataType of UINT4, INT4, UINT2 and INT2; an older onnx lacks some.
_FOUR_BITS = frozenset({21, 22, 25, 26})


def is_any(node: NodeFacts) -> bool:
    """Return True: the form is every node of the operator."""
    return True


def follows_transpose(node: NodeFacts) -> bool:
    """Return whether the first input is made by a Transpose."""
    maker = node.maker(node.input(0))
    return maker is not None and maker.op_type == "Transpose"


def has_reduction(node: NodeFacts) -> bool:
    """Return whether a ScatterND or ScatterElements has a reduction: add, mul, max or min."""
    return bool(node.value("reduction", "none") != "none")


def is_tanh(node: NodeFacts) -> bool:
    """Return whether a Gelu is approximated by Tanh."""
    return bool(node.value("approximate", "none") == "tanh")


def is_exact(node: NodeFacts) -> bool:
    """Return whether a Gelu is not approximated."""
    return not is_tanh(node)


def is_linear(node: NodeFacts) -> bool:
    """Return whether a Resize interpolates linearly, without antialias."""
    return bool(node.value("mode", "nearest") == "linear") and not is_antialiased(node)


def has_default_coordinates(node: NodeFacts) -> bool:
    """Return whether a linear Resize leaves coordinate_transformation_mode to its default."""
    return is_linear(node) and node.attribute("coordinate_transformation_mode") is None


def resizes_outer_dims(node: NodeFacts) -> bool:
    """Return whether a Resize is known to change the first or the second dimension."""
    return any(axis < 2 for axis in _resized_axes(node))


def resizes_no_image(node: NodeFacts) -> bool:
    """Return whether a Resize is of data whose rank is known not to be 4."""
    rank = node.rank(node.input(0))
    return rank is not None and rank != 4 and bool(_resized_axes(node))


def _resized_axes(node: NodeFacts) -> list[int]:
    """Return the axes that a Resize is known to change; sizes that are not known count as kept."""
    found = node.type(node.input(0))
    dims = None if found is None else found.dims
    if dims is None:
        return []
    axes = node.value("axes", range(len(dims)))
    array = node.constant(node.input(1 if node.source_opset < 11 else 2))
    scales = node.value("scales", ()) if array is None else array.reshape(-1).tolist()
    if scales:
        changed = [scale != 1 for scale in scales]
    else:
        sizes = (node.elements(node.input(3)) if node.input(3) else None) or ()
        changed = [
            isinstance(dims[axis], int) and size not in (None, dims[axis])
            for axis, size in zip(axes, sizes, strict=False)
        ]
    return [axis % len(dims) for axis, may in zip(axes, changed, strict=False) if may]


def is_antialiased(node: NodeFacts) -> bool:
    """Return whether a Resize has antialias=1."""
    return bool(node.value("antialias", 0))


def has_num_outputs(node: NodeFacts) -> bool:
    """Return whether a Split has a number of parts (num_outputs) instead of their sizes."""
    return node.attribute("num_outputs") is not None


def has_uneven_num_outputs(node: NodeFacts) -> bool:
    """Return whether a Split by num_outputs is known to make parts of several sizes."""
    number, known = node.value("num_outputs"), node.type(node.input(0))
    if not number or known is None or known.dims is None:
        return False
    size = known.dims[node.value("axis", 0)]
    return isinstance(size, int) and size % number != 0


def has_uneven_sizes(node: NodeFacts) -> bool:
    """Return whether a Split has an input of sizes that are not all equal, or not known."""
    if node.node.op_type != "Split" or not node.input(1):
        return False
    sizes = node.constant(node.input(1))
    return sizes is None or bool(np.unique(sizes).size != 1)


def has_no_epsilon(node: NodeFacts) -> bool:
    """Return whether the epsilon of a normalization is left to its default."""
    return node.attribute("epsilon") is None


def has_no_kernel_shape(node: NodeFacts) -> bool:
    """Return whether a convolution leaves its kernel_shape to the shape of its weights."""
    return node.attribute("kernel_shape") is None


def has_no_kernel_shape_of_three(node: NodeFacts) -> bool:
    """Return whether a convolution over three dimensions or more has no kernel_shape."""
    rank = node.rank(node.input(0))
    return has_no_kernel_shape(node) and (rank is None or rank > 4)


def is_flat_depthwise(node: NodeFacts) -> bool:
    """Return whether a Conv by kernels of 3 x 3, one for each channel, is of a line or a point.

    Its data is known to be of height or width 1.
    """
    found, weights = node.type(node.input(0)), node.type(node.input(1))
    dims = None if found is None else found.dims
    shape = None if weights is None else weights.dims
    if dims is None or shape is None or shape[1:] != (1, 3, 3) or node.value("group", 1) == 1:
        return False
    return 1 in dims[2:] and all(size == 1 for size in node.value("dilations", ()))


def has_start_or_end(node: NodeFacts) -> bool:
    """Return whether a Shape leaves dimensions out by start or end."""
    return bool(node.value("start", 0)) or node.attribute("end") is not None


def keeps_zero_beside_unknown(node: NodeFacts) -> bool:
    """Return whether a Reshape has allowzero=1 and is known to leave a dimension, -1, open."""
    return bool(node.value("allowzero", 0)) and -1 in (node.elements(node.input(1)) or ())


def is_no_tensor(node: NodeFacts) -> bool:
    """Return whether a Constant is a number, a string or a list of them, not a tensor."""
    return all(node.attribute(name) is None for name in ("value", "sparse_value"))


def is_list(node: NodeFacts) -> bool:
    """Return whether a Constant is a list of numbers or strings: value_ints, value_floats."""
    names = ("value_ints", "value_floats", "value_strings")
    return any(node.attribute(name) is not None for name in names)


def is_list_of_floats(node: NodeFacts) -> bool:
    """Return whether a Constant is a list of floats: value_floats."""
    return node.attribute("value_floats") is not None


def has_default_beta(node: NodeFacts) -> bool:
    """Return whether a HardSigmoid, as in a HardSwish, states the beta that is the default."""
    alpha, beta = node.value("alpha", 0.2), node.value("beta")
    return bool(beta == 0.5 and abs(alpha - 1 / 6) < 1e-6)


def passes_input_on(node: NodeFacts) -> bool:
    """Return whether the node makes an output of the model from an input of it."""
    scope = node.scope
    inputs = node.in_main_graph and node.input(0) in scope.inputs
    return inputs and node.node.output[0] in scope.outputs


def gives_constant_out(node: NodeFacts) -> bool:
    """Return whether the node makes an output of the model from a constant."""
    outputs = node.in_main_graph and node.node.output[0] in node.scope.outputs
    return outputs and binary_forms.constant_shape(node, node.input(0)) is not None


def reads_output(node: NodeFacts) -> bool:
    """Return whether the node reads an output of the model."""
    return node.in_main_graph and node.input(0) in node.scope.outputs


def reads_reshaped_output(node: NodeFacts) -> bool:
    """Return whether the node reads an output of the model that has the data of another value."""
    maker = node.maker(node.input(0)) if reads_output(node) else None
    return maker is not None and maker.op_type in ("Flatten", "Reshape", "Squeeze", "Unsqueeze")


def is_16_bit_float(node: NodeFacts) -> bool:
    """Return whether the data is known to be float16 or bfloat16."""
    return node.elem_type(node.input(0)) in (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def is_int8(node: NodeFacts) -> bool:
    """Return whether the data is known to be int8."""
    return node.elem_type(node.input(0)) == TensorProto.INT8


def is_narrow_integer(node: NodeFacts) -> bool:
    """Return whether the data is known to be of integers that int64 holds, but not int32 or it."""
    return node.elem_type(node.input(0)) in _NARROW


def has_computed_bounds(node: NodeFacts) -> bool:
    """Return whether a bound of a Clip is computed."""
    bounds = filter(None, (node.input(1), node.input(2)))
    return any(binary_forms.constant_shape(node, name) is None for name in bounds)


def has_infinite_bound(node: NodeFacts) -> bool:
    """Return whether a bound of a Clip is known to be infinite."""
    bounds = (node.constant(name) for name in (node.input(1), node.input(2)) if name)
    return any(bound is not None and bool(np.isinf(bound).any()) for bound in bounds)


def is_cubic(node: NodeFacts) -> bool:
    """Return whether a Resize or GridSample interpolates cubically."""
    return node.value("mode", "") in ("cubic", "bicubic")


def is_padded_by_border(node: NodeFacts) -> bool:
    """Return whether a GridSample takes the border for what lies outside."""
    return bool(node.value("padding_mode", "zeros") == "border")


def is_padded_by_reflection(node: NodeFacts) -> bool:
    """Return whether a GridSample interpolates what its reflection is outside."""
    reflected = node.value("padding_mode", "zeros") == "reflection"
    return bool(reflected and node.value("mode", "linear") != "nearest")


def has_no_axes(node: NodeFacts) -> bool:
    """Return whether a Squeeze drops all dimensions of 1."""
    return node.attribute("axes") is None and not node.input(1)


def gives_final_states(node: NodeFacts) -> bool:
    """Return whether a state after the last step, Y_h or Y_c of an LSTM, may be read."""
    return any(
        name and (name in node.scope.outputs or node.readers(name) != ())
        for name in node.node.output[1:]
    )


def is_read_by_node(node: NodeFacts) -> bool:
    """Return whether nodes may read the output, but for one that takes some rows of it."""
    readers = node.readers(node.node.output[0])
    if readers is None:
        return node.scope.function is not None
    # The alternative of this form writes it with those rows taken by a Gather.
    return bool(readers) and not any(_takes_found_rows(node, reader) for reader in readers)


def _takes_found_rows(node: NodeFacts, reader: NodeProto) -> bool:
    squeeze = node.maker(reader.input[1]) if reader.op_type == "Gather" else None
    found = node.maker(squeeze.input[0]) if squeeze and squeeze.op_type == "Squeeze" else None
    return found is not None and found.op_type == "NonZero"


def has_no_zero_point(node: NodeFacts) -> bool:
    """Return whether a zero point is left out that is 0 of uint8, as no int8 is dequantized."""
    op_type = node.node.op_type
    quantizes = op_type == "QuantizeLinear" or (op_type == "DequantizeLinear" and not is_int8(node))
    return quantizes and not node.input(2)


def has_dequantized_operands(node: NodeFacts) -> bool:
    """Return whether the data and the weights of a convolution are dequantized."""
    makers = [node.maker(node.input(0)), node.maker(node.input(1))]
    return all(maker is not None and maker.op_type == "DequantizeLinear" for maker in makers)


def has_axis_beyond_rank(node: NodeFacts) -> bool:
    """Return whether data of a known rank has no such axis, which one scale ignores."""
    rank = node.rank(node.input(0))
    if rank is None:
        return False
    axes = max(rank, 1)
    return not -axes <= node.value("axis", 1) < axes


def joins_lists_from_the_end(node: NodeFacts) -> bool:
    """Return whether a Concat of data known to be of rank 1 counts its axis from the end."""
    return node.value("axis", 0) < 0 and node.rank(node.input(0)) == 1


def is_of_4_bits(node: NodeFacts) -> bool:
    """Return whether the data or the result is known to be of integers of four bits or fewer."""
    names = (node.input(0), node.node.output[0])
    return any(node.elem_type(name) in _FOUR_BITS for name in names if name)


def has_several_indices(node: NodeFacts) -> bool:
    """Return whether the indices of a Gather are more than one number."""
    shape = binary_forms.constant_shape(node, node.input(1))
    return shape is None or math.prod(shape) != 1


def has_list_of_indices(node: NodeFacts) -> bool:
    """Return whether the indices of a Gather are a list of one, or may be."""
    return node.rank(node.input(1)) != 0 and not has_several_indices(node)


def gathers_rows_of_strings(node: NodeFacts) -> bool:
    """Return whether each index of a Gather stands for several strings, or may."""
    known = node.type(node.input(0))
    if known is None or known.elem_type != TensorProto.STRING:
        return False
    if known.dims is None:
        return True
    axis = node.value("axis", 0) % len(known.dims)
    return any(dim != 1 for dim in known.dims[axis + 1 :])


def casts_fractions(node: NodeFacts) -> bool:
    """Return whether a Cast to integers or bool takes floats that may have a fraction."""
    known, maker = node.elem_type(node.input(0)), node.maker(node.input(0))
    if binary_forms.constant_shape(node, node.input(0)) is not None or known not in (
        None,
        *FLOATS_WITH_BFLOAT16,
    ):
        return False
    whole = maker is not None and maker.op_type in ("Ceil", "Floor", "Round")
    wanted = node.value("to", TensorProto.UNDEFINED)
    if wanted == TensorProto.BOOL:
        return True
    # The alternative of this form writes it like that, with the fraction cut off before.
    return wanted in INTEGERS and not whole and not _is_truncated_before(node, maker)


def casts_numbers_to_bool(node: NodeFacts) -> bool:
    """Return whether a Cast to bool takes numbers that are computed and may be others than 0 and 1.

    Constants are left out, what was bool before, and what only nodes read that take any number but
    0 for true.
    """
    name, readers = node.input(0), node.readers(node.node.output[0])
    if node.value("to", TensorProto.UNDEFINED) != TensorProto.BOOL:
        return False
    if readers and all(reader.op_type in ("And", "Where") for reader in readers):
        return node.node.output[0] in node.scope.outputs
    if binary_forms.constant_shape(node, name) is not None:
        return False
    maker = node.maker(name)
    before = maker.input[0] if maker is not None and maker.op_type == "Cast" else name
    return TensorProto.BOOL not in (node.elem_type(name), node.elem_type(before))


def _is_truncated_before(node: NodeFacts, maker: NodeProto | None) -> bool:
    makers = [node.maker(name) for name in maker.input] if maker is not None else []
    return (maker is not None and maker.op_type == "Sub") and all(
        item is not None and item.op_type == "Floor" for item in makers
    )


def is_scaled(node: NodeFacts) -> bool:
    """Return whether a Gemm has an alpha other than 1, or a C and such a beta."""
    return bool(node.value("alpha", 1) != 1 or (node.input(2) and node.value("beta", 1) != 1))


def has_computed_c(node: NodeFacts) -> bool:
    """Return whether the C of a Gemm is computed, other than by dequantizing a constant."""
    maker = node.maker(node.input(2))
    if maker is not None and maker.op_type == "DequantizeLinear":
        return binary_forms.constant_shape(node, maker.input[0]) is None
    return bool(node.input(2)) and binary_forms.constant_shape(node, node.input(2)) is None


def repeats_inner_dims(node: NodeFacts) -> bool:
    """Return whether a Tile repeats a dimension after one that it keeps and that is not 1."""
    repeats, found = node.constant(node.input(1)), node.type(node.input(0))
    if repeats is None or found is None or found.dims is None:
        return True
    whole = False
    for dim, times in zip(found.dims, repeats.reshape(-1).tolist(), strict=False):
        if times != 1 and whole:
            return True
        whole = whole or (times == 1 and dim != 1)
    return False


#: The function of each form, by the name that `data/` has for it.
FORMS: Mapping[str, Form] = {
    "any": is_any,
    "axes input": reduction_forms.has_axes_input,
    "axes attribute": reduction_forms.has_axes_attribute,
    "noop": reduction_forms.is_noop,
    "flattening": reduction_forms.is_flattening,
    "flattening from the end": reduction_forms.is_flattening_from_the_end,
    "inner axis": reduction_forms.normalizes_inner_axis,
    "vector": reduction_forms.gives_a_vector,
    "several axes": reduction_forms.has_several_axes,
    "negative axes": reduction_forms.drops_by_negative_axes,
    "kept dimensions": reduction_forms.keeps_dims,
    "all axes": reduction_forms.names_all_axes,
    "three kept": reduction_forms.keeps_three,
    "in threads": reduction_forms.computes_in_threads,
    "last kept": reduction_forms.keeps_the_last,
    "three reduced": reduction_forms.reduces_three,
    "three reduced, not last": reduction_forms.reduces_three_not_last,
    "single elements": reduction_forms.reduces_single_elements,
    "no image": reduction_forms.has_rank_but_3_to_5,
    "outer axes": reduction_forms.has_outer_axes,
    "integers with a constant": binary_forms.computes_integers,
    "after Transpose": follows_transpose,
    "reduction": has_reduction,
    "tanh": is_tanh,
    "exact": is_exact,
    "linear": is_linear,
    "linear, no coordinates": has_default_coordinates,
    "outer dimensions": resizes_outer_dims,
    "not of rank 4": resizes_no_image,
    "antialias": is_antialiased,
    "num_outputs": has_num_outputs,
    "uneven num_outputs": has_uneven_num_outputs,
    "uneven sizes": has_uneven_sizes,
    "no epsilon": has_no_epsilon,
    "no kernel_shape": has_no_kernel_shape,
    "no kernel_shape of three": has_no_kernel_shape_of_three,
    "flat depthwise": is_flat_depthwise,
    "start or end": has_start_or_end,
    "allowzero and -1": keeps_zero_beside_unknown,
    "no tensor": is_no_tensor,
    "list": is_list,
    "list of floats": is_list_of_floats,
    "default beta": has_default_beta,
    "smaller constant": binary_forms.has_smaller_constant,
    "operand of rank 1": binary_forms.has_operand_of_rank_1,
    "more than two": binary_forms.has_more_than_two,
    "broadcast of rank 5": binary_forms.is_broadcast_of_rank_5,
    "norm": binary_forms.divides_by_norm,
    "norm of another": binary_forms.divides_by_norm_of_another,
    "constant operand": binary_forms.has_constant_operand,
    "input to output": passes_input_on,
    "constant to output": gives_constant_out,
    "reads an output": reads_output,
    "reads a reshaped output": reads_reshaped_output,
    "broadcast": binary_forms.is_broadcast,
    "broadcast before image": binary_forms.is_broadcast_before_image,
    "inner broadcast": binary_forms.is_broadcast_within,
    "smaller first": binary_forms.is_smaller_first,
    "16-bit float": is_16_bit_float,
    "int8": is_int8,
    "narrow integer": is_narrow_integer,
    "float to integer": casts_fractions,
    "number to bool": casts_numbers_to_bool,
    "alpha or beta": is_scaled,
    "computed C": has_computed_c,
    "inner repeats": repeats_inner_dims,
    "several indices": has_several_indices,
    "list of indices": has_list_of_indices,
    "rows of strings": gathers_rows_of_strings,
    "like Gelu": fusion_forms.misleads_gelu,
    "like Gelu in order": fusion_forms.misleads_gelu_in_order,
    "quantized": fusion_forms.is_quantized,
    "like a second Relu": fusion_forms.is_second_relu,
    "scaled next": binary_forms.is_scaled_next,
    "scaled beside batch": fusion_forms.is_scaled_beside_batch,
    "4 bits": is_of_4_bits,
    "no axes": has_no_axes,
    "cubic": is_cubic,
    "border": is_padded_by_border,
    "reflection": is_padded_by_reflection,
    "dequantized operands": has_dequantized_operands,
    "computed bounds": has_computed_bounds,
    "no zero point": has_no_zero_point,
    "axis beyond rank": has_axis_beyond_rank,
    "lists from the end": joins_lists_from_the_end,
    "infinite bound": has_infinite_bound,
    "final states": gives_final_states,
    "read by a node": is_read_by_node,
}


def may_have_form(node: NodeFacts, form: str) -> bool:
    """Return whether a node has, or may have, a form: a name of `FORMS`."""
    try:
        return FORMS[form](node)
    except Blocked:
        return True


def form_blocker(node: NodeFacts, form: str) -> Blocked | None:
    """Return why it is not known whether a node has a form; None where it is known.

    The form then depends on an attribute that the calls of a function set in several ways.
    """
    try:
        FORMS[form](node)
    except Blocked as blocked:
        return blocked.kept()
    return None
