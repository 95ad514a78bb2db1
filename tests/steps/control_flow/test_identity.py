"""Identity of sequences across its boundary."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, model


@pytest.mark.parametrize("dtype", ["float", "int64", "string", "bool"])
def test_same_sequence(dtype: str) -> None:
    source = model(
        '<ir_version: 8, opset_import: ["": 14]> '
        f"g (seq({dtype}[n]) s, {dtype}[n] x) => (seq({dtype}[n]) y, int64 n) {{ y = Identity(s) "
        " both = SequenceConstruct(x, x)  again = Identity(both)  n = SequenceLength(again) }"
    )
    values = np.array(["a", "b"], object) if dtype == "string" else np.array([0, 1])
    values = (
        values if dtype == "string" else values.astype("float32" if dtype == "float" else dtype)
    )
    for target in (13, 11):
        converts(source, target, {"s": [values, values[:1]], "x": values}, exact=True)
