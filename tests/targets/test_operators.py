"""The operators that runtimes take: reading of files, and what is answered of nodes."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import pytest

from onnxreduce_cli.emit.node_facts import NodeFacts
from onnxreduce_cli.errors import UsageError
from onnxreduce_cli.model.types.facts import admit
from onnxreduce_cli.targets.operators import OperatorTable, parse_operators
from onnxreduce_cli.targets.verdict import default_domain_nodes
from onnxreduce_cli.targets.versions import Version

#: A file with each thing that there is in one.
TEXT = """
versions = ["1.0", "1.2", "2.0"]

[[source]]
versions = "1.0"
kind = "document"
where = "a table"
date = "2020-01-01"

[[source]]
versions = "1.2-"
kind = "measured"
where = "kernels"
date = "2026-01-01"
complete = ["ai.onnx"]

[dtypes]
floats = "float float16"

[casts]
"1.0-1.2" = "int64=int32"

[conditions.pool]
text = "the input is of rank 4 or 5"
ask = "rank 0 = 4-5"
[conditions.luck]
text = "the moon is full"

[operators."ai.onnx"]
Abs = "1.0 @6-12; 1.2- @13- T=floats"
Add = "0+1=floats,int32"
MaxPool = "if=pool"
Mul = "if=pool,luck"
Hardmax = "-1.2 not"
Where = "cpu"

[operators."com.acme"]
Fast = ""
"""


def table(version: str, text: str = TEXT) -> OperatorTable:
    """The table of a version."""
    file = parse_operators("acme", text)
    index = [item.text for item in file.versions].index(version)
    return OperatorTable("acme", file, index)


def nodes(text: str) -> Iterator[NodeFacts]:
    """The nodes of a model in onnx's textual syntax."""
    return default_domain_nodes(admit(onnx.parser.parse_model(text)))


def node(text: str) -> NodeFacts:
    """The only node of a model."""
    (found,) = nodes(text)
    return found


def test_a_fact_holds_for_its_versions_and_opsets() -> None:
    assert table("1.0").answer("", "Abs", 6).value == "taken"
    assert table("1.0").answer("", "Abs", 13).value == "not known"
    assert table("1.2").answer("ai.onnx", "Abs", 6).value == "not taken", "the source is complete"
    assert table("2.0").answer("", "Abs", 13).value == "taken"
    assert table("2.0").answer("", "Hardmax", 13).value == "not taken", "no row any more"
    assert table("1.0").answer("", "Hardmax", 13).value == "not taken"
    assert table("1.0").answer("", "Relu", 13).value == "not known"
    assert table("2.0").answer("", "Where", 13).value == "runs on the CPU"
    assert table("2.0").answer("com.acme", "Fast", 1).value == "taken"
    assert table("2.0").answer("com.acme", "Slow", 1).value == "not known"


def test_an_answer_names_its_source() -> None:
    assert str(table("1.0").answer("", "Abs", 6).source) == "document, 2020-01-01: a table"
    assert str(table("2.0").answer("", "Relu", 6).source) == "measured, 2026-01-01: kernels"
    assert table("1.0").answer("", "Relu", 6).source is None


ADD = """<ir_version: 8, opset_import: ["": 13]>
g ({0}[N] x, {0}[N] y) => ({0}[N] z) {{ z = Add(x, y) }}"""


@pytest.mark.parametrize(
    ("version", "dtype", "taken"),
    [
        ("1.0", "float16", True),
        ("1.0", "double", False),
        ("1.0", "int64", True),
        ("2.0", "int64", False),
        ("2.0", "int32", True),
    ],
)
def test_the_dtype_of_a_node_counts(version: str, dtype: str, taken: bool) -> None:
    answer = table(version).answer("", "Add", 13, node(ADD.format(dtype)))
    assert answer.value == ("taken" if taken else "not taken")
    if not taken:
        assert answer.conditions == (f"its inputs are float, float16 or int32, not {dtype}",)


def test_equal_keys_are_equal_answers_where_a_dtype_is_computed_as_another() -> None:
    """A model without int32 meets it all the same where int64 is computed as that."""
    narrow = table("1.0", TEXT.replace("floats,int32", "floats"))
    answers = {
        found.key("", "Add", 13, {"float", "int64"}): found.answer(
            "", "Add", 13, node(ADD.format("int64"))
        ).value
        for found in (table("1.0"), narrow)
    }
    assert [*answers.values()] == ["taken", "not taken"]


