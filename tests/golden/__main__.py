"""`python -m tests.golden` writes what conversions give now in place of what is kept."""

from __future__ import annotations

from tests.golden import conversions, for_runtimes

for kept, names in (
    (conversions, conversions.OPERATORS),
    (for_runtimes, for_runtimes.RUNTIMES),
):
    for name in names:
        kept.file_of(name).write_text(kept.text(name), encoding="utf-8")
        print(kept.file_of(name))
