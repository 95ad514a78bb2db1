"""The idioms that `--contract` knows, and the names of groups of them."""

from __future__ import annotations

from collections.abc import Iterable

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.idioms import (
    activations,
    attention,
    channels,
    limits,
    normalizations,
    reductions,
    rotation,
)
from onnxreduce_cli.idioms.idiom import Idiom
from onnxreduce_cli.text import did_you_mean, shortened

#: The larger idioms come first, as nodes are contracted by the first idiom that matches.
IDIOMS: tuple[Idiom, ...] = (
    *attention.IDIOMS,
    *rotation.IDIOMS,
    *normalizations.IDIOMS,
    *channels.IDIOMS,
    *activations.IDIOMS,
    *limits.IDIOMS,
    *reductions.IDIOMS,
)

GROUPS: dict[str, frozenset[str]] = {
    "normalizations": frozenset(
        item.op_type for item in (*normalizations.IDIOMS, *channels.IDIOMS)
    ),
    "attention": frozenset(item.op_type for item in (*attention.IDIOMS, *rotation.IDIOMS)),
    "activations": frozenset(item.op_type for item in (*activations.IDIOMS, *limits.IDIOMS)),
    "family": frozenset(item.op_type for item in reductions.IDIOMS),
    "all": frozenset(item.op_type for item in IDIOMS),
}


def operators(names: Iterable[str]) -> frozenset[str]:
    """Return the operators for names of operators or of groups.

    Raises:
        UsageError: an operator has no idiom.
    """
    found: set[str] = set()
    for name in names:
        known = GROUPS.get(name, {name} & GROUPS["all"])
        if not known:
            hint = did_you_mean(name, [*GROUPS, *sorted(GROUPS["all"])])
            raise UsageError(
                f"no nodes are known to stand for {shortened(name)}{hint or ';'} groups are "
                f"{', '.join(GROUPS)}, and onnxreduce ops marks the operators"
            )
        found |= known
    return frozenset(found)
