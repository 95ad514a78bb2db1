"""The audit table against the schemas of the installed onnx."""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import combinations, pairwise
from typing import Any

import onnx
import pytest
from onnx.defs import OpSchema
from onnx.helper import get_attribute_value

from onnxreduce_cli.steps.audit import BOUNDARIES, Change

OPTION = OpSchema.FormalParameterOption

#: The newest opset that the table was written for.
AUDITED = 28

#: What the words of `types` stand for.
GROUPS = {
    "all integer types": {f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "the float8 types": {"float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"},
    "sequences": {"seq"},
    "optional values": {"optional"},
}

#: Declared to change although only types did: the meaning changed in the shape inference.
MEANING_BEYOND_TEXT = {("LpPool", 22)}

#: Defaults that differ although `up` holds.
HARMLESS_DEFAULTS = {
    ("GRU", 3, "direction"),  # the older default is a misspelling of the newer
}

#: Formals that must share a type only on one side of a boundary that needs no edit.
HARMLESS_TIES = {
    # Without output_dtype, the condition for crossing, y has the type of x_scale.
    ("DequantizeLinear", 23, "x_scale", "y"),
}

#: `types` that need more words than a list of dtypes.
WORDED_TYPES = {("DequantizeLinear", 19), ("QLinearMatMul", 21), ("OptionalGetElement", 18)}


def _schemas() -> dict[str, dict[int, OpSchema]]:
    found: dict[str, dict[int, OpSchema]] = defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "":
            found[schema.name][schema.since_version] = schema
    return found


SCHEMAS = _schemas()
NEWEST = onnx.defs.onnx_opset_version()


def _installed() -> list[tuple[str, int, OpSchema, OpSchema]]:
    found = []
    for op_type, versions in sorted(SCHEMAS.items()):
        ordered = sorted(versions)
        for old, new in pairwise(ordered):
            found.append((op_type, new, versions[old], versions[new]))
    return found


INSTALLED = _installed()
DECLARED = [
    (op_type, opset, change)
    for op_type, changes in BOUNDARIES.items()
    for opset, change in changes.items()
]


def _cases(want: str) -> list[Any]:
    """The installed boundaries that the table declares unchanged in one direction, or both."""
    cases = []
    for op_type, opset, old, new in INSTALLED:
        change = BOUNDARIES.get(op_type, {}).get(opset)
        if change and (want == "any" or getattr(change, want)):
            cases.append(pytest.param(op_type, opset, old, new, change, id=f"{op_type}-{opset}"))
    return cases


def _default(attribute: OpSchema.Attribute) -> object:
    value = attribute.default_value
    if not value.type:
        return None
    value = get_attribute_value(value)
    return value.decode() if isinstance(value, bytes) else value


def _comparable(value: object) -> object:
    """A neutral value or a default as one thing; floats as float32 has them."""
    return round(value, 5) if isinstance(value, float) else value


def _formals(schema: OpSchema) -> list[tuple[str, OpSchema.FormalParameter]]:
    inputs = [(f"in{index}", formal) for index, formal in enumerate(schema.inputs)]
    return inputs + [(f"out{index}", formal) for index, formal in enumerate(schema.outputs)]


def _types(schema: OpSchema) -> dict[str, set[str]]:
    return {key: set(formal.types) for key, formal in _formals(schema)}


def _dtype(type_name: str) -> str:
    found = re.search(r"tensor\((\w+)\)", type_name)
    assert found
    return found[1]


def _kind(type_name: str) -> str:
    return type_name.partition("(")[0]


def _same_signature(old: OpSchema, new: OpSchema) -> bool:
    """Whether names and types apart, two schemas take the same nodes."""
    return (
        old.deprecated == new.deprecated
        and (old.min_input, old.max_input) == (new.min_input, new.max_input)
        and (old.min_output, old.max_output) == (new.min_output, new.max_output)
        and [formal.option for _, formal in _formals(old)]
        == [formal.option for _, formal in _formals(new)]
        and old.attributes.keys() == new.attributes.keys()
        and all(
            (attribute.type, attribute.required, _default(attribute))
            == (
                new.attributes[name].type,
                new.attributes[name].required,
                _default(new.attributes[name]),
            )
            for name, attribute in old.attributes.items()
        )
    )


def test_every_boundary_of_the_installed_onnx_is_declared() -> None:
    installed = {(op_type, opset) for op_type, opset, *_ in INSTALLED if opset <= AUDITED}
    assert len(installed) > 380
    assert installed - {(op_type, opset) for op_type, opset, _ in DECLARED} == set()


def test_nothing_is_declared_that_onnx_does_not_have() -> None:
    installed = {(op_type, opset) for op_type, opset, *_ in INSTALLED}
    declared = {(op_type, opset) for op_type, opset, _ in DECLARED if opset <= NEWEST}
    assert declared - installed == set()
    assert max(opset for _, opset, _ in DECLARED) <= AUDITED


def test_the_table_is_in_order() -> None:
    assert list(BOUNDARIES) == sorted(BOUNDARIES)
    for changes in BOUNDARIES.values():
        assert changes
        assert list(changes) == sorted(changes)


@pytest.mark.parametrize(
    ("op_type", "opset", "change"),
    [pytest.param(*case, id=f"{case[0]}-{case[1]}") for case in DECLARED],
)
def test_the_words_are_sentences(op_type: str, opset: int, change: Change) -> None:
    assert re.fullmatch(r"[A-Z].*[^.]\.", change.what)
    assert "  " not in change.what
    assert not re.search(r"[.;:,][A-Za-z]", change.what), "a blank is missing"
    if not change.down and not change.up:
        assert re.search("[Gg]oing up|[Bb]oth (ways|directions)|nothing else changed", change.what)
    if change.up and not change.down:
        assert "Going down" in change.what


@pytest.mark.parametrize(
    ("op_type", "opset", "change"),
    [pytest.param(*case, id=f"{case[0]}-{case[1]}") for case in DECLARED],
)
def test_conditions_are_given_only_with_down(op_type: str, opset: int, change: Change) -> None:
    if not change.down:
        assert not change.new_attributes
        assert change.max_inputs is None
        assert change.max_outputs is None
    for name, value in change.new_attributes.items():
        assert name in change.what
        assert isinstance(value, int | float | str | tuple | None)


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("up"))
def test_a_node_that_goes_up_unedited_is_valid(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: Change
) -> None:
    assert not new.deprecated
    assert old.min_input >= new.min_input
    assert old.max_input <= new.max_input
    assert old.min_output >= new.min_output
    assert old.max_output <= new.max_output
    for key, formal in _formals(old):
        counterpart = dict(_formals(new))[key]
        if formal.option != counterpart.option:
            assert (formal.option, counterpart.option) == (OPTION.Single, OPTION.Optional)
        assert formal.is_homogeneous or not counterpart.is_homogeneous
    for name, attribute in old.attributes.items():
        assert name in new.attributes
        assert attribute.type == new.attributes[name].type
        assert attribute.required or not new.attributes[name].required
        if (op_type, opset, name) not in HARMLESS_DEFAULTS and not attribute.required:
            assert _default(attribute) == _default(new.attributes[name])
    for name in new.attributes.keys() - old.attributes.keys():
        assert not new.attributes[name].required


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("down"))
def test_a_node_that_goes_down_unedited_is_valid(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: Change
) -> None:
    assert not old.deprecated
    assert not new.deprecated
    assert change.new_attributes.keys() == new.attributes.keys() - old.attributes.keys()
    assert new.min_input >= old.min_input
    assert new.min_output >= old.min_output
    assert change.max_inputs == (old.max_input if new.max_input > old.max_input else None)
    assert change.max_outputs == (old.max_output if new.max_output > old.max_output else None)
    for key, formal in _formals(new):
        counterpart = dict(_formals(old)).get(key)
        if counterpart is None:
            assert formal.option == OPTION.Optional
            continue
        assert formal.is_homogeneous or not counterpart.is_homogeneous
        if formal.option != counterpart.option:
            assert (formal.option, counterpart.option) == (OPTION.Single, OPTION.Optional)
    for name, attribute in old.attributes.items():
        if name not in new.attributes:
            assert name == "consumed_inputs"
            assert not attribute.required
            continue
        newer = new.attributes[name]
        assert attribute.type == newer.type
        # Of Constant one attribute must be there; without the new ones it is value.
        assert newer.required or not attribute.required or (op_type, name) == ("Constant", "value")
        if not newer.required:
            assert _default(attribute) == _default(newer)


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("any"))
def test_neutral_values_are_the_defaults(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: Change
) -> None:
    for name, neutral in change.new_attributes.items():
        attribute = new.attributes[name]
        default = _default(attribute)
        if default is not None:
            assert _comparable(default) == _comparable(neutral)
        elif neutral is not None:
            # Without a default in the schema only a list of ones is known to mean nothing.
            assert name == "dilations"
            assert attribute.type == OpSchema.AttrType.INTS
            assert neutral == (1,)


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("any"))
def test_types_that_must_agree_on_one_side_only_need_an_edit(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: Change
) -> None:
    for source, target, unedited in ((old, new, change.up), (new, old, change.down)):
        if not unedited:
            continue
        free, tied = dict(_formals(source)), dict(_formals(target))
        for one, other in combinations(sorted(free.keys() & tied.keys()), 2):
            together = tied[one].type_str == tied[other].type_str
            if not together or free[one].type_str == free[other].type_str:
                continue
            if {(op_type, opset, free[one].name, free[other].name)} & HARMLESS_TIES:
                continue
            usable = [set(free[key].types) & set(tied[key].types) for key in (one, other)]
            assert len(usable[0] | usable[1]) == 1, (free[one].name, free[other].name)


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("any"))
def test_removed_types_are_mentioned(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: Change
) -> None:
    before, after = _types(old), _types(new)
    removed = {
        type_name
        for key in before.keys() & after.keys()
        if change.up or dict(_formals(old))[key].name == dict(_formals(new))[key].name
        for type_name in before[key] - after[key]
    }
    if removed:
        assert re.search(r"removed|became", change.what), sorted(removed)


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("any"))
def test_added_types_are_listed(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: Change
) -> None:
    before, after = _types(old), _types(new)
    added = set()
    for key in before.keys() & after.keys():
        dtypes = [{_dtype(type_name) for type_name in types[key]} for types in (after, before)]
        kinds = [{_kind(type_name) for type_name in types[key]} for types in (after, before)]
        added |= (dtypes[0] - dtypes[1]) | (kinds[0] - kinds[1])
    listed = re.search(r"Allows more types: (.*)\.", change.what)
    if not listed:
        if change.up and change.down and not change.new_attributes:
            assert not added or "removed" in change.what or "allowed" in change.what
        return
    if (op_type, opset) in WORDED_TYPES:
        return
    words = re.split(r", | and ", listed[1])
    assert added == {name for word in words for name in GROUPS.get(word, {word})}


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("any"))
def test_more_types_alone_need_no_edit(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: Change
) -> None:
    """Where the text and the signature are the same, `up` and `down` hold, and the reverse."""
    texts = [
        " ".join(
            [schema.doc or ""]
            + [formal.description for _, formal in _formals(schema)]
            + [schema.attributes[name].description for name in sorted(schema.attributes)]
        ).split()
        for schema in (old, new)
    ]
    if not _same_signature(old, new) or texts[0] != texts[1]:
        return
    ties = [[formal.type_str for _, formal in _formals(schema)] for schema in (old, new)]
    if ties[0] == ties[1]:
        unchanged = change.up and change.down and not change.new_attributes
        assert unchanged != ((op_type, opset) in MEANING_BEYOND_TEXT)


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("any"))
def test_newly_allowed_negative_values_need_an_edit_downwards(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: Change
) -> None:
    """An attribute or input that the newer text, but not the older, lets be negative."""
    texts = [
        {formal.name: formal.description for formal in schema.inputs}
        | {name: attribute.description for name, attribute in schema.attributes.items()}
        for schema in (old, new)
    ]
    for name in texts[0].keys() & texts[1].keys():
        before, after = (
            re.search(r"\[-[a-z]|[Nn]egative value(?! means slicing)", text[name]) for text in texts
        )
        if after and not before:
            assert not change.down, name
            assert "egative" in change.what
