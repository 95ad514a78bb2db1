"""The files that commands and Python code in the documentation name, made in a folder."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"
EXPORTS = ROOT / "tests" / "data" / "exports"

#: Files that are copies of others.
COPIES = {
    "samples/reductions_opset18.onnx": SAMPLES / "reductions_opset18.onnx",
    "model.onnx": SAMPLES / "reductions_opset18.onnx",
    "models/reductions.onnx": SAMPLES / "reductions_opset18.onnx",
    "models/segmentation.onnx": SAMPLES / "segmentation_opset11.onnx",
    "a.onnx": SAMPLES / "segmentation_opset11.onnx",
    "b.onnx": SAMPLES / "segmentation_opset11.onnx",
    "a": SAMPLES / "reductions_opset18.onnx",
    "export.onnx": EXPORTS / "dyn_vit.onnx",
    "detector.onnx": EXPORTS / "dyn_unet.onnx",
    "large.onnx": EXPORTS / "dyn_resnet.onnx",
    "quantized.onnx": ROOT / "tests" / "data" / "quantized" / "cnn_static.onnx",
    "int4.onnx": ROOT / "tests" / "data" / "quantized" / "encoder_int4.onnx",
    "old.onnx": SAMPLES / "attention_opset13.onnx",
}

#: What nothing at opset 13 or below computes: there is no lower case of unknown strings before 10.
STRINGS = """<ir_version: 8, opset_import: ["" : 18]>
g (string[3] text) => (string[3] lower) {
    [lower_case] lower = StringNormalizer<case_change_action="LOWER">(text)
}"""

DYNAMIC = """<ir_version: 8, opset_import: ["" : 18]>
g (float[batch,seq,8] x) => (float[batch,seq,8] y) { [probabilities] y = Softmax<axis=1>(x) }"""

BFLOAT16 = """<ir_version: 8, opset_import: ["" : 13]>
g (bfloat16[2,3] x) => (bfloat16[2,1] y) { [total] y = ReduceMax<axes=[1]>(x) }"""


#: What scikit-learn's converter writes at ai.onnx.ml 5, and what it may write at 3.
FOREST = """<ir_version: 10, opset_import: ["" : 21, "ai.onnx.ml" : 5]>
g (float[N,2] x) => (string[N,1] answer, float[N,1] score) {
    [trees] score = ai.onnx.ml.TreeEnsemble <
        n_targets = 1, tree_roots = [0], nodes_modes = uint8[2] {0, 6}, nodes_featureids = [0, 1],
        nodes_splits = float[2] {0.5, 0.0}, nodes_truenodeids = [0, 1], nodes_trueleafs = [1, 1],
        nodes_falsenodeids = [1, 2], nodes_falseleafs = [0, 1], leaf_targetids = [0, 0, 0],
        leaf_weights = float[3] {0.0, 1.0, 2.0}, membership_values = float[3] {1.0, 2.0, 4.0}
    > (x)
    index = Cast <to = 7> (score)
    [labels] answer = ai.onnx.ml.LabelEncoder <
        keys_tensor = int64[3] {0, 1, 2}, values_strings = ["no", "maybe", "yes"]
    > (index)
}"""

PRECISE = """<ir_version: 8, opset_import: ["" : 17, "ai.onnx.ml" : 3]>
g (double[N,2] x) => (float[N,1] y) {
    [trees] y = ai.onnx.ml.TreeEnsembleRegressor <
        n_targets = 1, nodes_treeids = [0, 0, 0], nodes_nodeids = [0, 1, 2],
        nodes_featureids = [0, 0, 0], nodes_modes = ["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_values_as_tensor = double[3] {0.1, 0.0, 0.0}, nodes_truenodeids = [1, 0, 0],
        nodes_falsenodeids = [2, 0, 0], target_treeids = [0, 0], target_nodeids = [1, 2],
        target_ids = [0, 0], target_weights_as_tensor = double[2] {1.0, 2.0}
    > (x)
}"""

#: What a compiler for an NPU refuses.
FOR_NPU = """<ir_version: 8, opset_import: ["" : 17]>
g (float[1,8] x) => (float[1,8] y) <int64 axis = {1}> { [sums] y = CumSum(x, axis) }"""

#: A layer normalisation as exporters write it. Squares of activations overflow float16.
NORM = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2,8] x) => (float[2,8] y) <float two = {2}, float eps = {1e-5}> {
    [mean] m = ReduceMean<axes = [-1]>(x)
    [off] d = Sub(x, m)
    [square] p = Pow(d, two)
    [variance] v = ReduceMean<axes = [-1]>(p)
    [add] e = Add(v, eps)
    [root] s = Sqrt(e)
    [divide] y = Div(d, s)
}"""


#: What torch.onnx.export writes of x.squeeze(1) and x.mean(-1) * x.size(-1) ** -0.5.
SQUEEZE = """<ir_version: 8, opset_import: ["" : 13]>
g (float[batch,1,8] x) => (float[batch,n] y) {
    [shape] shape = Shape(x)
    [one] one = Constant <value = int64 {1}> ()
    [size] size = Gather <axis = 0> (shape, one)
    [equal] condition = Equal(size, one)
    [squeeze] flat = If (condition) <
        then_branch = a () => (then) {
            axes = Constant <value = int64[1] {1}> ()
            then = Squeeze(x, axes)
        },
        else_branch = b () => (same) { same = Identity(x) }
    >
    [last] last = Constant <value = int64 {2}> ()
    [width] width = Gather <axis = 0> (shape, last)
    [number] number = Cast <to = 1> (width)
    [root] root = Sqrt(number)
    [scale] y = Div(flat, root)
}"""

#: Embeddings looked up by a hash of words and of their places, which padding (1) has none of.
TOKENS = """<ir_version: 8, opset_import: ["" : 17]>
g (int64[batch,8] words, float[64,4] table) => (float[batch,R,4] rows, int64[batch] longest)
<int64 one = {1}, int64 factor = {31}, int64 buckets = {64}, int64[1] first = {1},
 int64[1] end = {9223372036854775807}> {
    [padding] padding = Equal(words, one)
    [not_padding] word = Not(padding)
    [count] counted = Cast<to = 7>(word)
    [places] places = CumSum(counted, one)
    [multiply] hash = Mul(words, factor)
    [add] key = Add(hash, places)
    [bucket] bucket = Mod(key, buckets)
    [look_up] all_rows = Gather(table, bucket)
    [cut] rows = Slice(all_rows, first, end, first)
    [longest] longest = ArgMax<axis = 1, keepdims = 0>(places)
}"""


#: A Resize whose scales are an Identity of a constant, as PyTorch writes it for shared weights.
RESIZE = """<ir_version: 7, opset_import: ["" : 13]>
g (float[1,3,8,8] x) => (float[1,3,16,16] y) <float[4] factors = {1, 1, 2, 2}> {
    [copy] scales = Identity(factors)
    [resize] y = Resize <mode = "nearest"> (x, , scales)
}"""


#: A block of an encoder and a normalization as ONNX Runtime saves them.
OPTIMIZED = """<ir_version: 8, opset_import: ["" : 17, "com.microsoft" : 1]>
g (float[batch,6,8] x, int32[batch,6] mask) => (float[batch,6,8] y)
<float[8] gamma = {1, 1, 1, 1, 1, 1, 1, 1}, float[8] beta = {0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5}> {
    [attention] a = com.microsoft.MultiHeadAttention <num_heads = 2> (x, x, x, , mask)
    [norm] s = com.microsoft.SkipLayerNormalization (a, x, gamma, beta)
    [gelu] g = com.microsoft.BiasGelu(s, beta)
    [last_norm] y = SimplifiedLayerNormalization(g, gamma)
}"""


def prepare(folder: Path) -> None:
    """Put all files that the documentation names into an empty folder."""
    for name, source in COPIES.items():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)
    (folder / "there").mkdir()
    parsed = {"strings.onnx": STRINGS, "dynamic.onnx": DYNAMIC, "bfloat16.onnx": BFLOAT16}
    parsed |= {"forest.onnx": FOREST, "precise.onnx": PRECISE, "for-npu.onnx": FOR_NPU}
    parsed |= {"squeeze.onnx": SQUEEZE, "norm.onnx": NORM, "tokens.onnx": TOKENS}
    parsed |= {"resize.onnx": RESIZE, "optimized.onnx": OPTIMIZED}
    for name, text in parsed.items():
        onnx.save(onnx.parser.parse_model(text), folder / name)
    _write_with_a_mistake(folder / "broken.onnx")
    (folder / "ops.txt").write_text("\n".join(OPERATORS), encoding="utf-8")
    shape = [dim.dim_value for dim in _input(folder / "model.onnx").type.tensor_type.shape.dim]
    values = np.random.default_rng(0).standard_normal(shape, np.float32)
    np.save(folder / "x.npy", values)
    np.save(folder / "activations.npy", np.float32([[900, -700, 500, *range(5)]] * 2))
    np.savez(folder / "inputs.npz", input0=values)


#: What `ops.txt` allows: the operators of the sample.
OPERATORS = (
    "LogSoftmax",
    "ReduceL2",
    "ReduceLogSumExp",
    "ReduceMax",
    "ReduceProd",
    "ReduceSum",
)


def _input(path: Path) -> onnx.ValueInfoProto:
    return onnx.load(path).graph.input[0]


def _write_with_a_mistake(path: Path) -> None:
    """Write the sample as someone else's converter might: a ReduceSum over other axes."""
    model = onnx.load(COPIES["model.onnx"])
    (total,) = (node for node in model.graph.node if node.op_type == "ReduceL2")
    total.input[1] = "other_axes"
    model.graph.initializer.append(numpy_helper.from_array(np.array([-2]), "other_axes"))
    del model.graph.value_info[:]
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    onnx.save(model, path)
