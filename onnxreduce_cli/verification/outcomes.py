"""What came of running models, and who is to blame where results differ."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnx import NodeProto

from onnxreduce_cli.model.domains import is_default
from onnxreduce_cli.verification.compare import Errors, Tolerance, compare, failed
from onnxreduce_cli.verification.errors import RunFailedError
from onnxreduce_cli.verification.runtime import EXECUTORS, Runner

#: Operators whose results are always random: nothing can be compared.
_RANDOM = frozenset(
    {
        "Bernoulli",
        "Multinomial",
        "RandomNormal",
        "RandomNormalLike",
        "RandomUniform",
        "RandomUniformLike",
    }
)


def is_random(node: NodeProto, opset: int | None, off: Collection[str]) -> bool:
    """Whether a node's own results may be random.

    Args:
        node: the node.
        opset: by which it is read: before 7 an attribute says whether a Dropout drops anything.
        off: what is known to be false, as a training mode.
    """
    if not is_default(node.domain):
        return False
    if node.op_type != "Dropout":
        return node.op_type in _RANDOM
    if opset is not None and opset < 7:
        return not any(item.name == "is_test" and item.i for item in node.attribute)
    return len(node.input) > 2 and node.input[2] not in {"", *off}


@dataclass(frozen=True)
class Outcome:
    """One run of one model in one executor.

    Attributes:
        values: the outputs by name; None where there are none.
        failure: why the run failed; empty if it did not.
    """

    values: dict[str, Any] | None = None
    failure: str = ""

    @property
    def known(self) -> bool:
        """Whether the executor has a say: it ran the model or failed on its inputs."""
        return self.values is not None or bool(self.failure)


#: The outcome where the executor cannot run the model.
UNSUPPORTED = Outcome()


def run_once(runner: Runner, feeds: Mapping[str, Any], names: Sequence[str]) -> Outcome:
    """Run a model and keep what comes of it.

    Raises:
        CannotRunError: the executor turned out not to support something.
    """
    try:
        return Outcome(runner.run(feeds, names))
    except RunFailedError as error:
        return Outcome(failure=str(error))


def difference(
    first: Outcome,
    second: Outcome,
    name: str,
    tolerance: Tolerance,
    sides: tuple[str, str] = ("the first model", "the second model"),
) -> Errors | None:
    """How one output differs; None where one side is not known or both failed.

    Args:
        first: one outcome.
        second: the other.
        name: the output.
        tolerance: how far they may be apart.
        sides: what messages call the two.
    """
    if not first.known or not second.known or (first.failure and second.failure):
        return None
    if first.values is None:
        return failed(f"only {sides[0]} fails: {first.failure}")
    if second.values is None:
        return failed(f"only {sides[1]} fails: {second.failure}")
    return compare(first.values[name], second.values[name], tolerance)


@dataclass(frozen=True)
class Judgement:
    """What the executors say of one output of two models on one set of inputs.

    Attributes:
        pairs: by executor, how it finds the two models to differ.
        cross: how they differ where each was run by another executor.
        deviations: by model (``a``, ``b``), how the executors differ from each other on it.
        agree: whether the models agree; None where nothing is known.
        excused: whether ONNX Runtime finds a difference that is its own: the NumPy executor finds
            none, and the two executors differ on one of the models.
    """

    pairs: dict[str, Errors] = field(default_factory=dict)
    cross: tuple[str, str, Errors] | None = None
    deviations: dict[str, Errors] = field(default_factory=dict)
    agree: bool | None = None
    excused: bool = False


Outcomes = Mapping[tuple[str, str], Outcome]


def judge(
    outcomes: Outcomes,
    name: str,
    tolerance: Tolerance,
    between: Tolerance,
    *,
    always: bool = True,
) -> Judgement:
    """Judge one output of models ``a`` and ``b``.

    The first is the reference: an executor has no say on inputs on which it fails there, but
    where only the second model fails, they differ.

    Args:
        outcomes: by model and executor.
        name: the output.
        tolerance: for the two models in one executor.
        between: for one model in two executors, and for models run by different ones.
            An exact `tolerance` is asked of every executor: no deviation excuses one.
        always: whether the executors are compared with each other even if the models agree.
    """

    def get(model: str, executor: str) -> Outcome:
        return outcomes.get((model, executor), UNSUPPORTED)

    def differ_in(first: str, second: str, limit: Tolerance) -> Errors | None:
        # Inputs that the first model does not accept tell nothing about the second.
        if get("a", first).failure or get("a", second).failure:
            return None
        return difference(get("a", first), get("b", second), name, limit)

    pairs: dict[str, Errors] = {}
    for executor in EXECUTORS:
        found = differ_in(executor, executor, tolerance)
        if found is not None:
            pairs[executor] = found
    differ = [executor for executor, errors in pairs.items() if not errors.agree]
    deviations: dict[str, Errors] = {}
    # What explains a difference between the models may be as small as that.
    limit = tolerance if differ else between
    for model in "ab" if always or differ else "":
        sides = get(model, EXECUTORS[0]), get(model, EXECUTORS[1])
        found = difference(*sides, name, limit, EXECUTORS)
        if found is not None:
            deviations[model] = found
    if not pairs:
        for executors in (EXECUTORS, EXECUTORS[::-1]):
            first, second = executors
            if get("a", second).failure:
                continue  # It refuses the inputs themselves, which the other lets pass.
            found = differ_in(first, second, between)
            if found is not None:
                return Judgement(pairs, (first, second, found), deviations, found.agree)
        return Judgement(pairs, None, deviations)
    excused = (
        differ == ["onnxruntime"]
        and not tolerance.exact
        and "numpy" in pairs
        and any(not errors.agree for errors in deviations.values())
    )
    return Judgement(pairs, None, deviations, not differ or excused, excused)
