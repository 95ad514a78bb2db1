"""The options of a conversion: keywords of the library, filled in by the command line.

The engine, the checks and what writes files read them from one object.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Literal

from onnx import ModelProto, TensorProto

from onnxreduce_cli import schemas
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.graph.domains import LEARNING, default_opset
from onnxreduce_cli.model.graph.ir_version import Wanted
from onnxreduce_cli.model.graph.values import dtype_name, parse_dtype

if TYPE_CHECKING:
    from onnxreduce_cli.model.graph.metadata import Strip
    from onnxreduce_cli.targets.requirement import Target

#: Dtypes that `Options.dtypes` may change, and change to.
DTYPES = {
    dtype_name(item): item
    for item in (
        TensorProto.FLOAT,
        TensorProto.DOUBLE,
        TensorProto.FLOAT16,
        TensorProto.BFLOAT16,
    )
}

#: The dtypes of the one change of integers that `Options.dtypes` may make.
INTEGERS = (TensorProto.INT64, TensorProto.INT32)

#: Options of the comparison of whole models, which have no effect without it.
_COMPARING = frozenset({"pairs", "inputs", "trials", "seed", "rtol", "atol"})


@dataclass(frozen=True, slots=True)
class Options:
    """The options of a conversion.

    Attributes:
        opset: the opset to reach; None for the model's own, or the best for the runtime.
        ml_opset: the version of ai.onnx.ml to reach; None for the newest, up to the model's own,
            that the runtime takes or that onnx released together with an older opset.
        runtime: the runtime that the model is for, as ``"onnxruntime==1.8"``; None for any.
        allow_ops: the only operators that may be left, ``"Resize@11-"`` where at some opsets only;
            all if empty.
        expand: operators to replace by their function bodies; "com.microsoft" for all of ONNX
            Runtime's own.
        contract: operators, or groups of them, that replace the nodes written out for them.
        ir_version: the IR version of a model that changes: ``"auto"`` lowers it to the one that the
            opset came with, or the least that the model needs; ``"keep"`` leaves it; or a number.
        types: the types of values that inference cannot infer, by the names of the values.
        emulate: allow control flow, or very many nodes, to replace a node.
        strip_metadata: where to drop metadata and doc strings: in ``"nodes"``, in ``"functions"``
            and their nodes, or in ``"all"``; None for nowhere.
        inline_functions: replace the calls of model-local functions by their bodies.
        dims: sizes to fix symbolic dimensions at, by their names: ``{"batch": 1}``; those without a
            name are ``input[axis]``.
        fold: compute what is the same in every run; a branch of an If whose condition is constant
            takes its place.
        dtypes: dtypes to change in values, weights and attributes: ``{"bfloat16": "float"}``.
        assume_ranges: the least and the largest integer in inputs and other values, and the least
            and the largest size of dimensions, by their names: ``{"ids": (0, 30521)}``; where int64
            becomes int32 they are taken to be so.
        io_dtypes: dtypes of inputs and outputs alone, by their names: ``{"ids": "int32"}``; a Cast
            inside restores the old one.
        keep_interface: keep the dtypes of inputs and outputs, by a Cast each.
        keep_dtype: operators, and names of nodes, that keep the dtypes that change, by Casts.
        dry_run: write nothing: only plan, or also compare with `verify`.
        force: overwrite a file that exists.
        in_place: allow the output to be the input.
        check: run each distinct node that changes, before and after; the default.
        strict: write nothing if some node could not be checked, or ONNX Runtime not imported.
        verify: compare the whole models, too.
        pairs: real data to compare with, ``name=file.npy`` each.
        inputs: real data to compare with: an .npz file or a test_data_set folder.
        trials: how many sets of inputs to draw; None for 8, of a large model 6.
        seed: the seed of the inputs that are drawn.
        rtol: the relative tolerance of the comparison; None for the dtype's own.
        atol: the absolute tolerance of the comparison; None for the dtype's own.
        timeout: the seconds that a whole model may take to load, and to run.
        memory: the bytes of memory that running a whole model may take.
        external_data: how external data is brought to another folder: as hard links, as copies
            (which share blocks where the file system can do that), or not at all.
        allow_outside: let external data lie outside the model's folder.
        threshold: the bytes from which weights become external data; None to leave them.
        inline: put external data into the model's file.
    """

    opset: int | None = None
    ml_opset: int | None = None
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
    fold: bool = False
    dtypes: Mapping[str, str] = field(default_factory=dict)
    assume_ranges: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    io_dtypes: Mapping[str, str] = field(default_factory=dict)
    keep_interface: bool = False
    keep_dtype: Collection[str] = ()
    dry_run: bool = False
    force: bool = False
    in_place: bool = False
    check: bool = True
    strict: bool = False
    verify: bool = False
    pairs: tuple[str, ...] = ()
    inputs: str | None = None
    trials: int | None = None
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
        """True if the whole model is changed at its own opset first."""
        dtypes = self.dtypes or self.io_dtypes
        structure = self.inline_functions or self.dims or self.fold
        return bool(self.strip_metadata or structure or dtypes)

    @property
    def may_fold(self) -> bool:
        """True if a model is folded where not all operators that are left may be used."""
        return not self.fold and bool(self.runtime or self.allow_ops)

    @property
    def changes_anything(self) -> bool:
        """True if the options request any change of a model."""
        rewrites = self.expand or self.contract or self.allow_ops or self.prepares
        moves = self.inline or self.threshold is not None
        reaches = (
            self.opset is not None
            or self.ml_opset is not None
            or self.runtime
            or isinstance(self.ir_version, int)
        )
        return bool(rewrites or moves or reaches)

    @property
    def stated_types(self) -> tuple[str, ...]:
        """The types that the user states, as text: ``y=uint8``."""
        return tuple(f"{name}={text}" for name, text in (self.types or {}).items())

    def validate(self) -> None:
        """Check the options, without regard to a model.

        Raises:
            UsageError: no such opset, runtime, operator, type or dtype; options that contradict
                each other, or lack another one; or no change is requested.
        """
        if self.keep_interface and not self.dtypes:
            raise UsageError("--keep-interface needs a change of dtypes: add --dtype FROM=TO")
        if self.keep_dtype and not self.dtypes:
            raise UsageError("--keep-dtype needs a change of dtypes: add --dtype FROM=TO")
        if self.assume_ranges and INTEGERS not in dtype_pairs(self.dtypes):
            raise UsageError(
                "--assume-range is for a change of int64 to int32: add --dtype int64=int32"
            )
        if not self.changes_anything:
            raise UsageError(
                "no change is requested: name the opset to reach, --opset N, or the runtime that "
                "the model is for, --for RUNTIME"
            )
        self.check_names()
        if self.runtime is not None and self.allow_ops:
            raise UsageError("--for and --allow-ops exclude each other: leave one out")
        if self.strict and not self.check:
            raise UsageError("--strict and --no-check exclude each other: leave one out")
        if not self.verify and any(
            getattr(self, item.name) != item.default
            for item in fields(self)
            if item.name in _COMPARING
        ):
            raise UsageError(
                "-i, --inputs, --trials, --seed, --rtol and --atol are for comparing whole models: "
                "add --verify"
            )

    def check_names(self) -> None:
        """Check that everything that the options name exists.

        Raises:
            UsageError: there is no such opset, runtime, operator, type or dtype.
        """
        dtype_pairs(self.dtypes)
        for text in self.io_dtypes.values():
            parse_dtype(text)
        for name, (low, high) in self.assume_ranges.items():
            if low > high:
                raise UsageError(
                    f"--assume-range {name}={low}:{high}: the first number is above the second"
                )
        self.target()
        if self.opset is not None:
            check_opset(self.opset)
        if self.ml_opset is not None:
            newest = schemas.newest_version(LEARNING)
            if not 1 <= self.ml_opset <= newest:
                raise UsageError(
                    f"there is no {LEARNING} {self.ml_opset}; the installed onnx knows 1 to "
                    f"{newest}"
                )
        self.check_expanded()
        self.contracted()
        if self.types:
            from onnxreduce_cli.model.types.stating import parse_type

            for text in self.types.values():
                parse_type(text)

    def opset_of(self, model: ModelProto) -> int | None:
        """Return the opset that a model is to reach; None if the runtime decides.

        Raises:
            UsageError: no opset is named, and the model imports none.
        """
        if self.opset is not None or self.runtime is not None:
            return self.opset
        own = default_opset(model)
        if own is None:
            raise UsageError("the model imports no default domain; name the opset: --opset N")
        return own

    def target(self) -> Target | None:
        """Return the target: of `runtime`, or one that takes `allow_ops`; None without either.

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
        """Refuse to expand an operator that has no function body.

        Raises:
            UsageError: there is such an operator in `expand`.
        """
        if self.expand:
            from onnxreduce_cli.steps.dispatch import body_writer

            for op_type in self.expand:
                body_writer(op_type)

    def contracted(self) -> frozenset[str]:
        """Return the operators that `contract` names, by themselves or by a group.

        Those that are to be expanded are left out: they would come back in a second conversion.

        Raises:
            UsageError: there is no such operator or group.
        """
        if not self.contract:
            return frozenset()
        from onnxreduce_cli.idioms.registry import operators

        return operators(self.contract) - frozenset(self.expand)


#: The options of a conversion without special requests.
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
    """Return the dtypes to change, each with the new one.

    Raises:
        UsageError: there is no such change, or a dtype would change twice.
    """
    found = [(parse_dtype(before), parse_dtype(after)) for before, after in dtypes.items()]
    changed = Counter(before for before, _ in found)
    for (before, after), names in zip(found, dtypes.items(), strict=True):
        said = f"--dtype {names[0]}={names[1]}"
        for number, name in zip((before, after), names, strict=True):
            if number not in DTYPES.values() and (before, after) != INTEGERS:
                raise UsageError(
                    f"{said}: it changes {', '.join(DTYPES)} to one another, and int64 to int32, "
                    f"not {name}"
                )
        if before == after:
            raise UsageError(f"{said} changes nothing; name two dtypes")
        if after in changed or changed[before] > 1:
            twice = after if after in changed else before
            raise UsageError(
                f"{said}: {dtype_name(twice)} is itself changed by another --dtype; leave one out"
            )
    return found
