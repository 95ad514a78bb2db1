"""What the files of `data/operators/` say is whole, small, and true where it is known elsewhere."""

from __future__ import annotations

import re
from pathlib import Path

import onnx
import pytest

from onnxreduce_cli import schemas
from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.targets import operators
from onnxreduce_cli.targets.operators import OperatorTable, read_operators
from onnxreduce_cli.targets.reading import read_runtime, runtime_names
from onnxreduce_cli.targets.requirement import find_target
from onnxreduce_cli.targets.verdict import default_domain_nodes

FOLDER = Path(operators.__file__).with_name("data") / "operators"
NAMES = sorted(path.stem for path in FOLDER.glob("*.toml"))

#: Operators of the default domain that runtimes take and no onnx defines.
MADE_UP = {
    "Affine", "Crop", "DynamicSlice", "GroupNorm", "ImageScaler", "ParametricSoftplus", "Scale",
    "ScaledTanh", "SimplifiedLayerNormalization",
}  # fmt: skip


def table(text: str) -> OperatorTable:
    """The table of a requirement with one version."""
    (found,) = find_target(text).operator_tables
    return found


def value(text: str, name: str, opset: int | None, node: NodeFacts | None = None) -> str:
    """What is known of an operator, ``Conv`` or ``com.microsoft.Gelu``."""
    domain, _, op_type = name.rpartition(".")
    return table(text).answer(domain, op_type, opset, node).value


def node(inputs: str, body: str, opset: int) -> NodeFacts:
    """The last node of a model with these inputs."""
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => (y) {{ {body} }}'
    *_, found = default_domain_nodes(admit(onnx.parser.parse_model(text)))
    return found


def test_there_is_a_runtime_for_each_file() -> None:
    assert set(NAMES) <= set(runtime_names())


# The operators of onnxruntime-web are ONNX Runtime's; of nncase the lab measured 1.9 alone.
@pytest.mark.parametrize(
    "name", [name for name in NAMES if name not in ("onnxruntime-web", "nncase")]
)
def test_the_newest_row_has_the_newest_operators(name: str) -> None:
    file = read_operators(name)
    assert file is not None
    rows = read_runtime(name).rows
    assert rows[-1].version >= file.versions[-1]
    assert rows[0].version <= file.versions[0] or file.versions[0].is_of(rows[0].version)


def test_what_another_runtime_helps_out_with_is_that_of_the_version_in_it() -> None:
    # TIDL 9.2 has ONNX Runtime 1.14 in it, and 11.0 has 1.15.
    assert table("tidl==9.2").answer("", "Unique", 13).value == "runs on the CPU"
    assert table("tidl==9.2").answer("", "Shape", 19).value == "not taken"
    assert table("tidl==11.0").answer("", "Shape", 19).value == "runs on the CPU"


def test_all_files_are_small() -> None:
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 400_000


@pytest.mark.parametrize("name", NAMES)
def test_each_file_is_whole(name: str) -> None:
    found = read_operators(name)
    assert found is not None
    assert found.facts
    for item in found.sources:
        assert item.source.where
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", item.source.date)
        fallback, _, _ = item.fallback.partition("==")
        assert not fallback or read_operators(fallback) is not None


@pytest.mark.newest
@pytest.mark.parametrize("name", NAMES)
def test_onnx_defines_each_operator(name: str) -> None:
    found = read_operators(name)
    assert found is not None
    known = {
        (schema.domain or operators.DEFAULT_DOMAIN, schema.name)
        for schema in onnx.defs.get_all_schemas_with_history()
    }
    domains = {domain for domain, _ in known}
    odd = {op for domain, op in found.facts if domain in domains and (domain, op) not in known}
    assert odd <= MADE_UP


@pytest.mark.newest
def test_onnxruntime_lacks_what_the_lab_found_that_it_lacks() -> None:
    """Each quirk of `lab/kernels.py`: operators of which no test case of onnx's loads."""
    found = set()
    for row in read_runtime("onnxruntime").rows:
        kernels = OperatorTable.load("onnxruntime", row.version)
        for quirk in row.quirks if kernels is not None else ():
            assert kernels is not None
            if quirk.effect != "refused" or quirk.form != "any":
                continue
            for opset in filter(quirk.at, range(7, (row.number("newest") or 0) + 1)):
                for op in quirk.operators:
                    if schemas.exists(op, opset):
                        said = kernels.answer("", op, opset).value
                        found.add((str(row.version), op, said))
    said_otherwise = {(version, op) for version, op, said in found if said != "not taken"}
    # Its kernel is registered with the dtypes of another type parameter, which no node has.
    assert said_otherwise == {("1.23", "QuantizeLinear")}
    assert len(found) > 50


