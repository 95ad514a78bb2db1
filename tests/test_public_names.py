"""What a user of the library needs names for can be imported from the package itself."""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import onnx
import pytest

import onnxreduce
import onnxreduce_cli
from onnxreduce_cli import OnnxreduceError
from onnxreduce_cli.report.failures import failure

FUNCTIONS = [
    "convert",
    "convert_file",
    "convert_version",
    "diff",
    "inspect",
    "ops",
    "plan",
    "run",
    "targets",
    "verify",
]

#: Names in annotations that are Python's, onnx's, onnx-ir's, or an alias for them.
FOREIGN = {
    "Any",
    "Collection",
    "HoldsModel",
    "Mapping",
    "Model",
    "ModelOrPath",
    "ModelProto",
    "None",
    "OSError",
    "PathLike",
    "Sequence",
    "Unpack",
    "Wanted",
}


def named(function: Callable[..., Any]) -> Iterator[str]:
    """The types that a function takes and gives, and the exceptions that it says it raises."""
    for annotation in inspect.get_annotations(function).values():
        yield from re.findall(r"\b[A-Z]\w+", annotation)
    said = (inspect.getdoc(function) or "").partition("Raises:")[2]
    yield from re.findall(r"^\s+(\w+Error):", said, re.MULTILINE)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_public_functions_take_give_and_raise_is_exported(name: str) -> None:
    found = set(named(getattr(onnxreduce, name))) - FOREIGN
    assert found <= {*onnxreduce.__all__, "TypeError"}
    assert any(item.endswith("Error") for item in found) or name == "plan"


def test_what_a_plan_holds_is_exported() -> None:
    found = {
        name
        for field in fields(onnxreduce_cli.Plan)
        for name in re.findall(r"\b[A-Z]\w+", str(field.type))
    }
    assert {"Blocker", "Change"} <= found <= set(onnxreduce_cli.__all__) | FOREIGN


def test_each_name_can_be_imported() -> None:
    for name in onnxreduce_cli.__all__:
        found = getattr(onnxreduce_cli, name)
        assert callable(found)
        assert found.__name__ == name
        assert inspect.getdoc(found) or is_dataclass(found)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        onnxreduce_cli.nothing  # noqa: B018


def errors(base: type[OnnxreduceError] = OnnxreduceError) -> Iterator[type[OnnxreduceError]]:
    yield base
    for error in base.__subclasses__():
        yield from errors(error)


CODES = {
    "OnnxreduceError": (1, "failed"),
    "UsageError": (2, "refused"),
    "InvalidModelError": (2, "unreadable"),
    "MissingModelError": (2, "unreadable"),
    "ConversionError": (1, "cannot be converted"),
    "CheckError": (1, "failed its check"),
    "UncheckedError": (1, "not checked"),
    "CannotRunError": (3, "cannot be run"),
    "LimitError": (3, "stopped"),
    "MissingError": (3, "cannot be run"),
    "RefusedError": (3, "cannot be run"),
    "RunFailedError": (1, "failed to run"),
    "CrashedError": (1, "failed to run"),
    "InputError": (2, "refused"),
    "OutOfMemoryError": (1, "out of memory"),
}


def test_each_exception_says_how_a_command_ends() -> None:
    # Those of all modules, which are imported when they are needed.
    _ = onnxreduce_cli.VerificationError
    found = {error.__name__: error for error in errors()}
    # What comes of a verification depends on what it found: see test_file_conversion.
    assert set(found) == {*CODES, "VerificationError"}
    for name, (code, state) in CODES.items():
        given = (["what is wrong"], "a folder") if name == "CheckError" else ("what is wrong",)
        told = failure(found[name](*given))
        assert (told.code, told.state) == (code, state), name
        assert told.text.endswith("what is wrong")


def test_one_base_catches_all() -> None:
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g () => () {}')
    with pytest.raises(OnnxreduceError, match="there is no opset 99"):
        onnxreduce_cli.convert(model, 99)
    with pytest.raises(OnnxreduceError, match="there is no executor 'abacus'"):
        onnxreduce_cli.run(model, {}, executor="abacus")
    with pytest.raises(OnnxreduceError, match=r"/nowhere\.onnx"):
        onnxreduce_cli.plan("/nowhere.onnx", 13)
