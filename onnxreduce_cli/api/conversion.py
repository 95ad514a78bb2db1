"""The conversion of a model, planned with all that its options ask for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.preparation import prepare
from onnxreduce_cli.model.files import Document
from onnxreduce_cli.model.stating import stating


@contextmanager
def planned_conversion(
    document: Document, options: Options, *, keep: bool = True
) -> Iterator[Conversion]:
    """Prepare a model, and plan its conversion.

    Args:
        document: the model; what is wanted of the whole model is done to it.
        options: what is wanted.
        keep: whether the model is to state the types that the user stated, at the end, too.

    Yields:
        the conversion, which is not applied yet.

    Raises:
        UsageError: what is wanted makes no sense for this model.
        ConversionError: what is wanted of the whole model, or its IR version, cannot be had.
        InvalidModelError: the model contradicts itself.
    """
    opset = options.opset_of(document.model)
    prepared = prepare(document, options)
    model, base_dir = document.model, document.base_dir
    with stating(model, options.types or {}, base_dir, keep=keep):
        if options.runtime is not None:
            from onnxreduce_cli.engine.runtime import plan_for_runtime

            conversion = plan_for_runtime(model, options, base_dir)
        else:
            assert opset is not None
            conversion = Conversion(model, opset, options, base_dir=base_dir)
        conversion.prepared = prepared
        yield conversion