#: Operators whose name a runtime knows, for what it meant at another opset or in another domain, or
#: with code that fails.
ANOTHER_MEANING = {
    ("iree", "GroupNormalization"),
    ("jaxonnxruntime", "Flatten"),
    ("opencv", "Attention"),
    ("opencv", "GroupNormalization"),
    ("openvino", "GroupNormalization"),
    ("tinygrad", "GroupNormalization"),
    ("tvm", "Attention"),
    ("x2paddle", "TopK"),
}


@pytest.mark.parametrize("name", NAMES)
def test_no_runtime_takes_what_the_lab_says_that_it_has_not(name: str) -> None:
    for row in read_runtime(name).rows:
        found = OperatorTable.load(name, row.version)
        for quirk in row.quirks if found is not None else ():
            if quirk.what != "has no such operator" or quirk.form != "any":
                continue
            assert found is not None
            opset = max(quirk.opsets[0], 13)
            taken = {op for op in quirk.operators if found.answer("", op, opset).value == "taken"}
            assert {(name, op) for op in taken} <= ANOTHER_MEANING


@pytest.mark.newest
def test_onnxruntime_lacks_nothing_else_that_onnx_tests() -> None:
    kernels = table("onnxruntime==1.20")
    lacking = {
        op
        for op in schemas.operators()
        for opset in range(7, 22)
        if schemas.defines(op, opset) and kernels.answer("", op, opset).value == "not taken"
    }
    assert lacking == {"DeformConv", "ImageDecoder"}


QUANTIZED = """x_scale = Constant<value_float = 1.0>() zero = Cast<to={0}>(x_scale)
y = QLinearConv(x, x_scale, zero, w, x_scale, zero, x_scale, zero)"""


@pytest.mark.parametrize(
    ("version", "dtype", "expected"),
    [("1.8", "int8", "not taken"), ("1.8", "uint8", "taken"), ("1.10", "int8", "taken")],
)
def test_onnxruntime_1_8_has_no_qlinearconv_of_int8(
    version: str, dtype: str, expected: str
) -> None:
    number = {"int8": 3, "uint8": 2}[dtype]
    asked = node(f"{dtype}[1,1,4,4] x, {dtype}[1,1,3,3] w", QUANTIZED.format(number), opset=14)
    assert value(f"onnxruntime=={version}", "QLinearConv", 14, asked) == expected


@pytest.mark.parametrize("op", ["Less", "Greater"])
def test_onnxruntime_1_8_compares_no_int16(op: str) -> None:
    asked = node("int16[3] a, int16[3] b", f"y = {op}(a, b)", opset=13)
    assert value("onnxruntime==1.8", op, 13, asked) == "not taken"
    assert value("onnxruntime==1.24", op, 13, asked) == "taken"


def test_onnxruntime_casts_float16_to_float() -> None:
    asked = node("float16[3] x", "y = Softmax(x)", opset=13)
    assert value("onnxruntime==1.20", "Softmax", 13, asked) == "taken"


