"""Forms of a node that runtimes tell apart: the vocabulary of the quirks in `data/`.

Each is a question about one node, asked of its `NodeFacts`. What is not known counts as the form:
a runtime that gets it wrong may get this node wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from onnx import NodeProto, TensorProto

from onnxreduce_cli.emit.blocked import Blocked
from onnxreduce_cli.emit.dtypes import FLOATS_WITH_BFLOAT16, INTEGERS
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.targets import binary_forms, reduction_forms

Form = Callable[[NodeFacts], bool]


def is_any(node: NodeFacts) -> bool:
    """Every node of the operator."""
    return True


def follows_transpose(node: NodeFacts) -> bool:
    """Return whether the first input is made by a Transpose."""
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


def has_default_coordinates(node: NodeFacts) -> bool:
    """A linear Resize whose coordinate_transformation_mode is left to its default."""
    return is_linear(node) and node.attribute("coordinate_transformation_mode") is None


def is_antialiased(node: NodeFacts) -> bool:
    """A Resize with antialias=1."""
    return bool(node.value("antialias", 0))


def has_num_outputs(node: NodeFacts) -> bool:
    """A Split into a number of parts, not into parts of given sizes."""
    return node.attribute("num_outputs") is not None


def has_no_epsilon(node: NodeFacts) -> bool:
    """Return whether the epsilon of a normalization is left to its default."""
    return node.attribute("epsilon") is None


def has_default_beta(node: NodeFacts) -> bool:
    """The HardSigmoid of a HardSwish, with its beta there though it is the default."""
    alpha, beta = node.value("alpha", 0.2), node.value("beta")
    return bool(beta == 0.5 and abs(alpha - 1 / 6) < 1e-6)


def passes_input_on(node: NodeFacts) -> bool:
    """Return whether the node makes an output of the model from an input of it."""
    scope = node.scope
    inputs = node.in_main_graph and node.input(0) in scope.inputs
    return inputs and node.node.output[0] in scope.outputs


def is_16_bit_float(node: NodeFacts) -> bool:
    """Return whether the data is known to be float16 or bfloat16."""
    return node.elem_type(node.input(0)) in (TensorProto.FLOAT16, TensorProto.BFLOAT16)


def has_several_indices(node: NodeFacts) -> bool:
    """Return whether the indices of a Gather are more than one number."""
    indices = node.constant(node.input(1))
    return indices is None or indices.size != 1


def casts_fractions(node: NodeFacts) -> bool:
    """A Cast of floats that may not be whole numbers to integers or bool."""
    known, maker = node.elem_type(node.input(0)), node.maker(node.input(0))
    if node.constant(node.input(0)) is not None or known not in (None, *FLOATS_WITH_BFLOAT16):
        return False
    whole = maker is not None and maker.op_type in ("Ceil", "Floor", "Round")
    wanted = node.value("to", TensorProto.UNDEFINED)
    if wanted == TensorProto.BOOL:
        return True
    # That is how it is written where it is cut off before.
    return wanted in INTEGERS and not whole and not _is_truncated_before(node, maker)


def _is_truncated_before(node: NodeFacts, maker: NodeProto | None) -> bool:
    makers = [node.maker(name) for name in maker.input] if maker is not None else []
    return (maker is not None and maker.op_type == "Sub") and all(
        item is not None and item.op_type == "Floor" for item in makers
    )


def is_scaled(node: NodeFacts) -> bool:
    """A Gemm whose alpha is not 1, or the beta of a C that it has."""
    return bool(node.value("alpha", 1) != 1 or (node.input(2) and node.value("beta", 1) != 1))


def has_computed_c(node: NodeFacts) -> bool:
    """A Gemm whose C is computed, not merely dequantized."""
    maker = node.maker(node.input(2))
    if maker is not None and maker.op_type == "DequantizeLinear":
        return node.constant(maker.input[0]) is None
    return bool(node.input(2)) and node.constant(node.input(2)) is None


def repeats_inner_dims(node: NodeFacts) -> bool:
    """A Tile that repeats a dimension behind one of several elements that it does not repeat."""
    repeats, found = node.constant(node.input(1)), node.type(node.input(0))
    if repeats is None or found is None or found.dims is None:
        return True
    whole = False
    for dim, times in zip(found.dims, repeats.reshape(-1).tolist(), strict=False):
        if times != 1 and whole:
            return True
        whole = whole or (times == 1 and dim != 1)
    return False


#: The forms by the names that `data/` has for them.
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
    "antialias": is_antialiased,
    "num_outputs": has_num_outputs,
    "no epsilon": has_no_epsilon,
    "default beta": has_default_beta,
    "smaller constant": binary_forms.has_smaller_constant,
    "operand of rank 1": binary_forms.has_operand_of_rank_1,
    "more than two": binary_forms.has_more_than_two,
    "broadcast of rank 5": binary_forms.is_broadcast_of_rank_5,
    "norm": binary_forms.divides_by_norm,
    "norm of another": binary_forms.divides_by_norm_of_another,
    "constant operand": binary_forms.has_constant_operand,
    "input to output": passes_input_on,
    "broadcast": binary_forms.is_broadcast,
    "inner broadcast": binary_forms.is_broadcast_within,
    "smaller first": binary_forms.is_smaller_first,
    "16-bit float": is_16_bit_float,
    "float to integer": casts_fractions,
    "alpha or beta": is_scaled,
    "computed C": has_computed_c,
    "inner repeats": repeats_inner_dims,
    "several indices": has_several_indices,
    "scaled next": binary_forms.is_scaled_next,
}


def may_have_form(node: NodeFacts, form: str) -> bool:
    """Return whether a node is of a form, a name of `FORMS`, or may be."""
    try:
        return FORMS[form](node)
    except Blocked:
        return True


def form_blocker(node: NodeFacts, form: str) -> Blocked | None:
    """Return why it is not known whether a node is of a form; None where it is known.

    It depends on an attribute then that calls of a function set in several ways.
    """
    try:
        FORMS[form](node)
    except Blocked as blocked:
        return blocked.kept()
    return None
