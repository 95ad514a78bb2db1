"""Files that are no models are named, with what to do."""

import io
import zipfile

import numpy as np
import pytest

from onnxreduce_cli.errors import InvalidModelError
from onnxreduce_cli.model.file.document import load
from tests.support import model


def zipped(name: str) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr(name, b"x")
    return target.getvalue()


def array() -> bytes:
    target = io.BytesIO()
    np.save(target, np.zeros(2))
    return target.getvalue()


#: How a file begins, and what is said of it.
FOREIGN = {
    "ort": (b"\x08\0\0\0ORTM" + bytes(40), r"own format \(.ort\); convert the .onnx file"),
    "tflite": (b"\x1c\0\0\0TFL3" + bytes(40), "TensorFlow Lite model.*tf2onnx"),
    "pt": (zipped("archive/data.pkl"), r"PyTorch file.*torch\.onnx\.export"),
    "zip": (zipped("model.onnx"), r"archive \(zip\); unpack it"),
    "gzip": (b"\x1f\x8b\x08" + bytes(40), "compressed; unpack it"),
    "pickle": (b"\x80\x04\x95" + bytes(40), "a Python pickle"),
    "keras": (b"\x89HDF\r\n\x1a\n" + bytes(40), "HDF5.*tf2onnx"),
    "safetensors": (b'\x40\0\0\0\0\0\0\0{"w":{}}', "safetensors file.*holds weights"),
    "npy": (array(), "a NumPy array"),
    "html": (b"\n<!DOCTYPE html><html>", "a web page; download the file itself"),
    "xml": (b'<?xml version="1.0"?><net/>', "an XML file"),
    "text": (b'<ir_version: 8, opset_import: ["" : 18]> g', "textual form.*onnxtxt"),
    "json": (b'{"irVersion": 8}', "JSON.*onnxjson"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
    "unknown": (b"\xff\xff\xff", "it is cut short, or something else"),
    "graph of TensorFlow": (b"\x08\x01\x12\x00", "it has no graph.*tf2onnx"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_what_a_file_is(tmp_path, name):
    content, message = FOREIGN[name]
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(InvalidModelError, match=message) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_a_model_is_a_model(tmp_path):
    """However its bytes begin: what can be parsed is not guessed at."""
    found = model(
        '<ir_version: 8, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) {y = Abs (x) }'
    )
    path = tmp_path / "model.pt"
    path.write_bytes(found.SerializeToString())
    assert load(path).model == found
