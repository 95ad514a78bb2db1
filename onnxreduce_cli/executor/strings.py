"""StringNormalizer.

Source: StringNormalizer 10. By its text only stopwords are removed; onnx.reference removes empty
strings and accents too.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from onnxreduce_cli.executor.dtypes import Array
from onnxreduce_cli.executor.errors import Invalid
from onnxreduce_cli.executor.registry import Call, kernel

_CHANGES: dict[str, Callable[[str], str]] = {"NONE": str, "LOWER": str.lower, "UPPER": str.upper}


@kernel("StringNormalizer", 10)
def string_normalizer(call: Call, x: Array) -> Array:
    """Remove stopwords, then change the case; return one empty string if none are left."""
    if x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1) or not x.size:
        raise Invalid(f"its input has shape {x.shape}, where it takes [C] and [1, C]")
    action = call.attrs.get("case_change_action", "NONE")
    if action not in _CHANGES:
        raise Invalid(f"case_change_action {action!r} is none of {', '.join(_CHANGES)}")
    key: Callable[[str], str] = str if call.attrs.get("is_case_sensitive", 0) else str.lower
    stopwords = {key(word) for word in call.attrs.get("stopwords", ())}
    kept = [str(text) for text in x.ravel() if key(str(text)) not in stopwords]
    changed = [_CHANGES[action](text) for text in kept] or [""]
    result = np.array(changed, object)
    return result.reshape(1, -1) if x.ndim == 2 else result
