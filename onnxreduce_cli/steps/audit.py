"""The changes in every operator of the default domain, boundary by boundary.

A boundary (operator, N) is an opset N at which the operator's definition changed. `audit.json` says
what changed, and in which directions a node may cross unedited; what becomes of a node that may
not is in the descriptions of the steps. The audit only knows the meaning: whether a node's dtypes
are allowed at the other opset is checked by `type_constraints`.

The file lists, for each opset, records of operators that changed in the same way:

- ``operators``: their names, in order.
- ``what``: the change, in a sentence about the definition.
- ``unedited``: the directions, of ``up`` and ``down``, in which every node that is valid at the
  opset before the boundary means the same at the one after it.
- ``more_types`` instead of the latter two: types were added, and nothing else changed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from onnxreduce_cli.steps.registry import Direction


class DefinitionChange(NamedTuple):
    """The change in one operator at one boundary.

    Attributes:
        what: the change in the definition, in a sentence.
        unedited: the directions in which a node may cross as it is.
    """

    what: str
    unedited: frozenset[Direction]


def definition_change(op_type: str, boundary: int) -> DefinitionChange | None:
    """Return what changed in an operator at a boundary; None where the audit does not say."""
    # Few changes are needed, so the other records are not turned into objects.
    for record in _records().get(str(boundary), ()):
        if op_type in record["operators"]:
            return _change_of_record(record)
    return None


@cache
def _records() -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """Return the records of the file by opset; it is read once."""
    text = Path(__file__).with_name("audit.json").read_text(encoding="utf-8")
    found: dict[str, list[dict[str, Any]]] = json.loads(text)
    return found


def _change_of_record(record: Mapping[str, Any]) -> DefinitionChange:
    """Return the change that one record of the file declares."""
    if "more_types" in record:
        return DefinitionChange(
            f"Allows more types: {record['more_types']}.", frozenset({"up", "down"})
        )
    return DefinitionChange(record["what"], frozenset(record["unedited"]))
