"""What a page of ``--report`` holds, packed or not."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any


def held(path: str | Path) -> tuple[dict[str, Any], str]:
    """The data of a page, and the page."""
    text = Path(path).read_text(encoding="utf-8")
    ((kind, found),) = re.findall(
        r'<script type="application/(\w+)" id="data">(.*?)</script>', text
    )
    if kind == "gzip":
        found = gzip.decompress(base64.b64decode(found))
    return json.loads(found), text
