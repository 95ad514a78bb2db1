"""The options of a conversion: one list, which the library, the command line and its settings keep.

What they mean is said once, too: where they are defined.
"""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, fields
from typing import Any, ForwardRef

import pytest

import onnxreduce
from onnxreduce_cli.api import by_name
from onnxreduce_cli.cli.convert import convert_command
from onnxreduce_cli.engine.options import Options
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.verification.running.limits import Limits

#: What `convert` of the command line takes that is no option of converting one model.
OF_THE_COMMAND = {
    *("models", "output", "out_dir", "jobs", "cluster", "resume", "verbose", "quiet"),
    *("json", "junit", "code_quality", "html", "no_check"),
}

#: The parameters of functions that are no options.
OF_FUNCTIONS = {"model_or_path", "whole"}

TYPES = {name: str(kind) for name, kind in inspect.get_annotations(Options).items()}
DEFAULTS = {item.name: getattr(Options(), item.name) for item in fields(Options)}
#: Keywords of the library that are another name of an option.
OTHER_NAMES = {"target": "runtime"}
TYPES |= {name: TYPES[option] for name, option in OTHER_NAMES.items()}
DEFAULTS |= {name: DEFAULTS[option] for name, option in OTHER_NAMES.items()}


def names(owner: Any) -> dict[str, str]:
    """The names that a TypedDict has, each with its type as it is written."""
    return {
        name: kind.__forward_arg__ if isinstance(kind, ForwardRef) else str(kind)
        for name, kind in owner.__annotations__.items()
    }


@pytest.mark.parametrize(
    "owner", [by_name.PreparationOptions, by_name.ConvertOptions, by_name.FileOptions]
)
def test_what_is_taken_by_name_is_an_option_of_its_type_and_documented(owner: Any) -> None:
    found = names(owner)
    assert found == {name: TYPES[name] for name in found}
    documented = re.findall(r"^    (\w+): ", inspect.getdoc(owner) or "", re.MULTILINE)
    assert documented == [name for name in TYPES if name in found]


def test_a_file_is_converted_with_all_options() -> None:
    assert {"opset", *names(by_name.FileOptions)} == set(TYPES)
    whole = inspect.signature(onnxreduce.convert_file).parameters["opset"]
    assert (whole.annotation, whole.default) == (TYPES["opset"], None)


def parameters(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name not in OF_FUNCTIONS:
            yield parameter


@pytest.mark.parametrize("function", [onnxreduce.convert, onnxreduce.plan])
def test_functions_take_options_of_the_same_types_and_defaults(
    function: Callable[..., Any],
) -> None:
    found = list(parameters(function))
    assert {item.name: (item.annotation, item.default) for item in found} == {
        item.name: (TYPES[item.name], DEFAULTS[item.name]) for item in found
    }
    taken = {item.name for item in found} | set(names(by_name.PreparationOptions))
    # By its name: another test may have imported the package anew.
    owner = by_name.ConvertOptions if function.__name__ == "convert" else by_name.PlanOptions
    assert taken == {"opset", *names(owner)}


def test_the_command_line_fills_all_options() -> None:
    """What it gives where nothing is typed is the default."""
    context = convert_command.make_context("convert", ["model.onnx"])
    given = {name: value for name, value in context.params.items() if name not in OF_THE_COMMAND}
    assert set(given) | {"check"} == set(TYPES) - set(OTHER_NAMES)
    assert set(context.params) - set(given) == OF_THE_COMMAND
    assert Options(**given, check=not context.params["no_check"]) == Options(types={})


def test_models_run_within_the_same_limits_wherever_they_run() -> None:
    limits, options = Limits(), Options()
    assert (options.timeout, options.memory) == (limits.timeout, limits.memory)


def test_options_are_values() -> None:
    """They do not change, and go to other processes."""
    options = Options(13, dims={"N": 2}, timeout=3.0)
    assert pickle.loads(pickle.dumps(options)) == options != Options(13)
    with pytest.raises(FrozenInstanceError):
        options.opset = 12  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (Options(), "no change is requested"),
        (Options(dry_run=True, check=False, verify=True), "no change is requested"),
        (Options(99), "there is no opset 99"),
        (Options(0), "there is no opset 0"),
        (Options(13, expand=("Add",)), "Add"),
        (Options(13, contract=("Nothing",)), "Nothing"),
        (Options(13, allow_ops=("Nothing",)), "Nothing"),
        (Options(13, types={"y": "flot"}), "'flot'"),
        (Options(dtypes={"int8": "float"}), "not int8"),
        (Options(dtypes={"double": "float", "float": "float16"}), "float is itself changed"),
        (Options(dtypes={"float": "float32"}), "--dtype float=float32 changes nothing"),
        (Options(13, keep_interface=True), "add --dtype FROM=TO"),
        (Options(runtime="nothing==1"), "nothing"),
        (Options(runtime="opencv==4.6", allow_ops=("Add",)), "--for and --allow-ops exclude"),
        (Options(13, strict=True, check=False), "--strict and --no-check exclude"),
        (Options(13, seed=3), "add --verify"),
        (Options(13, pairs=("x=x.npy",)), "add --verify"),
        (Options(13, rtol=0.0), "add --verify"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Options, reason: str) -> None:
    with pytest.raises(UsageError, match=re.escape(reason)):
        options.validate()


@pytest.mark.parametrize(
    "options",
    [
        Options(13),
        Options(runtime="opencv==4.6", opset=11),
        Options(ir_version=8),
        Options(inline=True),
        Options(threshold=0),
        Options(strip_metadata="all"),
        Options(allow_ops=("Add",)),
        Options(13, verify=True, seed=3, rtol=0.0),
        Options(13, dims={"N": 1}),
    ],
)
def test_options_that_make_sense(options: Options) -> None:
    options.validate()
    assert options.changes_anything


def test_what_is_to_be_expanded_is_not_contracted() -> None:
    assert "ReduceL1" in Options(13, contract=["all"]).contracted()
    assert "ReduceL1" not in Options(13, contract=["all"], expand=["ReduceL1"]).contracted()
