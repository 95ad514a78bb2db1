"""Applying: what was planned and checked, and nothing else."""

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, parser

import onnxreduce_cli
from onnxreduce_cli.engine import node_converter
from onnxreduce_cli.engine.conversion import Conversion
from onnxreduce_cli.model.types.skeleton import adopt, without_weights
from tests.containers.programs import Program
from tests.engine.test_inlining import strings
from tests.engine.test_specialisation import axes
from tests.support import converts

#: The elements of a weight that no fact is read from.
LARGE = 1 << 17


def weighted(given: ModelProto) -> ModelProto:
    """The model with a weight of more elements than facts look at, which goes to an output."""
    graph = given.graph
    graph.initializer.add(
        name="weight", data_type=TensorProto.FLOAT, dims=[LARGE], raw_data=b"abcd" * LARGE
    )
    graph.node.append(helper.make_node("Neg", ["weight"], ["negative"]))
    graph.output.append(helper.make_tensor_value_info("negative", TensorProto.FLOAT, [LARGE]))
    onnx.checker.check_model(given)
    return given


@pytest.mark.parametrize(
    ("source", "target", "how"),
    [
        (strings, 8, "inlined"),
        (axes, 10, "specialised"),
        (lambda: Program(1, 13).model(), 9, "written out"),
    ],
)
def test_no_step_is_taken_once_all_is_planned(
    source: Callable[[], ModelProto], target: int, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = weighted(source())
    conversion = Conversion(given, target)
    plan = conversion.plan()
    assert plan.possible
    edits = {edit for change in plan.changes for edit in change.edits}
    done = {
        "inlined": bool(plan.inlined),
        "specialised": bool(plan.specialised),
        "written out": any("written out as tensors" in edit for edit in edits),
    }
    assert [name for name, was in done.items() if was] == [how]
    monkeypatch.setattr(node_converter, "Context", None)
    monkeypatch.setattr(node_converter, "next_step", None)
    conversion.apply()
    assert given.opset_import[0].version == target
    weights = [item for item in given.graph.initializer if item.name == "weight"]
    assert [item.raw_data for item in weights] == [b"abcd" * LARGE]


def test_what_is_applied_is_what_was_looked_at() -> None:
    """Whoever looks at the sites, as the check does, sees the nodes that end up in the model."""
    given = weighted(strings())
    conversion = Conversion(given, 8)
    for site in conversion.sites:
        for node in site.result:
            node.doc_string = "seen"
    assert conversion.sites
    conversion.apply()
    seen = [node for node in given.graph.node if node.doc_string == "seen"]
    assert len(seen) == sum(len(site.result) for site in conversion.sites)


def test_a_model_becomes_its_edited_copy() -> None:
    given = weighted(strings())
    whole = ModelProto()
    whole.CopyFrom(given)
    copy = without_weights(given)
    assert copy.ByteSize() < given.ByteSize() // 100
    for item in (copy, whole):
        item.ir_version = 9
        item.producer_name = "another"
        item.ClearField("functions")
        item.graph.ClearField("output")
        item.graph.node[0].name = "first"
        item.graph.initializer.add(name="new", data_type=TensorProto.FLOAT, float_data=[1.0])
    adopt(given, copy)
    assert given.SerializeToString() == whole.SerializeToString()
    for item in (copy, whole):
        del item.graph.initializer[0]
    adopt(given, copy)
    assert given.SerializeToString() == whole.SerializeToString()


def test_texts_that_nothing_reads_stay_as_they_are() -> None:
    given = strings()
    given.doc_string = given.graph.doc_string = given.producer_name = "~~~~"
    content = given.SerializeToString().replace(b"~~~~", b"a\xc0\xffb")
    given = ModelProto.FromString(content)
    copy = without_weights(given)
    copy.ir_version += 1
    adopt(given, copy)
    given.ir_version -= 1
    assert given.SerializeToString(deterministic=True) == content


_MEASURE = """
import resource
from onnx import TensorProto, helper
from onnxreduce_cli.engine.conversion import Conversion
from tests.engine.test_inlining import strings

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

given = strings()
Conversion(strings(), 8).apply()
size = 1 << 27
given.graph.initializer.add(name="weight", data_type=TensorProto.UINT8, dims=[size])
given.graph.initializer[0].raw_data = bytes(size)
before = peak()
conversion = Conversion(given, 8)
assert conversion.plan().inlined
conversion.apply()
print((peak() - before) / size)
"""


def test_weights_are_not_copied() -> None:
    pytest.importorskip("resource")
    done = subprocess.run(
        [sys.executable, "-c", _MEASURE], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 0.5


@pytest.mark.parametrize("target", [10, 9])
def test_a_stated_dimension_of_minus_one(target: int) -> None:
    """It is unknown, here and in what is written: onnx's inference would count with it."""
    source = parser.parse_model("""<ir_version: 6, opset_import: ["" : 11]>
        g (float[N,3] x, float[5,3] w) => (float[M,3] y) <float[K,3] c> {
            c = Concat<axis = -2>(x, w)
            y = Round(c)
        }""")
    for info in (source.graph.input[0], source.graph.output[0], source.graph.value_info[0]):
        info.type.tensor_type.shape.dim[0].dim_value = -1
    feeds = {"x": np.full((2, 3), 1.5, np.float32), "w": np.full((5, 3), 2.5, np.float32)}
    result = converts(source, target, feeds)
    for info in (*result.graph.input, *result.graph.output, *result.graph.value_info):
        assert all(dim.dim_value >= 0 for dim in info.type.tensor_type.shape.dim)
    assert onnxreduce_cli.convert(source, 11) == source
