"""The options of a conversion: the library takes them by name, the command line fills them in.

The engine, the checks and what writes files read them from one object.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal

from onnx import ModelProto, TensorProto

from onnxreduce_cli import schemas
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.domains import default_opset
from onnxreduce_cli.model.ir_version import Wanted
from onnxreduce_cli.model.values import dtype_name

if TYPE_CHECKING:
    from onnxreduce_cli.model.metadata import Strip
    from onnxreduce_cli.targets.requirement import Target

#: Dtypes that may be changed, and be put in place of others.
DTYPES = {
    dtype_name(item): item
    for item in (
        TensorProto.FLOAT,
        TensorProto.DOUBLE,
        TensorProto.FLOAT16,
        TensorProto.BFLOAT16,
    )
}

#: Options that say how whole models are compared, and nothing where they are not.
_COMPARING = frozenset({"pairs", "inputs", "trials", "seed", "rtol", "atol"})


@dataclass(frozen=True, slots=True)
class Options:
    """What a user wants of a conversion.

    Attributes:
        opset: the opset to reach; None for the model's own, or the best for the runtime.
        runtime: where the model is to run, as ``"onnxruntime==1.8"``; None for anywhere.
        allow_ops: the only operators that may be left, ``"Resize@11-"`` where at some opsets only;
            all if empty.
        expand: operators to replace by their function bodies.
        contract: operators, or groups, to put in place of nodes that stand for them.
        ir_version: the IR version of a model that changes: ``"auto"`` for the one that the opset
            came with, or the least that the model needs; ``"keep"`` for its own; else a number.
        types: the types of values where nothing else tells, by the names of the values.
        emulate: let control flow, or very many nodes, stand for a node.
        strip_metadata: of what to drop metadata and doc strings: ``"nodes"``, ``"functions"`` with
            all in them, or ``"all"``; None for nothing.
        inline_functions: put the bodies of model-local functions in the place of their calls.
        dims: sizes by the names of symbolic dimensions, which are fixed: ``{"batch": 1}``; those
            without a name are ``input[axis]``.
        dtypes: dtypes to change in values, weights and attributes: ``{"bfloat16": "float"}``.
        keep_interface: let inputs and outputs keep their dtypes, by a Cast each.
        dry_run: write nothing: only plan, or also compare with `verify`.
        force: overwrite a file that exists.
        in_place: let the output be the input.
        check: run each distinct node that changes, before against after; the default.
        strict: write nothing if some node could not be checked.
        verify: compare the whole models, too.
        pairs: real data to compare with, ``name=file.npy`` each.
        inputs: real data to compare with: an .npz file or a test_data_set folder.
        trials: how many sets of inputs to draw.
        seed: of what is drawn.
        rtol: the relative tolerance of the comparison; None for the dtype's own.
        atol: the absolute tolerance of the comparison; None for the dtype's own.
        timeout: the seconds that a whole model may take to load, and to run.
        memory: the bytes of memory that running a whole model may take.
        external_data: how external data goes along to another folder: as hard links, as copies
            (which share blocks where the file system can do that), or not at all.
        allow_outside: let external data lie outside the model's folder.
        threshold: weights of at least so many bytes become external data; None to leave them.
        inline: put external data into the model's file.
    """

    opset: int | None = None
    runtime: str | None = None
    allow_ops: Collection[str] = ()
    expand: Collection[str] = ()
    contract: Collection[str] = ()
    ir_version: Wanted = "auto"
    types: Mapping[str, str] | None = None
    emulate: bool = False
    strip_metadata: Strip | None = None
    inline_functions: bool = False
    dims: Mapping[str, int] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    keep_interface: bool = False
    dry_run: bool = False
    force: bool = False
    in_place: bool = False
    check: bool = True
    strict: bool = False
    verify: bool = False
    pairs: tuple[str, ...] = ()
    inputs: str | None = None
    trials: int = 5
    seed: int = 0
    rtol: float | None = None
    atol: float | None = None
    timeout: float = 60.0
    memory: int = 8_000_000_000
    external_data: Literal["link", "copy", "keep"] = "copy"
    allow_outside: bool = False
    threshold: int | None = None
    inline: bool = False

    @property
    def only_plans(self) -> bool:
        """True if no model is run."""
        return self.dry_run and not self.verify

    @property
    def prepares(self) -> bool:
        """True if the whole model is to be changed at its own opset first."""
        return bool(self.strip_metadata or self.inline_functions or self.dims or self.dtypes)

    @property
    def changes_anything(self) -> bool:
        """False if nothing is wanted of a model that would not be as it is already."""
        rewrites = self.expand or self.contract or self.allow_ops or self.prepares
        moves = self.inline or self.threshold is not None
        reaches = self.opset is not None or self.runtime or isinstance(self.ir_version, int)
        return bool(rewrites or moves or reaches)

    @property
    def stated_types(self) -> tuple[str, ...]:
        """The types that the user states, as text: ``y=uint8``."""
        return tuple(f"{name}={text}" for name, text in (self.types or {}).items())

    def validate(self) -> None:
        """Check what makes sense for all models or for none.

        Raises:
            UsageError: no such opset, runtime, operator, type or dtype; options that contradict
                each other, or lack what they belong to; or nothing is wanted.
        """
        if self.keep_interface and not self.dtypes:
            raise UsageError("--keep-interface says how to change dtypes; say --dtype FROM=TO too")
        if not self.changes_anything:
            raise UsageError(
                "say which opset to reach, --opset N, or where the model is to run: --for RUNTIME"
            )
        self.check_names()
        if self.runtime is not None and self.allow_ops:
            raise UsageError("say either --for or --allow-ops")
        if self.strict and not self.check:
            raise UsageError("say either --strict or --no-check")
        if not self.verify and any(
            getattr(self, item.name) != item.default
            for item in fields(self)
            if item.name in _COMPARING
        ):
            raise UsageError(
                "-i, --inputs, --trials, --seed, --rtol and --atol say how to compare the whole "
                "models; say --verify too"
            )

    def check_names(self) -> None:
        """Check that all exists that is named.

        Raises:
            UsageError: there is no such opset, runtime, operator, type or dtype.
        """
        dtype_pairs(self.dtypes)
        self.target()
        if self.opset is not None:
            check_opset(self.opset)
        self.check_expanded()
        self.contracted()
        if self.types:
            from onnxreduce_cli.model.stating import parse_type

            for text in self.types.values():
                parse_type(text)

    def opset_of(self, model: ModelProto) -> int | None:
        """Return the opset that a model is to reach; None where a runtime decides.

        Raises:
            UsageError: it is the model's own, and it has none.
        """
        if self.opset is not None or self.runtime is not None:
            return self.opset
        own = default_opset(model)
        if own is None:
            raise UsageError("the model imports no default domain; say which opset: --opset N")
        return own

    def target(self) -> Target | None:
        """Return the runtime that `runtime` names, or one that takes `allow_ops`; None for neither.

        Raises:
            UsageError: there is no such runtime or operator.
        """
        if self.runtime is not None:
            from onnxreduce_cli.targets.requirement import find_target

            return find_target(self.runtime)
        if self.allow_ops:
            from onnxreduce_cli.targets.allowed import operator_list_target

            return operator_list_target(self.allow_ops)
        return None

    def check_expanded(self) -> None:
        """Refuse to expand an operator that cannot be.

        Raises:
            UsageError: it has no function body.
        """
        if self.expand:
            from onnxreduce_cli.steps.dispatch import body_writer

            for op_type in self.expand:
                body_writer(op_type)

    def contracted(self) -> frozenset[str]:
        """Return the operators that `contract` names, each by itself or by its group.

        Raises:
            UsageError: there is no such operator or group.
        """
        if not self.contract:
            return frozenset()
        from onnxreduce_cli.idioms.registry import operators

        return operators(self.contract)


#: The options of a conversion of which nothing special is wanted.
DEFAULTS = Options()


def check_opset(opset: int) -> None:
    """Refuse an opset that does not exist.

    Raises:
        UsageError: the installed onnx does not know it.
    """
    newest = schemas.newest_opset()
    if not 1 <= opset <= newest:
        raise UsageError(f"there is no opset {opset}; the installed onnx knows 1 to {newest}")


def dtype_pairs(dtypes: Mapping[str, str]) -> list[tuple[int, int]]:
    """Return the dtypes to change, each with what takes its place.

    Raises:
        UsageError: there is no such dtype of floating point, or one would change twice.
    """
    for name in (*dtypes, *dtypes.values()):
        if name not in DTYPES:
            from difflib import get_close_matches

            close = get_close_matches(name, DTYPES, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise UsageError(
                f"--dtype changes {', '.join(DTYPES)} to one another, not {name}{hint}"
            )
    for before, after in dtypes.items():
        if after in dtypes:
            raise UsageError(f"--dtype {before}={after}: {after} is to change itself")
    return [(DTYPES[before], DTYPES[after]) for before, after in dtypes.items()]
