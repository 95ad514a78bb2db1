"""IR versions: the least for an opset, and what of a model would be misread with it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

import onnxreduce_cli
from onnxreduce_cli.errors import ConversionError
from onnxreduce_cli.model.graph.dead_values import DeadValues
from onnxreduce_cli.model.graph.ir_version import Wanted, choose, least_for_opset
from onnxreduce_cli.model.graph.scope import scopes
from onnxreduce_cli.schemas import newest_opset
from tests.support import model, run


def test_the_least_for_each_opset() -> None:
    expected = {1: 3, 7: 3, 8: 3, 9: 4, 10: 5, 11: 6, 12: 7, 13: 7, 14: 7, 15: 8, 18: 8, 19: 9}
    assert {opset: least_for_opset(opset) for opset in expected} == expected
    every = [least_for_opset(opset) for opset in range(1, newest_opset() + 1)]
    assert every == sorted(every)


def chosen(wanted: Wanted, found: ModelProto, opset: int) -> tuple[int, str]:
    """What is chosen for a model that nothing goes of."""
    return choose(wanted, found, scopes(found), opset, DeadValues())


def plain() -> ModelProto:
    return model("""<ir_version: 3, opset_import: ["" : 8]>
        g (float[2] x) => (float[2] y) { [n] y = Neg(x) }""")


def initializer(found: ModelProto) -> None:
    found.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))


def listed_initializer(found: ModelProto) -> None:
    initializer(found)
    found.graph.input.append(helper.make_tensor_value_info("w", 1, [2]))


def function(found: ModelProto) -> None:
    found.functions.append(
        helper.make_function(
            "local", "F", ["a"], ["b"], [helper.make_node("Neg", ["a"], ["b"])], []
        )
    )


def default(found: ModelProto) -> None:
    function(found)
    found.functions[0].attribute_proto.append(helper.make_attribute("k", 1))


def sparse(found: ModelProto) -> None:
    values = helper.make_tensor("s", 1, [1], [1.0])
    indices = helper.make_tensor("", 7, [1], [0])
    found.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2]))


def bfloat16(found: ModelProto) -> None:
    found.graph.input.append(helper.make_tensor_value_info("b", TensorProto.BFLOAT16, [2]))


def float8_constant(found: ModelProto) -> None:
    tensor = helper.make_tensor("", TensorProto.FLOAT8E4M3FN, [1], [1.0])
    found.graph.node.append(helper.make_node("Constant", [], ["f"], value=tensor))


def external(found: ModelProto) -> None:
    initializer(found)
    found.graph.initializer[0].data_location = TensorProto.EXTERNAL


def overload(found: ModelProto) -> None:
    function(found)
    found.functions[0].overload = "double"


FEATURES: list[tuple[Callable[[ModelProto], object], int, str]] = [
    (lambda found: None, 3, ""),
    (listed_initializer, 3, ""),
    (initializer, 4, "initializer 'w', which is no graph input"),
    (external, 4, "initializer 'w', which is no graph input"),
    (bfloat16, 4, "value 'b' of dtype bfloat16"),
    (sparse, 6, "sparse initializers in the main graph"),
    (function, 8, "model-local function 'F'"),
    (default, 9, "default attributes of function 'F'"),
    (overload, 10, "overload 'double' of function 'F'"),
    (float8_constant, 9, "a tensor of node '' of dtype float8e4m3fn"),
    (lambda found: found.opset_import.add(domain="custom", version=5), 3, ""),
]

#: What readers of IR version 3 skip.
SKIPPED: list[Callable[[ModelProto], object]] = [
    lambda found: found.graph.quantization_annotation.add(),
    lambda found: found.training_info.add(),
    lambda found: found.configuration.add(name="c"),
    lambda found: found.metadata_props.add(key="a"),
    lambda found: found.graph.metadata_props.add(key="a"),
    lambda found: found.graph.node[0].metadata_props.add(key="a"),
    lambda found: found.graph.input[0].metadata_props.add(key="a"),
    lambda found: found.graph.node[0].device_configurations.add(),
    lambda found: setattr(found.graph.node[0], "doc_string", "a"),
    lambda found: found.opset_import.add(domain="ai.onnx.ml", version=5),
    lambda found: found.opset_import.add(domain="com.microsoft", version=1),
]


@pytest.mark.parametrize(("change", "least", "what"), FEATURES)
def test_what_would_be_misread(
    change: Callable[[ModelProto], object], least: int, what: str
) -> None:
    found = plain()
    change(found)
    reason = f"needed by {what}" if what else ""
    assert chosen("auto", found, 8) == (least, reason)
    assert chosen("auto", found, 23) == (least, reason)


@pytest.mark.parametrize("change", SKIPPED)
def test_what_readers_skip(change: Callable[[ModelProto], object]) -> None:
    found = plain()
    change(found)
    found.ir_version = 11
    assert chosen("auto", found, 8) == (3, "")
    assert chosen(3, found, 8) == (3, "")


def test_of_functions_what_readers_skip() -> None:
    found = plain()
    function(found)
    found.functions[0].value_info.add(name="a")
    found.functions[0].metadata_props.add(key="a")
    assert chosen("auto", found, 8)[0] == 8


def test_an_initializer_that_a_caller_may_override() -> None:
    found = plain()
    found.ir_version = 4
    listed_initializer(found)
    reason = "needed by initializer 'w', which a caller may override"
    assert chosen("auto", found, 8) == (4, reason)
    with pytest.raises(ConversionError, match="IR version 3 has no place for initializer 'w'"):
        chosen(3, found, 8)


def test_operators_of_other_domains_that_are_read() -> None:
    found = plain()
    found.opset_import.add(domain="ai.onnx.ml", version=3)
    found.graph.node.add(op_type="Scaler", domain="ai.onnx.ml", input=["x"], output=["z"])
    assert chosen("auto", found, 8) == (8, "needed by opset 3 of ai.onnx.ml")


def test_features_in_branches() -> None:
    found = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x, bool c) => (float[2] y) {
            y = If (c) <
                then_branch = t () => (float[2] a) <float[2] w = {1, 2}> { a = Add(x, w) },
                else_branch = e () => (float[2] b) { b = Neg(x) }
            >
        }""")
    reason = "needed by initializer 'w', which is no graph input"
    assert chosen("auto", found, 8) == (4, reason)


