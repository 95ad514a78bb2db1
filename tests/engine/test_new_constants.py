"""The constants that new nodes read, where a scope has no initializers: in functions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import converts, model

X = np.arange(20, dtype=np.float32).reshape(4, 5)


@pytest.mark.parametrize("target", [9, 8, 7])
def test_what_makes_a_constant_reads_constants(target: int) -> None:
    """Below 9 an int64 that double cannot hold is computed of others, which come before it."""
    source = model("""<ir_version: 8, opset_import: ["" : 16, "local" : 1]>
        g (float[4,5] x) => (float[a,b] y) { y = local.F(x) }
        <domain: "local", opset_import: ["" : 16]>
        F (x) => (y) {
            starts = Constant<value = int64[2] {1, 2}>()
            ends = Constant<value = int64[2] {9007199254740993, 9223372036854775807}>()
            y = Slice(x, starts, ends)
        }""")
    converts(source, target, {"x": X})
    other = model("""<ir_version: 8, opset_import: ["" : 17, "local" : 1]>
        g (float[4,5] x) => (int64[a,b] y) { y = local.F(x) }
        <domain: "local", opset_import: ["" : 17]>
        F (x) => (y) { y = ArgMax<axis = 1, select_last_index = 1>(x) }""")
    converts(other, target, {"x": X})


SLICE = """<ir_version: 8, opset_import: ["" : 8, "local" : 1]>
g (float[4,5] x) => (float[a,b] y, float[c,d] z) {{
    y = local.F <p = [1, 0]> (x)
    z = local.F <p = {second}> (x)
}}
<domain: "local", opset_import: ["" : 8]>
F <p>(v) => (w) {{ w = Slice <axes: ints = @p, starts = [0, 1], ends = [2, 3]> (v) }}"""


@pytest.mark.parametrize("second", ["[1, 0]", "[0, 1]"])
@pytest.mark.parametrize("target", [7, 9, 10, 11, 12, 13])
def test_a_reference_that_becomes_a_constant(target: int, second: str) -> None:
    """A Constant holds a reference from opset 12 on; before, what all calls give."""
    source = model(SLICE.format(second=second))
    result = converts(source, target, {"x": X})
    specialised = len(result.functions) == 2
    assert specialised == (target in (10, 11) and second == "[0, 1]")


def test_a_reference_of_a_function_that_nothing_calls() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 8, "local" : 1]>
        g (float[4,5] x) => (float[4,5] y) { y = Neg(x) }
        <domain: "local", opset_import: ["" : 8]>
        F <p>(v) => (w) { w = Slice <axes: ints = @p, starts = [0, 1], ends = [2, 3]> (v) }""")
    assert not converts(source, 10, {"x": X}).functions
    assert converts(source, 13, {"x": X}).functions


@pytest.mark.parametrize("second", ["{1, 2}", "{3, 4}"])
@pytest.mark.parametrize("kind", ["int64", "float"])
def test_a_reference_to_a_tensor(kind: str, second: str) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 13, "local" : 1]>
        g () => ({kind}[n] y, {kind}[m] z) {{
            y = local.F <p = {kind}[2] {{1, 2}}> ()
            z = local.F <p = {kind}[2] {second}> ()
        }}
        <domain: "local", opset_import: ["" : 13]>
        F <p>() => (w) {{ w = Constant <value : tensor = @p> () }}""")
    for target in (12, 10, 8, 7):
        converts(source, target, {})
