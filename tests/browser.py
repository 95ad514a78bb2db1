"""A browser that shows nothing, for tests marked `browser`."""

from __future__ import annotations

import subprocess
from pathlib import Path


def browse(*options: str, path: str | Path, query: str = "") -> subprocess.CompletedProcess[str]:
    """Open a page in a browser that shows nothing."""
    call = ("chromium", "--headless=new", "--no-sandbox", "--disable-gpu", *options)
    profile = f"--user-data-dir={Path('profile').absolute()}"
    return subprocess.run(
        [*call, profile, Path(path).absolute().as_uri() + query],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
