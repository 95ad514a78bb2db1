"""A site whose node has graphs within it, as two small models: the node with what these read.

The nodes in the graphs are sites of their own, which are checked each. What becomes of the node
around them, such as an If that becomes Loops, shows only with them: so it is converted again.
Of what nests deep in it only the values are there: see `site_nesting`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy.typing as npt
from onnx import ModelProto, NodeProto, TypeProto, helper, numpy_helper

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.errors import OnnxreduceError
from onnxreduce_cli.model import ir_version
from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.model.scope import with_inner
from onnxreduce_cli.verification.errors import UncheckableError
from onnxreduce_cli.verification.randomness import is_random
from onnxreduce_cli.verification.reads import reads
from onnxreduce_cli.verification.site_names import Renaming, made
from onnxreduce_cli.verification.site_nesting import Nesting
from onnxreduce_cli.verification.site_nodes import RANDOM, bound, refuse_external
from onnxreduce_cli.verification.site_types import type_proto

#: By models of a node, and the operators that replace it, what conversions made of them.
Converted = dict[tuple[bytes, tuple[str, ...]], ModelProto]


def models_with_bodies(
    conversion: Conversion, site: Site, converted: Converted
) -> tuple[ModelProto, ModelProto]:
    """The node on its own, and what a conversion makes of that.

    What its graphs read of the graph around it are inputs, or constants.

    Args:
        conversion: the conversion that the site is from.
        site: the site.
        converted: the models that were converted before; this one is added.

    Raises:
        UncheckableError: it cannot be run on its own, or something else replaces it there.
    """
    facts, scope = conversion.facts, site.scope
    nesting = Nesting(facts, site.node)
    node = bound(facts.calls, scope, nesting.node)
    refuse_external(node)
    inner = list(with_inner([node]))
    if any(not is_default(item.domain) for item in inner):
        raise UncheckableError("its subgraphs have nodes of other domains")
    if any(is_random(item, scope.opset, ()) for item in inner):
        raise UncheckableError(RANDOM)
    constants, types = dict[str, npt.NDArray[Any]](), dict(nesting.types)
    for name in reads([node]):
        if name in nesting.types:
            continue
        array, known = facts.constant(scope, name), facts.type(scope, name)
        if array is not None:
            constants[name] = array
        elif known is None:
            raise UncheckableError(f"the type of {name!r} is not known")
        else:
            types[name] = type_proto(known, known.dims)
    before = _model(node, types, constants, scope.opset or 0)
    key = before.SerializeToString(deterministic=True), site.operators
    if key not in converted:
        converted[key] = _converted(before, conversion, site)
    return before, converted[key]


def _model(
    node: NodeProto,
    types: Mapping[str, TypeProto],
    constants: Mapping[str, npt.NDArray[Any]],
    opset: int,
) -> ModelProto:
    """A model of one node, by names that do not depend on the model that it is from."""
    names = Renaming()
    for prefix, found in (
        ("i", [*types, *constants]),
        ("o", node.output),
        ("t", made([node])),
    ):
        for name in found:
            names.add(name, prefix)
    graph = helper.make_graph(
        [names.node(node, 0)],
        "site",
        [helper.make_value_info(names[name], proto) for name, proto in types.items()],
        [],
        [numpy_helper.from_array(array, names[name]) for name, array in constants.items()],
    )
    for name in node.output:
        if name:
            graph.output.add().name = names[name]
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=max(4, ir_version.least_for_opset(opset)),
    )


def _converted(before: ModelProto, conversion: Conversion, site: Site) -> ModelProto:
    """The model of the node at the target, if its node becomes there what the site becomes."""
    after = ModelProto()
    after.CopyFrom(before)
    try:
        converted = Conversion(after, conversion.target, target_ir_version=conversion.ir_version)
        if _replacement(converted.sites, before) != site.operators:
            raise UncheckableError("on its own something else replaces it")
        converted.apply()
    except OnnxreduceError as error:
        raise UncheckableError(f"on its own it cannot be converted: {error}") from error
    return after


def _replacement(sites: Sequence[Site], before: ModelProto) -> tuple[str, ...]:
    """The operators that replace the only node of a model's graph; empty if it stays."""
    outputs = list(before.graph.node[0].output)
    return next((site.operators for site in sites if list(site.node.output) == outputs), ())
