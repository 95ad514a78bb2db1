"""The conversion of a model as its options request it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.preparation import Preparation, fold_where_needed, prepare
from onnxreduce_cli.model.file.document import Document
from onnxreduce_cli.model.types.stating import stating


@contextmanager
def planned_conversion(
    document: Document, options: Options, *, keep: bool = True
) -> Iterator[Conversion]:
    """Prepare a model, and plan its conversion.

    Args:
        document: the model; changes of the whole model are made in place.
        options: the options of the conversion.
        keep: whether the model keeps the types that the user stated.

    Yields:
        the conversion, which is not applied yet.

    Raises:
        UsageError: the options do not fit this model.
        ConversionError: a change of the whole model, or its IR version, is not possible.
        InvalidModelError: the model contradicts itself.
    """
    opset = options.opset_of(document.model)
    prepared = prepare(document, options)
    with ExitStack() as stack:
        stated = options.types or {}, document.base_dir
        stack.enter_context(stating(document.model, *stated, keep=keep))
        conversion = _planned(document, options, opset, prepared)
        if conversion.blockers and options.may_fold:
            stack.close()  # What is stated is taken back, as folding replaces values.
            folded = fold_where_needed(document, prepared)
            stack.enter_context(stating(document.model, *stated, keep=keep))
            if folded is not None:
                conversion = _planned(document, options, opset, folded)
        yield conversion


def _planned(
    document: Document, options: Options, opset: int | None, prepared: Preparation
) -> Conversion:
    model, base_dir = document.model, document.base_dir
    if options.runtime is not None:
        from onnxreduce_cli.engine.runtime import plan_for_runtime

        conversion = plan_for_runtime(model, options, base_dir)
    else:
        assert opset is not None
        conversion = Conversion(model, opset, options, base_dir=base_dir)
    conversion.prepared = prepared
    return conversion
