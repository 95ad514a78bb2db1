"""What is to be done for a release of onnx that changed operators, or added some."""

from __future__ import annotations

import inspect

import onnx

from onnxreduce_cli import schemas
from onnxreduce_cli.executor import reference
from onnxreduce_cli.executor.registry import find_kernel
from onnxreduce_cli.model.graph.domains import LEARNING
from onnxreduce_cli.report.schema_changes import schema_changes
from onnxreduce_cli.steps import audit, without_equivalent
from onnxreduce_cli.steps.loading import load_all
from onnxreduce_cli.steps.registry import STEPS, Step

#: Where steps are, their tests, and the kernels that tests run models with.
_STEPS, _TESTS, _KERNELS = "onnxreduce_cli/steps", "tests/steps", "onnxreduce_cli/executor"


def undeclared() -> list[tuple[str, int]]:
    """The boundaries of the installed onnx that neither the audit nor, for new ones, a step has."""
    load_all()
    return [
        (op_type, boundary)
        for domain in ("", LEARNING)
        for op_type in schemas.operators(domain)
        for index, boundary in enumerate(schemas.versions(op_type, domain))
        if (index or boundary > 1)
        and (op_type, boundary, "down") not in STEPS
        and (index == 0 or audit.definition_change(op_type, boundary) is None)
    ]


def declared() -> dict[str, dict[int, audit.DefinitionChange]]:
    """Every change that the audit declares, by operator and opset."""
    found: dict[str, dict[int, audit.DefinitionChange]] = {}
    for opset, records in audit._records().items():
        for record in records:
            for op_type in record["operators"]:
                changes = found.setdefault(op_type, {})
                assert int(opset) not in changes, f"two changes of {op_type} at opset {opset}"
                changes[int(opset)] = audit._change_of_record(record)
    return found


def newest_declared() -> int:
    """The newest opset up to which all is declared: as far as tests of every opset go."""
    return min((boundary - 1 for _, boundary in undeclared()), default=schemas.newest_opset())


def is_computed(op_type: str, since: int) -> bool:
    """Whether the executor computes a definition: by a kernel, a function body, onnx.reference."""
    schema = schemas.schema(op_type, since)
    return bool(
        find_kernel(op_type, since)
        or schema.has_function
        or schema.has_context_dependent_function
        or reference.is_right(op_type, since)
    )


def checklist() -> str:
    """For each boundary that is not declared: what changed, where a step belongs, what to test."""
    lines = [f"onnx {onnx.__version__} has boundaries that onnxreduce does not know:"]
    for op_type, boundary in undeclared():
        is_new = boundary == schemas.versions(op_type)[0]
        lines += ["", f"{op_type} {boundary}"]
        lines += _new_operator(op_type, boundary) if is_new else _boundary(op_type, boundary)
        lines += _kernel(op_type, boundary)
    lines += ["", "When this test passes: python -m onnxreduce_cli.report.operators"]
    return "\n".join(lines)


def _boundary(op_type: str, boundary: int) -> list[str]:
    step = max(
        (step for key, step in STEPS.items() if key[0] == op_type and step.apply is not None),
        key=lambda step: step.boundary,
        default=None,
    )
    file, test = _homes(op_type, step)
    changes = schema_changes(op_type, boundary) or ["nothing in its schema: ask onnx's changelog"]
    return [
        *(f"  what changed: {change}" for change in changes),
        f'  1. Declare it in {_STEPS}/audit.json, under "{boundary}": what changed in the '
        "definition, and in which directions every node stays as it is.",
        f"  2. For the other directions write a step in {file}: "
        f'@up("{op_type}", {boundary}, ...), @down("{op_type}", {boundary}, ...).',
        f"  3. Test it in {test}: the same results before and after (`converts`).",
    ]


def _new_operator(op_type: str, boundary: int) -> list[str]:
    file, test = _homes(op_type, None)
    return [
        "  what changed: the operator is new",
        "  (elementwise stands for the family that it belongs to, a folder of steps and of tests)",
        f"  1. Write what stands for it before in {file}: "
        f'@introduced("{op_type}", {boundary}, ...).',
        f"  2. If nothing can, name it in {_file(without_equivalent)}.",
        f"  3. Test it in {test}: the same results before and after (`converts`).",
    ]


def _kernel(op_type: str, boundary: int) -> list[str]:
    """Where the kernel belongs; nothing where there is one, or the operator never had any."""
    versions = schemas.versions(op_type)
    older = versions[: versions.index(boundary)]
    never = bool(older) and not any(is_computed(op_type, since) for since in older)
    if never or is_computed(op_type, boundary) or schemas.schema(op_type, boundary).deprecated:
        return []
    kernels = [found.kernel for since in older if (found := find_kernel(op_type, since))]
    file = f"{_KERNELS}/{op_type.lower()}.py"
    if kernels:
        file = _file(inspect.getmodule(kernels[-1]))
    elif any(reference.is_right(op_type, since) for since in older):
        file = _file(reference)
    return [f"  4. Register its kernel in {file}: ONNX Runtime has none at first."]


def _homes(op_type: str, step: Step | None) -> tuple[str, str]:
    """The file of an operator's steps, and that of their tests; new ones where it has none."""
    new = f"{_STEPS}/elementwise/{op_type.lower()}.py"
    file = new if step is None else step.place.partition(":")[0]
    folder, _, name = file.removeprefix(_STEPS).rpartition("/")
    return file, f"{_TESTS}{folder}/test_{name}"


def _file(module: object) -> str:
    return f"{module.__name__.replace('.', '/')}.py"  # type: ignore[attr-defined]
