"""The functions of the library, as `onnxreduce` and `onnxreduce_cli` export them."""

from __future__ import annotations

import operator
import os
import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, overload

from onnx import ModelProto

from onnxreduce_cli.api.checks import check_conversion, check_whole, prepare_checks, runtime_problem
from onnxreduce_cli.api.conversion import planned_conversion
from onnxreduce_cli.api.ir_models import from_ir, is_ir_model, to_ir
from onnxreduce_cli.api.keywords import in_keywords, with_keywords
from onnxreduce_cli.engine.description import Plan
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import ConversionError, OnnxreduceWarning, UsageError
from onnxreduce_cli.model.file.document import Document, load
from onnxreduce_cli.model.file.external import data_locations
from onnxreduce_cli.model.graph.domains import default_opset
from onnxreduce_cli.model.graph.ir_version import Wanted
from onnxreduce_cli.text import listed

if TYPE_CHECKING:
    from onnx_ir import Model
    from typing_extensions import Unpack

    from onnxreduce_cli.api.by_name import ConvertOptions, FileOptions, PreparationOptions
    from onnxreduce_cli.api.file_conversion import Converted
    from onnxreduce_cli.diffing.results import Diff
    from onnxreduce_cli.verification.compare.values import Tolerance
    from onnxreduce_cli.verification.whole.results import VerifyReport

ModelOrPath = ModelProto | str | os.PathLike[str]


class HoldsModel(Protocol):
    """An object that holds a model, as `torch.onnx.ONNXProgram` does."""

    @property
    def model_proto(self) -> ModelProto:
        """The model."""


@overload
def convert(
    model_or_path: ModelOrPath | HoldsModel,
    opset: int | None = None,
    **options: Unpack[ConvertOptions],
) -> ModelProto: ...


@overload
def convert(
    model_or_path: Model, opset: int | None = None, **options: Unpack[ConvertOptions]
) -> Model: ...


@with_keywords
def convert(
    model_or_path: ModelOrPath | HoldsModel | Model,
    opset: int | None = None,
    *,
    ml_opset: int | None = None,
    target: str | None = None,
    runtime: str | None = None,
    expand: Collection[str] = (),
    contract: Collection[str] = (),
    ir_version: Wanted = "auto",
    types: Mapping[str, str] | None = None,
    emulate: bool = False,
    allow_ops: Collection[str] = (),
    in_place: bool = False,
    check: bool = True,
    strict: bool = False,
    **whole: Unpack[PreparationOptions],
) -> ModelProto | Model:
    """Move a model to an opset of the default domain, and return it there.

    Args:
        model_or_path: a model, or its path; a `torch.onnx.ONNXProgram` is taken for its model, and
            an `onnx_ir.Model` gives one. No weights are loaded.
        opset: the opset to reach, up or down; None for the one that is best for `target`.
        ml_opset: the version of ai.onnx.ml to reach; None for the newest, up to the model's own,
            that the runtime takes or that onnx released together with an older opset.
        target: the runtime that the model is for, as ``"onnxruntime==1.8"``: it decides opset and
            IR version, and nodes that it computes wrong or refuses are rewritten.
        runtime: another name of `target`.
        expand: operators to replace by their function bodies, such as ``["LogSoftmax"]``.
        contract: operators, or groups, that replace the nodes written out for them, ``["all"]``.
        ir_version: the IR version of a model that changes: ``"auto"`` lowers it to the one that
            `opset` came with, or the least that the model needs; ``"keep"`` leaves it; or a number.
        types: the types of values that inference cannot infer, which the model then states:
            ``{"y": "uint8"}``, or with a shape ``{"y": "float[N,3,224]"}``.
        emulate: allow control flow to replace a node that has none; else the node blocks.
        allow_ops: the only operators that may be left, ``["Add", "Resize@11-"]``; all if empty.
        in_place: edit the given model and return it; else it is left as it is.
        check: run each distinct node that changes, before and after, on small inputs.
        strict: check, and refuse a conversion if some node could not be checked, or not in
            ONNX Runtime as that cannot be imported.
        whole: changes of the whole model: see `PreparationOptions`.

    Warns:
        OnnxreduceWarning: a node could not be checked, its replacement differs in rare cases, or
            weights of the result are in files beside the given one.

    Raises:
        ConversionError: the model cannot be converted, and is as it was.
        CheckError, UncheckedError: a replacement does not compute the same, or could not be
            checked, with `strict`.
        InvalidModelError: the file cannot be read, or the model contradicts itself; a file that
            does not exist is a `FileNotFoundError`, too.
        TypeError: `opset` is no number.
        UsageError: no such opset, runtime, operator, value, dtype or dimension; nothing to edit.
    """
    options = Options(
        opset=_number("opset", opset),
        ml_opset=_number("ml_opset", ml_opset),
        runtime=_runtime(target, runtime),
        expand=expand,
        contract=contract,
        ir_version=ir_version,
        types=types,
        emulate=emulate,
        allow_ops=allow_ops,
        check=check or strict,
        strict=strict,
        **whole,
    )
    given = held_model(model_or_path)
    if in_place and not isinstance(given, ModelProto):
        raise UsageError("only a ModelProto can be edited in place")
    # The whole model is changed in a copy, so that a later failure leaves the given one as it is.
    document = read_model(given, copied=not in_place or options.prepares or options.may_fold)
    for warning in _convert(document, options, given):
        warnings.warn(in_keywords(warning), OnnxreduceWarning, stacklevel=3)
    return _in_given_form(document, given, in_place=in_place)


