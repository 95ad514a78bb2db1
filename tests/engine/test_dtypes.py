"""A dtype of a model changed to another."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

import onnxreduce_cli
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import ConversionError, UsageError
from onnxreduce_cli.model.file import document as files
from onnxreduce_cli.model.file.byte_ranges import FileRange, RecodedRange, StoredFile
from tests.support import model, op_types, run

X = np.float32([[1.5, -2.0, 0.25], [3.0, 4.0, 7.0]])


def everywhere(dtype: str = "bfloat16") -> ModelProto:
    """A model with a dtype wherever there can be one."""
    number = TensorProto.DataType.Value(dtype.upper())
    found = onnx.parser.parse_model(f"""<ir_version: 10, opset_import: ["" : 18, "local" : 1]>
        g ({dtype}[2,3] x, float[2,3] f, bool c) => ({dtype}[2,3] y, float[2,3] z, int64[2] s)
        <{dtype}[2,3] mid> {{
            [to] g = Cast<to = {number}>(f)
            [sum] mid = Add(x, g)
            [call] d = local.Twice<kind = {number}>(mid)
            [window] e = HannWindow<output_datatype = {number}>(three)
            [choice] h = If (c) <
                then_branch = t () => ({dtype}[2,3] t) {{ [in_then] t = Add(d, e) }},
                else_branch = e () => ({dtype}[2,3] u) {{ [in_else] u = Sub(d, e) }}
            >
            [weigh] y = Mul(h, w)
            [out] z = Cast<to = 1>(y)
            [shape] s = Shape(y)
        }}
        <domain: "local", opset_import: ["" : 18]>
        Twice <kind> (a) => (b) {{
            m = Mul(a, k)
            b = Cast<to: int = @kind>(m)
        }}""")
    half = helper.make_tensor("k", number, [1], [0.5])
    constant = helper.make_node("Constant", [], ["k"], name="half", value=half)
    nodes = [constant, *found.functions[0].node]
    del found.functions[0].node[:]
    found.functions[0].node.extend(nodes)
    weights = np.float32([[1, 2, 3], [4, 5, 6]]).astype(helper.tensor_dtype_to_np_dtype(number))
    found.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    found.graph.initializer.append(numpy_helper.from_array(np.array(3, np.int32), "three"))
    onnx.checker.check_model(found, full_check=True)
    return found


@pytest.mark.parametrize(("before", "after"), [("bfloat16", "float"), ("float16", "float")])
@pytest.mark.parametrize("keep", [False, True])
def test_nothing_keeps_the_old_dtype(before: str, after: str, keep: bool) -> None:
    source = everywhere(before)
    options = {"dtypes": {before: after}, "keep_interface": keep}
    plan = onnxreduce_cli.plan(source, **options)
    told = "x, output y"
    assert plan.prepared == (
        f"{before} → {after}: 2 weights, all values and attributes",
        f"{before} still, by Cast: input {told}"
        if keep
        else f"{after} instead of {before}: input {told}",
    )
    number = TensorProto.DataType.Value(before.upper())
    ends = {
        ("sum", (), ("Cast", "Add")),
        ("weigh", (), ("Mul", "Cast")),
        ("out", ("input input replaced",), ("Cast",)),
        ("shape", ("input data replaced",), ("Shape",)),
    }
    assert {(item.node, item.edits, item.result) for item in plan.changes} == {
        ("to", (f"to {number} → 1",), ("Cast",)),
        ("call", (f"kind {number} → 1",), ("Twice",)),
        ("window", (f"output_datatype {number} → 1",), ("HannWindow",)),
        ("half", ("value rewritten",), ("Constant",)),
        *(ends if keep else ()),
    }
    result = onnxreduce_cli.convert(source, **options)
    onnx.checker.check_model(result, full_check=True)
    assert (str(result).count(f"elem_type: {number}\n") == 0) != keep
    assert str(result).count(f"data_type: {number}\n") == 0
    assert op_types(result).count("Cast") == (4 if keep else 2)
    low = X.astype(helper.tensor_dtype_to_np_dtype(number))
    for given in (True, False):
        feeds = {"x": low, "f": X, "c": np.array(given)}
        expected = run(source, feeds, in_numpy=True)
        found = run(result, feeds if keep else {**feeds, "x": low.astype(np.float32)})
        assert found["y"].dtype == (low.dtype if keep else np.float32)
        for name in ("y", "z", "s"):
            a, b = (np.asarray(item[name]).astype(np.float32) for item in (expected, found))
            np.testing.assert_allclose(b, a, rtol=2e-2)


def test_bfloat16_gets_below_the_opset_that_it_came_with() -> None:
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (bfloat16[2,3] x) => (bfloat16[2,1] y) { [r] y = ReduceMax(x, axes) }""")
    source.graph.initializer.append(numpy_helper.from_array(np.int64([1]), "axes"))
    assert not onnxreduce_cli.plan(source, 11).possible
    result = onnxreduce_cli.convert(source, 11, dtypes={"bfloat16": "float"})
    np.testing.assert_array_equal(run(result, {"x": X})["y"], X.max(1, keepdims=True))


