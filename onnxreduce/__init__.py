"""Move ONNX models between opsets: nothing lost, nothing guessed, everything checked.

What `onnxreduce_cli` shows, under the name that the distribution has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import onnxreduce_cli
from onnxreduce_cli import __all__, __version__

if TYPE_CHECKING:
    from onnxreduce_cli import *  # noqa: F403
    from onnxreduce_cli.report.lookups import targets

__all__ = [*__all__, "targets", "__version__"]


def __getattr__(name: str) -> Any:
    """Return a public name of `onnxreduce_cli`, imported when it is first used."""
    if name == "targets":  # In `onnxreduce_cli` a subpackage has this name.
        from onnxreduce_cli.report.lookups import targets

        return targets
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(onnxreduce_cli, name)


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted(__all__)
