"""The report of comparing models, as data."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from onnxreduce_cli.errors import ConversionError
from onnxreduce_cli.serializable import Serializable
from onnxreduce_cli.text import count, html_table
from onnxreduce_cli.verification.compare.values import Errors

EQUIVALENT, DIFFERENT, UNKNOWN = 0, 1, 3


@dataclass(frozen=True, slots=True)
class Trial:
    """One set of inputs.

    Attributes:
        number: counted from 0.
        values: the value profile that drawn inputs have; ``given`` where all were given.
        shapes: by input, the shape; None for what is no tensor.
        void: why no outputs could be compared; empty if some were.
    """

    number: int
    values: str
    shapes: dict[str, tuple[int, ...] | None]
    void: str = ""


@dataclass(frozen=True, slots=True)
class ExecutorRun:
    """The runs of one model in one executor.

    Attributes:
        model: the model's label.
        executor: ``onnxruntime`` or ``numpy``.
        trials: how many sets of inputs it ran.
        reason: why it could not run the model at all, or failed on some inputs; may be empty.
    """

    model: str
    executor: str
    trials: int
    reason: str = ""


@dataclass(frozen=True)
class Comparison(Serializable):
    """One output, compared over all trials.

    Attributes:
        output: its name.
        first: model and executor on one side, as ``(model, executor)``.
        second: model and executor on the other side.
        trials: how many trials both sides ran.
        errors: the errors over all trials.
        explained: what explains every difference beyond the tolerance; empty if nothing does, or
            there is none.
    """

    EXTRA_FIELDS: ClassVar = ("agree",)

    output: str
    first: tuple[str, str]
    second: tuple[str, str]
    trials: int
    errors: Errors
    explained: str = ""

    @property
    def agree(self) -> bool:
        """True if nothing differs beyond the tolerance that is not explained."""
        return self.errors.agree or bool(self.explained)


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first value, in topological order, that differs.

    Attributes:
        value: its name; the same in both models.
        first: model and executor on one side.
        second: model and executor on the other side.
        errors: how it differs, on one set of inputs.
        first_nodes: the nodes that compute it from values that agree, each as name and operator.
        second_nodes: the same nodes of the second model.
    """

    value: str
    first: tuple[str, str]
    second: tuple[str, str]
    errors: Errors
    first_nodes: tuple[str, ...]
    second_nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The executors differ from each other on one model: a runtime's own deviation.

    Attributes:
        model: the model's label.
        output: the output that shows it.
        errors: how the executors differ there.
        divergence: where first; None where it could not be found.
    """

    model: str
    output: str
    errors: Errors
    divergence: Divergence | None


@dataclass(frozen=True)
class VerifyReport(Serializable):
    """The result of comparing two models, or two executors on one model.

    Attributes:
        a: the first model's label.
        b: the second model's; None if there is only one.
        interface: how the models' inputs and outputs differ; nothing was run if they do.
        runs: the runs of each model in each executor.
        trials: the sets of inputs.
        comparisons: each output between the two models, and between the executors on each.
        divergence: where the models differ first, if they do.
        disagreements: where the executors differ on one model.
        remarks: further remarks.
        warnings: what the comparison does not cover.
        equivalent: whether they agree; None if nothing could be compared.
        by: the executors that compared, and why one did not; empty if none did.
        saved: the folder that holds the failing inputs, if they were kept.
        in_double: whether models of other dtypes compute the same in double precision, with the
            same weights; None where that was not compared.
        seed: the seed of the inputs that were drawn.
        tolerances: by dtype, the relative and the absolute tolerance of what one executor computes
            of both models; where they are the defaults, those between executors are ten times as
            large.
        seconds: how long it took.
    """

    EXTRA_FIELDS: ClassVar = ("exit_code",)

    a: str
    b: str | None
    interface: tuple[str, ...]
    runs: tuple[ExecutorRun, ...]
    trials: tuple[Trial, ...]
    comparisons: tuple[Comparison, ...]
    divergence: Divergence | None
    disagreements: tuple[Disagreement, ...]
    remarks: tuple[str, ...]
    equivalent: bool | None
    by: str = ""
    warnings: tuple[str, ...] = ()
    saved: str | None = None
    in_double: bool | None = None
    seed: int = 0
    tolerances: dict[str, tuple[float, float]] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def exit_code(self) -> int:
        """0 if they agree, 1 if not, 3 if nothing could be compared."""
        if self.equivalent is None:
            return UNKNOWN
        return EQUIVALENT if self.equivalent else DIFFERENT

    @property
    def verdict(self) -> str:
        """The verdict in capitals."""
        found = {None: "NOT VERIFIED", True: "EQUIVALENT", False: "NOT EQUIVALENT"}
        return found[self.equivalent]

    def __repr__(self) -> str:
        """Return the verdict, the models, and the number of trials."""
        models = self.a if self.b is None else f"{self.a} and {self.b}"
        return f"<VerifyReport {self.verdict}: {models}, {count(len(self.trials), 'trial')}>"

    def _repr_html_(self) -> str:
        rows = [("output", "between", "and", "result")]
        for found in self.comparisons:
            sides = [", ".join(side) for side in (found.first, found.second)]
            result = f"{'ok' if found.agree else 'DIFFERENT'}, {found.errors}"
            rows.append((found.output, sides[0], sides[1], result))
        return html_table(rows, repr(self)[1:-1])


class VerificationError(ConversionError):
    """The converted model is not the same function as the original, or nothing could be compared.

    Attributes:
        report: how the two models compare.
    """

    def __init__(self, report: VerifyReport) -> None:
        """Keep the report."""
        super().__init__("the converted model could not be verified")
        self.report = report
        self.exit_code = report.exit_code
        self.state = "not equivalent" if report.equivalent is False else "not verified"