@pytest.mark.parametrize(
    ("runtime", "name", "opset", "expected"),
    [
        # Function bodies are written out, Constant is folded, other domains are looked up.
        ("onnxruntime==1.16", "HardSwish", 14, "taken"),
        ("onnxruntime==1.16", "Constant", 13, "taken"),
        ("onnxruntime==1.16", "Mish", 18, "taken"),
        ("onnxruntime==1.26", "GroupNormalization", 18, "taken"),
        ("onnxruntime==1.16", "com.microsoft.Gelu", 1, "taken"),
        ("onnxruntime==1.16", "com.microsoft.NoSuch", 1, "not taken"),
        ("onnxruntime==1.10", "com.microsoft.NoSuch", 1, "not known"),
        ("onnxruntime==1.16", "ai.onnx.ml.TreeEnsemble", 5, "not taken"),
        ("onnxruntime==1.18", "ai.onnx.ml.LabelEncoder", 2, "taken"),
        ("onnxruntime==1.32", "SimplifiedLayerNormalization", 17, "taken"),
        # NonMaxSuppression has no type parameter, so that the table of kernels lacks it.
        ("onnxruntime==1.8", "NonMaxSuppression", 11, "taken"),
        # An open range of a kernel is that of one version of the operator.
        ("onnxruntime==1.20", "LpNormalization", 21, "taken"),
        ("onnxruntime==1.22", "LpNormalization", 22, "not taken"),
        ("onnxruntime-cuda==1.20", "Conv", 13, "taken"),
        ("onnxruntime-cuda==1.20", "StringNormalizer", 13, "runs on the CPU"),
        ("onnxruntime-directml==1.16", "NonZero", 13, "taken"),
        ("onnxruntime-directml==1.16", "Unique", 13, "runs on the CPU"),
        ("onnxruntime-web==1.20", "Conv", 13, "taken"),
        ("onnxruntime-webgpu==1.20", "NonZero", 13, "runs on the CPU"),
        ("onnxruntime-webgpu==1.20", "Reshape", 13, "runs on the CPU"),
        ("onnxruntime-webgl==1.20", "NonZero", 13, "not taken"),
        ("onnxruntime-webgl==1.20", "Conv", 13, "taken"),
        ("webnn==1.24", "Einsum", 13, "taken"),
        ("webnn==1.18", "Einsum", 13, "runs on the CPU"),
        ("openvino==2022.1", "GridSample", 16, "not taken"),
        ("openvino==2023.3", "GridSample", 16, "taken"),
        ("openvino==2022.1", "CastLike", 15, "taken"),
        ("openvino==2026.4", "DeformConv", 19, "not taken"),
        ("openvino==2026.4", "com.microsoft.Gelu", 1, "taken"),
        ("openvino==2022.1", "com.microsoft.Gelu", 1, "not taken"),
        ("opencv==4.6", "Where", 13, "not taken"),
        ("opencv==4.8", "Where", 13, "taken"),
        ("opencv==4.6", "ScatterND", 13, "not taken"),
        ("opencv==4.7", "ScatterND", 13, "taken"),
        ("opencv==4.10", "STFT", 17, "not taken"),
        ("opencv==4.10", "Loop", 13, "not taken"),
        ("opencv==4.10", "TopK", 13, "not taken"),
        ("opencv==4.11", "TopK", 13, "taken"),
        ("opencv==5.0", "If", 13, "taken"),
        ("opencv==4.10", "com.microsoft.FusedConv", 1, "not taken"),
        ("opencv==4.10", "ai.onnx.ml.Scaler", 1, "not taken"),
        ("tensorrt==8.4", "QLinearConv", 13, "not taken"),
        ("tensorrt==8.4", "LayerNormalization", 17, "not taken"),
        ("tensorrt==8.6", "LayerNormalization", 17, "taken"),
        ("tensorrt==8.2", "Reciprocal", 13, "taken"),
        ("tensorrt==8.0", "Einsum", 13, "not taken"),
        ("tensorrt==8.2", "Einsum", 13, "taken if"),
        ("tensorrt==8.6", "com.microsoft.Gelu", 1, "not known"),
        ("onnx-mlir==0.5.1", "Abs", 13, "taken"),
        ("onnx-mlir==0.5.1", "ArgMin", 12, "not taken"),
        ("onnx-mlir==0.4.1", "AveragePool", 19, "not taken"),
        ("onnx-mlir==0.4.0", "Trilu", 14, "not taken"),
        ("onnx-mlir==0.5.1", "ReduceMax", 18, "taken if"),
        ("wonnx==0.5", "Gather", 13, "taken if"),
        ("wonnx==0.5", "Einsum", 13, "not taken"),
        ("pplnn", "Add", 16, "taken"),
        ("pplnn-cuda", "Add", 16, "not taken"),
        ("burn==0.16", "ReduceL2", 13, "not taken"),
        ("burn==0.20", "ReduceL2", 13, "taken"),
        ("burn==0.20", "AveragePool", 13, "taken if"),
        ("esp-dl==3.3", "Conv", 13, "taken if"),
        ("esp-dl==3.3", "Einsum", 13, "not taken"),
        ("tidl==10.0", "TopK", 13, "runs on the CPU"),
        ("tidl==10.1", "TopK", 13, "taken if"),
        ("tidl==9.2", "Einsum", 13, "runs on the CPU"),
        ("onnxruntime==1.6", "Less", 13, "taken"),
        ("onnxruntime==1.6", "Gather", 9, "taken"),
        ("onnxruntime==1.4", "Celu", 12, "taken"),
        ("onnxruntime==1.4", "com.microsoft.Gelu", 1, "not known"),
        ("horizon", "Conv", 11, "taken if"),
        ("horizon", "TopK", 10, "runs on the CPU"),
        ("horizon", "TopK", 11, "not taken"),
        ("horizon", "Einsum", 12, "not taken"),
        ("ascend==8", "Einsum", 12, "taken"),
        ("ascend==5", "Einsum", 12, "not taken"),
        ("sophgo", "Conv", 13, "taken"),
        ("sophgo", "Unique", 13, "not known"),
        ("deepx==2.4", "Selu", 13, "taken"),
        ("deepx==2.3", "Selu", 13, "not taken"),
        ("pulsar2", "LayerNormalization", 17, "taken if"),
        ("axelera", "Relu", 14, "taken"),
        ("axelera", "Einsum", 14, "not known"),
        ("qnn==2.31", "MatMul", 13, "taken"),
        ("qnn==2.31", "Unique", 13, "not known"),
        ("onnxruntime-qnn==1.24", "Conv", 13, "taken"),
        ("onnxruntime-qnn==1.24", "com.microsoft.MatMulNBits", 1, "taken"),
        ("onnxruntime-qnn==1.15", "Einsum", 13, "runs on the CPU"),
        ("nnapi==1.24", "Relu", 13, "taken"),
        ("nnapi==1.24", "Gather", 13, "taken if"),
        ("nnapi==1.24", "Einsum", 13, "runs on the CPU"),
        ("xnnpack==1.16", "AveragePool", 19, "runs on the CPU"),
        ("xnnpack==1.17", "AveragePool", 19, "taken"),
        ("ncnn", "LayerNormalization", 17, "taken"),
        ("ncnn", "Hardmax", 13, "not known"),
        ("onnx2ncnn==20260526", "Mul", 13, "taken"),
        ("onnx2ncnn==20260526", "Shape", 13, "taken if"),
        ("onnx2ncnn==20260526", "Einsum", 13, "not taken"),
        ("nncase==1.9", "Greater", 13, "taken"),
        ("nncase==3.10", "QLinearMatMul", 13, "not taken"),
        ("x2paddle==1.6", "Mod", 10, "taken"),
        ("x2paddle==1.6", "Mod", 9, "not taken"),
        ("tensorrt==10.12", "HannWindow", 17, "not taken"),
        ("tensorrt==10.14", "HannWindow", 17, "taken"),
        ("tensorrt==10.14", "RotaryEmbedding", 23, "not taken"),
        ("tensorrt==10.15", "RotaryEmbedding", 23, "taken if"),
        ("tensorrt==11.1", "Swish", 24, "taken"),
        ("tensorrt==11.1", "QLinearConv", 13, "not taken"),
    ],
)
def test_known_facts(runtime: str, name: str, opset: int, expected: str) -> None:
    assert value(runtime, name, opset) == expected