@pytest.mark.parametrize(
    ("op_type", "version", "dtypes", "taken"),
    [
        ("Add", "2.0", {"float"}, True),
        ("Add", "2.0", {"float", "int32"}, True),
        ("Add", "2.0", {"float", "int64"}, False),  # No longer computed as int32.
        ("Add", "1.2", {"float", "int64"}, True),
        ("Add", "2.0", {"float", "bool"}, True),  # Add is defined for none.
        ("Abs", "2.0", {"float16", "int64"}, False),
        ("Abs", "2.0", {"float16"}, True),
        ("MaxPool", "2.0", {"float"}, False),
        ("Det", "2.0", {"float"}, False),
    ],
)
def test_an_operator_is_taken_whole_if_each_dtype_is_that_may_occur(
    op_type: str, version: str, dtypes: set[str], taken: bool
) -> None:
    kinds = {f"tensor({name})" for name in dtypes}
    assert table(version).takes_any(op_type, 13, kinds.__contains__) is taken


def test_a_type_parameter_is_looked_up_in_the_definition() -> None:
    text = """<ir_version: 8, opset_import: ["": 13]>
    g ({0}[N] x) => ({0}[N] y) {{ y = Abs(x) }}"""
    said = [table("2.0").answer("", "Abs", 13, node(text.format(t))).value for t in DTYPES]
    assert said == ["taken", "not taken"]


DTYPES = ("float", "int8")

POOL = """<ir_version: 8, opset_import: ["": 13]>
g (float[{0}] x) => (y) {{ y = MaxPool<kernel_shape=[{1}]>(x) }}"""


def test_a_condition_is_asked_of_a_node() -> None:
    found = table("2.0")
    assert found.answer("", "MaxPool", 13, node(POOL.format("1,3,8,8", "2,2"))).value == "taken"
    missed = found.answer("", "MaxPool", 13, node(POOL.format("1,3,8", "2")))
    assert missed.value == "not taken"
    assert str(missed) == "not taken, but if the input is of rank 4 or 5"
    assert str(found.answer("", "MaxPool", 13)) == "taken if the input is of rank 4 or 5"


def test_a_condition_without_code_stays_open() -> None:
    text = ADD.replace("Add", "Mul").replace("[N]", "[1,3,8,8]").format("float")
    found = table("2.0").answer("", "Mul", 13, node(text))
    assert str(found) == "taken if the moon is full"


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ('"1.2"', '"0.9"', "not in ascending order"),
        ('versions = "1.2-"', 'versions = "2.0-"', "not one source names version 1.2"),
        ("floats,int32", "floats,int33", "there is no dtype int33"),
        ("1.2- @13-", "1.3- @13-", "1.3"),
        ('ask = "rank', 'ask = "range', "condition pool asks"),
        ("if=pool,luck", "if=poor", "lacks 'poor'"),
        ("[dtypes]", "[types]", "nothing is called types here"),
    ],
)
def test_a_wrong_file_is_refused(before: str, after: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_operators("acme", TEXT.replace(before, after))


def test_the_version_before_is_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "onnxreduce_cli.targets.operators.read_operators", lambda name: parse_operators(name, TEXT)
    )
    between = OperatorTable.load("acme", Version.of("1.5"))
    assert between is not None
    assert (str(between.version), str(between.newer)) == ("1.2", "2.0")
    newer = OperatorTable.load("acme", Version.of("3.1"))
    assert newer is not None
    assert (str(newer.version), newer.newer) == ("2.0", None)
    assert OperatorTable.load("acme", Version.of("0.9")) is None


def test_what_an_accelerator_lacks_runs_on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    accelerated = TEXT.replace('complete = ["ai.onnx"]', 'complete = ["ai.onnx"]\nfallback = "cpu"')
    texts = {
        "gpu": accelerated,
        "cpu": 'versions = ["1"]\n[[source]]\nkind = "document"\nwhere = "x"\ndate = "2020-01-01"\n'
        'complete = ["ai.onnx"]\n[operators."ai.onnx"]\nAdd = ""\nRelu = ""',
    }
    monkeypatch.setattr(
        "onnxreduce_cli.targets.operators.read_operators",
        lambda name: parse_operators(name, texts[name]),
    )
    found = OperatorTable.load("gpu", Version.of("2.0"))
    assert found is not None
    assert found.answer("", "Relu", 13).value == "runs on the CPU"
    assert found.answer("", "Elu", 13).value == "not taken"
    assert found.answer("com.acme", "Slow", 1).value == "not known"
    assert found.answer("", "Add", 13, node(ADD.format("float"))).value == "taken"
    assert found.answer("", "Add", 13, node(ADD.format("double"))).value == "runs on the CPU"
