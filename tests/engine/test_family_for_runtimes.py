"""Models of several family nodes, wherever they are, converted for each runtime.

Nothing that the table of targets calls wrong or refused may be left in what comes out.
"""

from __future__ import annotations

import random

import onnx
import pytest
from onnx import ModelProto

import onnxreduce_cli
from lab.predict import hits_of_model
from onnxreduce_cli import ConversionError
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.schemas import REDUCE, SOFTMAX
from onnxreduce_cli.targets.reading import read_runtime, runtime_names
from onnxreduce_cli.targets.requirement import find_target
from tests.support import model

#: The oldest version of each runtime, one between, and the newest.
REQUIREMENTS = [
    f"{name}=={rows[index].version}"
    for name in runtime_names()
    for rows in [read_runtime(name).rows]
    for index in sorted({0, len(rows) // 2, len(rows) - 1})
]

PLACES = {
    "main": "{nodes} y = Identity({last})",
    "If": """y = If(c) <
        then_branch = t () => ({dtype}[p,q,r] {last}) {{ {nodes} }},
        else_branch = e () => ({dtype}[s,t,u] w) {{ w = Identity(x) }}
    >""",
    "Loop": """n = Constant<value = int64 {{2}}>() l = Identity(x) y = Loop(n, c, l) <
        body = b (int64 i, bool ci, {dtype}[{dims}] held) => (bool co, {dtype}[{dims}] next) {{
            co = Identity(ci) {nodes} next = Add(held, {last})
        }}
    >""",
    "function": "y = local.f(x)",
}


def node(drawing: random.Random, opset: int, dtype: str, given: str, made: str) -> str:
    """A node of the family that keeps the rank, 3."""
    if dtype != "int32" and drawing.random() < 0.4:
        return f"{made} = {drawing.choice(SOFTMAX)}<axis={drawing.randrange(-3, 3)}>({given})"
    known = [name for name in REDUCE if dtype != "int32" or not name.startswith("ReduceLog")]
    name = drawing.choice(known)
    kind = drawing.choice(("noop", "all", "axes", "axes", "axes"))
    as_input = opset >= (13 if name == "ReduceSum" else 18)
    if kind == "noop" and as_input:
        return f"{made} = {name}<noop_with_empty_axes=1>({given})"
    if kind != "axes":
        return f"{made} = {name}<keepdims=1>({given})"
    first = drawing.choice((-3, 0))
    axes = sorted(drawing.sample(range(first, first + 3), drawing.choice((1, 2))))
    if as_input:
        return f"{made}_axes = Constant<value_ints={axes}>() {made} = {name}({given}, {made}_axes)"
    return f"{made} = {name}<axes={axes}>({given})"


def drawn(place: str, seed: int) -> ModelProto:
    drawing = random.Random(f"{place} {seed}")
    opset = drawing.choice((17, 18, 20) if place == "function" else (11, 12, 13, 17, 18, 20))
    dtype = drawing.choice(("float", "float", "float16", "double", "int32"))
    dims = drawing.choice(("2,3,4", "N,3,4"))
    given, nodes = "held" if place == "Loop" else "x", ""
    for index in range(drawing.randint(2, 4)):
        nodes += node(drawing, opset, dtype, given, f"v{index}") + " "
        given = f"v{index}"
    body = PLACES[place].format(nodes=nodes, last=given, dtype=dtype, dims=dims)
    function = f'<domain: "local", opset_import: ["" : {opset}]> f (x) => ({given}) {{ {nodes} }}'
    return model(f"""<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]>
        g ({dtype}[{dims}] x, bool c) => ({dtype}[a,b,d] y) {{ {body} }}
        {function if place == "function" else ""}""")


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("seed", range(8))
def test_nothing_is_left_that_a_runtime_gets_wrong(place: str, seed: int) -> None:
    source = drawn(place, seed)
    converted, refusals = 0, []
    for requirement in REQUIREMENTS[seed::8]:
        target = find_target(requirement)
        try:
            made = onnxreduce_cli.convert(
                source, runtime=requirement, check=False, inline_functions=seed % 2 == 0
            )
        except ConversionError as error:
            refusals.append(error)
            continue
        onnx.checker.check_model(made, full_check=True)
        left = [(found.op_type, hit.what) for found, hit in hits_of_model(target, admit(made))]
        assert not left, requirement
        assert made.ir_version <= (target.ir_version or made.ir_version), requirement
        opset = next(item.version for item in made.opset_import if not item.domain)
        assert target.oldest <= opset <= (target.newest or opset), requirement
        converted += 1
    assert converted
    assert all(item.blockers or "say inline_functions=True too" in str(item) for item in refusals)
