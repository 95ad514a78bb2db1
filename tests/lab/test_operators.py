"""The makers of `targets/data/operators/`, on a few lines of what they read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.operators import (
    documents,
    names,
    onnxruntime,
    onnxruntime_web,
    repositories,
    tensorrt,
    writing,
)
from lab.operators.restrictions import digest
from lab.operators.writing import Release, Row, Source, check_names
from onnxreduce_cli.targets.operators import parse_operators
from onnxreduce_cli.targets.versions import Version

#: The definitions of operators decide which opsets a kernel is for.
pytestmark = pytest.mark.newest

KERNELS = """
## Operators implemented by CPUExecutionProvider

| Op Name | Parameters | OpSet Version | Types Supported |
|---------|------------|---------------|-----------------|
|**Operator Domain:** *ai.onnx*||||
|Abs|*in* X:**T**<br> *out* Y:**T**|13+|**T** = tensor(float), tensor(int8)|
|||[6, 12]|**T** = tensor(float)|
|Cast|*in* a:**T1**|13|**T1** = tensor(float)<br/> **T2** = tensor(bool), tensor(int8)|
| |
|**Operator Domain:** *com.microsoft*||||
|Gelu|*in* X:**T**|1+|**T** = tensor(float)|

## Operators implemented by CUDAExecutionProvider

