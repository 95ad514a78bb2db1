"""What changed in every operator of the default domain, boundary by boundary.

A boundary (operator, N) is an opset N at which the operator's definition changed. The table below
says for each whether a node may cross it unedited, upwards and downwards, and under which
conditions; where it may not, the sentence says what a step has to do. It only knows the meaning:
whether a node's dtypes are allowed on the other side is checked by the engine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Change:
    """What changed in one operator at one boundary.

    ``new_attributes``, ``max_inputs`` and ``max_outputs`` are conditions for crossing downwards and
    given only together with ``down``: they describe what the newer definition added.
    """

    #: The change in plain words, and what an edit has to do.
    what: str
    #: Every node that is valid under the older definition means the same, unedited, under the
    #: newer.
    up: bool = False
    #: Every node that is valid under the newer definition and meets the conditions below means the
    #: same, unedited but for the dropped attributes, under the older.
    down: bool = False
    #: Attributes that the newer definition added, each with the value under which the node means
    #: what the older definition says; absent or with that value it is dropped. ``None``: only when
    #: absent. A tuple of one element stands for a list of any length that holds nothing else.
    new_attributes: Mapping[str, object] = field(default_factory=dict)
    #: The number of inputs of the older definition, where the newer added optional ones at the end
    #: that mean nothing when absent.
    max_inputs: int | None = None
    #: The same for outputs.
    max_outputs: int | None = None


def types(added: str) -> Change:
    """More types are allowed, and nothing else changed."""
    return Change(f"Allows more types: {added}.", up=True, down=True)


def narrowed(what: str) -> Change:
    """Fewer types are allowed, and no meaning changed."""
    return Change(f"Types were removed: {what}", up=True, down=True)


def wording(what: str = "Only the wording of the definition changed.") -> Change:
    """Nothing changed that a model can show."""
    return Change(what, up=True, down=True)


def same_without(
    what: str,
    new_attributes: Mapping[str, object] | None = None,
    *,
    max_inputs: int | None = None,
    max_outputs: int | None = None,
) -> Change:
    """Something was added; a node that doesn't use it means the same on both sides."""
    return Change(
        what,
        up=True,
        down=True,
        new_attributes=new_attributes or {},
        max_inputs=max_inputs,
        max_outputs=max_outputs,
    )


def up_only(what: str) -> Change:
    """Older nodes mean the same under the newer definition, but not the reverse."""
    return Change(what, up=True)


def down_only(what: str) -> Change:
    """Newer nodes mean the same under the older definition, but not the reverse."""
    return Change(what, down=True)


def changed(what: str) -> Change:
    """Neither direction is without an edit."""
    return Change(what)


def consumed(added: str = "") -> Change:
    """The attribute consumed_inputs, a hint about memory, went away with opset 6."""
    more = f" Allows more types: {added}." if added else ""
    return down_only(
        f"The legacy attribute consumed_inputs went away; going up it is dropped.{more}"
    )


def negative(where: str) -> Change:
    """Axes may be counted from the back from some opset on."""
    return up_only(
        f"{where} may be negative, counted from the back. Going down each negative axis is "
        "replaced by the same axis counted from the front, for which the rank must be known."
    )


BROADCAST_7 = changed(
    "The attributes broadcast and axis went away: the inputs broadcast as in NumPy. Going up both "
    "are dropped, and the second input gets trailing dimensions of 1 where axis doesn't align it "
    "with the end; going down equal shapes need nothing, a second input of one element or whose "
    "shape is the end of the first's needs broadcast=1, and all else must be expanded first."
)
BROADCAST_8 = up_only(
    "Inputs of different shapes broadcast as in NumPy. Going down all inputs must have one shape "
    "or be expanded to it by other means than Expand, which starts at opset 8."
)
SEQUENCE_7 = changed(
    "The attribute output_sequence went away, and the equations show the recurrence weights "
    "transposed, as their shape always implied. Going up it is dropped; going down it is 1 where "
    "the first output is in use."
)
SOFTMAX_13 = changed(
    "The input is no longer coerced to 2-D at axis: the operator works along that one axis, where "
    "before it did over all dimensions from it on, and the default of axis is -1, not 1. Where the "
    "dimensions after axis are all 1, or axis is the last, axis is only written out; otherwise "
    "going up these dimensions are reshaped into one and back, and going down the axis is moved "
    "to the end and back."
)
REDUCE_AXES = changed(
    "The attribute axes became an input, and the attribute noop_with_empty_axes was added. Going "
    "up axes becomes a constant; going down it must be a constant, and noop_with_empty_axes is "
    "dropped when it is 0 or there are axes; when it is 1 without axes nothing is reduced and only "
    "the element-wise part is left."
)
POOL_22 = changed(
    "With ceil_mode=1 a window that would start in the padding at the end is left out (of LpPool "
    "only the shape inference says so); bfloat16 is allowed. Nothing changed when ceil_mode is 0 "
    "or absent, when auto_pad is SAME_*, or when on every axis the padding at the end plus the "
    "stride is at most the dilated kernel size; else going up the sizes must show that there is no "
    "such window, and going down a Slice can cut it off."
)
FNUZ_24 = changed(
    "An infinity that is cast to float8e4m3fnuz or float8e5m2fnuz with saturate=1 gives the "
    "largest value, where the text said NaN; float8e8m0 and the attribute round_mode, which acts "
    "on float8e8m0 only, were added. For all other target types nothing changed; both ways "
    "infinities are replaced before a cast to one of the two, and going down round_mode is dropped."
)


