"""OptionalHasElement: 18."""

from __future__ import annotations

import numpy as np

from tests.support import converts, model, op_types

X = np.ones(2, np.float32)


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
