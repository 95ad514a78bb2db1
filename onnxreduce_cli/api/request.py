"""What is wanted of a conversion, wherever its model comes from, and the conversion itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from onnxreduce_cli import schemas
from onnxreduce_cli.engine.conversion import Conversion, check_request, contracted
from onnxreduce_cli.engine.preparation import Preparation, prepare
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.domains import default_opset
from onnxreduce_cli.model.files import Document
from onnxreduce_cli.model.ir_version import Wanted
from onnxreduce_cli.model.stating import parse_type, stating

if TYPE_CHECKING:
    from onnxreduce_cli.targets.requirement import Target


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted of a conversion.

    Attributes:
        opset: the opset to reach; None for the model's own, or the best for the runtime.
        runtime: where the model is to run, such as ``onnxruntime==1.8``; None for anywhere.
        allow_ops: the only operators that may be left, ``Resize@11-`` where at some opsets only;
            all if empty.
        expand: operators to replace by their function bodies.
        contract: operators, or groups of them, to put in place of nodes that stand for them.
        ir_version: the IR version to write, as for `Conversion`.
        types: the types of values where nothing else tells, by their names.
        emulate: whether control flow that was not there is accepted, or very many nodes.
        preparation: what is done to the whole model first.
    """

    opset: int | None = None
    runtime: str | None = None
    allow_ops: Collection[str] = ()
    expand: Collection[str] = ()
    contract: Collection[str] = ()
    ir_version: Wanted = "auto"
    types: Mapping[str, str] = field(default_factory=dict)
    emulate: bool = False
    preparation: Preparation = field(default_factory=Preparation)

    @property
    def changes_anything(self) -> bool:
        """False if nothing is wanted of a model that would not be as it is already."""
        rewrites = self.expand or self.contract or self.allow_ops or self.preparation.wanted
        numbered = isinstance(self.ir_version, int)
        return bool(self.opset is not None or self.runtime or rewrites or numbered)

    def validate(self) -> None:
        """Look at what makes sense for all models or for none.

        Raises:
            UsageError: no such opset, runtime, operator or dtype, or nothing is wanted.
        """
        self.preparation.check()
        if not self.changes_anything:
            raise UsageError(
                "say which opset to reach, --opset N, or where the model is to run: --for RUNTIME"
            )
        _allowed(self.allow_ops)
        if self.runtime is not None:
            from onnxreduce_cli.targets.requirement import find

            find(self.runtime)
            if self.allow_ops:
                raise UsageError("say either --for or --allow-ops")
        check_request(schemas.newest_opset() if self.opset is None else self.opset, self.expand)
        contracted(self.contract)
        for text in self.types.values():
            parse_type(text)

    def opset_of(self, document: Document) -> int | None:
        """Return the opset that a model is to reach; None where a runtime decides.

        Raises:
            UsageError: it is the model's own, and it has none.
        """
        if self.opset is not None or self.runtime is not None:
            return self.opset
        own = default_opset(document.model)
        if own is None:
            raise UsageError("the model imports no default domain; say which opset: --opset N")
        return own


def _allowed(operators: Collection[str]) -> Target | None:
    """A target that has some operators; None if none are named.

    Raises:
        UsageError: there is no such operator.
    """
    if not operators:
        return None
    from onnxreduce_cli.targets.allowed import allowed

    return allowed(operators)


@contextmanager
def converting(document: Document, request: Request, *, keep: bool = True) -> Iterator[Conversion]:
    """Prepare a model, and plan its conversion.

    Args:
        document: the model; what is wanted of the whole model is done to it.
        request: what is wanted.
        keep: whether the model is to state the types that the user stated, at the end, too.

    Yields:
        the conversion, which is not applied yet.

    Raises:
        UsageError: what is wanted makes no sense for this model.
        ConversionError: what is wanted of the whole model, or its IR version, cannot be had.
        InvalidModelError: the model contradicts itself.
    """
    opset = request.opset_of(document)
    prepared = prepare(document, request.preparation)
    model, base_dir = document.model, document.base_dir
    with stating(model, request.types, base_dir, keep=keep) as types:
        if request.runtime is not None:
            from onnxreduce_cli.engine.runtime import How, convert_for
            from onnxreduce_cli.targets.requirement import find

            wanted = (request.expand, request.contract, request.ir_version)
            how = How(*wanted, base_dir, types, request.emulate)
            conversion = convert_for(model, find(request.runtime), opset, how)
        else:
            assert opset is not None
            conversion = Conversion(
                model,
                opset,
                expand=request.expand,
                contract=request.contract,
                target_ir_version=request.ir_version,
                base_dir=base_dir,
                types=types,
                emulate=request.emulate,
                runtime=_allowed(request.allow_ops),
            )
        conversion.prepared = prepared
        yield conversion