def test_a_number_and_keep() -> None:
    found = plain()
    function(found)
    found.ir_version = 10
    for opset in (8, 13, 28):
        assert chosen(8, found, opset) == (8, "")
        assert chosen("keep", found, opset) == (10, "")
        with pytest.raises(ConversionError, match="function 'F', which needs 8: say --ir-version"):
            chosen(7, found, opset)
    found.ir_version = 2
    assert chosen("keep", found, 1) == (2, "")
    with pytest.raises(ConversionError, match="the import of opset 13, which needs 3"):
        chosen("keep", found, 13)


def test_an_opset_that_is_in_no_release_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helper, "VERSION_TABLE", helper.VERSION_TABLE[:-3])
    assert least_for_opset(newest_opset()) == onnx.IR_VERSION
    assert least_for_opset(13) == 7


def test_outer_constants_at_ir_version_3() -> None:
    """ONNX Runtime refuses a Constant node there that only graphs within read."""
    source = model("""<ir_version: 8, opset_import: ["" : 15]>
        g (float[2] x, bool c) => (float[2] y) {
            w = Constant<value = float[2] {1, 2}>()
            y = If (c) <
                then_branch = t () => (float[2] a) { a = Add(x, w) },
                else_branch = e () => (float[2] b) { b = Neg(x) }
            >
        }""")
    result = onnxreduce_cli.convert(source, 8)
    assert result.ir_version == 3
    assert [value.name for value in result.graph.input] == ["x", "c", "w"]
    feeds = {"x": np.array([3, 4], np.float32), "c": np.array(True)}
    assert run(result, feeds)["y"].tolist() == [4.0, 6.0]


def test_an_ir_version_that_nobody_asked_for_never_stands_in_the_way() -> None:
    source = parser.parse_model("""<ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (float[2] x) => (float[2] y) { y = local.F(x) }
        <domain: "local", opset_import: ["" : 18]>
        F <axis : int = 0> (a) => (b) { b = Softmax<axis : int = @axis>(a) }""")
    result = onnxreduce_cli.convert(source, 12, check=False)
    assert result.ir_version == 9
    with pytest.raises(onnxreduce_cli.ConversionError, match="default attributes of"):
        onnxreduce_cli.convert(source, 12, ir_version=8)


def four_bits(*, constant: bool) -> ModelProto:
    source = parser.parse_model("""<ir_version: 10, opset_import: ["" : 21]>
        g (float[2, 4] x) => (float[2, 2] y) <float scale = {0.5}> {
            w = DequantizeLinear(q, scale)
            y = MatMul(x, w)
        }""")
    tensor = helper.make_tensor("q", TensorProto.INT4, [4, 2], [-8, 7, 1, 2, 3, -4, 5, 6])
    if constant:
        source.graph.node.insert(0, helper.make_node("Constant", [], ["q"], value=tensor))
    else:
        source.graph.initializer.append(tensor)
    return source


@pytest.mark.parametrize("constant", [False, True])
def test_a_dtype_that_goes_needs_no_ir_version(constant: bool) -> None:
    source = four_bits(constant=constant)
    result = onnxreduce_cli.convert(source, 13)
    assert result.ir_version == 7
    assert onnxreduce_cli.convert(source, 13, ir_version=7).ir_version == 7
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    weights = np.array([[-8, 7], [1, 2], [3, -4], [5, 6]], np.float32)
    assert run(result, {"x": x})["y"].tolist() == (x @ weights / 2).tolist()


@pytest.mark.parametrize("constant", [False, True])
def test_a_dtype_that_stays_does(constant: bool) -> None:
    source = four_bits(constant=constant)
    source.graph.output.append(helper.make_tensor_value_info("q", TensorProto.INT4, [4, 2]))
    with pytest.raises(onnxreduce_cli.ConversionError, match="of dtype int4, which needs 10"):
        onnxreduce_cli.convert(source, 22, ir_version=9)