@pytest.mark.parametrize(
    ("version", "inputs", "body", "expected"),
    [
        ("8.6", "int64[3] x", "y = Abs(x)", "taken"),
        ("8.6", "int8[3] x", "y = Abs(x)", "not taken"),
        ("8.6", "double[3] x", "y = Relu(x)", "taken"),
        ("10.0", "int64[3] x", "y = Abs(x)", "taken"),
        ("8.4", "float[1,3,8,8] x, int64[1] k", "y, i = TopK(x, k)", "not taken"),
        ("8.4", "float[1,3,8,8] x", "k = Constant<value_ints=[2]>() y, i = TopK(x, k)", "taken"),
        ("8.6", "float[1,3,8,8] x, int64[1] k", "y, i = TopK(x, k)", "taken"),
        ("8.6", "float[1,3,8,8] x", "y = MaxPool<kernel_shape=[2,2]>(x)", "taken"),
        ("8.6", "float[1,3,8,8] x", "y, i = MaxPool<kernel_shape=[2,2]>(x)", "not taken"),
        ("8.6", "float[1,3,8,8] x, float[4] s", 'y = Resize<mode="cubic">(x, , s)', "not taken"),
        ("8.6", "float[1,3,8,8] x, float[4] s", 'y = Resize<mode="linear">(x, , s)', "taken"),
        ("10.1", "float[1,3,8,8] x, int64[2] a", "y = Squeeze(x, a)", "not taken"),
        (
            "8.2",
            "float[1,1,8,8] x, int8[1,1,3,3] q",
            "s = Constant<value_float=0.1>() w = DequantizeLinear(q, s) y = Conv(x, w)",
            "not taken",
        ),
        (
            "8.2",
            "float[1,1,8,8] x",
            "q = Constant<value = int8[1,1,3,3] {1,1,1,1,1,1,1,1,1}>() "
            "s = Constant<value_float=0.1>() w = DequantizeLinear(q, s) y = Conv(x, w)",
            "taken",
        ),
        (
            "7.0",
            "float[1,1,8] x, float[1,1,3] w",
            "y = Conv(x, w)",
            "not taken",
        ),
        ("8.0", "float[1,1,8] x, float[1,1,3] w", "y = Conv(x, w)", "taken"),
    ],
)
def test_what_tensorrt_takes_of_a_node(version: str, inputs: str, body: str, expected: str) -> None:
    asked = node(inputs, body, opset=13)
    assert value(f"tensorrt=={version}", asked.node.op_type, 13, asked) == expected
