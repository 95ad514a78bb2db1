"""Making of pairs: a site as two small models, of the node and of its replacement."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy.typing as npt
from onnx import FunctionProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.pairs.attribute_values import AttributeValues, constant_reference
from onnxreduce_cli.engine.pairs.bodies import models_with_bodies
from onnxreduce_cli.engine.pairs.names import Renaming, made_values, node_key
from onnxreduce_cli.engine.pairs.nodes import RANDOM, nodes_behind, refuse_external
from onnxreduce_cli.engine.pairs.pair import Pair, Sizes, UncheckableError
from onnxreduce_cli.engine.pairs.types import (
    MOST_INTEGERS,
    SmallDims,
    fixed_dims,
    keeps_value,
    mentioned_integers,
    type_proto,
)
from onnxreduce_cli.engine.sites import Site
from onnxreduce_cli.model.graph import ir_version
from onnxreduce_cli.model.graph.domains import (
    LEARNING,
    imported_version,
    is_default,
    set_learning_version,
)
from onnxreduce_cli.model.graph.random_operators import is_random
from onnxreduce_cli.model.graph.scope import Scope, holds_graphs, with_inner
from onnxreduce_cli.model.graph.used_values import used_values
from onnxreduce_cli.model.graph.values import Dims, ValueType

Array = npt.NDArray[Any]


class _Parts(NamedTuple):
    """The nodes and values of a pair, by their names in the source model.

    Attributes:
        before: the source node, after the nodes that compute its inputs from those of the pair.
        after: the nodes that replace it.
        constants: the constants of both models, by name.
        drawn: the inputs that are not constants.
        outputs: the node's outputs that are compared.
        names: the names in the pair.
    """

    before: list[NodeProto]
    after: list[NodeProto]
    constants: dict[str, Array]
    drawn: list[str]
    outputs: list[str]
    names: Renaming


class PairMaker:
    """Makes the pairs of one conversion's sites.

    Attributes:
        conversion: the conversion.
    """

    def __init__(self, conversion: Conversion) -> None:
        """Prepare; the conversion must not have been applied."""
        self.conversion = conversion
        self._facts = conversion.facts
        self._reads: dict[int, set[str]] = {}

    @cached_property
    def _sites(self) -> dict[int, Site]:
        """The sites that are not blocked, by the identity of their nodes."""
        return {id(site.node): site for site in self.conversion.sites if site.blocked is None}

    def signature(self, site: Site) -> Hashable:
        """Return a cheap key: sites with equal keys are equivalent, but not always vice versa."""
        node = site.node
        if holds_graphs(node):
            return id(site)  # The names within subgraphs would have to be ignored too.
        used = self._used(site.scope)
        given = dict.fromkeys(name for item in (*site.behind, node) for name in item.input[:])
        return (
            self._form(site),
            *_function_key(site.scope.function),
            *[self._input_key(site, name) for name in given if name],
            *[name in used for name in node.output[:]],
        )

    def _form(self, site: Site) -> Hashable:
        """Return a key of a site without what is known of the values that its node reads."""
        scope = site.scope
        own = self.conversion.constants(scope)
        tokens: dict[str, Any] = {"": ""}
        parts: list[Any] = [scope.opset]
        for item in (*site.behind, site.node):
            for name in (*item.input, *item.output):
                tokens.setdefault(name, len(tokens))
            parts.append(node_key(item, tokens))
        for item in site.result:
            for name in item.input:
                if name not in tokens:
                    constant = own.arrays.get(name)
                    tokens[name] = (
                        (len(tokens), name, id(scope.resolve(name)))
                        if constant is None
                        else (len(tokens), constant[1], constant[0].shape, constant[0].tobytes())
                    )
            for name in item.output:
                tokens.setdefault(name, len(tokens))
            parts.append(node_key(item, tokens))
        parts += [tensor.SerializeToString() for tensor in site.initializers]
        parts.append(tuple(site.dims.items()))
        if site.lookups.non_negative:
            parts.append(tuple(name in site.lookups.non_negative for name in site.node.input))
        return tuple(parts)

    def _input_key(self, site: Site, name: str) -> Any:
        """Return a key of an input's facts: its type, and its value where that is small."""
        known = self._facts.type(site.scope, name)
        array = self._facts.constant(site.scope, name)
        if array is None:
            reference = constant_reference(site.scope, name)
            referred = "" if reference is None else reference.ref_attr_name
            given = [*site.node.input]
            sizes = tuple(
                (given.index(item[0]), item[1]) if isinstance(item, tuple) else item
                for item in self._sizes(site, name, given) or ()
            )
            return (known, sizes, referred)
        if array.dtype == object or array.size > MOST_INTEGERS:
            return (known, name, id(site.scope.resolve(name)))
        return (known, array.tobytes())

    def pair(self, site: Site, values: AttributeValues, *, full: bool = False) -> Pair:
        """Return a site's pair of models.

        Args:
            site: a site of the conversion that is not blocked.
            values: the values of the function's attributes that it refers to.
            full: whether all dimensions and constants keep their values.

        Raises:
            UncheckableError: the site cannot be run on its own.
        """
        if holds_graphs(site.node):
            before, after = models_with_bodies(self.conversion, site, self._sites, values)
            return Pair(before, after, moved=False, full=True, promised={}, sizes={})
        self._check_runnable(site)
        parts = self._parts(site, values, full)
        types = self._types(site, parts, full)
        own_sizes = full or not self._made_smaller(site, types)
        drawn = tuple(
            parts.names[name]
            for name in parts.drawn
            if values.constant(site.scope, name) is not None
        )
        target = self.conversion.target
        opset = site.scope.opset or target  # Of ai.onnx.ml alone, without a default domain.
        learned = imported_version(site.scope.function or self.conversion.model, LEARNING)
        same_operator = [item.op_type for item in parts.after] == [site.node.op_type] or (
            [item.domain for item in parts.after] == [LEARNING]
        )
        return Pair(
            self._model(parts, types, parts.before, (opset, learned)),
            self._model(
                parts,
                types,
                parts.after,
                (target, learned and self.conversion.learning_target(learned)),
                site.initializers,
            ),
            same_operator or not parts.after,
            own_sizes and not drawn,
            self._stated_dims(site, parts) if own_sizes else {},
            self._known_sizes(site, parts),
            drawn,
            tuple(parts.names[name] for name in parts.drawn if name in site.lookups.non_negative),
            site.stabler,
            site.is_of_finite,
        )

    def _check_runnable(self, site: Site) -> None:
        """Refuse a site that cannot be run on its own, as the node alone shows."""
        node = site.node
        if self._is_random(site):
            raise UncheckableError(RANDOM)
        refuse_external(node)
        large = (t for t in site.initializers if math.prod(t.dims) > MOST_INTEGERS)
        if any(tensor.name not in node.output for tensor in large):
            raise UncheckableError("its replacement holds a large constant, which is not loaded")

    def _parts(self, site: Site, values: AttributeValues, full: bool) -> _Parts:
        node = site.node
        after = [values.bound(item) for item in site.result]
        behind = nodes_behind(site, self.conversion.constants(site.scope))
        before = [values.bound(item) for item in (*behind, node)]
        inner = made_values(before[:-1])
        given = [name for name in used_values(before) if name not in inner]
        constants = self._constants(site, values, after, given, full)
        replaced = [tensor.name for tensor in site.initializers]
        names = Renaming()
        for prefix, found in (
            ("i", given),
            ("o", node.output),
            ("b", inner),
            ("c", constants),
            ("t", [*made_values(after), *replaced]),
        ):
            for name in found:
                names.add(name, prefix)
        drawn = [name for name in given if name not in constants]
        return _Parts(before, after, constants, drawn, self._compared(site), names)

    def _compared(self, site: Site) -> list[str]:
        """Return the outputs of a node that are compared: one that nothing reads may be missing."""
        made = {name for item in site.result for name in item.output}
        made.update(tensor.name for tensor in site.initializers)
        return [n for n in site.node.output if n and (n in made or n in self._used(site.scope))]

    def _made_smaller(self, site: Site, types: Mapping[str, TypeProto]) -> bool:
        """Return whether a smaller dimension replaces a known one of the model."""
        for name, proto in types.items():
            sizes = {dim for dim in self._known_dims(site, name) or () if isinstance(dim, int)}
            if not sizes.issubset(fixed_dims(proto)):
                return True
        return False

    def _stated_dims(self, site: Site, parts: _Parts) -> dict[str, Dims]:
        """Return the known dimensions of the outputs, by their names in the pair."""
        known = {name: self._known_dims(site, name) for name in parts.outputs}
        return {parts.names[name]: dims for name, dims in known.items() if dims is not None}

    def _known_sizes(self, site: Site, parts: _Parts) -> dict[str, Sizes]:
        """Return the known elements of drawn lists of integers, by their names in the pair."""
        names, found = parts.names, {}
        for name in parts.drawn:
            known = self._sizes(site, name, parts.drawn)
            if known is not None:
                found[names[name]] = tuple(
                    (names[item[0]], item[1]) if isinstance(item, tuple) else item for item in known
                )
        return found

    def _sizes(self, site: Site, name: str, drawn: Sequence[str]) -> Sizes | None:
        """Return the known elements of a computed int64 list of rank 1; None if none is known."""
        known = self._facts.type(site.scope, name)
        if known is None or known.elem_type != TensorProto.INT64 or known.rank != 1:
            return None
        found: list[int | tuple[str, int] | None] = list(
            self._facts.elements(site.scope, name) or ()
        )
        for data in drawn:
            for axis, kept in enumerate(self._facts.kept_dims(site.scope, name, data)):
                if kept:
                    found[axis] = (data, axis)
        return tuple(found) if any(item is not None for item in found) else None

    def _is_random(self, site: Site) -> bool:
        """Return whether the node, or a node that replaces it, may draw random numbers."""
        arrays = {name: self._facts.constant(site.scope, name) for name in site.node.input if name}
        off = [name for name, array in arrays.items() if array is not None and not array.any()]
        target = self.conversion.target
        return any(
            is_random(item, opset, off)
            for opset, nodes in ((site.scope.opset, (site.node,)), (target, site.result))
            for item in with_inner(nodes)
        )

    def _used(self, scope: Scope) -> set[str]:
        """Return the names that a scope's tree reads or gives as outputs of its graphs."""
        key = id(scope.root.body)  # Equal bodies have equal names.
        if key not in self._reads:
            tree = self._facts.tree(scope)
            names = (item.outputs.union(*(node.input for node in item.nodes)) for item in tree)
            self._reads[key] = set().union(*names)
        return self._reads[key]

    def _known_dims(self, site: Site, name: str) -> Dims | None:
        known = self._facts.type(site.scope, name)
        return None if known is None else known.dims

    def _constants(
        self,
        site: Site,
        values: AttributeValues,
        after: list[NodeProto],
        given: list[str],
        full: bool,
    ) -> dict[str, Array]:
        """Return the constants of the pair that are not drawn, by name.

        Large ones are drawn unless `full`: replacements seldom depend on their values.
        """
        found: dict[str, Array] = {}
        own = self.conversion.constants(site.scope)
        read_after = set(used_values(after))
        own_names = set(made_values(after)) | {name for name in site.node.output if name}
        for name in given:
            array = values.constant(site.scope, name)
            if array is not None and (full or keeps_value(array) or name not in read_after):
                found[name] = array
        for name in sorted(read_after - {*given} - own_names):
            if name in own.arrays:
                found[name] = own.arrays[name][0]
            elif name in own.references:
                found[name] = values.array(own.references[name])
            else:
                array = values.constant(site.scope, name)
                if array is None:
                    raise UncheckableError(
                        f"its replacement reads {name!r}, which the node itself does not read"
                    )
                found[name] = array
        return found

    def _types(self, site: Site, parts: _Parts, full: bool) -> dict[str, TypeProto]:
        """Return the types of the drawn inputs, by name."""
        known: dict[str, ValueType] = {}
        for name in parts.drawn:
            found = self._facts.type(site.scope, name)
            if found is None:
                raise UncheckableError(f"the type of {name!r} is not known")
            known[name] = found
        dims = {name: site.dims.get(name, found.dims) for name, found in known.items()}
        numbers = mentioned_integers([*parts.before, *parts.after], parts.constants.values())
        small = SmallDims(numbers, full)
        return {
            name: type_proto(found, None if own is None else [small(dim) for dim in own])
            for (name, found), own in zip(known.items(), dims.values(), strict=True)
        }

    def _model(
        self,
        parts: _Parts,
        types: Mapping[str, TypeProto],
        nodes: list[NodeProto],
        opsets: tuple[int, int | None],
        initializers: Iterable[TensorProto] = (),
    ) -> ModelProto:
        """Return one model of the pair: nodes, the constants that they read, initializers.

        Its opsets are those of the default domain and of ai.onnx.ml, if that is imported.
        """
        opset, learned = opsets
        names, read = parts.names, set(used_values(nodes))
        graph = helper.make_graph(
            [names.node(item, index) for index, item in enumerate(nodes)],
            "site",
            [helper.make_value_info(names[name], proto) for name, proto in types.items()],
            [],
            [
                numpy_helper.from_array(array, names[name])
                for name, array in parts.constants.items()
                if name in read
            ]
            + [names.tensor(tensor) for tensor in initializers],
        )
        for name in parts.outputs:
            graph.output.add().name = names[name]
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", opset)],
            ir_version=max(4, ir_version.least_for_opset(opset)),
        )
        for entry in self.conversion.model.opset_import:
            if not is_default(entry.domain):
                model.opset_import.add().CopyFrom(entry)
        if learned is not None:
            set_learning_version(model, learned)
        return model


def _function_key(function: FunctionProto | None) -> tuple[int | None, ...]:
    """Return a key of what the pairs of a function's nodes depend on, beside the nodes."""
    if function is None:
        return ()
    # What its attributes are depends on its calls.
    called = function.attribute or function.attribute_proto
    return id(function) if called else None, imported_version(function, LEARNING)
