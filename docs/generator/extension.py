"""Lets Sphinx draw pictures and run commands each time it builds the pages."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from docs.generator import family
from docs.generator.terminal import Terminal, leave

FOLDER = Path(__file__).parents[1]


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("terminal", Terminal)
    app.connect("builder-inited", lambda _: draw(FOLDER / "generated"))
    app.connect("build-finished", finish)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def draw(folder: Path) -> None:
    """Write the pictures of the Reduce and Softmax family, unless they are the same."""
    path = folder / "family-pictures.md"
    text = family.pictures()
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        folder.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


def finish(app: Any, _: Exception | None) -> None:
    """Publish the JSON schemas beside the pages, and remove what the sessions wrote."""
    leave()
    schemas = FOLDER.parent / "onnxreduce_cli" / "report" / "schemas"
    shutil.copytree(schemas, Path(app.outdir) / "schemas", dirs_exist_ok=True)
