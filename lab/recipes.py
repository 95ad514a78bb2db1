"""How runtimes are installed: which packages, by which Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Recipe:
    """How some versions of a runtime are installed.

    Attributes:
        runtime: its name, as in `targets/`.
        versions: which ones.
        packages: what is installed, with ``{}`` for the version.
        pythons: the Pythons that there are packages for, the one to take first; none where the
            packages are npm's.
        alone: what pip installs without what it says that it needs.
    """

    runtime: str
    versions: str
    packages: Sequence[str]
    pythons: Sequence[str]
    alone: Sequence[str] = ()


def _of(
    runtime: str, versions: str, packages: str, pythons: str = "", *, alone: str = ""
) -> Recipe:
    return Recipe(runtime, versions, packages.split(), pythons.split(), alone.split())


RECIPES = (
    _of("onnxruntime", "<1.10", "onnxruntime=={} numpy<1.24 protobuf<4", "3.8 3.9"),
    _of("onnxruntime", ">=1.10,<1.14", "onnxruntime=={} numpy<2 protobuf<4", "3.9 3.8"),
    _of("onnxruntime", ">=1.14,<1.15", "onnxruntime=={} numpy<2", "3.10 3.9 3.8"),
    _of("onnxruntime", ">=1.15,<1.19", "onnxruntime=={} numpy<2", "3.11 3.10"),
    _of("onnxruntime", ">=1.19", "onnxruntime=={}", "3.11 3.10"),
    _of("onnxruntime-web", "", "onnxruntime-web@{}"),
    _of("opencv", "<4.10", "opencv-python-headless=={} numpy<2", "3.10"),
    _of("opencv", ">=4.10", "opencv-python-headless=={}", "3.11 3.10"),
    _of("openvino", "<2022.3", "openvino=={} numpy<1.24", "3.8"),
    _of("openvino", ">=2022.3,<2024", "openvino=={} numpy<2", "3.10"),
    _of("openvino", ">=2024", "openvino=={}", "3.11 3.12 3.10"),
    _of("mnn", "<3.1", "mnn=={} numpy<1.25", "3.8"),
    _of("mnn", ">=3.1", "mnn=={}", "3.11 3.10"),
    _of("ncnn", "", "pnnx=={} ncnn==1.0.{} numpy", "3.11 3.10"),
    _of("nncase", "", "nncase=={} numpy<1.25", "3.8"),
    _of("tract", "<0.22", "tract=={} numpy<2", "3.10"),
    _of("tract", ">=0.22", "tract=={} numpy", "3.11 3.10"),
    _of("tinygrad", "", "tinygrad=={} numpy", "3.11"),
    _of("tvm", "", "apache-tvm=={} onnx<1.20 numpy", "3.11"),
    _of("iree", "", "iree-base-compiler=={} iree-base-runtime=={} onnx<1.20 numpy", "3.11"),
    _of("onnx2torch", "", "onnx2torch=={} onnx<1.20 torch torchvision", "3.11 3.10"),
    _of(
        "jaxonnxruntime",
        "",
        "jaxonnxruntime=={} jax<0.5 jaxlib<0.5 onnx<1.17 numpy<2 absl-py",
        "3.11 3.10",
    ),
    _of(
        "x2paddle",
        "",
        "x2paddle=={} paddlepaddle==2.6.2 onnx<1.18 numpy<2 setuptools<70 sympy six requests",
        "3.10",
    ),
    _of(
        "rknn",
        ">=2",
        "onnx==1.17.0 onnxruntime==1.17.3 protobuf==4.25.3 numpy<1.25 "
        "opencv-python-headless==4.10.0.84 scipy psutil ruamel.yaml tqdm fast-histogram "
        "typing_extensions setuptools<70",
        "3.8",
        alone="rknn-toolkit2=={} torch==1.10.2",
    ),
)

#: What the package index calls a version that people name without its build.
BUILDS = {
    "opencv": {
        "4.5.5": "4.5.5.64",
        "4.6.0": "4.6.0.66",
        "4.7.0": "4.7.0.72",
        "4.8.1": "4.8.1.78",
        "4.9.0": "4.9.0.80",
        "4.10.0": "4.10.0.84",
        "4.11.0": "4.11.0.86",
        "4.12.0": "4.12.0.88",
        "5.0.0": "5.0.0.93",
    },
    "nncase": {"1.9.0": "1.9.0.20230322"},
}
