"""How much a run of a site's model is estimated to take."""

from __future__ import annotations

import pytest

from onnxreduce_cli.engine.pairs.work import estimated_work
from tests.support import model


@pytest.mark.parametrize(("given", "once"), [("bool", True), ("int32", False)])
def test_a_loop_that_a_bool_counts_runs_once_at_most(given: str, once: bool) -> None:
    """So do the Loops that replace an If; another may go on for each element of a tensor."""
    found = model(
        f'<ir_version: 8, opset_import: ["" : 16]> g ({given} c, float[512,512] w) => (float y) '
        "{ k = Identity(c) n = Cast<to=7>(k) y = Loop(n, , w) <body = b (int64 i, bool go, "
        "float[512,512] v) => (bool more, float[512,512] z) { more = Identity(go) z = Neg(v) }> }"
    )
    assert (estimated_work(found) < 1_000_000) == once
