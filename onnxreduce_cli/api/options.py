"""What the user wants of a conversion from file to file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from onnxreduce_cli.api.request import Request
from onnxreduce_cli.api.save import Placement
from onnxreduce_cli.engine.preparation import Preparation
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.verification.limits import Limits, current


@dataclass(frozen=True, slots=True)
class Comparing:
    """The options of comparing the whole models.

    Attributes:
        pairs: real data, ``name=file.npy`` each.
        inputs: real data, as a path that `read_inputs` reads; None for none.
        dims: sizes by the names of open dimensions.
        trials: how many sets of inputs to draw.
        seed: of what is drawn.
        rtol: the relative tolerance; None for the dtype's own.
        atol: the absolute tolerance; None for the dtype's own.
    """

    pairs: tuple[str, ...] = ()
    inputs: str | None = None
    dims: Mapping[str, int] = field(default_factory=dict)
    trials: int = 5
    seed: int = 0
    rtol: float | None = None
    atol: float | None = None


@dataclass(frozen=True)
class Options(Request):
    """The options of converting a file, beside what is wanted of the conversion.

    Attributes:
        dry_run: whether nothing is written: it is only planned, or also compared with `verify`.
        force: whether an existing file may be overwritten.
        in_place: whether the output may be the input.
        check: whether each distinct site is run, before and after.
        strict: whether each of them must be checked, and nothing is written otherwise.
        verify: whether the whole models are compared, too.
        comparing: how they are compared.
        limits: what running a whole model may take.
        placement: where weights go.
    """

    dry_run: bool = False
    force: bool = False
    in_place: bool = False
    check: bool = True
    strict: bool = False
    verify: bool = False
    comparing: Comparing = field(default_factory=Comparing)
    limits: Limits = field(default_factory=current)
    placement: Placement = field(default_factory=Placement)

    @classmethod
    def of(cls, **given: Any) -> Options:
        """Return the options that `FileOptions` names, each by itself.

        Raises:
            TypeError: there is no such option.
        """
        parts = {}
        for name, kind in _PARTS.items():
            own = {item.name: given[item.name] for item in fields(kind) if item.name in given}
            if own:
                parts[name] = kind(**own)
        known = {item.name for kind in _PARTS.values() for item in fields(kind)}
        rest = {name: value for name, value in given.items() if name not in known}
        return cls(**rest, **parts)

    @property
    def only_plans(self) -> bool:
        """True if no model is run."""
        return self.dry_run and not self.verify

    @property
    def changes_anything(self) -> bool:
        """True also if weights are to go elsewhere."""
        moves = self.placement.inline or self.placement.threshold is not None
        return moves or super().changes_anything

    def validate(self) -> None:
        """Look at what makes sense for all models or for none.

        Raises:
            UsageError: what is wanted makes no sense, or is said without what it belongs to.
        """
        super().validate()
        if self.strict and not self.check:
            raise UsageError("say either --strict or --no-check")
        if not self.verify and replace(self.comparing, dims={}) != Comparing():
            raise UsageError(
                "-i, --inputs, --trials, --seed, --rtol and --atol say how to compare the whole "
                "models; say --verify too"
            )


#: The options that come in groups.
_PARTS: dict[str, Any] = {
    "preparation": Preparation,
    "comparing": Comparing,
    "limits": Limits,
    "placement": Placement,
}