def _number(name: str, value: int | None) -> int | None:
    """Return an opset as an integer.

    Raises:
        TypeError: it is none.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        return None if value is None else operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is an integer, such as {name}=13, not {value!r}") from None


def _runtime(target: str | None, runtime: str | None) -> str | None:
    """Return the runtime that the model is for, which has two names.

    Raises:
        UsageError: both are given.
    """
    if target is not None and runtime is not None:
        raise UsageError("target and runtime are two names of one keyword: leave runtime out")
    return runtime if target is None else target


def _convert(document: Document, options: Options, given: ModelOrPath | Model) -> list[str]:
    """Convert a document in place, and return what the caller is to be warned of.

    Args:
        document: the model.
        options: the options of the conversion.
        given: what it was read from.
    """
    options.validate()
    if options.check and options.opset != default_opset(document.model):
        prepare_checks()
    if options.strict:
        runtime_problem(strict=True)
    with planned_conversion(document, options) as conversion:
        report = check_conversion(conversion, strict=options.strict) if options.check else None
        found = [] if report is None else [f"not checked: {item}" for item in report.unchecked]
        for site in conversion.sites:
            node = f"{site.node.op_type} node {site.scope.describe(site.node)}"
            found += [f"{node}: {text}" for text in site.warnings]
        passes = conversion.passes if options.check else ()
        before = None
        if passes and document.model is given:
            before = ModelProto()
            before.CopyFrom(document.model)
        conversion.apply()
    found += _far_weights(document, given)
    problem = runtime_problem(strict=False) if passes or report is not None else ""
    if problem:
        found.append(f"checked by NumPy alone: ONNX Runtime {problem}")
    if not passes:
        return found
    try:
        found += check_whole(document, given if before is None else before, options, passes)
    except ConversionError:
        if before is not None:
            document.model.CopyFrom(before)
        raise
    return found


def _far_weights(document: Document, given: ModelOrPath | Model) -> list[str]:
    """Return where the weights of a model are that was read from a file and returned without it."""
    locations = data_locations(document)
    if isinstance(given, ModelProto) or is_ir_model(given) or not locations:
        return []
    return [
        f"weights of the result stay in {listed(locations)} in {document.base_dir}: save the model "
        f"there, call onnx.load_external_data_for_model(model, {document.base_dir!r}) first, or "
        "use convert_file, which brings them along"
    ]


@with_keywords
def convert_version(model: ModelProto, target_version: int) -> ModelProto:
    """Move a model to an opset, called as `onnx.version_converter.convert_version` is.

    Args:
        model: the model, which is left as it is.
        target_version: the opset to reach.

    Raises:
        ConversionError: the model cannot be converted.
        CheckError: a replacement does not compute the same.
        InvalidModelError: the model contradicts itself.
        UsageError: there is no such opset.
    """
    return convert(model, target_version)


@with_keywords
def convert_file(
    path: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    opset: int | None = None,
    **options: Unpack[FileOptions],
) -> Converted:
    """Convert a file as `onnxreduce convert` does; the output is written whole, or not at all.

    Args:
        path: the model's path.
        out: where to write; None for ``MODEL.opsetN.onnx`` or ``MODEL.RUNTIME.onnx``.
        opset: the opset to reach; None for the model's own, or the best for a runtime.
        options: the options of the command, by their names in `FileOptions`.

    Raises:
        UsageError: the options do not fit, or the output exists and may not be overwritten.
        InvalidModelError: the file cannot be read, or the model contradicts itself.
        ConversionError: the model cannot be converted; nothing was written.
        CheckError, UncheckedError: a replacement does not compute the same, or could not be
            checked, with `strict`.
        VerificationError: the whole models are not equivalent, with `verify`; nothing was written.
        InputError: inputs or dimensions to compare with do not fit the model.
        OSError: the output cannot be written; an existing file is as it was.
    """
    from onnxreduce_cli.api.file_conversion import convert_file as convert

    chosen: dict[str, Any] = {**options, "opset": _number("opset", opset)}
    chosen["runtime"] = _runtime(chosen.pop("target", None), chosen.get("runtime"))
    return convert(os.fspath(path), None if out is None else os.fspath(out), Options(**chosen))


def _in_given_form(
    document: Document, given: ModelOrPath | Model, *, in_place: bool
) -> ModelProto | Model:
    """Return a result as the type that was given, or in the given model if edited in place."""
    if is_ir_model(given):
        return to_ir(document)
    result = document.whole()
    if not in_place or not isinstance(given, ModelProto) or result is given:
        return result
    given.CopyFrom(result)
    return given


@with_keywords
def plan(
    model_or_path: ModelOrPath | HoldsModel | Model,
    opset: int | None = None,
    *,
    ml_opset: int | None = None,
    target: str | None = None,
    runtime: str | None = None,
    expand: Collection[str] = (),
    contract: Collection[str] = (),
    ir_version: Wanted = "auto",
    types: Mapping[str, str] | None = None,
    emulate: bool = False,
    allow_ops: Collection[str] = (),
    **whole: Unpack[PreparationOptions],
) -> Plan:
    """Plan the conversion of a model to an opset: its changes, and the nodes that block it.

    Args and exceptions are those of `convert`, but blockers are part of the result. The model is
    not edited.
    """
    options = Options(
        opset=_number("opset", opset),
        ml_opset=_number("ml_opset", ml_opset),
        runtime=_runtime(target, runtime),
        expand=expand,
        contract=contract,
        ir_version=ir_version,
        types=types,
        emulate=emulate,
        allow_ops=allow_ops,
        **whole,
    )
    options.validate()
    document = read_model(model_or_path, copied=options.prepares or options.may_fold)
    with planned_conversion(document, options, keep=False) as conversion:
        return conversion.plan()


@with_keywords
def verify(
    a: ModelOrPath | HoldsModel,
    b: ModelOrPath | HoldsModel | None = None,
    *,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    dims: Mapping[str, int] | None = None,
    trials: int | None = None,
    seed: int = 0,
    special: bool = False,
    tolerance: Tolerance | None = None,
    executors: Sequence[str] = ("onnxruntime", "numpy"),
    save_failure: str | None = None,
) -> VerifyReport:
    """Check whether two models compute the same, or whether two executors agree on one model.

    Args:
        a: a model, or its path.
        b: the other model; None to compare ONNX Runtime and the NumPy executor on `a`.
        inputs: real data by input name, or several sets of it; missing inputs are drawn.
        dims: sizes of symbolic dimensions by name, of others by ``input[axis]``.
        trials: how many sets of inputs to draw; None for 8, of a large model 6. More are drawn
            where reductions of inputs, or their sizes, are compared with constants.
        seed: the seed of drawn inputs; equal seeds give equal inputs.
        special: whether to add trials with NaN, infinities, both zeros and denormals.
        tolerance: the allowed difference of values; by default a table by dtype.
        executors: the executors that run the models.
        save_failure: a folder for the first inputs on which the models differ.

    Raises:
        InvalidModelError: a file cannot be read, or is no model.
        InputError: the given inputs or dimensions do not fit the model, or cannot be drawn.
        UsageError: there is no such executor.
    """
    # Imported here: converting needs neither executor.
    from onnxreduce_cli.verification.whole import equivalence

    return equivalence.verify(
        held_model(a),
        None if b is None else held_model(b),
        inputs=inputs,
        dims=dims,
        trials=trials,
        seed=seed,
        special=special,
        tolerance=tolerance,
        executors=executors,
        save_failure=save_failure,
    )


@with_keywords
def diff(a: ModelOrPath | HoldsModel, b: ModelOrPath | HoldsModel) -> Diff:
    """Return the differences between two models as graphs; empty if one is a copy of the other.

    Nodes are matched by their names, then by structure, and tensors by their content, wherever it
    is stored. External data is read part by part.

    Args:
        a: a model, or its path.
        b: the other model.

    Raises:
        InvalidModelError: a file cannot be read, or is no model.
    """
    from onnxreduce_cli.diffing.models import compare

    labels = [
        os.fspath(item) if isinstance(item, str | os.PathLike) else "a model" for item in (a, b)
    ]
    return compare(read_model(a, copied=True), read_model(b, copied=True), (labels[0], labels[1]))


@with_keywords
def run(
    model_or_path: ModelOrPath | HoldsModel,
    inputs: Mapping[str, Any],
    *,
    executor: str = "onnxruntime",
) -> dict[str, Any]:
    """Run a model once, in ONNX Runtime or in the NumPy executor (``"numpy"``).

    Args:
        model_or_path: the model, or its path.
        inputs: arrays by input name; lists for sequences, None for an empty optional.
        executor: ``onnxruntime`` (optimisations off) or ``numpy``.

    Returns:
        the outputs by name, in the model's order: `numpy.ndarray` of the dtype and shape that the
        specification says, lists for sequences.

    Raises:
        CannotRunError: the executor cannot run the model.
        RunFailedError: the executor failed on these inputs.
        UsageError: there is no such executor.
        InvalidModelError: the file cannot be read, or is no model.
    """
    from onnxreduce_cli.verification.whole import equivalence

    return equivalence.run(held_model(model_or_path), inputs, executor=executor)


def held_model(given: Any) -> Any:
    """Return the model that an object holds, or what was given if it is a model or a path.

    Raises:
        TypeError: it is neither.
    """
    model = getattr(given, "model_proto", None)
    if isinstance(model, ModelProto):
        return model
    if isinstance(given, ModelProto | str | os.PathLike) or is_ir_model(given):
        return given
    held = "; onnx.load_from_string makes a model of bytes" if isinstance(given, bytes) else ""
    raise TypeError(f"a model is a path or an onnx.ModelProto, not {type(given).__name__}{held}")


def read_model(
    model_or_path: ModelOrPath | HoldsModel | Model, *, copied: bool = False
) -> Document:
    """Return a model with the file that it is read from, if any.

    Args:
        model_or_path: a model, an object that holds one, or its path.
        copied: whether a model in memory is copied.

    Raises:
        InvalidModelError: the file cannot be read, or is no model.
    """
    given = held_model(model_or_path)
    if is_ir_model(given):
        return from_ir(given)
    if not isinstance(given, ModelProto):
        return load(given)
    if not copied:
        return Document(given)
    copy = ModelProto()
    copy.CopyFrom(given)
    return Document(copy)