def test_an_interface_of_bfloat16_cannot_be_kept_below_the_opset_that_it_came_with() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (bfloat16[2] x, bfloat16[2] unread) => (bfloat16[2] y) { y = Neg(x) }""")
    options = {"dtypes": {"bfloat16": "float"}, "keep_interface": True}
    advice = "leave out {}, which puts it there; or choose opset 13 or later"
    typed = advice.format("--keep-interface")
    for where in ({"opset": 12}, {"runtime": "onnxruntime==1.3"}):
        plan = onnxreduce_cli.plan(source, **where, **options)
        assert {blocker.node for blocker in plan.blockers} == {"x_inner_cast", "y_cast"}
        assert all(blocker.advice.startswith(typed) for blocker in plan.blockers)
        with pytest.raises(ConversionError, match=advice.format("keep_interface=True")):
            onnxreduce_cli.convert(source, **where, **options)
    made = onnxreduce_cli.convert(source, 13, **options)
    assert op_types(made) == ["Cast", "Neg", "Cast"]


def test_an_interface_that_is_cast_already_is_kept_without_another_cast() -> None:
    options = {"dtypes": {"float": "float16"}, "keep_interface": True}
    source = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x, float[2] u) => (float[2] y, float[2] z)
        { h = Cast<to = 10>(x) a = Neg(u) y = Cast<to = 1>(h) z = Cast<to = 1>(a) b = Neg(z) }""")
    made = onnxreduce_cli.convert(source, **options)
    # z is read inside, where it is of the new dtype.
    assert op_types(made) == ["Cast", "Cast", "Neg", "Cast", "Cast", "Neg", "Cast"]
    assert onnxreduce_cli.convert(made, **options) == made


@pytest.mark.parametrize("opset", [5, 6])
def test_an_interface_is_cast_as_the_opset_writes_it(opset: int) -> None:
    source = model(f"""<ir_version: 3, opset_import: ["" : {opset}]>
        g (float[2] x) => (float[2] y) {{ y = Neg(x) }}""")
    made = onnxreduce_cli.convert(source, dtypes={"float": "double"}, keep_interface=True)
    cast = [helper.get_attribute_value(node.attribute[0]) for node in made.graph.node[::2]]
    assert cast == ([b"DOUBLE", b"FLOAT"] if opset < 6 else [11, 1])
    np.testing.assert_array_equal(run(made, {"x": X[0, :2]})["y"], -X[0, :2])


def test_casts_are_in_the_order_of_inputs() -> None:
    names = [f"x{index}" for index in range(9)]
    source = model(f"""<ir_version: 8, opset_import: ["" : 13]>
        g ({", ".join(f"float16[2] {name}" for name in names)}) => (float16[2] y)
        {{ y = Sum({", ".join(names)}) }}""")
    made = onnxreduce_cli.convert(source, dtypes={"float16": "float"}, keep_interface=True)
    assert [node.input[0] for node in made.graph.node[:9]] == names


