"""InstanceNormalization and GroupNormalization as exporters write them."""

from __future__ import annotations

from functools import partial
from typing import Any

from onnxreduce_cli.emit.builder import Value
from onnxreduce_cli.emit.context import Context
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.idioms.idiom import Idiom
from onnxreduce_cli.idioms.matching import IdiomMatch, NoMatchError
from onnxreduce_cli.idioms.normalizations import FOLDED, FORMS, affine, layer_normalization
from onnxreduce_cli.idioms.parameters import (
    is_filled,
    is_shape_of,
    parameter_of_axes,
    require_dims,
    require_shape,
)
from onnxreduce_cli.idioms.tracing import Tracer
from onnxreduce_cli.model.graph.values import Dims

#: The first opset at which GroupNormalization has a scale for each channel.
_SCALE_OF_CHANNELS = 21


def group_normalization(to: Tracer, data: str, scale: str, bias: str) -> Value:
    """GroupNormalization by InstanceNormalization, as PyTorch's exporter writes it below 21."""
    op = to.op
    groups = op.Reshape(data, to.aside("groups"))
    normal = op.InstanceNormalization(
        groups, to.aside("ones"), to.aside("zeros"), epsilon=to.attribute("epsilon")
    )
    return affine(to, op.Reshape(normal, to.aside("shape")), scale, bias)


def _in_groups(facts: NodeFacts, found: IdiomMatch) -> dict[str, Any]:
    """Return the attributes of a GroupNormalization.

    Raises:
        NoMatchError: channels are not normalised in groups, or the parameters do not fit.
    """
    dims = require_dims(facts, found["data"])
    if len(dims) < 3:
        raise NoMatchError("its data has no dimensions beside batch and channels")
    sizes = facts.elements(found["groups"])
    if sizes is None or len(sizes) != 3 or sizes[1] is None or sizes[1] < 1:
        raise NoMatchError("the number of groups is not known")
    groups, channels = sizes[1], dims[1]
    kept = facts.kept_dims(found["groups"], found["data"])
    if not (sizes[0] == 0 or kept[:1] == (True,) or (sizes[0] is not None and sizes[0] == dims[0])):
        raise NoMatchError("its batch may become another one")
    if not isinstance(channels, int) or channels % groups:
        raise NoMatchError("its groups may not be of whole channels")
    if not is_filled(facts, found["ones"], 1) or not is_filled(facts, found["zeros"], 0):
        raise NoMatchError("its InstanceNormalization has a scale or a bias of its own")
    if not is_shape_of(facts, found["shape"], found["data"]):
        raise NoMatchError("it may not get the shape back that it had")
    _require_channels(facts, found, dims)
    return {"num_groups": groups, **found.numbers}


def _in_instances(facts: NodeFacts, found: IdiomMatch) -> dict[str, Any]:
    """Return the attributes of an InstanceNormalization.

    Raises:
        NoMatchError: it is over other axes, or its parameters may not be for channels.
    """
    dims = require_dims(facts, found["data"])
    if len(dims) < 3:
        raise NoMatchError("its data has no dimensions beside batch and channels")
    axes = sorted(axis % len(dims) for axis in found.axes or ())
    if axes != list(range(2, len(dims))):
        raise NoMatchError(f"its axes {axes} are not all but the first two")
    _require_channels(facts, found, dims)
    return found.numbers


def _require_channels(facts: NodeFacts, found: IdiomMatch, dims: Dims) -> None:
    if not isinstance(dims[1], int):
        raise NoMatchError("the number of channels is not known")
    for name in ("scale", "bias"):
        shape = (dims[1], *(1 for _ in dims[2:]))
        require_shape(facts, name, found[name], shape, len(dims))


def _parameters(context: Context, found: IdiomMatch) -> list[str]:
    """Return the data, and scale and bias of shape [channels]."""
    channels = 1 - len(require_dims(context, found["data"]))
    parameters = [parameter_of_axes(context, found[name], [channels]) for name in ("scale", "bias")]
    return [found["data"], *parameters]


_INSTANCES = tuple(partial(layer_normalization, **form) for form in FORMS)

IDIOMS = (
    Idiom(
        "GroupNormalization",
        (group_normalization,),
        _in_groups,
        since=_SCALE_OF_CHANNELS,
        make_inputs=_parameters,
    ),
    Idiom("InstanceNormalization", _INSTANCES, _in_instances, make_inputs=_parameters),
    Idiom("InstanceNormalization", FOLDED, _in_instances, stabler=True, make_inputs=_parameters),
)
