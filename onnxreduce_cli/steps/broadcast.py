"""Binary operators: 7 made them broadcast as NumPy does, without attributes.

Before, the second input alone could be repeated: with `broadcast=1` it had one element, or its
shape stood within the first's, at `axis` (by default at the end).
"""

from __future__ import annotations

from onnxreduce_cli.model.values import Dims
from onnxreduce_cli.steps.context import Blocked, Context
from onnxreduce_cli.steps.registry import down, up

_OPERATORS = (
    "Add",
    "And",
    "Div",
    "Equal",
    "Greater",
    "Less",
    "Mul",
    "Or",
    "Pow",
    "Sub",
    "Xor",
)
_COMMUTATIVE = frozenset({"Add", "And", "Equal", "Mul", "Or", "Xor"})


@up(_OPERATORS, 7, "broadcast and axis: dropped, trailing dimensions added", blocks="unknown ranks")
def without_attributes(context: Context) -> None:
    """``Add<broadcast=1, axis=1>(x, y)`` becomes ``Add(x, Unsqueeze(y))``, aligned at the end."""
    if context.attribute("broadcast") is None and context.attribute("axis") is None:
        return
    first, second = context.input(0), context.input(1)
    drop = ("broadcast", "axis")
    axis = context.value("axis")
    if not context.value("broadcast", 0) or axis is None:
        context.replace(drop=drop)
        return
    purpose = f"its attribute axis={axis} aligns the second input within the first"
    rank, inner = context.need_rank(first, purpose), context.need_rank(second, purpose)
    behind = rank - (axis % rank if rank else 0) - inner
    if behind > 0 and inner > 0:
        axes = list(range(inner, inner + behind))
        second = context.emit("Unsqueeze", [second], "aligned", axes=axes)
    context.replace(inputs=[first, second], drop=drop)


@down(
    _OPERATORS,
    7,
    "broadcast=1 where the second input is repeated",
    blocks="the shapes are not known, or broadcast in a way that the older version cannot",
)
def with_attributes(context: Context) -> None:
    """``Add(x, y)``, y of shape [3], becomes ``Add<broadcast=1>(x, y)``."""
    names = [context.input(0), context.input(1)]
    if _is_one_element(context, names[1]):
        _with_one_element(context)
        return
    if names[0] == names[1]:
        return
    shapes = [_dims(context, name) for name in names]
    if shapes[0] == shapes[1] and None not in shapes[0]:
        return
    if context.node.op_type in _COMMUTATIVE and len(shapes[0]) < len(shapes[1]):
        names.reverse()
        shapes.reverse()
    outer, inner = shapes
    found = _place(outer, inner)
    if found is None:
        raise Blocked(
            f"its inputs have shapes {_text(outer)} and {_text(inner)}, which before opset 7 are "
            "not known to broadcast",
            "choose opset 7 or later",
        )
    axis, ones = found
    if ones:
        names[1] = context.emit("Squeeze", [names[1]], "within", axes=ones)
    at_end = axis + len(inner) - len(ones) == len(outer)
    context.replace(inputs=names, broadcast=1, axis=None if at_end else axis)


def _with_one_element(context: Context) -> None:
    """``Sub(x, y)`` with y of shape [1, 1], x of [5], becomes ``Sub<broadcast=1>(x of [1, 5], y)``.

    The result has the first input's shape there, so that has all the dimensions.
    """
    first, second = context.input(0), context.input(1)
    wanted = len(_dims(context, second))
    missing = wanted - len(_dims(context, first)) if wanted else 0
    if missing > 0:
        first = context.emit("Unsqueeze", [first], "of_all_ranks", axes=list(range(missing)))
    context.replace(inputs=[first, second], broadcast=1)


def _is_one_element(context: Context, name: str) -> bool:
    known = context.type(name)
    return known is not None and known.dims is not None and all(dim == 1 for dim in known.dims)


def _dims(context: Context, name: str) -> Dims:
    known = context.type(name)
    if known is None or known.dims is None:
        raise Blocked(
            f"the rank of {name!r} is not known, and before opset 7 broadcasting depends on it",
            "state its shape in the model's value_info",
        )
    return known.dims


def _place(outer: Dims, inner: Dims) -> tuple[int, list[int]] | None:
    """Where `inner` stands within `outer`; None if it does not, as far as is known.

    Returns:
        the first of its dimensions that stands for more than one element, counted in `outer`, and
        the dimensions of 1 around them, counted in `inner`, which must go first.
    """
    wide = [index for index, dim in enumerate(inner) if dim != 1]
    if not wide:
        return None
    core = inner[wide[0] : wide[-1] + 1]
    start = len(outer) - len(inner) + wide[0]
    if start < 0 or None in core or outer[start : start + len(core)] != core:
        return None
    return start, [index for index in range(len(inner)) if not wide[0] <= index <= wide[-1]]


def _text(dims: Dims) -> str:
    return "[" + ", ".join("?" if dim is None else str(dim) for dim in dims) + "]"
