"""The process that runs a user's model in the NumPy executor, so that it can be limited."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from onnxreduce_cli.model import nesting
from onnxreduce_cli.verification.errors import (
    CannotRunError,
    LimitError,
    RefusedError,
    RunFailedError,
)
from onnxreduce_cli.verification.process import restore
from onnxreduce_cli.verification.runtime import NumpyRunner
from onnxreduce_cli.verification.serving import Answer, Result, serve


def _prepare() -> Answer:
    runners: dict[int, NumpyRunner] = {}

    def answer(step: Mapping[str, Any], values: Sequence[Any]) -> list[Result]:
        for old in step["forget"]:
            runners.pop(old, None)
        try:
            if step["do"] == "open":
                content = values[0]
                given = step["path"] if content is None else nesting.parse(content.data)
                runners[step["key"]] = NumpyRunner(given, step["base_dir"])
                return [[]]
            feeds = dict(zip(step["feeds"], values, strict=True))
            found = [runners[key].run(feeds, step["names"]) for key in step["keys"]]
            return [[outputs[name] for name in step["names"]] for outputs in found]
        except (LimitError, MemoryError) as error:
            return [("memory", str(error))]
        except RefusedError as error:
            return [("refused", str(error))]
        except CannotRunError as error:
            return [("cannot", str(error))]
        except RunFailedError as error:
            return [("failed", str(error))]
        except Exception as error:  # Told where the request came from.
            return [("bug", f"the NumPy executor: {type(error).__name__}: {error}")]

    return answer


def main() -> None:
    """Answer requests until there are none: open a model, or run one that is open."""
    serve(_prepare, restore)
