"""Operators of documents of which no clone can be had: `python -m lab.operators.single_files`.

Each was read in a store of single files and pages. What it names is written down here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from lab.operators.writing import Facts, Release, Row, Source, write

#: The day on which the files were read, as their commits have no date there.
DATE = "2026-11-25"

CONDITIONS = {"limits": ("it is within the limits of the BPU, beyond which the CPU runs it", "")}


class SingleFile(NamedTuple):
    """What a file names.

    Attributes:
        where: the repository, the file and the commit; or the page.
        taken: the operators that are taken.
        limited: the operators that an accelerator takes within limits, which the CPU runs beyond.
        on_cpu: the operators that the CPU runs.
        complete: whether it names all operators that are taken.
    """

    where: str
    taken: str
    limited: str = ""
    on_cpu: str = ""
    complete: bool = False


#: What Ascend's pages name in every version that was read.
_ASCEND = (
    "Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization "
    "BitShift Cast Ceil Celu Clip Compress Concat Constant ConstantOfShape Conv ConvTranspose Cos "
    "Cosh CumSum DepthToSpace Det Div Dropout Elu Equal Erf Exp Expand EyeLike Flatten Floor "
    "Gather GatherElements GatherND Gemm GlobalAveragePool GlobalLpPool GlobalMaxPool Greater "
    "GreaterOrEqual HardSigmoid HardSwish Hardmax Identity If InstanceNormalization LRN LSTM "
    "LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization LpPool MatMul Max MaxPool "
    "MaxRoiPool MaxUnpool Mean MeanVarianceNormalization Min Mod Mul Multinomial Neg "
    "NonMaxSuppression NonZero Not OneHot Or PRelu Pad Pow RandomNormalLike RandomUniform "
    "RandomUniformLike Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax "
    "ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare Relu Reshape Resize "
    "ReverseSequence RoiAlign Round Scatter ScatterElements ScatterND Selu Shape Shrink Sigmoid "
    "Sign Sin Sinh Size Slice Softmax Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum "
    "Tanh TfIdfVectorizer ThresholdedRelu Tile TopK Transpose Unsqueeze Where Xor "
)

#: What was read, by runtime and version: ``0`` where it is of no version.
FILES: Mapping[tuple[str, str], SingleFile] = {
    ("ascend", "5"): SingleFile(
        "hiascend.com canncommercial/5046 fwoperatorlist/operatorlist_0071", _ASCEND, complete=True
    ),
    ("ascend", "8"): SingleFile(
        "hiascend.com canncommercial/800 aolapi/operatorlist_00176",
        _ASCEND + "BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Einsum GRU GridSample IsInf IsNaN "
        "LayerNormalization RandomNormal SoftmaxCrossEntropyLoss Tan Trilu",
        complete=True,
    ),
    ("horizon", "0"): SingleFile(
        "D-Robotics/rdk_doc .../intermediate/supported_op_list.md, RDK X3, 0e03fc396b",
        "Clip Constant ConstantOfShape Dropout Exp LeakyRelu Reciprocal Relu Shape Size Slice",
        "Add ArgMax AveragePool BatchNormalization Concat Conv ConvTranspose Cos DepthToSpace Div "
        "Gemm GlobalAveragePool GlobalMaxPool LSTM MatMul MaxPool Mul PRelu Pad Pow ReduceMean "
        "Resize Sigmoid Sin Softmax Softplus SpaceToDepth Split Sqrt Sum Tanh Upsample",
        "Abs Acos Acosh And ArgMin Asin Asinh Atan Atanh Cast Ceil Cosh CumSum DequantizeLinear "
        "Elu Equal Erf Expand EyeLike Flatten Floor GRU Gather GatherElements GatherND "
        "GlobalLpPool Greater GreaterOrEqual HardSigmoid Identity InstanceNormalization LRN Less "
        "LessOrEqual Log LogSoftmax LpNormalization LpPool Max MaxRoiPool Min Neg NonZero Not "
        "OneHot Or QuantizeLinear RNN RandomUniform RandomUniformLike Range ReduceL1 ReduceL2 "
        "ReduceLogSum ReduceLogSumExp ReduceMax ReduceMin ReduceProd ReduceSum ReduceSumSquare "
        "Reshape ReverseSequence RoiAlign Round ScatterElements ScatterND Selu Sign Sinh Softsign "
        "Squeeze Sub Tan ThresholdedRelu Tile TopK@10 Transpose Unsqueeze Where",
        complete=True,
    ),
    ("tpu-mlir", "0"): SingleFile(
        "sophgo/tpu-mlir python/transform/OnnxConverter.py, 0033e680e7",
        "Abs Acos Add And ArgMax ArgMin Atan Atanh AveragePool BatchNormalization Cast Ceil Clip "
        "Concat Constant ConstantOfShape Conv ConvTranspose Cos CumSum DepthToSpace "
        "DequantizeLinear Div Dropout Einsum Elu Equal Erf Exp Expand Flatten Floor GRU Gather "
        "GatherElements GatherND Gemm GlobalAveragePool GlobalMaxPool Greater GreaterOrEqual "
        "GridSample GroupNormalization HardSigmoid HardSwish Identity If InstanceNormalization LRN "
        "LSTM LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax Loop MatMul Max MaxPool "
        "Min Mod Mul Neg NonMaxSuppression NonZero Not OneHot PRelu Pad Pow QuantizeLinear "
        "RandomNormalLike Range Reciprocal ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin "
        "ReduceProd ReduceSum Relu Reshape Resize ReverseSequence RoiAlign Round ScatterElements "
        "ScatterND Shape Sigmoid Sign Sin Slice Softmax Softplus SpaceToDepth Split Sqrt Squeeze "
        "Sub Sum Tanh Tile TopK Transpose Trilu Unsqueeze Upsample Where Xor",
    ),
}


def facts(file: SingleFile) -> Facts:
    """Return the rows of a file."""
    found = {("", name): [Row()] for name in file.taken.split()}
    found |= {("", name): [Row(conditions=("limits",))] for name in file.limited.split()}
    for text in file.on_cpu.split():
        name, _, opset = text.partition("@")
        only = int(opset) if opset else None
        found["", name] = [Row((only, only), value="cpu")]
    return found


def main() -> None:
    """Write the files of all."""
    for runtime in dict.fromkeys(name for name, _ in FILES):
        releases = [
            Release(version, _source(file), facts(file))
            for (name, version), file in FILES.items()
            if name == runtime
        ]
        written = write(runtime, "single_files", releases, conditions=CONDITIONS)
        print(written, written.stat().st_size)


def _source(file: SingleFile) -> Source:
    return Source("document", file.where, DATE, ("ai.onnx",) if file.complete else ())


if __name__ == "__main__":
    main()
