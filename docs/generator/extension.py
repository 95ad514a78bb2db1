"""Lets Sphinx write anew, each time it builds, the pages that come from code and data."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from docs.generator import comparison, family
from docs.generator.terminal import Terminal, leave

FOLDER = Path(__file__).parents[1]


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("terminal", Terminal)
    app.connect("builder-inited", lambda _: write_pages(FOLDER / "generated"))
    app.connect("build-finished", finish)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def write_pages(folder: Path) -> None:
    """Write the pages that come from code and data; what is the same is left as it is."""
    pages = {
        "comparison-table.md": comparison.table(),
        "family-pictures.md": family.pictures(),
    }
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def finish(app: Any, _: Exception | None) -> None:
    """Publish the JSON schemas beside the pages, and remove what the sessions wrote."""
    leave()
    schemas = FOLDER.parent / "onnxreduce_cli" / "report" / "schemas"
    shutil.copytree(schemas, Path(app.outdir) / "schemas", dirs_exist_ok=True)
