"""What is known of nodes before a plan is applied is what is known of them afterwards."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from onnx import ModelProto

from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.runtime_reach import runtimes_taking
from tests.node_cases import cases
from tests.share import share
from tests.support import one_node

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)

#: To these most nodes take the place of one.
TARGETS = (7, 8)


def kinds(conversion: Conversion) -> dict[tuple[str, str], str | None]:
    """The kinds of all values that nodes read and make, by the function and the name."""
    found = {}
    for facts in conversion.nodes_after():
        function = facts.scope.function
        within = "" if function is None else function.name
        for name in filter(None, (*facts.node.input, *facts.node.output)):
            found[within, name] = facts.kind(name)
    return found


def compared(given: ModelProto, target: int) -> Counter[str]:
    """How many values' kinds are known as in the converted model, or not known before."""
    found = ModelProto()
    found.CopyFrom(given)
    conversion = Conversion(found, target, Options(emulate=True))
    if conversion.blockers:
        return Counter()
    before = kinds(conversion)
    list(runtimes_taking(conversion))
    conversion.apply()
    after = kinds(Conversion(found, target))
    both = before.keys() & after.keys()
    other = {key: (before[key], after[key]) for key in both if before[key] != after[key]}
    assert not {key: value for key, value in other.items() if value[0] is not None}
    return Counter({"same": len(both) - len(other), "not known": len(other)})


@pytest.mark.parametrize("target", [9, 10])
@pytest.mark.parametrize(
    ("op_type", "opset", "inputs", "outputs"),
    [
        ("Unsqueeze", 13, {"x": X, "axes": np.array([5, 4, 2])}, 1),
        ("Unique", 11, {"x": np.array([2.0, 1, 1, 3], np.float32)}, 2),
        ("TopK", 24, {"x": X.astype(np.uint64), "k": np.array([2])}, 2),
        ("ReduceSum", 18, {"x": X, "axes": np.array([1])}, 1),
    ],
)
def test_values_of_nodes_that_become_many(
    op_type: str, opset: int, inputs: dict[str, np.ndarray], outputs: int, target: int
) -> None:
    """The last of the nodes gives the output's name, in a graph of its own or not."""
    counts = compared(one_node(op_type, opset, inputs, outputs=outputs), target)
    assert counts["same"] > 10
    assert counts["not known"] <= counts["same"] / 20


@pytest.mark.matrix
@pytest.mark.parametrize("index", range(len(TARGETS)))
def test_values_of_all_cases(index: int) -> None:
    few = share(cases(), lambda case: case.operator, each=4, name=lambda case: case.name)
    chosen, target = few[index :: len(TARGETS)], TARGETS[index]
    total = sum((compared(case.model, target) for case in chosen), Counter())
    assert total["same"] > 12 * len(chosen)
    assert total["not known"] < total["same"] / 200
