"""Imports that nothing reads go from a changed model; what anything reads stays."""

from __future__ import annotations

from onnx import FunctionProto, ModelProto, helper

import onnxreduce_cli
from tests.support import model

TEXT = """<ir_version: 10, opset_import: ["" : 18, "local" : 1, "com.microsoft" : 1,
    "ai.onnx.ml" : 3, "ai.onnx.training" : 1, "com.microsoft.nchwc" : 1, "com.example" : 4]>
g (float[2,3] x, bool c) => (float[2,1] y, float[2,3] z) {
    y = local.F(x)
    z = If (c) <
        then_branch = t () => (float[2,3] a) { a = ai.onnx.ml.Normalizer<norm = "L1">(x) },
        else_branch = e () => (float[2,3] b) { b = Neg(x) }
    >
}
<domain: "local", opset_import: ["" : 18, "com.microsoft" : 1, "ai.onnx.ml" : 3]>
F (a) => (b) {
    i = Constant<value_ints = [1]>()
    m = ReduceMean(a, i)
    b = com.microsoft.Gelu(m)
}"""


def imports(owner: ModelProto | FunctionProto) -> dict[str, int]:
    return {entry.domain: entry.version for entry in owner.opset_import}


def test_what_functions_and_graphs_within_read_stays() -> None:
    source = model(TEXT)
    plan = onnxreduce_cli.plan(source, 13)
    assert set(plan.unread) == {"ai.onnx.training 1", "com.microsoft.nchwc 1", "ai.onnx.ml 3"}
    result = onnxreduce_cli.convert(source, 13, check=False)
    kept = {"": 13, "local": 1, "com.microsoft": 1, "ai.onnx.ml": 2, "com.example": 4}
    assert imports(result) == kept
    assert imports(result.functions[0]) == {"": 13, "com.microsoft": 1}
    assert onnxreduce_cli.verify(source, result, executors=["onnxruntime"]).equivalent


def test_training_reads_too() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18, "ai.onnx.preview.training" : 1]>
        g (float[2,3] x) => (float[1,1] y) { y = ReduceMean(x) }""")
    training = source.training_info.add()
    training.algorithm.name = "step"
    names = ["rate", "step", "x", "gradient", "momentum"]
    training.algorithm.node.add(
        op_type="Momentum", domain="ai.onnx.preview.training", input=names, output=["a", "b"]
    )
    momentum = {"alpha": 0.5, "beta": 0.5, "norm_coefficient": 0.0, "mode": "standard"}
    training.algorithm.node[0].attribute.extend(
        helper.make_attribute(name, value) for name, value in momentum.items()
    )
    assert onnxreduce_cli.plan(source, 13).unread == ()
    del source.training_info[:]
    assert onnxreduce_cli.plan(source, 13).unread == ("ai.onnx.preview.training 1",)


def test_an_import_alone_changes_nothing() -> None:
    source = model(TEXT.replace("ir_version: 10", "ir_version: 8"))
    assert onnxreduce_cli.convert(source, 18) == source
    assert onnxreduce_cli.plan(source, 18).unread == ()
