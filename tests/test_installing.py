"""What the page on installing tells users to type installs what pyproject.toml asks for."""

from __future__ import annotations

import re
import shlex

from tests.pages import ROOT, blocks, pages


def typed() -> list[str]:
    """The lines of the page that install something."""
    lines = [line for block in blocks(pages()["installing.md"]) for line in block.lines]
    return [line for line in lines if "install" in line]


def dependencies() -> list[str]:
    """What pyproject.toml says that the package needs."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (found,) = re.findall(r"^dependencies = \[\n(.*?)^\]", text, flags=re.MULTILINE | re.DOTALL)
    return re.findall(r'^  "(.*)",$', found, flags=re.MULTILINE)


def test_what_is_needed_beside_onnx_runtime():
    bare, rest = [line for line in typed() if line.startswith("pip install")]
    assert bare == "pip install --no-deps ."
    others = [text for text in dependencies() if not text.startswith("onnxruntime>=")]
    assert len(others) == len(dependencies()) - 1
    assert shlex.split(rest) == ["pip", "install", *others]


def test_what_the_page_says_is_the_least():
    text = " ".join(pages()["installing.md"].read_text(encoding="utf-8").split())
    onnx, onnxruntime, *_ = [found.rpartition(".")[0] for found in dependencies()]
    least = (onnx.removeprefix("onnx>="), onnxruntime.removeprefix("onnxruntime>="))
    assert "it needs onnx {} and ONNX Runtime {}, or later".format(*least) in text
