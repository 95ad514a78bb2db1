"""A report as one HTML page that opens from disk: its data, and a script that shows them."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from onnxreduce_cli.report.drawing import ModelPicture
from onnxreduce_cli.serializable import as_plain_data
from onnxreduce_cli.text import shortened

#: The page loads nothing, whatever the names in a model contain.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"

#: Longer texts are cut in the middle, so that browsers can still open the page.
_LONGEST = 4_000

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="color-scheme" content="light dark">
<title>onnxreduce {command}</title>
<style>
{style}</style>
</head>
<body>
<noscript>This page needs JavaScript to show what it holds.</noscript>
<main id="report"></main>
<script type="{kind}" id="data">{data}</script>
<script>
{layout}</script>
<script>
{script}</script>
</body>
</html>"""


def page(found: Mapping[str, Any], pictures: Sequence[ModelPicture | None]) -> str:
    """Return a report as an HTML page.

    Args:
        found: the report, as plain data.
        pictures: the picture of each of its models; None where there is none.
    """
    data = _cut({**found, "pictures": as_plain_data(pictures)})
    folder = files("onnxreduce_cli.report") / "page"
    style, licence, layout, script = (
        (folder / name).read_text(encoding="utf-8")
        for name in ("page.css", "dagre.LICENSE", "dagre.min.js", "page.js")
    )
    text = json.dumps(data, allow_nan=False)
    many = len(found.get("models", ())) > 1
    return _PAGE.format(
        policy=_POLICY,
        command=found["command"],
        style=style,
        kind="application/gzip" if many else "application/json",
        # Without "<" no text of a model can end the script element that holds the data.
        data=_packed(text) if many else text.replace("<", "\\u003c"),
        layout=f"/*\n{licence}*/\n{layout}",
        script=script,
    )


def _packed(text: str) -> str:
    """Return a text compressed, as browsers unpack it: a tenth, where there are many models."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _cut(value: Any) -> Any:
    """Return plain data with long texts cut, keys like values."""
    if isinstance(value, str):
        return shortened(value, _LONGEST)
    if isinstance(value, Mapping):
        return {_cut(key): _cut(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(item) for item in value]
    return value