def test_weights_beyond_the_range_are_refused_and_those_that_vanish_are_counted() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[3] x) => (float[3] y) <float[3] w = {1, 1, 1}> { y = Mul(x, w) }""")
    source.graph.initializer[0].CopyFrom(
        numpy_helper.from_array(np.float32([1e-30, 2, 1e-40]), "w")
    )
    plan = onnxreduce_cli.plan(source, dtypes={"float": "float16"})
    assert plan.prepared[1] == "too small for float16, zero now: 2 elements of w"
    source.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.float32([1e6, np.inf, 1]), "w"))
    with pytest.raises(ConversionError, match="'w' has 1 element beyond the range of float16") as e:
        onnxreduce_cli.convert(source, dtypes={"float": "float16"})
    assert str(e.value).endswith("; to keep it as it is: keep_dtype=['Mul']")
    assert onnxreduce_cli.convert(source, dtypes={"float": "float16"}, keep_dtype=["Mul"])
    held = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[3] x) => (float[3] y) { w = Constant<value_float = 1e6>() [m] y = Mul(x, w) }""")
    with pytest.raises(ConversionError, match=r"tensor 'w' has 1 element .* keep_dtype=\['m'\]$"):
        onnxreduce_cli.convert(held, dtypes={"float": "float16"})


def test_what_operators_take_in_the_old_dtype_alone_stays() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[1,1,2,2] x) => (float[1,1,4,4] y) <float[4] scales = {1, 1, 2, 2}> {
            [r] y = Resize(x, , scales)
        }""")
    result = onnxreduce_cli.convert(source, dtypes={"float": "float16"})
    assert result.graph.initializer[0].data_type == TensorProto.FLOAT
    onnx.checker.check_model(result, full_check=True)
    source = model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,2] x) => (float[1] y) { [d] y = Det(x) }""".replace("float[1] y", "float y")
    )
    assert onnxreduce_cli.plan(source, dtypes={"float": "bfloat16"}).prepared[1] == (
        "kept in float: 1 Det (X, Y)"
    )
    result = onnxreduce_cli.convert(source, dtypes={"float": "bfloat16"})
    assert op_types(result) == ["Cast", "Det", "Cast"]
    onnx.checker.check_model(result, full_check=True)


def test_floats_that_nothing_names_change_too() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[2,3] x) => (float[2,3] y) {
            [half] h = Constant<value_float = 0.5>()
            [shape] s = Shape(x)
            [zeros] z = ConstantOfShape(s)
            [noise] n = RandomUniform<shape = [2, 3], low = 0.0, high = 0.0>()
            a = Mul(x, h)
            b = Add(a, z)
            y = Add(b, n)
        }""")
    result = onnxreduce_cli.convert(source, dtypes={"float": "double"}, check=False)
    onnx.checker.check_model(result, full_check=True)
    np.testing.assert_array_equal(run(result, {"x": X.astype(np.float64)})["y"], X / 2)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"dtypes": {"bflot16": "float"}}, "did you mean bfloat16"),
        ({"dtypes": {"float16": "int8"}}, "not int8"),
        ({"dtypes": {"float16": "float", "float": "double"}}, "float is itself changed"),
        ({"keep_interface": True}, "add dtypes={FROM: TO}"),
        ({"keep_dtype": ["Add"]}, "keep_dtype needs .* add dtypes={FROM: TO}"),
        (
            {"dtypes": {"bfloat16": "float"}, "keep_dtype": ["Mull"]},
            "no operator and no node Mull; did you mean Mul",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        onnxreduce_cli.plan(everywhere(), **options)


def external(folder: Path, elements: int) -> ModelProto:
    """A model whose weights of bfloat16 and whose sizes are external data, saved as ``m.onnx``."""
    weights = (np.arange(elements) % 251).astype(ml_dtypes.bfloat16)
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (bfloat16[1] x) => (bfloat16[1] y) {
            [all] a = Mul(x, w)
            [mean] y = ReduceMean(a, axes)
        }""")
    offset = 0
    with (folder / "m.data").open("wb") as file:
        for name, array in (("w", weights), ("axes", np.int64([0]))):
            tensor = numpy_helper.from_array(array, name)
            file.write(tensor.raw_data)
            set_external_data(tensor, "m.data", offset=offset, length=len(tensor.raw_data))
            offset += len(tensor.raw_data)
            tensor.ClearField("raw_data")
            source.graph.initializer.append(tensor)
    onnx.save(source, folder / "m.onnx")
    return source


