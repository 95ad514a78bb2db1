"""Sizes of pools that shape inference gives otherwise at some opsets."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import onnxreduce_cli
from onnxreduce_cli.model.doubtful_sizes import doubtful_values
from tests.model.known import facts_of
from tests.support import assert_same, model, run

POOL = "kernel_shape = [2], strides = [2], ceil_mode = 1"


def doubtful(nodes: str, size: int = 6, more: str = "") -> set[str]:
    """The names of values whose sizes are doubtful, x being of [1, 2, size]."""
    found = model(f"""<ir_version: 8, opset_import: ["" : 21, "local" : 1]>
        g (float[1,2,{size}] x, bool c) => (float[?,?,?] y) {{ {nodes} }} {more}""")
    facts, scopes = facts_of(found)
    return {name for _, name in doubtful_values(scopes, facts) if name}


@pytest.mark.parametrize("op_type", ["AveragePool", "LpPool", "MaxPool"])
@pytest.mark.parametrize(
    ("attributes", "size", "expected"),
    [
        (f"{POOL}, pads = [0, 1]", 6, True),
        (f"{POOL}, pads = [0, 1]", 5, False),
        (f"{POOL}, pads = [1, 1]", 6, False),
        (f"{POOL}, pads = [1, 1]", 5, True),
        (f"{POOL}", 5, False),
        ("kernel_shape = [2], strides = [4], ceil_mode = 1", 7, True),
        ("kernel_shape = [2], strides = [4], ceil_mode = 1", 5, False),
        (f"{POOL}, dilations = [2], pads = [0, 2]", 6, True),
        (f"{POOL.replace('ceil_mode = 1', 'ceil_mode = 0')}, pads = [0, 1]", 6, False),
        (f'{POOL}, auto_pad = "SAME_UPPER"', 6, False),
        ('kernel_shape = [2], strides = [4], ceil_mode = 1, auto_pad = "VALID"', 7, True),
    ],
)
def test_pools(op_type: str, attributes: str, size: int, expected: bool) -> None:
    assert doubtful(f"y = {op_type}<{attributes}>(x)", size) == ({"y"} if expected else set())


def test_what_is_made_of_them() -> None:
    pool = f"p = MaxPool<{POOL}, pads = [0, 1]>(x)"
    assert doubtful(f"{pool} n = Neg(x) q = Neg(p) y = Concat<axis = 2>(q, n)") == {"p", "q", "y"}
    branches = "then_branch = t () => (float[?,?,?] t) { t = Neg(p) }"
    branches += ", else_branch = e () => (float[?,?,?] u) { u = Neg(x) }"
    assert doubtful(f"{pool} y = If (c) <{branches}>") == {"p", "t", "y"}
    inside = branches.replace("t = Neg(p)", f"{pool} t = Neg(p)")
    assert doubtful(f"y = If (c) <{inside}>") == {"p", "t", "y"}


def test_what_functions_make_of_them() -> None:
    pool = f"MaxPool<{POOL}, pads = [0, 1]>"
    imports = '<domain: "local", opset_import: ["" : 21]>'
    made = f"{imports} F (a) => (b) {{ p = {pool}(a) b = Neg(p) }}"
    assert doubtful("n = Neg(x) y = local.F(n)", more=made) == {"p", "b", "y"}
    given = f"{imports} F (a) => (b) {{ b = Neg(a) }}"
    assert doubtful(f"p = {pool}(x) y = local.F(p)", more=given) == {"p", "a", "b", "y"}
    several = f"{imports} F <k> (a) => (b) {{ b = {pool.replace('[2]', ': ints = @k', 1)}(a) }}"
    several = several.replace("kernel_shape = :", "kernel_shape :")
    calls = "z = local.F<k = [1]>(x) w = local.F<k = [2]>(x) y = Concat<axis = 2>(z, w)"
    assert doubtful(calls, more=several) == {"b", "z", "w", "y"}


@pytest.mark.parametrize("op_type", ["AveragePool", "LpPool", "MaxPool"])
@pytest.mark.parametrize(("source", "target"), [(21, 9), (21, 17), (18, 21), (18, 22), (22, 18)])
def test_fixed_dimensions_state_no_doubtful_size(op_type: str, source: int, target: int) -> None:
    before = model(f"""<ir_version: 8, opset_import: ["" : {source}]>
        g (float[1,2,H] x) => (float[?,?,?] y, int64[3] s) {{
            p = {op_type}<{POOL}, pads = [0, 1]>(x)  y = Identity(p)  s = Shape(p)
        }}""")
    after = onnxreduce_cli.convert(before, target, dims={"H": 6})
    onnx.checker.check_model(after, full_check=True)
    feeds = {"x": np.random.default_rng(0).random((1, 2, 6)).astype(np.float32)}
    expected, found = run(before, feeds), run(after, feeds)
    assert expected["s"].tolist() == [1, 2, 3]
    for name in ("y", "s"):
        assert_same(expected[name], found[name])
