"""OptionalHasElement: 18."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, model, op_types

X = np.ones(2, np.float32)


@pytest.mark.parametrize("target", [17, 14, 13])
def test_already_there(target: int) -> None:
    source = model(
        """<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y, int64 n) {
            s = SequenceConstruct (x, x)
            y = OptionalGetElement (x)
            t = OptionalGetElement (s)
            n = SequenceLength (t)
        }"""
    )
    result = converts(source, target, {"x": X})
    assert op_types(result)[0] == "SequenceConstruct"


def test_known_beforehand():
    for operand in ("", "x", "s", "o"):
        source = model(
            f"""<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (bool b) {{
                s = SequenceConstruct (x)
                o = Optional (s)
                b = OptionalHasElement ({operand})
            }}"""
        )
        result = converts(source, 17, {"x": X})
        assert op_types(result)[-1] == ("OptionalHasElement" if operand == "o" else "Identity")