| Op Name | Parameters | OpSet Version | Types Supported |
|---------|------------|---------------|-----------------|
|**Operator Domain:** *ai.onnx*||||
|Abs|*in* X:**T**|13+|**T** = tensor(double)|
"""

FLOAT = ("T", frozenset({"float"}))


def test_a_table_of_kernels_is_read_by_provider() -> None:
    found = onnxruntime.table_kernels(KERNELS, "CPUExecutionProvider")
    assert [(kernel.domain, kernel.op_type, kernel.opsets) for kernel in found] == [
        ("", "Abs", (13, (1 << 31) - 1)),
        ("", "Abs", (6, 12)),
        ("", "Cast", (13, 13)),
        ("com.microsoft", "Gelu", (1, (1 << 31) - 1)),
    ]
    assert found[2].types["T2"] == {"tensor(bool)", "tensor(int8)"}
    assert len(onnxruntime.table_kernels(KERNELS, "CUDAExecutionProvider")) == 1


def test_kernels_become_rows_of_opsets() -> None:
    kernels = onnxruntime.table_kernels(KERNELS, "CPUExecutionProvider")
    found = onnxruntime.facts(kernels, bodies=False, version="1.20")
    # Abs changed at 6 and 13; Cast at 13 and 19, and this kernel is that of 13 alone.
    assert found["", "Abs"] == [
        Row((6, 12), (FLOAT,)),
        Row((13, None), (("T", frozenset({"float", "int8"})),)),
    ]
    assert [row.opsets for row in found["", "Cast"]] == [(13, 18)]
    assert found["com.microsoft", "Gelu"] == [Row((None, None), (FLOAT,))]


def test_operators_with_a_function_body_are_written_out_but_for_what_the_lab_refused() -> None:
    found = onnxruntime.facts([], bodies=True, version="1.20")
    assert found["", "HardSwish"] == [Row((14, None))]
    assert ("", "Conv") not in found
    older = onnxruntime.facts([], bodies=True, version="1.21")
    assert [row.opsets for row in older["", "Bernoulli"]] == [(15, 21)]


TABLE = """
| Operator | Supported  | Supported Types | Restrictions |
|----------|------------|-----------------|--------------|
| Abs      | Y          | FP32, FP16 |
| LpPool   | Y          | FP32, FP16 | `dilations` must be empty or all ones |
| Where    | Y          | FP32, BOOL |
| Det      | N          |
| Reciprocal | N        |
"""


def test_a_table_of_tensorrt_is_read() -> None:
    importers = {"Abs", "LpPool", "Reciprocal"}
    found = tensorrt.facts(TABLE, importers, "8.6")
    floats = frozenset({"float", "float16"})
    assert found["", "Abs"] == [Row(dtypes=(("0", floats),))]
    assert found["", "LpPool"] == [Row(dtypes=(("0", floats),), conditions=("dilations",))]
    assert found["", "Where"][0].dtypes[0][0] == "1+2"
    assert found["", "Where"][0].conditions == ("table",)
    assert ("", "Det") not in found
    assert found["", "Reciprocal"] == [Row()], "its parser has it"
    alone = tensorrt.facts(TABLE, None, "8.6")
    assert alone["", "Where"][0].conditions == ()
    assert ("", "Reciprocal") not in alone


def test_a_restriction_that_is_new_fails() -> None:
    changed = TABLE.replace("all ones", "all twos")
    with pytest.raises(KeyError, match="LpPool"):
        tensorrt.facts(changed, set(), "8.6")
    with pytest.raises(ValueError, match="neither Y nor N"):
        tensorrt.facts(TABLE.replace("| N ", "| ? "), set(), "8.6")


def test_each_restriction_names_conditions() -> None:
    for module in (tensorrt, onnxruntime_web):
        named = {
            name for line in module.RESTRICTIONS.strip().splitlines() for name in line.split()[2:]
        }
        assert named <= module.CONDITIONS.keys()


WEB = """
| Operator | Opset | Comments |
|:--------:|:-----:|----------|
| Abs | ai.onnx(6-12,13+) |  |
| Acos | ai.onnx(7+) |  |
| Gelu | ai.onnx(20+); com.microsoft(1+); com.ms.internal.nhwc(1+) |  |
"""


def test_a_table_of_the_web_is_read() -> None:
    kernels = onnxruntime_web.facts(WEB, kernels=True)
    assert [row.opsets for row in kernels["", "Abs"]] == [(6, None)]
    # Acos changed at 22, which a kernel that begins at 7 and is open does not run.
    assert [row.opsets for row in kernels["", "Acos"]] == [(7, 21)]
    assert [row.opsets for row in onnxruntime_web.facts(WEB, kernels=False)["", "Acos"]] == [
        (7, None)
    ]
    assert ("com.microsoft", "Gelu") in kernels
    assert not any(domain.startswith("com.ms") for domain, _ in kernels)
    linked = "| [Abs](https://x#Abs) | [6-12](https://x#Abs-6), [13+](https://x#Abs-13) |\n"
    assert onnxruntime_web.facts(linked, kernels=False)["", "Abs"] == [Row((6, None))]


def test_every_version_of_every_operator_is_asked() -> None:
    found = {(item.name, item.opsets) for item in names.asked()}
    assert (("", "Abs"), (6, 12)) in found
    assert (("", "GroupNormalization"), (18, 20)) in found, "deprecated, but in exports"
    assert (("ai.onnx.ml", "Scaler"), (None, None)) in found
    assert (("com.microsoft", "FusedMatMul"), (None, None)) in found


@pytest.mark.parametrize(
    ("runtime", "said", "unknown"),
    [
        ("openvino", "OpenVINO does not support the following ONNX operations: Gelu", True),
        ("openvino", "No conversion rule found for operations: com.microsoft.Gelu", True),
        ("openvino", "No conversion rule found for operations: Gelu-20", True),
        ("openvino", "No conversion rule found for operations: FastGelu-20", False),
        ("openvino", "While validating ONNX node '<Node(Gelu): y0>'", False),
        ("opencv", 'error: Can\'t create layer "y0" of type "Gelu" in function', True),
        ("opencv", 'error: Can\'t create layer "y0" of type "com.microsoft.Gelu" in', True),
        ("opencv", "Node [Gelu@ai.onnx]:(y0) parse error: Assertion failed", False),
    ],
)
def test_what_a_wheel_says_of_a_name_that_it_does_not_know(
    runtime: str, said: str, unknown: bool
) -> None:
    assert names.is_unknown(runtime, "Gelu", said) is unknown


def source(date: str, *complete: str) -> Source:
    """A source."""
    return Source("document", "a table", date, complete)


def test_versions_share_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "FOLDER", tmp_path)
    floats = Row(dtypes=(("T", frozenset({"float", "double", "float16"})),))
    old = {("", "Abs"): [Row((6, 12))], ("", "Relu"): [Row(conditions=("c",))]}
    new = {("", "Abs"): [Row((6, 12)), floats], ("com.acme", "Fast"): [Row(value="not")]}
    path = writing.write(
        "acme",
        "acme",
        [
            Release("1", source("2020-01-01"), old),
            Release("2", source("2020-01-01"), old),
            Release("3", source("2021-01-01", "ai.onnx"), new),
        ],
        conditions={"c": ("the moon is full", "rank 0 = 4"), "d": ("it is not used", "")},
    )
    lines = path.read_text().splitlines()
    assert 'versions = "1-2"' in lines
    assert 'Abs = "@6-12; 3- T=floats"' in lines
    assert 'Relu = "1-2 if=c"' in lines
    assert 'Fast = "3- not"' in lines
    assert "[conditions.d]" not in lines
    found = parse_operators("acme", path.read_text())
    assert [str(version) for version in found.versions] == ["1", "2", "3"]
    assert found.versions[0] == Version.of("1")


def test_a_name_that_no_onnx_defines_fails() -> None:
    check_names([("", "Abs"), ("com.acme", "Fast"), ("", "Crop")], {"Crop"})
    with pytest.raises(ValueError, match=r"no onnx defines \('', 'Absolute'\)"):
        check_names([("", "Absolute"), ("", "Abs")])
    with pytest.raises(ValueError, match=r"no onnx defines \('ai.onnx.ml', 'Abs'\)"):
        check_names([("ai.onnx.ml", "Abs")])


def test_a_sentence_has_one_digest_whatever_its_markup() -> None:
    assert digest("`axes` must be an initializer") == digest("axes must<br />be an initializer ")
    assert digest("axes must be constant") != digest("axes must be an initializer")


def test_files_are_read_from_a_clone_at_a_commit(tmp_path: Path) -> None:
    def git(*arguments: str) -> None:
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True, capture_output=True)

    git("init")
    (tmp_path / "table.md").write_text("one\n")
    git("add", "table.md")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    git(*identity, "commit", "-m", "one", "--date", "2024-05-06T00:00:00Z")
    (tmp_path / "table.md").write_text("two\n")
    git(*identity, "commit", "-am", "two")
    assert repositories.read(tmp_path, "HEAD", "table.md").text == "two\n"
    assert repositories.read(tmp_path, "HEAD^", "table.md").text == "one\n"
    assert repositories.files(tmp_path, "HEAD", ".") == ["table.md"]
    with pytest.raises(LookupError, match="missing"):
        repositories.read(tmp_path, "HEAD", "missing.md")


MLIR = """
| Op |Supported Opsets (inclusive) |Limitations |Notes |
| --- |--- |--- |--- |
| **Abs** |6 - * | | |
| **AveragePool** |6 - 18 | | |
| **CastMap** |none | | | |
| **Reshape** |6 - * |allowzero not supported. Does not support int4 and uint4. | |
"""


def test_a_table_of_onnx_mlir_is_read() -> None:
    assert dict(documents.onnx_mlir({"": MLIR})) == {
        "Abs": Row((6, None)),
        "AveragePool": Row((6, 18)),
        "Reshape": Row((6, None), (), ("allowzero", "no-int4")),
    }
    with pytest.raises(KeyError):
        list(documents.onnx_mlir({"": MLIR.replace("allowzero", "allowone")}))


def test_burn_names_operators_by_their_dimensions() -> None:
    lines = ["| [Conv1d][1] | ✅ | ✅ |", "| [Conv2d][1] | ✅ | ✅ |", "| [ReduceL][2] | ✅ | ✅ |"]
    found = dict(documents.burn({"": "\n".join([*lines, "| [Det][3] | ❌ | ✅ |"])}))
    assert found == {
        "Conv": Row(conditions=("1d-2d",)),
        "ReduceL1": Row(),
        "ReduceL2": Row(),
    }


TIDL = """
## Operator Mapping (ONNX)

| S. No. | ONNX Operator | TIDL Layer | Constraints |
|:------:|:--------------|:-----------|:------|
| 1 | Sum/Add/Sub | TIDL_EltWiseLayer | <ul> <li> Both inputs as variable are not supported in Sub </li></ul> |
| 2 | Abs | TIDL_AbsLayer | <ul> </ul> |

### Support for fused combinations (ONNX)

| 1 | Erf | TIDL_GELULayer | <ul> <li> GELU </li></ul> |
"""  # noqa: E501


def test_a_condition_of_a_line_of_tidl_is_that_of_the_operator_it_names() -> None:
    assert dict(documents.tidl({"": TIDL})) == {
        "Sum": Row(),
        "Add": Row(),
        "Sub": Row(conditions=("one-constant",)),
        "Abs": Row(),
    }


def test_each_sentence_of_a_document_names_conditions() -> None:
    for sentences in (documents.ONNX_MLIR, documents.ESP_DL, documents.TIDL, documents.AXELERA):
        assert {
            name for names in sentences.values() for name in names
        } <= documents.CONDITIONS.keys()
