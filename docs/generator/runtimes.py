"""The page "My runtime is X: what do I type", written from what `onnxreduce targets` knows."""

from __future__ import annotations

from collections.abc import Iterator

from onnxreduce_cli.targets.reading import read_runtime, runtime_names
from onnxreduce_cli.targets.requirement import find_target
from onnxreduce_cli.targets.rows import Runtime, VersionFacts
from onnxreduce_cli.targets.versions import Version

START = """# My runtime is X: what do I type?

Name the runtime, and its version where you know it. The opset, the IR version and the form of each
node are then chosen for it:

    onnxreduce convert model.onnx --for onnxruntime==1.8

| you have | type |
|---|---|
| one version | `--for onnxruntime==1.8` |
| several, and one file for all | `--for 'opencv>=4.6,<5'` |
| any version of it | `--for openvino` |
| the onnxruntime that is installed here | `--for installed` |
| a runtime that is not below, but you know its opset | `--opset 13` |
| a runtime that is not below, but you know its operators | `--allow-ops ops.txt` |

Which of these runtimes take a model as it is, and which after a conversion, says

    onnxreduce inspect model.onnx

A version that is not in the table is taken for the nearest older one. What is known of each
runtime, what it computes wrong, and how that is known is in [Runtimes](../targets.md).

| runtime | version | type | takes opsets | best | wrong or refused |
|---|---|---|---|---|---|
"""


def page() -> str:
    """The page, in Markdown."""
    return (
        START
        + "\n".join(line for name in runtime_names() for line in _rows(read_runtime(name)))
        + "\n"
    )


def requirements() -> Iterator[str]:
    """What can be said after ``--for``, one for each row of the table."""
    for name in runtime_names():
        for row in read_runtime(name).rows:
            yield _requirement(read_runtime(name), row)


def _requirement(found: Runtime, row: VersionFacts) -> str:
    plain = row.version == Version.of("0")
    return found.name if plain else f"{found.name}=={row.version}"


def _rows(found: Runtime) -> Iterator[str]:
    """The rows of a runtime, the newest version first."""
    for place, row in enumerate(reversed(found.rows)):
        requirement = _requirement(found, row)
        target = find_target(requirement)
        newest = "?" if target.newest is None else str(target.newest)
        oldest = row.number("oldest")
        opsets = f"up to {newest}" if oldest is None else f"{oldest} to {newest}"
        quirks = [quirk for quirk in row.quirks if quirk.effect == "wrong"]
        refused = len(row.quirks) - len(quirks)
        known = [f"{len(quirks)} wrong"] if quirks else []
        known += [f"{refused} refused"] if refused else []
        cells = [
            f"[{found.title}](../targets.md)" if not place else "",
            "any" if "==" not in requirement else str(row.version),
            f"`--for {requirement}`",
            "not known" if newest == "?" and oldest is None else opsets,
            str(target.best or ""),
            ", ".join(known),
        ]
        yield "| " + " | ".join(cells) + " |"
