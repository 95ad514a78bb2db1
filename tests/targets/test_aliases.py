"""Products that people name are targets of the runtimes in them."""

from __future__ import annotations

import re

import pytest

from onnxreduce_cli.targets.aliases import aliases
from onnxreduce_cli.targets.reading import runtime_names
from onnxreduce_cli.targets.requirement import find_target


@pytest.mark.parametrize(
    ("text", "runtime", "label", "row"),
    [
        ("jetpack==5.1", "tensorrt", "tensorrt 8.5.2", "8.5"),
        ("JetPack==4.6", "tensorrt", "tensorrt 8.0.1", "8.0"),
        ("jetpack==4.6.1", "tensorrt", "tensorrt 8.2.1", "8.2"),
        ("deepstream==6.2", "tensorrt", "tensorrt 8.5.2", "8.5"),
        ("triton==23.10", "onnxruntime", "onnxruntime 1.16.0", "1.16"),
        ("tritonserver==24.05", "onnxruntime", "onnxruntime 1.18.0", "1.18"),
        ("mlnet==3.0", "onnxruntime", "onnxruntime 1.14.0", "1.14"),
        ("ML.NET==3.0", "onnxruntime", "onnxruntime 1.14.0", "1.14"),
        ("transformers.js==3.0", "onnxruntime-web", "onnxruntime-web 1.20.0", "1.20"),
        ("transformers.js==2.17.2", "onnxruntime-web", "onnxruntime-web 1.14.0", "1.14"),
        ("winml==windows11", "winml", "winml 10.0.22000", "10.0.22000"),
        ("winml==10.0.19041", "winml", "winml 10.0.19041", "10.0.19041"),
        ("directml==1.12", "onnxruntime-directml", "onnxruntime-directml 1.16.0", "1.16"),
        ("barracuda==3.0", "barracuda", "barracuda 3.0", "3.0"),
        ("rknn-toolkit==1.7.5", "rknn-toolkit", "rknn-toolkit 1.7.5", "1.7.5"),
        ("rknn-toolkit2==2.2", "rknn", "rknn 2.2", "2.2"),
        ("cuda==1.20", "onnxruntime-cuda", "onnxruntime-cuda 1.20", "1.20"),
        ("coreml==1.20", "onnxruntime-coreml", "onnxruntime-coreml 1.20", "1.20"),
        ("tflite==2.6", "onnx2tf", "onnx2tf 2.6", "2.6"),
    ],
)
def test_a_name_that_people_type(text: str, runtime: str, label: str, row: str) -> None:
    found = find_target(text)
    assert found.runtime.name == runtime
    assert found.label.endswith(label)
    assert [str(item.version) for item in found.rows] == [row]


def test_the_product_and_its_source_are_named() -> None:
    found = find_target("jetpack==4.6")
    assert found.label == "jetpack 4.6, tensorrt 8.0.1"
    assert found.remark == ("jetpack 4.6 has tensorrt 8.0.1 (gist Tiryoh/2b5dc1f8, a table by L4T)")
    assert [str(table.version) for table in found.operator_tables] == ["8.0"]


def test_conditions_name_several_versions_of_a_product() -> None:
    found = find_target("triton>=23.01,<23.06")
    assert [str(row.version) for row in found.rows] == ["1.13", "1.14", "1.15"]
    assert found.newest == 17
    assert "has onnxruntime 1.13.1, 1.14.1, 1.15.0" in found.remark


def test_a_version_of_a_product_that_is_not_known_says_so() -> None:
    found = find_target("jetpack==5.0.5")
    assert found.label == "jetpack 5.0.2, tensorrt 8.4.1"
    assert found.remark.startswith("nothing is known of jetpack 5.0.5: taken for 5.0.2")


def test_without_a_version_the_newest_is_meant() -> None:
    assert find_target("deepstream").label == "deepstream 7.1, tensorrt 10.3"
    assert find_target("winml").label == "winml 10.0.22000"


def test_each_product_is_complete() -> None:
    names = [name.lower() for item in aliases().values() for name in (item.name, *item.names)]
    assert len(names) == len(set(names))
    for alias in aliases().values():
        assert alias.runtime in runtime_names()
        assert len({release.text for release in alias.releases}) == len(alias.releases)
        for release in alias.releases:
            assert release.source.where
            assert re.fullmatch(r"20\d\d-\d\d-\d\d", release.source.date)
            assert find_target(f"{alias.name}=={release.text}").runtime.name == alias.runtime