def test_external_data_is_converted_when_it_is_written(tmp_path, onnxreduce) -> None:
    external(tmp_path, 200_000)
    out = tmp_path / "out.onnx"
    call = ("convert", tmp_path / "m.onnx", "--dtype", "bfloat16=float", "-o", out, "--verify")
    result = onnxreduce(*call)
    assert result.code == 0, result.err
    assert "bfloat16 → float: 1 weight" in result.out
    written = onnx.load(out, load_external_data=False)
    places = {item.key: item.value for item in written.graph.initializer[0].external_data}
    assert places["location"] == "out.onnx.data"
    assert (tmp_path / "out.onnx.data").stat().st_size == 800_000
    loaded = numpy_helper.to_array(onnx.load(out).graph.initializer[0])
    np.testing.assert_array_equal(loaded, (np.arange(200_000) % 251).astype(np.float32))


def test_weights_left_in_a_large_file_are_converted_part_by_part(tmp_path, monkeypatch) -> None:
    weights = (np.arange(3_000_000) % 251).astype(ml_dtypes.bfloat16)
    source = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]>
        g (bfloat16[1] x) => (bfloat16[3000000] y) { y = Mul(x, w) }""")
    source.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    path = tmp_path / "large.onnx"
    onnx.save(source, path)
    monkeypatch.setattr(files, "_OUTLINED", 1)
    document = files.load(path)
    from onnxreduce_cli.engine.preparation import prepare

    prepare(document, Options(dtypes={"bfloat16": "float"}))
    parts = [item for item in document.byte_ranges("protobuf") if isinstance(item, RecodedRange)]
    assert [len(part) for part in parts] == [12_000_000]
    assert max(map(len, parts[0].chunks())) <= 1 << 21
    result = onnxreduce_cli.convert(path, dtypes={"bfloat16": "float"})
    found = numpy_helper.to_array(result.graph.initializer[0])
    np.testing.assert_array_equal(found, weights.astype(np.float32))


def test_what_changed_meanwhile_is_noticed(tmp_path) -> None:
    path = tmp_path / "data"
    path.write_bytes(bytes(10))
    part = FileRange(StoredFile.at(str(path)), 0, 10)
    path.write_bytes(bytes(12))
    with pytest.raises(onnxreduce_cli.InvalidModelError, match="changed while it was read"):
        RecodedRange(part, 10, bytes).read()


HALVES = ["float16", "double", "bfloat16"]
DEQUANTIZED = "[d] d = DequantizeLinear(q, s)"


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("after", HALVES)
@pytest.mark.parametrize(
    ("opset", "nodes"),
    [
        (13, f"{DEQUANTIZED} [sum] y = Add(x, d)"),
        (13, f"{DEQUANTIZED} [most] y = Max(d, x)"),
        (13, "[call] d = local.F(q) [sum] y = Add(x, d)"),
        (13, "y = local.F(q)"),
        (17, "w = CastLike(one, x) a, m = LayerNormalization(x, w) [sum] y = Add(x, m)"),
    ],
)
def test_what_operators_give_in_the_old_dtype_alone_is_cast(
    opset: int, nodes: str, after: str, keep: bool
) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : {opset}, "local" : 1]>
        g (int8[2,3] q, float[2,3] x) => (float[2,3] y)
        <float s = {{0.5}}, float[3] one = {{1, 1, 1}}> {{
            {nodes}
        }}
        <domain: "local", opset_import: ["" : {opset}]>
        F (a) => (b) {{ c = Constant<value_float = 0.5>() b = DequantizeLinear(a, c) }}""")
    if opset == 17 and after == "bfloat16":  # It takes and gives bfloat16, but states float.
        with pytest.raises(ConversionError, match=r"Add node sum .* must be of one type"):
            onnxreduce_cli.convert(source, dtypes={"float": after}, keep_interface=keep)
        return
    result = onnxreduce_cli.convert(source, dtypes={"float": after}, keep_interface=keep)
    onnx.checker.check_model(result, full_check=True)
    feeds = {"q": np.int8([[1, 2, 3], [4, 5, 6]]), "x": X}
    dtype = helper.tensor_dtype_to_np_dtype(TensorProto.DataType.Value(after.upper()))
    given = feeds if keep else {**feeds, "x": X.astype(dtype)}
    found = run(result, given, in_numpy=True)["y"]
    assert found.dtype == (np.float32 if keep else dtype)
    expected = run(source, feeds)["y"]
    np.testing.assert_allclose(found.astype(np.float32), expected, rtol=2e-2)


