"""Preparation: changes of a whole model at its own opset, before its nodes are planned.

Few conversions request any, so each is imported only when it is requested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from onnxreduce_cli.engine import catalogue
from onnxreduce_cli.engine.catalogue import Pass
from onnxreduce_cli.engine.changes import Change
from onnxreduce_cli.engine.description import Inlined, Plan
from onnxreduce_cli.engine.options import DEFAULTS, Options
from onnxreduce_cli.errors import Blocker, ConversionError
from onnxreduce_cli.model.file.document import Document
from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.text import size_text


class Preparation(NamedTuple):
    """The changes that were made to the whole model.

    Attributes:
        lines: a description of each change, in one line.
        changes: the nodes that were rewritten.
        removed: names of the values that nothing reads any more.
        inlined: the functions that were inlined.
        nodes: how many nodes the model had; None if no change was requested.
        moved: whether external data was moved into the model.
        casts: the Casts at inputs and outputs, by name, each with the option that puts it there.
        passes: the passes that ran.
        effective: how many of them changed the model.
    """

    lines: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()
    removed: tuple[str, ...] = ()
    inlined: tuple[Inlined, ...] = ()
    nodes: int | None = None
    moved: bool = False
    casts: Mapping[str, str] = MappingProxyType({})
    passes: tuple[Pass, ...] = ()
    effective: int = 0

    def with_advice(self, blockers: tuple[Blocker, ...]) -> tuple[Blocker, ...]:
        """Return the blockers, with another advice for the Casts that an option added."""
        return tuple(
            replace(blocker, advice=_cast_advice(self.casts[blocker.node], blocker.advice))
            if blocker.node in self.casts and not blocker.scope
            else blocker
            for blocker in blockers
        )

    def added_to(self, plan: Plan) -> Plan:
        """Return the plan of the prepared model with the changes that were made before it."""
        if self.nodes is None:
            return plan
        return replace(
            plan,
            prepared=self.lines,
            whole_changes=self.effective,
            changes=_merged((*self.changes, *plan.changes)),
            blockers=self.with_advice(plan.blockers),
            removed=tuple(dict.fromkeys((*self.removed, *plan.removed))),
            inlined=(*self.inlined, *plan.inlined),
            nodes=self.nodes,
        )


def _cast_advice(option: str, advice: str) -> str:
    return f"leave out {option}, which puts it there; or {advice}"


def _merged(changes: tuple[Change, ...]) -> tuple[Change, ...]:
    """Return the changes, with several of one node combined."""
    found: dict[tuple[str, str], Change] = {}
    for change in changes:
        key = change.scope, change.node
        earlier = found.get(key)
        found[key] = change if earlier is None else earlier.followed_by(change)
    return tuple(found.values())


def prepare(document: Document, options: Options) -> Preparation:
    """Make the changes of a whole model that the options request, in place.

    Args:
        document: the model; it may be half changed when an exception is raised.
        options: the options of the conversion.

    Raises:
        UsageError: the model has no such dimension, input or output, or there is no such dtype.
        ConversionError: a function cannot be inlined, a size is not what the model computes, or an
            operator or a weight cannot have another dtype.
        InvalidModelError: the model contradicts itself.
        OSError: external data cannot be read.
    """
    if not options.prepares:
        return Preparation()
    facts = admit(document.model, document.base_dir)
    found = Preparation(nodes=sum(len(scope.nodes) for scope in facts.scopes))
    for item, requested, run in _PASSES:
        if requested(options):
            found = run(document, options, found)._replace(passes=(*found.passes, item))
    return found


def _inline_functions(document: Document, options: Options, found: Preparation) -> Preparation:
    from onnxreduce_cli.engine.passes.inlining import inline_all

    model = document.model
    calls = inline_all(model, admit(model, document.base_dir).calls)
    inlined = tuple(Inlined(label, tuple(names)) for label, names in calls.items())
    lines = () if inlined else ("no functions to inline",)
    return found._replace(
        inlined=inlined,
        lines=(*found.lines, *lines),
        effective=found.effective + bool(inlined),
    )


def _fix_dimensions(document: Document, options: Options, found: Preparation) -> Preparation:
    from onnxreduce_cli.engine.passes.static_shapes import fix_dimensions

    shapes = fix_dimensions(document.model, options.dims, document.base_dir)
    return found._replace(
        lines=(*found.lines, *shapes.lines),
        changes=(*found.changes, *shapes.changes),
        removed=(*found.removed, *shapes.removed),
        effective=found.effective + 1,
    )


def fold_where_needed(document: Document, found: Preparation) -> Preparation | None:
    """Fold a model in place, that has operators which a runtime does not take.

    Args:
        document: the model; it may be half changed when an exception is raised.
        found: the changes that were made to the whole model before.

    Returns:
        the changes with these; None if nothing is constant.

    Raises:
        ConversionError: the model states another shape of an output than it has.
    """
    nodes = sum(len(scope.nodes) for scope in scopes(document.model))
    folded = _fold(document, DEFAULTS, found)
    if folded.changes == found.changes:
        return None
    passes = (*found.passes, catalogue.FOLDING_FOR_RUNTIME)
    return folded._replace(nodes=nodes if found.nodes is None else found.nodes, passes=passes)


def _fold(document: Document, options: Options, found: Preparation) -> Preparation:
    from onnxreduce_cli.engine.passes.folding import fold

    folded = fold(document.model, document.base_dir)
    outputs = {info.name for info in document.model.graph.output}
    for item in folded.mended:
        if item.name in outputs and len(item.stated) != len(item.inferred):
            raise ConversionError(
                f"the model states its output {item.name!r} to have shape {list(item.stated)}, but "
                f"the branch that is always taken gives {list(item.inferred)}: state that shape in "
                f"the model{', or leave --fold out' if options.fold else ''}"
            )
    lines = folded.lines
    if options.dims and found.changes and not folded.nodes and not folded.branches:
        lines = ("folded: nothing more", *lines[1:])
    return found._replace(
        lines=(*found.lines, *lines),
        changes=(*found.changes, *folded.changes),
        removed=(*found.removed, *folded.removed),
        effective=found.effective + bool(folded.changes or folded.removed or folded.mended),
    )


def _change_dtypes(document: Document, options: Options, found: Preparation) -> Preparation:
    from onnxreduce_cli.engine.passes.dtypes import change_dtypes

    dtypes = change_dtypes(
        document,
        options.dtypes,
        keep_interface=options.keep_interface,
        kept=options.keep_dtype,
        ranges=options.assume_ranges,
    )
    return found._replace(
        lines=(*found.lines, *dtypes.lines),
        changes=(*found.changes, *dtypes.changes),
        effective=found.effective + dtypes.effective,
        moved=dtypes.moved,
        casts={**found.casts, **dict.fromkeys(dtypes.casts, "--keep-interface")},
    )


def _change_interface(document: Document, options: Options, found: Preparation) -> Preparation:
    from onnxreduce_cli.engine.passes.interface import change_interface

    interface = change_interface(document.model, options.io_dtypes)
    return found._replace(
        lines=(*found.lines, *interface.lines),
        changes=(*found.changes, *interface.changes),
        effective=found.effective + bool(interface.casts or interface.changes),
        casts={**found.casts, **dict.fromkeys(interface.casts, "--io-dtype")},
    )


def _strip_metadata(document: Document, options: Options, found: Preparation) -> Preparation:
    from onnxreduce_cli.model.graph.metadata import strip_metadata

    assert options.strip_metadata is not None
    size = strip_metadata(document.model, options.strip_metadata)
    of = {"all": "the model and all in it"}.get(options.strip_metadata, options.strip_metadata)
    line = f"metadata of {of} stripped: {size_text(size)} less"
    return found._replace(lines=(*found.lines, line), effective=found.effective + bool(size))


#: The passes in order, each with what requests it, and what makes its change and adds it.
_PASSES: tuple[
    tuple[
        Pass, Callable[[Options], object], Callable[[Document, Options, Preparation], Preparation]
    ],
    ...,
] = (
    (catalogue.INLINING, lambda options: options.inline_functions, _inline_functions),
    (catalogue.DIMENSIONS, lambda options: options.dims, _fix_dimensions),
    (catalogue.FOLDING, lambda options: options.fold, _fold),
    (catalogue.DTYPES, lambda options: options.dtypes, _change_dtypes),
    (catalogue.INTERFACE, lambda options: options.io_dtypes, _change_interface),
    (catalogue.METADATA, lambda options: options.strip_metadata, _strip_metadata),
)
