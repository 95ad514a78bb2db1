"""Recognition of files of other formats, with advice on what to do with each."""

from __future__ import annotations

import re

#: Patterns of the beginnings of files, what such a file is, and what to do; the first match counts.
_KINDS: tuple[tuple[bytes, str, str], ...] = (
    (
        rb".{4}ORTM",
        "in ONNX Runtime's own format (.ort)",
        "convert the .onnx file that it was made from",
    ),
    (
        rb".{4}TFL3",
        "a TensorFlow Lite model",
        "make one of it: pip install tf2onnx; python -m tf2onnx.convert --tflite FILE --output "
        "model.onnx",
    ),
    (
        rb"PK\x03\x04.{26}[^/]{1,99}/(data\.pkl|\.format_version|\.data/|constants\.pkl|byteorder)",
        "a PyTorch file (.pt, .pth), which holds weights or a program",
        "export the model: torch.onnx.export",
    ),
    (rb"PK\x03\x04", "an archive (zip)", "unpack it, and name the model in it"),
    (
        rb"(\x1f\x8b|BZh|\xfd7zXZ\0|\x28\xb5\x2f\xfd|7z\xbc\xaf|.{257}ustar)",
        "an archive, or compressed",
        "unpack it, and name the model in it",
    ),
    (
        rb"\x80[\x02-\x05]",
        "a Python pickle, such as torch.save and joblib write",
        "export the model it holds: torch.onnx.export, skl2onnx",
    ),
    (
        rb"\x89HDF\r\n",
        "an HDF5 file, such as Keras writes",
        "export the model: pip install tf2onnx; python -m tf2onnx.convert --keras FILE --output "
        "model.onnx",
    ),
    (
        rb".{5}\0\0\0\s*\{\s*\"",
        "a safetensors file, which holds weights and no graph",
        "export the model that has these weights: torch.onnx.export, optimum-cli export onnx",
    ),
    (rb"\x93NUMPY", "a NumPy array", "name the model that it belongs to"),
    (
        rb"\s*(<!doctype|<html)",
        "a web page",
        "download the file itself; on GitHub and Hugging Face by its raw or resolve link",
    ),
    (rb"\s*<\?xml", "an XML file", "name the ONNX model that it was made from"),
    (rb"\s*<\s*ir_version\s*:", "a model in textual form", "give it the extension .onnxtxt"),
    (rb"\s*[{\[]", "JSON", "if it is a model, give it the extension .onnxjson"),
)

#: The bytes at the beginning of a file that are matched.
_BYTES_READ = 4096


def foreign_format(content: bytes) -> str | None:
    """Return what a file is that is not a model, and what to do; None where that is not known.

    Args:
        content: the content of the file, or its first 4 KB.
    """
    start = bytes(content[:_BYTES_READ])
    for pattern, what, advice in _KINDS:
        if re.match(pattern, start, re.DOTALL | re.IGNORECASE):
            return f"{what}; {advice}"
    return None
