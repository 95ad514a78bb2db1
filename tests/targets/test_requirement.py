"""A requirement names a target."""

from __future__ import annotations

from importlib import metadata

import pytest

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.targets.reading import runtime_names
from onnxreduce_cli.targets.requirement import find_target


def rows(text: str) -> list[str]:
    return [str(row.version) for row in find_target(text).rows]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("onnxruntime==1.8", ["1.8"]),
        ("onnxruntime==1.8.1", ["1.8"]),
        (" ONNXRuntime >=1.8 , <1.12", ["1.8", "1.9", "1.10", "1.11"]),
        ("onnxruntime>=1.8.1,<1.10", ["1.8", "1.9"]),
        ("onnxruntime==1.14.*", ["1.14"]),
        ("opencv==4.6.0.66", ["4.6"]),
        ("cv2==5.0", ["5.0"]),
        ("opencv_python", ["5.0"]),
        ("qnn==2.31", ["0"]),
    ],
)
def test_rows(text: str, expected: list[str]) -> None:
    assert rows(text) == expected
    assert not find_target(text).remark


def test_none_is_the_newest_that_is_known() -> None:
    for name in runtime_names():
        found = find_target(name)
        assert list(found.rows) == [found.runtime.rows[-1]]


def test_what_is_installed() -> None:
    version = metadata.version("onnxruntime")
    assert find_target("installed").label == f"onnxruntime {version}"


def test_a_version_between_two_rows_gets_the_older_one_and_says_so() -> None:
    found = find_target("opencv==4.13.2")
    assert [str(row.version) for row in found.rows] == ["4.12"]
    assert found.remark == ("opencv 4.13.2 is between 4.12 and 5.0: taken for 4.12, the older")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("unity==1.3", ""),
        ("tvm==0.12.1", ""),
        ("winml", ""),
        ("axelera==1.2", ""),
        ("barracuda==2.5", "barracuda 2.5 is between 2.4 and 3.0: taken for 2.4, the older"),
        ("rknn==2.4", "rknn 2.4 is between 2.3.2 and 2.5: taken for 2.3.2, the older"),
        ("webnn==1.30", "its operators are taken to be those of 1.24, the newest that are known"),
        ("webnn", "its operators are taken to be those of 1.24, the newest that are known"),
        ("webnn>=1.20", "its operators are taken to be those of 1.24, the newest that are known"),
    ],
)
def test_a_version_of_which_the_operators_are_known_is_not_between(text: str, said: str) -> None:
    assert find_target(text).remark == said


def test_several_rows_are_one_target_that_takes_what_all_take() -> None:
    found = find_target("onnxruntime>=1.8,<1.15")
    assert (found.oldest, found.newest, found.ir_version, found.ml_version) == (7, 14, 7, 2)
    alone = {id(quirk) for row in found.rows for quirk in row.quirks}
    assert len(found.quirks) == len(alone) == 8


def test_the_best_opset_is_one_on_which_all_agree() -> None:
    assert find_target("opencv==4.6").best == 11
    assert find_target("opencv>=4.6,<4.8").best is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("onnxruntim", "did you mean onnxruntime,"),
        ("open-vino==2026", "did you mean openvino"),
        ("zzz", "onnxreduce targets lists"),
        ("zzz", "say --opset N, and --allow-ops with the list of operators that its vendor"),
        ("jetpck", "did you mean jetpack?"),
        ("jetpack==3", "known: 4.2.2, 4.3"),
        ("jetpack==x", "'x' is no version; say jetpack==6.2"),
        ("onnxruntime=1.8", "'=1.8' is no condition on a version; say onnxruntime=="),
        ("onnxruntime==1.2", "nothing is known of onnxruntime before 1.3; say onnxruntime==1.3"),
        ("onnxruntime<1.2", "known are 1.3 to"),
        ("", "say NAME or NAME==VERSION"),
        ("==1.8", "say NAME or NAME==VERSION"),
        ("opencv==4.x", "say opencv==4.*"),
        ("onnxruntime=1.8", "say onnxruntime==1.8"),
        ("onnxruntime 1.8", "say onnxruntime==1.8"),
        ("onnxruntime==", "say onnxruntime==1.32"),
        ("onnxruntime1.8", "did you mean onnxruntime==1.8?"),
        ("opencv-4.6", "did you mean opencv==4.6?"),
        ("opnecv==4.6", "did you mean opencv?"),
        ("opencv==1.*", "no version of opencv that is known meets ==1.*; known are 4.5 to 5.0"),
    ],
)
def test_what_names_nothing(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        find_target(text)
    assert said in str(error.value)


@pytest.mark.parametrize("conditions", ["==1.99", ">2", ">=1.99,<3"])
def test_newer_versions_than_are_known(conditions: str) -> None:
    found = find_target(f"onnxruntime{conditions}")
    assert [str(row.version) for row in found.rows] == ["1.32"]
    assert found.remark.startswith("onnxruntime ")
    assert found.remark.endswith(" is newer than all that is known: taken for 1.32, the newest")


@pytest.mark.parametrize("name", runtime_names())
def test_each_runtime_says_that_a_version_is_newer_than_all_that_is_known(name: str) -> None:
    newest = find_target(name).rows[-1].version
    remark = find_target(f"{name}==99999999").remark
    said = "is newer than all that is known" in remark or f"nothing is known of {name}" in remark
    assert said == (str(newest) != "0")


def test_tensorrt_between_10_1_and_10_14_is_taken_for_10_1() -> None:
    for version in ("10.2", "10.5", "10.13.3"):
        found = find_target(f"tensorrt=={version}")
        assert (rows(f"tensorrt=={version}"), found.newest) == (["10.1"], 20)
        assert f"tensorrt {version} is between 10.1 and 10.14" in found.remark


@pytest.mark.parametrize("conditions", [">=1.8.1,<1.8.9", ">=1.8,<9", "!=1.9", "<=2", "~=1.8.0"])
def test_versions_of_rows_that_are_known(conditions: str) -> None:
    assert not find_target(f"onnxruntime{conditions}").remark
