"""What a pass changed is checked as a whole: valid, loaded, and compared where no site shows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper

import onnxreduce_cli
from onnxreduce_cli.engine import preparation
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.engine.passes import dtypes, folding, inlining, static_shapes
from onnxreduce_cli.errors import CheckError, ConversionError, UncheckedError
from onnxreduce_cli.model.file.document import Document
from onnxreduce_cli.report.plan import check_lines, remarks
from onnxreduce_cli.verification.whole import passes
from tests.support import model

MODEL = """<ir_version: 8, opset_import: ["": 17]>
agraph (float[N, 4] x) => (float[N, 4] y)
<float[4] w = {1, 2, 3, 4}> { s = Mul(x, w) y = Sigmoid(s) }"""

FUNCTION = """<ir_version: 8, opset_import: ["": 17, "f": 1]>
agraph (float[N, 4] x) => (float[N, 4] y) { y = f.Twice(x) }
<domain: "f", opset_import: ["": 17]> Twice (a) => (b) { b = Add(a, a) }"""

#: The options of each pass that has no sites, with a model and where its work is done.
WITHOUT_SITES: list[Any] = [
    pytest.param(MODEL, {"dims": {"N": 2}}, static_shapes, "fix_dimensions", id="--dim"),
    pytest.param(MODEL, {"fold": True}, folding, "fold", id="--fold"),
    pytest.param(MODEL, {"dtypes": {"float": "double"}}, dtypes, "change_dtypes", id="--dtype"),
    pytest.param(
        FUNCTION, {"inline_functions": True}, inlining, "inline_all", id="--inline-functions"
    ),
]


def broken(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, edit: Any) -> None:
    """Let a pass also make an edit."""
    own = getattr(where, name)

    def also(given: Document | ModelProto, *rest: Any, **named: Any) -> Any:
        found = own(given, *rest, **named)
        edit(given.model if isinstance(given, Document) else given)
        return found

    monkeypatch.setattr(where, name, also)


def unknown_input(found: ModelProto) -> None:
    found.graph.node[-1].input[0] = "nothing"


def other_type(found: ModelProto) -> None:
    found.graph.output[0].type.tensor_type.elem_type = TensorProto.INT32


def other_operator(found: ModelProto) -> None:
    found.graph.node[-1].op_type = "Cos" if len(found.graph.node[-1].input) == 1 else "Mul"


@pytest.mark.parametrize(("text", "options", "where", "name"), WITHOUT_SITES)
@pytest.mark.parametrize("edit", [unknown_input, other_type])
def test_an_invalid_result_is_not_written(
    text: str,
    options: dict[str, Any],
    where: Any,
    name: str,
    edit: Callable[[ModelProto], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    broken(monkeypatch, where, name, edit)
    source, out = tmp_path / "m.onnx", tmp_path / "out.onnx"
    onnx.save(model(text), source)
    with pytest.raises(CheckError) as error:
        onnxreduce_cli.convert_file(source, out, **options)
    message = str(error.value)
    option = next(iter(options))
    option = f"{option}=True" if options[option] is True else option
    assert message.startswith(f"{option}: the result does not pass onnx's full check")
    assert f"leave {option} out" in message
    assert "check=False" in message
    assert not out.exists()
    onnxreduce_cli.convert_file(source, out, check=False, **options)
    assert out.exists()


@pytest.mark.parametrize(("text", "options", "where", "name"), WITHOUT_SITES)
def test_a_result_that_computes_another_thing_is_refused(
    text: str, options: dict[str, Any], where: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch, where, name, other_operator)
    source = model(text)
    for in_place in (False, True):
        given = model(text)
        with pytest.raises(CheckError, match=r"the same.*output 'y' differs[^[]* elements? differ"):
            onnxreduce_cli.convert(given, in_place=in_place, **options)
        assert given == source
    assert onnxreduce_cli.convert(given, check=False, **options) != source


def test_numbers_that_the_new_dtype_does_not_hold_are_said(tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    onnx.save(
        model(
            """<ir_version: 8, opset_import: ["": 17]> g (float[N, 4] x) => (float[N, 4] y) {
            l = Constant<value_float = 60000.0>() b = Add(x, l) [twice] y = Add(b, b) }"""
        ),
        source,
    )
    done = onnxreduce_cli.convert_file(source, tmp_path / "o.onnx", dtypes={"float": "float16"})
    overflow, warning = remarks(done)[-2:]
    assert "values are beyond the range of float16, 65504: node 'twice' (Add) comp" in overflow
    assert "--dtype: output 'y' differs in " in warning
    assert "--verify" in warning


@pytest.mark.parametrize("dtype", ["float16", "double"])
def test_a_right_change_of_dtypes_agrees(dtype: str, tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    onnx.save(model(MODEL), source)
    done = onnxreduce_cli.convert_file(source, tmp_path / "o.onnx", dtypes={"float": dtype})
    expected = (
        "--dtype: the result passes onnx's full check, loads in ONNX Runtime, agrees with the "
        "model on 2 inputs, and in double precision"
    )
    assert expected in check_lines(done)
    assert not [line for line in remarks(done) if "not checked" in line]


def test_that_double_precision_was_compared_is_said_once(tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    onnx.save(model(MODEL), source)
    name = model(MODEL).graph.input[0].name
    options: dict[str, Any] = {"dtypes": {"float": "float16"}, "io_dtypes": {name: "double"}}
    done = onnxreduce_cli.convert_file(source, tmp_path / "o.onnx", **options)
    (line,) = [item for item in check_lines(done) if "double precision" in item]
    assert line.count("in double precision") == 1


def test_only_the_form_is_checked_where_nothing_computed_changes(tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    onnx.save(model(MODEL), source)
    done = onnxreduce_cli.convert_file(source, tmp_path / "o.onnx", strip_metadata="all")
    assert done.whole is not None
    assert done.whole.summary == (
        "--strip-metadata: the result passes onnx's full check, loads in ONNX Runtime"
    )


def test_a_plain_conversion_is_checked_by_its_sites_alone(tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    onnx.save(model(MODEL), source)
    assert onnxreduce_cli.convert_file(source, tmp_path / "o.onnx", 11).whole is None


def test_rewrites_for_a_runtime_open_the_result_once_and_the_source_never(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[str] = []
    own = passes.open_isolated

    def counted(source: Any, *rest: Any) -> Any:
        opened.append(source.label)
        return own(source, *rest)

    monkeypatch.setattr(passes, "open_isolated", counted)
    source = tmp_path / "m.onnx"
    text = MODEL.replace("Sigmoid(s)", "LogSoftmax<axis = 1>(s)").replace("[N, 4]", "[2, 3, 4]")
    onnx.save(model(text), source)
    done = onnxreduce_cli.convert_file(source, tmp_path / "o.onnx", runtime="opencv==4.6")
    assert done.whole is not None
    assert done.whole.summary == (
        "--for: the result passes onnx's full check, loads in ONNX Runtime"
    )
    assert opened == ["the converted model"]


def test_what_was_invalid_before_is_said(tmp_path: Path) -> None:
    source = model(MODEL)
    source.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 5
    onnx.save(source, tmp_path / "m.onnx")
    done = onnxreduce_cli.convert_file(
        tmp_path / "m.onnx", tmp_path / "o.onnx", strip_metadata="all"
    )
    assert any("refuses the result, as it refuses the model itself" in x for x in remarks(done))


@pytest.mark.parametrize("name", ["_MOST_BYTES", "_MOST_NODES"])
def test_of_a_large_model_onnx_alone_checks_the_result(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(passes, name, 1)
    monkeypatch.setattr(passes, "open_isolated", None)
    source = tmp_path / "m.onnx"
    onnx.save(model(MODEL), source)
    done = onnxreduce_cli.convert_file(source, tmp_path / "o.onnx", dims={"N": 2})
    (line,) = [line for line in check_lines(done) if line.startswith("--dim")]
    assert line.endswith("over 100 MB or 5,000 nodes, so neither loaded nor run")
    assert "warning: not checked: what --dim did could not be compared" in "\n".join(remarks(done))
    with pytest.raises(UncheckedError, match="what dims did"):
        onnxreduce_cli.convert(model(MODEL), dims={"N": 2}, strict=True)


def test_a_kernel_that_is_lacking_is_said_and_refuses_nothing(tmp_path: Path) -> None:
    source = tmp_path / "m.onnx"
    onnx.save(model(MODEL), source)
    done = onnxreduce_cli.convert_file(source, tmp_path / "o.onnx", dtypes={"float": "bfloat16"})
    assert "not checked: ONNX Runtime does not load the result" in "\n".join(remarks(done))


def test_external_data_is_found(tmp_path: Path) -> None:
    source = model(MODEL)
    array = np.arange(4000, dtype=np.float32).reshape(1000, 4)
    source.graph.initializer.append(numpy_helper.from_array(array, "more"))
    source.graph.node[1].op_type = "MatMul"
    source.graph.node[1].input[:] = ["s", "moved"]
    source.graph.node.insert(0, onnx.helper.make_node("Transpose", ["more"], ["moved"]))
    source.graph.output[0].type.tensor_type.shape.dim[1].dim_value = 1000
    onnx.save(source, tmp_path / "m.onnx", save_as_external_data=True, location="m.data")
    done = onnxreduce_cli.convert_file(tmp_path / "m.onnx", tmp_path / "o.onnx", dims={"N": 2})
    assert "agrees with the model on 2 inputs" in check_lines(done)[-1]
    result = onnxreduce_cli.convert(tmp_path / "m.onnx", dims={"N": 2}, strict=True)
    assert result.graph.input[0].type.tensor_type.shape.dim[0].dim_value == 2


def test_every_option_that_prepares_a_model_requests_a_pass() -> None:
    options: dict[str, Any] = {
        "strip_metadata": "all",
        "inline_functions": True,
        "dims": {"N": 1},
        "dtypes": {"float": "double"},
    }
    for name, value in options.items():
        chosen = Options(**{name: value})
        assert chosen.prepares
        assert [item.name for item, requested, _ in preparation._PASSES if requested(chosen)]


def test_a_false_shape_that_the_source_hides_is_no_bug() -> None:
    """The rank of a reduction by axes of run time is not inferred; that of a Cast is."""
    source = model("""<ir_version: 8, opset_import: ["" : 18]>
        g (float[3,2,2] x, int64[1] axes) => (float[1] y) {
            y = ReduceMin<keepdims = 1>(x, axes)
        }""")
    with pytest.raises(ConversionError, match="a shape that its nodes do not give") as raised:
        onnxreduce_cli.convert(source, 14, dtypes={"float": "double"}, keep_interface=True)
    assert not isinstance(raised.value, CheckError)
    assert "a bug in onnxreduce" not in str(raised.value)
