"""The directive ``terminal``: commands, run while the documentation is built, with what they print.

    ```{terminal}
    :exit: 1
    onnxreduce verify a.onnx b.onnx
    ```

Each line is a command. All those of a page are run one after the other in one folder, in which
`workplace` put the files that they name. The build fails if one ends with another exit code.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from docs.generator.session import run
from docs.generator.workplace import prepare

_folders: dict[str, TemporaryDirectory[str]] = {}


class Terminal(SphinxDirective):
    """Show commands and what they print."""

    has_content = True
    option_spec: ClassVar[dict[str, Any]] = {"exit": directives.nonnegative_int}

    def run(self) -> list[nodes.Node]:
        """Return one block with all of it; a command that ends otherwise is an error."""
        folder = self._folder()
        expected = self.options.get("exit", 0)
        shown = []
        for command in self.content:
            ended = run(command, folder)
            if ended.returncode != expected:
                told = f"{command!r} ended with {ended.returncode}: {ended.stdout}"
                raise self.error(told)
            shown += [f"$ {command}", *([ended.stdout.rstrip()] if ended.stdout.strip() else [])]
        if expected:
            shown += ["$ echo $?", str(expected)]
        text = "\n".join(shown)
        block = nodes.literal_block(text, text, language="console", classes=["terminal"])
        self.set_source_info(block)
        return [block]

    def _folder(self) -> Path:
        """The folder of this page's session."""
        page = self.env.docname
        if page not in _folders:
            _folders[page] = TemporaryDirectory()
            prepare(Path(_folders[page].name))
        return Path(_folders[page].name)


def leave() -> None:
    """Remove all folders."""
    for folder in _folders.values():
        folder.cleanup()
    _folders.clear()
