"""The conversions of an operator as the text that is kept of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from onnx import ModelProto, parser

import onnxreduce_cli
from onnxreduce_cli.engine.changes import grouped
from onnxreduce_cli.idioms.registry import IDIOMS
from tests.golden import composites, forms
from tests.golden.text import lines
from tests.idioms import exported
from tests.idioms.written import plain_patterns, written

#: The opset at which idioms are contracted.
_CONTRACTED_AT = 24

OPERATORS = tuple(
    dict.fromkeys([*forms.OPERATORS, *composites.OPERATORS, *(idiom.op_type for idiom in IDIOMS)])
)


def file_of(op_type: str) -> Path:
    """Where the text is kept."""
    return Path(__file__).parent / f"{op_type}.txt"


def text(op_type: str) -> str:
    """What the conversions of an operator's models give, each with what the plan says of it.

    Targets that the same comes out for are told together. Of an operator that idioms describe each
    form of theirs follows, with what it is contracted to.
    """
    return "".join(f"{line}\n" for line in (*_lines(op_type), *_contracted(op_type)))


def _contracted(op_type: str) -> Iterator[str]:
    found = [idiom for idiom in IDIOMS if idiom.op_type == op_type]
    models = [written(pattern) for idiom in found for pattern in plain_patterns(idiom)]
    models += [parser.parse_model(text) for text in exported.MODELS.get(op_type, ())]
    for number, model in enumerate(models, 1):
        (opset,) = model.opset_import
        yield f"== opset {opset.version}, form {number} of what stands for it"
        yield from lines(model)
        first, *more = _result(model, _CONTRACTED_AT, contract=[op_type])
        yield f"-- contracted, to {_CONTRACTED_AT}: {first}"
        yield from more
        yield ""


def _lines(op_type: str) -> Iterator[str]:
    given = forms if op_type in forms.OPERATORS else composites
    for heading, model, targets in given.cases(op_type):
        yield f"== {heading}"
        yield from lines(model)
        results: dict[tuple[str, ...], list[int]] = {}
        for target in targets:
            results.setdefault(tuple(_result(model, target)), []).append(target)
        for result, alike in results.items():
            first, *more = result
            yield f"-- to {', '.join(map(str, alike))}: {first}"
            yield from more
        yield ""


def _result(model: ModelProto, target: int, **options: Any) -> Iterator[str]:
    plan = onnxreduce_cli.plan(model, target, **options)
    if plan.blockers:
        yield f"blocked: {plan.blockers[0].reason}; {plan.blockers[0].advice}"
    elif not plan.changes:
        yield "unchanged"
    else:
        yield "; ".join(group.summary for group in grouped(plan.changes))
        interface, *rest = lines(onnxreduce_cli.convert(model, target, check=False, **options))
        if interface != next(lines(model)):
            yield interface
        yield from rest
