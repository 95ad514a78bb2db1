"""Inputs as files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from onnxreduce_cli.model.file import document as files
from onnxreduce_cli.verification.compare.values import Tolerance, compare_values
from onnxreduce_cli.verification.errors import InputError
from onnxreduce_cli.verification.inputs.files import read_inputs, write_inputs

MODEL = onnx.parser.parse_model(
    '<ir_version: 8, opset_import: ["": 18]>'
    "g (float[N] x, string[N] s, bfloat16[N] b, seq(float[N]) q, optional(float[N]) o) "
    "=> (float[N] y) { y = Relu(x) }"
)
X = np.array([1, 2], np.float32)


def test_npy_by_name(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    np.save(tmp_path / "s.npy", np.array(["a", "bc"]))
    np.save(tmp_path / "b.npy", np.array([1, 2], ml_dtypes.bfloat16))
    pairs = [f"{name}={tmp_path / name}.npy" for name in "xsb"]
    (found,) = read_inputs(MODEL, pairs)
    assert np.array_equal(found["x"], X)
    assert found["s"].dtype == object
    assert found["b"].dtype == ml_dtypes.bfloat16
    assert np.array_equal(found["b"], np.array([1, 2], ml_dtypes.bfloat16))


def test_npz_and_one_input_instead(tmp_path: Path) -> None:
    np.savez(tmp_path / "all.npz", x=X, s=np.array(["a", "b"]))
    np.save(tmp_path / "x.npy", X + 1)
    (found,) = read_inputs(MODEL, [f"x={tmp_path}/x.npy"], tmp_path / "all.npz")
    assert list(found["s"]) == ["a", "b"]
    assert np.array_equal(found["x"], X + 1)


@pytest.mark.parametrize("optional", [X, None])
def test_a_folder_holds_every_kind_of_value(tmp_path: Path, optional: Any) -> None:
    given = {
        "x": X,
        "s": np.array(["a", "é"], object),
        "b": np.array([1, 2], ml_dtypes.bfloat16),
        "q": [X, X[:1]],
        "o": optional,
    }
    write_inputs(tmp_path, given, MODEL)
    (found,) = read_inputs(MODEL, (), tmp_path)
    assert list(found) == list(given)
    for name, value in given.items():
        assert compare_values(found[name], value, Tolerance(exact=True)).agree, name


def test_data_sets_of_the_backend_layout(tmp_path: Path) -> None:
    for number in range(2):
        folder = tmp_path / f"test_data_set_{number}"
        folder.mkdir()
        # Names may be missing or foreign: then the place counts.
        tensor = numpy_helper.from_array(X + number, "" if number else "foreign")
        (folder / "input_0.pb").write_bytes(tensor.SerializeToString())
    found = read_inputs(MODEL, (), tmp_path)
    assert [item["x"][0] for item in found] == [1, 2]
    assert read_inputs(MODEL, (), tmp_path / "test_data_set_1")[0]["x"][0] == 2


def test_what_cannot_be_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "bad.npy").write_bytes(b"nothing")
    (tmp_path / "empty").mkdir()
    cases = [
        (["x"], None, "name=file.npy"),
        ([f"q0={tmp_path}/x.npy"], None, "no input 'q0'"),
        ([f"x={tmp_path}/none.npy"], None, "none.npy cannot be read: No such file or directory"),
        ([f"x={tmp_path}/bad.npy"], None, "cannot be read"),
        ([f"s={tmp_path}/x.npy"], None, "dtype"),
        ([f"q={tmp_path}/x.npy"], None, "no tensor"),
        ([], tmp_path / "x.npy", "no .npz"),
        ([], tmp_path / "empty", "neither"),
    ]
    for pairs, path, words in cases:
        with pytest.raises(InputError, match=words):
            read_inputs(MODEL, pairs, path)


def test_a_tensor_without_an_end_is_read_as_far_as_protobuf_goes(
    tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(files, "LARGEST", 10_000_000)
    (tmp_path / "input_0.pb").symlink_to("/dev/zero")
    with pytest.raises(InputError, match=r"cannot be read: it is larger than 2\.14 GB"):
        read_inputs(MODEL, [], tmp_path)
