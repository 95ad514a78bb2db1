"""The audit against the schemas of the installed onnx, and against the steps."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx.defs import OpSchema
from onnx.helper import get_attribute_value

from onnxreduce_cli.model.graph.domains import LEARNING
from onnxreduce_cli.report.schema_changes import schema_changes
from onnxreduce_cli.steps import audit
from onnxreduce_cli.steps.audit import DefinitionChange
from onnxreduce_cli.steps.dispatch import step_for
from onnxreduce_cli.steps.registry import STEPS
from tests.steps.checklist import checklist, declared, undeclared

OPTION = OpSchema.FormalParameterOption

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

#: Inputs and outputs that are only called otherwise.
RENAMED = {
    ("BatchNormalization", 14): {"mean", "var", "input_mean", "input_var", "running_mean"}
    | {"running_var"},
    ("Split", 2): {"outputs", "outputs..."},
}

#: What speaks of a node that crosses, which is the step's to say, not of the definition.
OF_A_CROSSING = re.compile(
    r"\bgoing\b|\b(up|down)wards?\b|\bboth (ways|directions)\b|\bneeds\b|\bblocks?\b"
    r"|\b(is|are|be) (known|dropped|renamed|rewritten|replaced|expanded|reshaped|cast to it)\b"
    r"|\bconstants?\b|\bwritten out\b|\bedit|\bsteps?\b(?! was)",
    re.IGNORECASE,
)

#: What speaks of a definition that changed, which is the audit's to say, not of what a step does.
OF_A_CHANGE = re.compile(
    r"\b(was|were) (added|removed)|\bwent away|\bbecame\b|\bAllows more|\bold meaning|\bas before\b"
)

#: More types, in words that a list of dtypes lacks.
WORDED_TYPES = {("DequantizeLinear", 19), ("QLinearMatMul", 21), ("OptionalGetElement", 18)}


def _schemas() -> dict[str, dict[int, OpSchema]]:
    found: dict[str, dict[int, OpSchema]] = defaultdict(dict)
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain in ("", LEARNING):
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
    for op_type, changes in declared().items()
    for opset, change in changes.items()
]


def _cases(want: str) -> list[Any]:
    """The installed boundaries that the audit declares unedited in one direction, or any."""
    cases = []
    for op_type, opset, old, new in INSTALLED:
        change = audit.definition_change(op_type, opset)
        if change and (want == "any" or want in change.unedited):
            cases.append(pytest.param(op_type, opset, old, new, change, id=f"{op_type}-{opset}"))
    return cases


def _default(attribute: OpSchema.Attribute) -> object:
    value = attribute.default_value
    if not value.type:
        return None
    value = get_attribute_value(value)
    return value.decode() if isinstance(value, bytes) else value


def _names(listed: str) -> set[str]:
    """The names in a list such as "ceil_mode and dilations"."""
    return set(re.split(r", | and ", listed))


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


def test_every_boundary_of_the_installed_onnx_is_declared() -> None:
    assert len(INSTALLED) > 380
    if undeclared():
        pytest.fail(checklist(), pytrace=False)


def test_nothing_is_declared_that_onnx_does_not_have() -> None:
    installed = {(op_type, opset) for op_type, opset, *_ in INSTALLED}
    declared = {(op_type, opset) for op_type, opset, _ in DECLARED if opset <= NEWEST}
    assert declared - installed == set()


def test_the_file_is_in_order() -> None:
    text = Path(audit.__file__).with_name("audit.json").read_text(encoding="utf-8")
    opsets = json.loads(text)
    assert list(opsets) == sorted(opsets, key=int)
    for records in opsets.values():
        operators = [record["operators"] for record in records]
        assert operators == sorted(operators)
        for record in records:
            assert record["operators"] == sorted(set(record["operators"])) != []
            if "more_types" in record:
                assert list(record) == ["operators", "more_types"]
            else:
                assert list(record) == ["operators", "what", "unedited"]
                assert record["unedited"] in ([], ["up"], ["down"], ["up", "down"])


def test_no_boundary_is_declared_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    twice = [{"operators": ["Abs", "Add", "Abs"], "more_types": "bfloat16"}]
    monkeypatch.setattr(audit, "_records", lambda: {"13": twice})
    with pytest.raises(AssertionError, match="two changes of Abs at opset 13"):
        declared()


@pytest.mark.parametrize(
    ("op_type", "opset", "change"),
    [pytest.param(*case, id=f"{case[0]}-{case[1]}") for case in DECLARED],
)
def test_the_words_are_sentences_about_the_definition(
    op_type: str, opset: int, change: DefinitionChange
) -> None:
    assert re.fullmatch(r"[A-Z].*[^.]\.", change.what)
    assert "  " not in change.what
    assert not re.search(r"[.;:,][A-Za-z]", change.what), "a blank is missing"
    assert not OF_A_CROSSING.search(change.what)


def test_steps_and_the_audit_say_different_things() -> None:
    """A step says what becomes of a node, the audit what became of the definition."""
    for (op_type, boundary, direction), step in STEPS.items():
        assert not OF_A_CHANGE.search(step.full_description), (
            op_type,
            boundary,
            direction,
            step.full_description,
        )
        declared = audit.definition_change(op_type, boundary)
        if declared is not None:
            assert step.description.lower() not in declared.what.lower()


def test_what_stays_neither_as_it_is_nor_is_rewritten_says_how() -> None:
    for op_type, opset, *_ in INSTALLED:
        declared = audit.definition_change(op_type, opset)
        for direction in ("up", "down") if declared is not None else ():
            step = step_for(op_type, opset, direction)  # type: ignore[arg-type]
            if direction not in declared.unedited:
                assert step.status in ("step", "conditional", "impossible")
            if step.status == "conditional":
                assert step.full_description == f"{step.description}; blocks where {step.blocks}"
            if step.status == "impossible":
                assert STEPS[op_type, opset, direction].description  # type: ignore[index]


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("any"))
def test_what_came_and_what_went_is_named(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: DefinitionChange
) -> None:
    """Every attribute, input and output that only one of two definitions has, and which has it."""
    here, there = ({formal.name for _, formal in _formals(schema)} for schema in (old, new))
    differing = (here ^ there) | (old.attributes.keys() ^ new.attributes.keys())
    named = set(re.findall(r"\w+", change.what)) | RENAMED.get((op_type, opset), set())
    assert differing <= named
    names = r"attributes? (\w+(?:(?:, | and )\w+)*)"
    for added in re.findall(f"{names} (?:was|were) added", change.what):
        assert _names(added) <= new.attributes.keys() - old.attributes.keys()
    for gone in re.findall(f"{names} (?:went away|became [^.;,]*input)", change.what):
        assert _names(gone) <= old.attributes.keys() - new.attributes.keys()


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("up"))
def test_the_meaning_of_added_attributes_is_told(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: DefinitionChange
) -> None:
    """Where older nodes stay as they are, the default of what was added is the old meaning."""
    for name in new.attributes.keys() - old.attributes.keys():
        default = _default(new.attributes[name])
        if default is None or re.search(r"\b(acts on|only concerns|no effect)\b", change.what):
            continue
        shown = repr(default) if isinstance(default, str) else str(default)
        assert shown in change.what, (name, default)


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("up"))
def test_a_node_that_goes_up_unedited_is_valid(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: DefinitionChange
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
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: DefinitionChange
) -> None:
    assert not old.deprecated
    assert not new.deprecated
    assert new.attributes.keys() <= old.attributes.keys()
    assert new.min_input >= old.min_input
    assert new.max_input <= old.max_input
    assert new.min_output >= old.min_output
    assert new.max_output <= old.max_output
    for key, formal in _formals(new):
        counterpart = dict(_formals(old))[key]
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
        assert newer.required or not attribute.required
        if not newer.required:
            assert _default(attribute) == _default(newer)


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("any"))
def test_types_that_must_agree_on_one_side_only_need_an_edit(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: DefinitionChange
) -> None:
    for source, target, direction in ((old, new, "up"), (new, old, "down")):
        if direction not in change.unedited:
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
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: DefinitionChange
) -> None:
    before, after = _types(old), _types(new)
    removed = {
        type_name
        for key in before.keys() & after.keys()
        if "up" in change.unedited or dict(_formals(old))[key].name == dict(_formals(new))[key].name
        for type_name in before[key] - after[key]
    }
    if removed:
        assert re.search(r"removed|became", change.what), sorted(removed)


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("any"))
def test_added_types_are_listed(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: DefinitionChange
) -> None:
    before, after = _types(old), _types(new)
    added = set()
    for key in before.keys() & after.keys():
        dtypes = [{_dtype(type_name) for type_name in types[key]} for types in (after, before)]
        kinds = [{_kind(type_name) for type_name in types[key]} for types in (after, before)]
        added |= (dtypes[0] - dtypes[1]) | (kinds[0] - kinds[1])
    listed = re.search(r"Allows more types: (.*)\.", change.what)
    if not listed:
        if change.unedited == {"up", "down"}:
            assert not added or "removed" in change.what or "allowed" in change.what
        return
    if (op_type, opset) in WORDED_TYPES:
        return
    words = re.split(r", | and ", listed[1])
    assert added == {name for word in words for name in GROUPS.get(word, {word})}


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("any"))
def test_more_types_alone_need_no_edit(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: DefinitionChange
) -> None:
    """Where the text and the signature are the same nodes cross as they are."""
    if all(
        re.search("takes (more|fewer) types", found) for found in schema_changes(op_type, opset)
    ):
        unchanged = change.unedited == {"up", "down"}
        assert unchanged != ((op_type, opset) in MEANING_BEYOND_TEXT)


@pytest.mark.parametrize(("op_type", "opset", "old", "new", "change"), _cases("any"))
def test_newly_allowed_negative_values_need_an_edit_downwards(
    op_type: str, opset: int, old: OpSchema, new: OpSchema, change: DefinitionChange
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
            assert "down" not in change.unedited, name
            assert "egative" in change.what