@pytest.mark.parametrize("after", ["float16", "double"])
@pytest.mark.parametrize(
    "held", ["<float[2] c = {1, 2}> {", "{ c = Constant<value_floats = [1.0, 2.0]>()"]
)
def test_a_constant_that_the_model_gives_and_reads(held: str, after: str) -> None:
    source = model(f"""<ir_version: 8, opset_import: ["" : 13]>
        g (float[2] x) => (float[2] c, float[2] y) {held} y = Add(c, x) }}""")
    result = onnxreduce_cli.convert(source, dtypes={"float": after}, keep_interface=True)
    onnx.checker.check_model(result, full_check=True)
    feeds = {"x": np.float32([0.5, -3])}
    before, found = run(source, feeds), run(result, feeds)
    for name in ("c", "y"):
        assert found[name].dtype == np.float32
        np.testing.assert_array_equal(found[name], before[name])


def test_a_constant_that_a_branch_reads_in_another_dtype_changes() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (int8[2] q, float[2] x, bool c) => (float[2] y, float[2] z) <float s = {0.5}> {
            [outside] y = DequantizeLinear(q, s)
            z = If (c) <
                then_branch = t () => (float[2] t) { t = Mul(x, s) },
                else_branch = e () => (float[2] u) { u = Neg(x) }
            >
        }""")
    result = onnxreduce_cli.convert(source, dtypes={"float": "float16"}, keep_interface=True)
    onnx.checker.check_model(result, full_check=True)
    assert result.graph.initializer[0].data_type == TensorProto.FLOAT16
    feeds = {"q": np.int8([3, 4]), "x": X[0, :2], "c": np.array(True)}
    for name, expected in run(source, feeds).items():
        np.testing.assert_array_equal(run(result, feeds)[name], expected)


def test_a_scale_that_only_a_branch_reads_stays() -> None:
    source = model("""<ir_version: 8, opset_import: ["" : 13]>
        g (int8[2] q, float[2] x, bool c) => (int64[1] y, float[2] z) <float s = {0.5}> {
            z = Neg(x)
            y = If (c) <
                then_branch = t () => (int64[1] t) { d = DequantizeLinear(q, s) t = Shape(d) },
                else_branch = e () => (int64[1] u) { u = Shape(x) }
            >
        }""")
    result = onnxreduce_cli.convert(source, dtypes={"float": "float16"})
    onnx.checker.check_model(result, full_check=True)
    assert [tensor.data_type for tensor in result.graph.initializer] == [TensorProto.FLOAT]


def test_a_constant_that_is_an_output_keeps_the_interface_without_a_cast() -> None:
    source = model(
        """<ir_version: 8, opset_import: ["": 17]>
        g (float[2] x) => (float[2] y, float[2] c) {
          c = Constant <value = float[2] {1.5, 2.5}> ()
          y = Neg(x)
        }"""
    )
    result = onnxreduce_cli.convert(source, dtypes={"float": "float16"}, keep_interface=True)
    assert sorted(op_types(result)) == ["Cast", "Cast", "Constant", "Neg"]
    assert (
        onnxreduce_cli.convert(result, dtypes={"float": "float16"}, keep_interface=True) == result
    )
