"""Lists of operators that may appear."""

from __future__ import annotations

from pathlib import Path

import pytest

from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.targets.allowed import operator_list_entries, operator_list_target


def test_a_list_with_commas_or_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ops.txt"
    path.write_text("# those of a model\nAdd\n Clip@11-12, Relu  # both\n\n")
    expected = ("Add", "Clip@11-12", "Relu")
    assert (
        operator_list_entries(str(path))
        == operator_list_entries("Add,Clip@11-12, Relu")
        == expected
    )
    assert operator_list_entries("a\0b") == ("a\0b",)
    path.write_bytes(b"\xff")
    with pytest.raises(UsageError, match="cannot be read"):
        operator_list_entries(str(path))


def test_what_is_allowed() -> None:
    found = operator_list_target(
        ["Add", "Clip@11-12", "Resize@13-", "ai.onnx.Relu", "com.microsoft.Gelu"]
    )

    def takes(op_type: str, opset: int) -> bool:
        domain, _, name = op_type.rpartition(".")
        return found.answer(domain, name, opset).value == "taken"

    assert takes("Add", 7)
    assert [opset for opset in (10, 11, 12, 13) if takes("Clip", opset)] == [11, 12]
    assert [opset for opset in (12, 13, 20) if takes("Resize", opset)] == [13, 20]
    assert takes("Relu", 20)
    assert takes("com.microsoft.Gelu", 1)
    assert not takes("Sub", 7)


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("Reul", "there is no operator 'Reul', and no such file; did you mean Relu"),
        ("Clip@", "is no operator; say Clip, or Clip@11-12"),
        ("Clip@a", "is no operator"),
        ("Cl ip", "is no operator"),
        ("missing.txt@@", "is no operator"),
    ],
)
def test_what_is_no_operator(entry: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        operator_list_target([entry])


def test_an_empty_list() -> None:
    with pytest.raises(UsageError, match="lists no operator"):
        operator_list_target([])


@pytest.mark.parametrize("text", ["missing.txt", "folder/Add", "./ops"])
def test_a_file_that_is_not_there(text: str) -> None:
    with pytest.raises(UsageError, match=f"there is no file '{text}'"):
        operator_list_entries(text)