BOUNDARIES: dict[str, dict[int, Change]] = {
    "Abs": {6: consumed("all integer types"), 13: types("bfloat16")},
    "Acos": {22: types("bfloat16")},
    "Acosh": {22: types("bfloat16")},
    "Add": {
        6: consumed("int32, int64, uint32 and uint64"),
        7: BROADCAST_7,
        13: types("bfloat16"),
        14: types("int16, int8, uint16 and uint8"),
    },
    "And": {7: BROADCAST_7},
    "ArgMax": {
        11: negative("The attribute axis"),
        12: same_without(
            "The attribute select_last_index was added; 0 takes the first of equal elements.",
            {"select_last_index": 0},
        ),
        13: types("bfloat16"),
    },
    "ArgMin": {
        11: negative("The attribute axis"),
        12: same_without(
            "The attribute select_last_index was added; 0 takes the first of equal elements.",
            {"select_last_index": 0},
        ),
        13: types("bfloat16"),
    },
    "Asin": {22: types("bfloat16")},
    "Asinh": {22: types("bfloat16")},
    "Atan": {22: types("bfloat16")},
    "Atanh": {22: types("bfloat16")},
    "Attention": {
        24: changed(
            "The input nonpad_kv_seqlen was added, and an attn_mask whose last dimension "
            "is shorter than the total sequence is padded with minus infinity, even a last "
            "dimension of 1, which was broadcast before. Going up a mask whose last "
            "dimension may be 1 is expanded first; going down a shorter mask is padded first, "
            "and nonpad_kv_seqlen becomes part of the mask."
        ),
        25: up_only(
            "The attributes left_window_size and right_window_size were added; -1 leaves a "
            "side open, as before. Going down a window becomes part of the mask."
        ),
    },
    "AveragePool": {
        7: same_without(
            "The attribute count_include_pad was added; 0 leaves padding out of the "
            "average, as before.",
            {"count_include_pad": 0},
        ),
        10: same_without(
            "The attribute ceil_mode was added; 0 rounds the output shape down, as before.",
            {"ceil_mode": 0},
        ),
        11: wording(),
        19: same_without(
            "The attribute dilations was added; all 1 is the old meaning.", {"dilations": (1,)}
        ),
        22: POOL_22,
    },
    "BatchNormalization": {
        6: changed(
            "The required legacy attribute consumed_inputs went away, and X may have any "
            "rank, not only 4. Going up the attribute is dropped; going down X must be 4-D "
            "and consumed_inputs is written, one number for each input (0, 0, 0, 1, 1)."
        ),
        7: changed(
            "The attribute is_test went away: the number of outputs says the mode, one for "
            "test and five for training; with spatial=0, scale, B, mean and var have the "
            "shape (C, D1, ..., Dn), not (C). Going up is_test is dropped, and where it is 0 "
            "the outputs of training are named; going down it is written, and with spatial=0 "
            "all is flattened."
        ),
        9: changed(
            "The attribute spatial went away, and X may have rank 1, which stands for one "
            "channel. Going up spatial=1 is dropped, and spatial=0 needs X as (N, "
            "C*D1*...*Dn) with the other inputs flattened; going down only X of rank 1 "
            "needs an edit, a reshape to (N, 1)."
        ),
        14: changed(
            "The attribute training_mode says the mode, not the number of outputs, the "
            "outputs saved_mean and saved_var went away, and the mean and variance may "
            "have another type than X. Going up a node with one output needs nothing, one "
            "with more gets training_mode=1, and saved ones that are read are computed; going "
            "down all inputs are brought to one type, and training is written out."
        ),
        15: up_only(
            "The inputs scale and B may have another type than X. Going down X, scale and "
            "B must have one type or need a Cast."
        ),
    },
    "Bernoulli": {22: types("bfloat16")},
    "BitShift": {
        28: up_only(
            "Signed integers are allowed, and a shift by a negative number or by the "
            "number of bits or more is defined: 0, or -1 for a negative number shifted "
            "right. Going down the amounts must be known to be in range, or the result is "
            "chosen by Where."
        ),
    },
    "Cast": {
        6: changed(
            "The attribute to holds the number of a TensorProto data type where it held "
            "its name, such as 'FLOAT'. Both ways the value is rewritten."
        ),
        9: types("string"),
        13: types("bfloat16"),
        19: same_without(
            "The attribute saturate and the float8 types were added. It acts on casts to "
            "float8 only, so below opset 19 any value of it can be dropped.",
            {"saturate": 1},
        ),
        21: types("int4 and uint4"),
        23: types("float4e2m1"),
        24: FNUZ_24,
        25: types("int2 and uint2"),
        28: types("float6e2m3 and float6e3m2"),
    },
    "CastLike": {
        19: same_without(
            "The attribute saturate and the float8 types were added. It acts on casts to "
            "float8 only, so below opset 19 any value of it can be dropped.",
            {"saturate": 1},
        ),
        21: types("int4 and uint4"),
        23: types("float4e2m1"),
        24: FNUZ_24,
        25: types("int2 and uint2"),
    },
    "Ceil": {6: consumed(), 13: types("bfloat16")},
    "Celu": {28: types("float16, bfloat16 and double")},
    "Clip": {
        6: changed(
            "The legacy attribute consumed_inputs went away, and min and max, which "
            "defaulted to the limits of the type, default to those of float32. Going up "
            "consumed_inputs is dropped and the limits are written where the type is not "
            "float32; going down min and max are written."
        ),
        11: changed(
            "The attributes min and max became optional scalar inputs of the type of the "
            "data, which default to the limits of that type and not to those of float32. "
            "Going up both become constants, written out where they were absent on a type "
            "that is not float32; going down they must be constants, absent ones are the "
            "limits of the type, and for float16 and double those must be what float32 can "
            "hold."
        ),
        12: types("all integer types"),
        13: up_only(
            "Where min is greater than max the output is now max, which was open before; "
            "bfloat16 is allowed. Going down min and max must be known to be in order, or "
            "the node becomes Max, then Min."
        ),
    },
    "Compress": {11: negative("The attribute axis"), 28: types("bfloat16")},
    "Concat": {
        4: down_only(
            "The attribute axis, which defaulted to 1, became required, and more types are "
            "allowed. Going up a missing axis is written as 1."
        ),
        11: negative("The attribute axis"),
        13: types("bfloat16"),
    },
    "Constant": {
        9: types("all integer types, bool, string, complex64 and complex128"),
        11: same_without(
            "The attribute sparse_value was added, and value is no longer required because "
            "one of the two is. Going down sparse_value can be written as a dense value.",
            {"sparse_value": None},
        ),
        12: same_without(
            "The attributes value_float, value_floats, value_int, value_ints, value_string "
            "and value_strings were added. Going down each can be written as value, a "
            "tensor of rank 0 or 1.",
            {
                "value_float": None,
                "value_floats": None,
                "value_int": None,
                "value_ints": None,
                "value_string": None,
                "value_strings": None,
            },
        ),
        13: types("bfloat16"),
        19: types("the float8 types"),
        21: types("int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "ConstantOfShape": {
        20: types("bfloat16 and the float8 types"),
        21: types("int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "Conv": {11: wording(), 22: types("bfloat16")},
    "ConvTranspose": {
        11: changed(
            "The odd element of the padding derived from output_shape or auto_pad changed "
            "sides: at the end for SAME_UPPER and at the beginning otherwise, where it was "
            "the reverse; SAME_* now means input size times stride. Without output_shape "
            "and SAME_* nothing changed; with them both ways need pads, worked out from "
            "known sizes by the rule of the side they come from, in place of both "
            "attributes."
        ),
        22: types("bfloat16"),
    },
    "Cos": {22: types("bfloat16")},
    "Cosh": {22: types("bfloat16")},
    "CumSum": {14: types("float16 and bfloat16")},
    "DFT": {
        20: changed(
            "The attribute axis became an input, and its default changed from 1 to -2; the "
            "first dimension need not be the batch. Going up the axis is written as a "
            "scalar constant, 1 if it was absent; going down it must be a constant, -2 if "
            "it was absent."
        ),
    },
    "DeformConv": {22: types("bfloat16")},
    "DepthToSpace": {
        11: same_without(
            "The attribute mode was added; 'DCR' is the old meaning.", {"mode": "DCR"}
        ),
        13: types("bfloat16"),
        28: wording("A function body was added; nothing else changed."),
    },
    "DequantizeLinear": {
        13: up_only(
            "The inputs x_scale and x_zero_point may be 1-D, one value for each index "
            "along the new attribute axis. Going down more than one is written as "
            "arithmetic; with one axis has no effect and is dropped."
        ),
        19: up_only(
            "The float8 types, and bfloat16 and float16 for x_scale and y, are allowed. Going down "
            "these two are computed in float and cast, and constants of float8 are held in float."
        ),
        21: same_without(
            "The attribute block_size, for blocked quantization, was added and int4, "
            "int16, uint4 and uint16 are allowed; 0 is the old meaning.",
            {"block_size": 0},
        ),
        23: same_without(
            "The attribute output_dtype was added and float4e2m1 is allowed; 0, the type "
            "of x_scale, is the old meaning. Going down an output_dtype that names the "
            "type of x_scale can be dropped as well; else the scale or the result is cast to it.",
            {"output_dtype": 0},
        ),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
        28: types("float6e2m3 and float6e3m2"),
    },
    "Det": {22: types("bfloat16")},
    "Div": {
        6: consumed("int32, int64, uint32 and uint64"),
        7: BROADCAST_7,
        13: types("bfloat16"),
        14: types("int16, int8, uint16 and uint8"),
    },
    "Dropout": {
        6: consumed(),
        7: changed(
            "The attribute is_test went away, and the mode is left to the runtime, which "
            "takes test mode. Going up is_test is dropped, and what trains is written out, "
            "or gets training_mode at opset 12; going down is_test=1 is written."
        ),
        10: changed(
            "The output mask became bool where it had the type of the data. With only the "
            "first output in use nothing changed; otherwise mask needs a Cast, going up to "
            "the type of the data and going down to bool."
        ),
        12: changed(
            "The attribute ratio became an input, and the input training_mode and the "
            "attribute seed were added; without training_mode the node copies its input, "
            "and mask is all true. Going up ratio becomes a constant; going down what may "
            "train is written out with random numbers, else ratio becomes the attribute if "
            "it is a constant, and seed is dropped."
        ),
        13: types("bfloat16"),
        22: types("bfloat16 and the float8 types"),
    },
    "Einsum": {28: types("bfloat16")},
    "Elu": {6: consumed(), 22: types("bfloat16")},
    "Equal": {
        7: BROADCAST_7,
        11: types("int16, int8, uint16, uint32, uint64, uint8, float16, float and double"),
        13: types("bfloat16"),
        19: types("string"),
    },
    "Erf": {
        13: narrowed(
            "bfloat16 was added and the integer types were removed, which opset 9 allowed."
        ),
    },
    "Exp": {6: consumed(), 13: types("bfloat16")},
    "Expand": {13: types("bfloat16")},
    "EyeLike": {22: types("bfloat16")},
    "Flatten": {
        9: types("all integer types, bool, string, complex64 and complex128"),
        11: negative("The attribute axis"),
        13: types("bfloat16"),
        21: types("the float8 types, int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "Floor": {6: consumed(), 13: types("bfloat16")},
    "GRU": {
        3: up_only(
            "The attribute linear_before_reset was added (0 is the old meaning), both "
            "outputs became optional, and the misspelt default of direction ('foward') was "
            "put right. Going down linear_before_reset must be 0 and is dropped, both "
            "outputs must be named, and direction is written out."
        ),
        7: SEQUENCE_7,
        14: same_without(
            "The attribute layout was added; 0 puts the sequence first, as before.", {"layout": 0}
        ),
        22: types("bfloat16"),
    },
    "Gather": {
        11: up_only(
            "The input indices may hold negative values, counted from the end of the axis. "
            "Going down they must be known not to be negative, or the size of the axis is "
            "added to those below 0."
        ),
        13: types("bfloat16"),
    },
    "GatherElements": {13: types("bfloat16")},
    "GatherND": {
        12: up_only(
            "The attribute batch_dims was added; 0 is the old meaning. Going down others need "
            "their own places."
        ),
        13: types("bfloat16"),
    },
    "Gemm": {
        6: wording(),
        7: changed(
            "The attribute broadcast went away: C broadcasts to (M, N) as in NumPy. Going "
            "up the attribute is dropped; going down a C of shape (M, N) needs nothing, a "
            "scalar or (N) needs broadcast=1, and any other shape must be expanded to (M, "
            "N)."
        ),
        9: types("int32, int64, uint32 and uint64"),
        11: up_only(
            "The input C became optional. Going down a missing C is written as a scalar 0."
        ),
        13: types("bfloat16"),
    },
    "GlobalAveragePool": {22: types("bfloat16")},
    "GlobalLpPool": {
        2: changed(
            "The attribute p became an integer where it was a float; the default is 2 in "
            "both. Going up a whole p is rewritten and a fractional one blocks; going down "
            "p is rewritten as a float."
        ),
        22: types("bfloat16"),
    },
    "GlobalMaxPool": {22: types("bfloat16")},
    "Greater": {7: BROADCAST_7, 9: types("all integer types"), 13: types("bfloat16")},
    "GreaterOrEqual": {16: types("bfloat16")},
    "GridSample": {
        20: changed(
            "The modes bilinear and bicubic are called linear and cubic, and X may have "
            "other ranks than 4. Going up the mode is renamed; going down it is renamed "
            "and X must be 4-D."
        ),
        22: types("bfloat16"),
    },
    "GroupNormalization": {
        21: changed(
            "The inputs scale and bias have one value for each channel, not for each "
            "group, and the attribute stash_type was added; the older version is "
            "deprecated, so checkers refuse it. Going up scale and bias are repeated C / "
            "num_groups times for each group, and stash_type is the type of X, in which "
            "the older version computes; going down the node must be written with other "
            "operators, as GroupNormalization-18 cannot hold it."
        ),
    },
    "HardSigmoid": {6: consumed(), 22: types("bfloat16")},
    "HardSwish": {22: types("bfloat16")},
    "Hardmax": {11: negative("The attribute axis"), 13: SOFTMAX_13},
    "Identity": {
        13: types("bfloat16"),
        14: types("sequences"),
        16: types("optional values"),
        19: types("the float8 types"),
        21: types("int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "If": {
        11: up_only(
            "The two branches may give different shapes for one output. Going down nothing "
            "changes where the shapes of both branches are the same; others need a Loop each, of "
            "one round or none."
        ),
        13: types("sequences"),
        16: types("bfloat16 and optional values"),
        19: types("the float8 types"),
        21: types("int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "InstanceNormalization": {
        6: changed(
            "The legacy attribute consumed_inputs went away, and the input may have any "
            "rank, not only 4. Going up the attribute is dropped; going down the input "
            "must be 4-D, and then nothing changes."
        ),
        22: types("bfloat16"),
    },
    "IsInf": {20: types("float16, bfloat16 and the float8 types")},
    "IsNaN": {13: types("bfloat16"), 20: types("the float8 types")},
    "LRN": {13: types("bfloat16")},
    "LSTM": {
        7: SEQUENCE_7,
        14: same_without(
            "The attribute layout was added; 0 puts the sequence first, as before.", {"layout": 0}
        ),
        22: types("bfloat16"),
    },
    "LeakyRelu": {6: consumed(), 16: types("bfloat16")},
    "Less": {7: BROADCAST_7, 9: types("all integer types"), 13: types("bfloat16")},
    "LessOrEqual": {16: types("bfloat16")},
    "Log": {6: consumed(), 13: types("bfloat16")},
    "LogSoftmax": {11: negative("The attribute axis"), 13: SOFTMAX_13},
    "Loop": {
        11: up_only(
            "A Loop needs no loop-carried value any more. Going down a Loop with two "
            "inputs needs an extra value that is carried through unused."
        ),
        13: types("sequences"),
        16: types("bfloat16 and optional values"),
        19: types("the float8 types"),
        21: types("int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "LpNormalization": {22: types("bfloat16")},
    "LpPool": {
        2: changed(
            "The attribute p became an integer where it was a float (the default is 2 in "
            "both), and kernel_shape became required. Going up a whole p is rewritten, a "
            "fractional one or a missing kernel_shape blocks; going down p is rewritten as "
            "a float."
        ),
        11: wording(),
        18: same_without(
            "The attributes ceil_mode and dilations were added; 0 and all 1 are the old meaning.",
            {"ceil_mode": 0, "dilations": (1,)},
        ),
        22: POOL_22,
    },
    "MatMul": {9: types("int32, int64, uint32 and uint64"), 13: types("bfloat16")},
    "Max": {6: consumed(), 8: BROADCAST_8, 12: types("all integer types"), 13: types("bfloat16")},
    "MaxPool": {
        8: same_without(
            "The output Indices and the attribute storage_order, which only concerns that "
            "output, were added.",
            {"storage_order": 0},
            max_outputs=1,
        ),
        10: same_without(
            "The attributes ceil_mode and dilations were added; 0 and all 1 are the old meaning.",
            {"ceil_mode": 0, "dilations": (1,)},
        ),
        11: wording(),
        12: types("int8 and uint8"),
        22: POOL_22,
    },
    "MaxRoiPool": {22: types("bfloat16")},
    "MaxUnpool": {11: wording(), 22: types("bfloat16")},
    "Mean": {6: consumed(), 8: BROADCAST_8, 13: types("bfloat16")},
    "MeanVarianceNormalization": {13: types("bfloat16")},
    "Min": {6: consumed(), 8: BROADCAST_8, 12: types("all integer types"), 13: types("bfloat16")},
    "Mish": {22: types("bfloat16")},
    "Mod": {
        13: types("bfloat16"),
        28: up_only(
            "The value 0 of fmod takes floats and 1 takes integers, where they were for "
            "the other only. Going down integers with fmod=1 become A - Div(A, B) * B, and "
            "floats with fmod=0 become Mod with fmod=1, to which B is added where the "
            "result is not 0 and has not the sign of B."
        ),
    },
    "Mul": {
        6: consumed("int32, int64, uint32 and uint64"),
        7: BROADCAST_7,
        13: types("bfloat16"),
        14: types("int16, int8, uint16 and uint8"),
    },
    "Multinomial": {22: types("bfloat16")},
    "Neg": {6: consumed("int8, int16, int32 and int64"), 13: types("bfloat16")},
    "NegativeLogLikelihoodLoss": {13: wording(), 22: types("bfloat16")},
    "NonMaxSuppression": {11: wording()},
    "NonZero": {13: types("bfloat16")},
    "OneHot": {
        11: changed(
            "An index in [-depth, -1] counts from the back where it gave only off_value, "
            "and axis may be any negative value where it was -1 or not negative. Going up "
            "negative indices must be impossible or be replaced by depth; going down they "
            "must be impossible or have depth added where they are in range, and axis "
            "below -1 is rewritten."
        ),
        28: types("bfloat16"),
    },
    "Optional": {
        28: types(
            "bfloat16, the float8 types, float8e8m0, float6e2m3, float6e3m2, float4e2m1, "
            "int4, uint4, int2 and uint2"
        ),
    },
    "OptionalGetElement": {
        18: types("tensors and sequences, which are given back as they are"),
        28: types(
            "bfloat16, the float8 types, float8e8m0, float6e2m3, float6e3m2, float4e2m1, "
            "int4, uint4, int2 and uint2"
        ),
    },
    "OptionalHasElement": {
        18: up_only(
            "The input became optional, and tensors and sequences are allowed. Going down "
            "a node without input becomes a constant false."
        ),
        28: types(
            "bfloat16, the float8 types, float8e8m0, float6e2m3, float6e3m2, float4e2m1, "
            "int4, uint4, int2 and uint2"
        ),
    },
    "Or": {7: BROADCAST_7},
    "PRelu": {
        6: consumed(),
        7: changed(
            "The slope broadcasts to X as in NumPy, where before it had one element or one "
            "for each channel. Going up a slope of shape (C) becomes (C, 1, ..., 1), as "
            "long as the dimensions after the channel; going down it must have one element "
            "or be one value for each channel, reshaped to (C)."
        ),
        9: types("int32, int64, uint32 and uint64"),
        16: types("bfloat16"),
    },
    "Pad": {
        2: changed(
            "The attribute paddings is called pads, and it may hold negative values, which "
            "crop. Going up it is renamed; going down it is renamed and negative values "
            "become a Slice."
        ),
        11: changed(
            "The attributes pads and value became the inputs pads and constant_value, and "
            "all integer types are allowed. Going up they become constants in the type of "
            "the data; going down constants become attributes, and what is not one is written out "
            "along each axis."
        ),
        13: types("bool, string, bfloat16, complex64 and complex128"),
        18: same_without(
            "The input axes was added; without it pads holds a value for every axis, as "
            "before. Going down axes are worked into pads.",
            max_inputs=3,
        ),
        19: up_only(
            "The attribute mode may be 'wrap'. Going down that is written out along each axis; "
            "with any other value nothing changes."
        ),
        21: types("the float8 types, int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "Pow": {
        7: BROADCAST_7,
        12: up_only(
            "The exponent may have another type than the base, and the base may be int32 "
            "or int64. Going down both must have one float type; an exponent of another "
            "type needs a Cast."
        ),
        13: types("bfloat16"),
        15: types("bfloat16"),
    },
    "QLinearMatMul": {21: types("the float8 types, and bfloat16 and float16 for the scales")},
    "QuantizeLinear": {
        13: up_only(
            "The inputs y_scale and y_zero_point may be 1-D, one value for each index "
            "along the new attribute axis. Going down more than one is written as "
            "arithmetic; with one axis has no effect and is dropped."
        ),
        19: Change(
            "The inputs x and y_scale must have one type, where y_scale was always "
            "float32; the float8 types, bfloat16 and float16 and the attribute saturate, "
            "which acts on float8 only, were added. Going up an int32 x needs a Cast to "
            "float32 (exact below 2**24).",
            down=True,
            new_attributes={"saturate": 1},
        ),
        21: same_without(
            "The attributes block_size and output_dtype were added and int4, int16, uint4 "
            "and uint16 are allowed; 0 is the old meaning of both. Going down output_dtype "
            "can be written as a zero point of that type.",
            {"block_size": 0, "output_dtype": 0},
        ),
        23: up_only(
            "The input y_scale may have another type than x, and the attribute precision, "
            "whose default 0 is the type of y_scale, was added; float4e2m1 is allowed. "
            "Going down precision is dropped, and x and y_scale are cast to it."
        ),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
        28: types("float6e2m3 and float6e3m2"),
    },
    "RNN": {
        7: SEQUENCE_7,
        14: same_without(
            "The attribute layout was added; 0 puts the sequence first, as before.", {"layout": 0}
        ),
        22: types("bfloat16"),
    },
    "RandomNormal": {22: types("bfloat16")},
    "RandomNormalLike": {22: types("bfloat16")},
    "RandomUniform": {22: types("bfloat16")},
    "RandomUniformLike": {22: types("bfloat16")},
    "Range": {
        27: same_without(
            "The attribute stash_type and the types bfloat16 and float16 were added. It "
            "acts on these two types only, so below opset 27 any value of it can be "
            "dropped.",
            {"stash_type": 1},
        ),
    },
    "Reciprocal": {6: consumed(), 13: types("bfloat16")},
    "ReduceL1": {11: negative("The attribute axes"), 13: types("bfloat16"), 18: REDUCE_AXES},
    "ReduceL2": {11: negative("The attribute axes"), 13: types("bfloat16"), 18: REDUCE_AXES},
    "ReduceLogSum": {
        11: negative("The attribute axes"),
        13: types("bfloat16"),
        18: REDUCE_AXES,
        28: narrowed("int32, int64, uint32 and uint64 were removed; only float types are left."),
    },
    "ReduceLogSumExp": {
        11: negative("The attribute axes"),
        13: types("bfloat16"),
        18: REDUCE_AXES,
        28: narrowed("int32, int64, uint32 and uint64 were removed; only float types are left."),
    },
    "ReduceMax": {
        11: negative("The attribute axes"),
        12: types("int8 and uint8"),
        13: types("bfloat16"),
        18: REDUCE_AXES,
        20: types("bool"),
    },
    "ReduceMean": {11: negative("The attribute axes"), 13: types("bfloat16"), 18: REDUCE_AXES},
    "ReduceMin": {
        11: negative("The attribute axes"),
        12: types("int8 and uint8"),
        13: types("bfloat16"),
        18: REDUCE_AXES,
        20: types("bool"),
    },
    "ReduceProd": {11: negative("The attribute axes"), 13: types("bfloat16"), 18: REDUCE_AXES},
    "ReduceSum": {11: negative("The attribute axes"), 13: REDUCE_AXES},
    "ReduceSumSquare": {11: negative("The attribute axes"), 13: types("bfloat16"), 18: REDUCE_AXES},
    "Relu": {6: consumed(), 13: types("bfloat16"), 14: types("int16, int32, int64 and int8")},
    "Reshape": {
        5: changed(
            "The attribute shape became an input, the legacy attribute consumed_inputs "
            "went away, and more types are allowed. Going up shape becomes a constant "
            "input; going down it must be a constant and becomes the attribute."
        ),
        13: types("bfloat16"),
        14: same_without(
            "The attribute allowzero was added; 0 makes a 0 in the shape copy the "
            "dimension, as before.",
            {"allowzero": 0},
        ),
        19: types("the float8 types"),
        21: types("int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "Resize": {
        11: changed(
            "The inputs roi and sizes and the attributes coordinate_transformation_mode, "
            "nearest_mode, cubic_coeff_a, exclude_outside and extrapolation_value were "
            "added, and the default mapping is half_pixel where before it was not written "
            "down (runtimes use asymmetric). Going up "
            "coordinate_transformation_mode='asymmetric' and a nearest_mode are written "
            "and an empty roi is put before scales; going down only that mapping, mode "
            "nearest or linear and scales can be kept."
        ),
        13: changed(
            "The inputs roi and scales became optional, exactly one of scales and sizes "
            "must be given, and the mode tf_half_pixel_for_nn was removed. Going up an "
            "empty scales (or roi) becomes an absent one and tf_half_pixel_for_nn blocks; "
            "going down absent inputs become empty tensors, before the last one that is "
            "given."
        ),
        18: same_without(
            "The attributes antialias, axes and keep_aspect_ratio_policy were added; 0, "
            "absent and 'stretch' are the old meaning. Going down axes can be worked into "
            "roi, scales and sizes.",
            {"antialias": 0, "axes": None, "keep_aspect_ratio_policy": "stretch"},
        ),
        19: up_only(
            "The attribute coordinate_transformation_mode may be 'half_pixel_symmetric'. "
            "Going down this value blocks, unless the scales give whole sizes, where it is "
            "'half_pixel'; with any other nothing changes."
        ),
    },
    "ReverseSequence": {28: types("bfloat16")},
    "RoiAlign": {
        16: changed(
            "The attribute coordinate_transformation_mode was added, and its default "
            "half_pixel shifts the coordinates by half a pixel, which was not done before. "
            "Going up 'output_half_pixel' is written; going down 'output_half_pixel' is "
            "dropped, and half_pixel, also when absent, needs the regions shifted by -0.5 "
            "/ spatial_scale or blocks."
        ),
        22: types("bfloat16"),
    },
    "Round": {22: types("bfloat16")},
    "Scan": {
        9: changed(
            "The batch dimension and the input sequence_lens went away; directions is "
            "called scan_input_directions, and scan_output_directions, scan_input_axes and "
            "scan_output_axes were added. Going up a batch of 1 can be squeezed away and "
            "any other needs a Scan over the batch; going down a batch dimension of 1 is "
            "added, and axes and backward outputs are done by Transpose and "
            "Gather."
        ),
        11: up_only(
            "The attributes scan_input_axes and scan_output_axes may be negative, counted from the "
            "back. Going down each negative axis is replaced by the same axis counted from the "
            "front; where the rank is not known, by that of the transpose."
        ),
        16: types("bfloat16"),
        19: types("the float8 types"),
        21: types("int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "Scatter": {
        11: changed(
            "Scatter was deprecated and its indices may be negative. Going up it becomes "
            "ScatterElements with the same inputs and axis; from opset 11 on there is no "
            "valid Scatter to bring down, and ScatterElements below opset 11 becomes "
            "Scatter where its indices are not negative."
        ),
    },
    "ScatterElements": {
        13: types("bfloat16"),
        16: up_only(
            "The attribute reduction was added; 'none' writes the updates, as before. Going down "
            "sums and products become Loops."
        ),
        18: up_only(
            "The attribute reduction may be 'max' or 'min'. Going down these two become Loops; "
            "with any other nothing changes."
        ),
    },
    "ScatterND": {
        13: types("bfloat16"),
        16: up_only(
            "The attribute reduction was added; 'none' writes the updates, as before. Going down "
            "sums and products become Loops."
        ),
        18: up_only(
            "The attribute reduction may be 'max' or 'min'. Going down these two become Loops; "
            "with any other nothing changes."
        ),
    },
    "Selu": {
        6: changed(
            "The legacy attribute consumed_inputs went away, and the defaults became more "
            "precise: alpha from 1.6732 to 1.6732632, gamma from 1.0507 to 1.0507010. "
            "Going up consumed_inputs is dropped; in both directions alpha and gamma are "
            "written out where they were absent."
        ),
        22: types("bfloat16"),
    },
    "Shape": {
        13: types("bfloat16"),
        15: same_without(
            "The attributes start and end were added; without them the whole shape is "
            "given, as before. Going down a part of the shape can be taken by Slice.",
            {"start": 0, "end": None},
        ),
        19: types("the float8 types"),
        21: types("int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "Sigmoid": {6: consumed(), 13: types("bfloat16")},
    "Sign": {13: types("bfloat16")},
    "Sin": {22: types("bfloat16")},
    "Sinh": {22: types("bfloat16")},
    "Size": {
        13: types("bfloat16"),
        19: types("the float8 types"),
        21: types("int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "Slice": {
        10: changed(
            "The attributes starts, ends and axes became inputs, and the input steps was "
            "added. Going up they become constants; going down they must be constants and "
            "steps all 1, else the node is done by Gather."
        ),
        11: negative("The input axes"),
        13: types("bfloat16"),
    },
    "Softmax": {11: negative("The attribute axis"), 13: SOFTMAX_13},
    "SoftmaxCrossEntropyLoss": {13: types("bfloat16")},
    "Softplus": {22: types("bfloat16")},
    "Softsign": {22: types("bfloat16")},
    "SpaceToDepth": {
        13: types("bfloat16"),
        28: same_without(
            "The attribute mode was added; 'DCR' is the old meaning.", {"mode": "DCR"}
        ),
    },
    "Split": {
        2: changed(
            "The input split went away, leaving the attribute, and axis, which had no "
            "default, defaults to 0. Going up a constant input split becomes the "
            "attribute; going down axis is written out."
        ),
        11: negative("The attribute axis"),
        13: changed(
            "The attribute split became an input. Going up it becomes a constant; going "
            "down it must be a constant."
        ),
        18: changed(
            "The attribute num_outputs was added, and it or the input split must be given; "
            "the last part may be smaller. Going up a node without split gets num_outputs, "
            "the number of its outputs; going down num_outputs is dropped where it divides "
            "the size of the axis, and otherwise becomes split."
        ),
    },
    "SplitToSequence": {24: types("bfloat16")},
    "Sqrt": {6: consumed(), 13: types("bfloat16")},
    "Squeeze": {
        11: negative("The attribute axes"),
        13: changed(
            "The attribute axes became an input. Going up it becomes a constant; going "
            "down it must be a constant."
        ),
        21: types("the float8 types, int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "Sub": {
        6: consumed("int32, int64, uint32 and uint64"),
        7: BROADCAST_7,
        13: types("bfloat16"),
        14: types("int16, int8, uint16 and uint8"),
    },
    "Sum": {6: consumed(), 8: BROADCAST_8, 13: types("bfloat16")},
    "Tan": {22: types("bfloat16")},
    "Tanh": {6: consumed(), 13: types("bfloat16")},
    "ThresholdedRelu": {22: types("bfloat16")},
    "Tile": {
        6: changed(
            "The inputs tiles and axis, which repeat along one axis, became the input "
            "repeats: int64, 1-D, one count for each dimension. Going up repeats is 1 "
            "everywhere but at axis; going down a node becomes one Tile for each axis that "
            "repeats, with tiles and axis in the type of the data, which must be a float "
            "type."
        ),
        13: types("bfloat16"),
    },
    "TopK": {
        10: changed(
            "The attribute k became the input K, 1-D with one element. Going up it becomes "
            "a constant; going down a constant becomes the attribute, and of a K that is "
            "known at run time only all elements are ordered and the first K taken."
        ),
        11: up_only(
            "The attributes largest and sorted were added (1 is the old meaning of both), "
            "axis may be any negative value where only the default -1 was described, and "
            "all integer types are allowed. Going down largest and sorted must be 1 and "
            "are dropped (sorted=0 leaves the order open, so it may be dropped too), and "
            "axis is made not negative."
        ),
        24: types("bfloat16"),
    },
    "Transpose": {
        13: types("bfloat16"),
        21: types("the float8 types, int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "Unique": {28: types("bfloat16")},
    "Unsqueeze": {
        11: negative("The attribute axes"),
        13: changed(
            "The attribute axes became an input. Going up it becomes a constant; going "
            "down it must be a constant."
        ),
        21: types("the float8 types, int4 and uint4"),
        23: types("float4e2m1"),
        24: types("float8e8m0"),
        25: types("int2 and uint2"),
    },
    "Upsample": {
        7: changed(
            "The attributes height_scale and width_scale became the attribute scales with "
            "one value for each dimension, mode 'bilinear' is called 'linear', and X may "
            "have any rank. Going up scales is (1, 1, height_scale, width_scale); going "
            "down X must be 4-D and the first two scales 1."
        ),
        9: changed(
            "The attribute scales became an input. Going up it becomes a constant; going "
            "down it must be a constant."
        ),
        10: changed(
            "Upsample was deprecated: going up it becomes Resize with the same inputs and "
            "mode. From opset 10 on there is no valid Upsample to bring down; Resize below "
            "opset 10 becomes Upsample where every scale is at least 1."
        ),
    },
    "Where": {16: types("bfloat16")},
    "Xor": {7: BROADCAST_7},
}
