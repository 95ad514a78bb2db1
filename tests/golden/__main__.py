"""`python -m tests.golden` writes what conversions give now in place of what is kept."""

from __future__ import annotations

from tests.golden.conversions import OPERATORS, file_of, text

for op_type in OPERATORS:
    file_of(op_type).write_text(text(op_type), encoding="utf-8")
    print(file_of(op_type))
