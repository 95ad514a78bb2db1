"""One report of each command: as JSON by its published schema, as JUnit XML, as annotations."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess
import sys
from datetime import datetime, timezone
from importlib.resources import files
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest

from onnxreduce_cli.report.schema import CONTENTS, schema_text
from tests import junit_structure
from tests.json_schema import closed, errors
from tests.support import model

SCHEMAS = files("onnxreduce_cli.report") / "schemas" / "1"

TEXT = """<ir_version: 8, opset_import: ["" : 18]>
g (float[2,3] x) => (float[2,3] y, float[2,1] z)
<int64[1] one = {1}> {
    [first] y = Softmax<axis = -1>(x)
    [second] z = ReduceMax<keepdims = 1>(x, one)
}"""

#: What no opset below 10 computes.
RANDOM = """<ir_version: 8, opset_import: ["" : 15]>
    g (float[N] x) => (float[N] y) { y = Bernoulli(x) }"""
HARD = """<ir_version: 8, opset_import: ["" : 18]>
g (string[3] x) => (string[3] y) { [hard] y = StringNormalizer<case_change_action="LOWER">(x) }"""


@pytest.fixture(autouse=True)
def models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY"):
        monkeypatch.delenv(name, raising=False)
    soft = model(TEXT)
    onnx.save(soft, "a.onnx")
    soft.graph.node[0].attribute[0].i = 0
    onnx.save(soft, "b.onnx")
    onnx.save(model(HARD), "hard.onnx")
    np.save("x.npy", np.array([[1, np.nan, 2], [3, np.inf, 4]], np.float32))


def valid(command, text):
    """A report that is printed, which is by the schema of its command."""
    found = json.loads(text)
    schema = json.loads((SCHEMAS / f"{command}.json").read_text(encoding="utf-8"))
    assert list(errors(found, closed(schema))) == []
    assert found["command"] == command
    return found


def test_readers_may_meet_fields_that_a_later_version_adds(onnxreduce):
    found = valid("convert", onnxreduce("convert", "a.onnx", "--opset", 13, "--json").out)
    schema = json.loads((SCHEMAS / "convert.json").read_text(encoding="utf-8"))
    found["later"] = found["models"][0]["later"] = found["models"][0]["plan"]["later"] = 1
    assert list(errors(found, schema)) == []
    assert len(list(errors(found, closed(schema)))) == 3


def test_each_schema_has_an_identifier_of_its_own():
    found = [json.loads(schema_text(command))["$id"] for command in CONTENTS]
    assert found == [f"urn:onnxreduce:report:1:{command}" for command in CONTENTS]


def test_the_schemas_are_as_published():
    for command in CONTENTS:
        told = "python -m onnxreduce_cli.report.schema writes it anew; if what was there is gone"
        shown = (SCHEMAS / f"{command}.json").read_text(encoding="utf-8")
        assert shown == schema_text(command), f"{told}, count FORMAT up"


@pytest.mark.parametrize(
    ("code", "call"),
    [
        (0, "convert a.onnx --opset 13 -o out.onnx"),
        (0, "convert a.onnx --opset 13 -o out.onnx --verify"),
        (0, "convert a.onnx --opset 13 --dry-run"),
        (1, "convert hard.onnx --opset 7 -o out.onnx"),
        (1, "convert hard.onnx --opset 7 -o out.onnx --verbose"),
        (1, "convert hard.onnx --opset 7 --dry-run"),
        (2, "convert nothing.onnx --opset 7"),
        (1, "convert a.onnx hard.onnx nothing.onnx --opset 7 --out-dir out"),
        (1, "convert a.onnx hard.onnx --opset 7 --dry-run"),
        (0, "inspect a.onnx"),
        (0, "inspect hard.onnx"),
        (2, "inspect nothing.onnx"),
        (0, "ops"),
        (0, "ops ReduceSum"),
        (0, "ops --of a.onnx"),
        (2, "ops RedSum"),
        (0, "run a.onnx -i x=x.npy"),
        (2, "run a.onnx"),
        (0, "targets"),
        (0, "targets opencv==4.6"),
        (2, "targets opencw"),
        (0, "diff a.onnx a.onnx"),
        (1, "diff a.onnx b.onnx"),
        (0, "verify a.onnx --trials 1"),
        (1, "verify a.onnx b.onnx --trials 1"),
        (1, "verify a.onnx hard.onnx"),
    ],
)
def test_each_command_as_json(onnxreduce, code, call):
    command, *arguments = call.split()
    result = onnxreduce(command, *arguments, "--json")
    assert result.code == code, result.err
    found = valid(command, result.out)
    assert found["exit_code"] == code
    assert (found["problem"] is not None) == (code == 2 and command != "convert")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("convert a.onnx --opsetx 13 --json", "--opsetx"),
        ("convert --json a.onnx --opset", "Option '--opset' requires an argument"),
        ("convert a.onnx --json --opset low", "'low' is not a valid integer"),
        ("convert --json", "Missing argument 'MODEL...'"),
        ("convert a.onnx --opset 13 -o - --json", "name a file, --json FILE"),
        ("convert a.onnx --opset 13 --json --report .", "--report needs the name of a file"),
        ("convert a.onnx --opset 13 --trials 3 --json", "--verify"),
        ("diff a.onnx --json", "Missing argument 'B'"),
        ("inspect --verbos a.onnx --json", "--verbos"),
        ("ops --off --json", "--off"),
        ("run a.onnx --executor numpi --json", "'numpi' is not one of"),
        ("targets --json opencv more", "unexpected extra argument"),
        ("verify a.onnx --trials x --json=a.json --json", "'x' is not a valid integer"),
    ],
)
def test_wrong_usage_as_json(onnxreduce, call, said):
    command, *arguments = call.split()
    result = onnxreduce(command, *arguments)
    found = valid(command, result.out)
    assert (result.code, found["exit_code"], found["problem"]["state"]) == (2, 2, "refused")
    assert said in found["problem"]["message"]
    assert f"Error: {found['problem']['message'].removeprefix('Error: ')}" in result.err
    assert not Path("a.json").exists()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("bogus --json", "No such command 'bogus'. There are convert, diff, inspect, ops, run"),
        ("convrt a.onnx --json --opset 13", "Did you mean convert?"),
        ("--json", "--json goes after its command: onnxreduce COMMAND --json"),
        ("--json convert a.onnx", "--json goes after its command"),
        ("--bogus convert a.onnx --json", "No such option"),
    ],
)
def test_no_such_command_as_json(onnxreduce, call, said):
    result = onnxreduce(*call.split())
    found = valid("onnxreduce", result.out)
    assert (result.code, found["exit_code"], found["problem"]["state"]) == (2, 2, "refused")
    assert said in found["problem"]["message"]
    assert f"Error: {found['problem']['message']}" in result.err


@pytest.mark.parametrize("call", ["bogus", "bogus --json=f.json", "bogus -- --json", "--bogus"])
def test_no_report_where_none_is_asked_for(onnxreduce, call):
    result = onnxreduce(*call.split())
    assert (result.code, result.out) == (2, "")
    assert not Path("f.json").exists()


def test_settings_that_make_no_sense_as_json(onnxreduce):
    Path("pyproject.toml").write_text("[tool.onnxreduce]\nopsett = 13\n")
    result = onnxreduce("convert", "a.onnx", "--json")
    assert result.code == 2
    assert "opsett" in valid("convert", result.out)["problem"]["message"]


def test_what_a_model_became(onnxreduce):
    result = onnxreduce("convert", "a.onnx", "--opset", 10, "-o", "out.onnx", "--verify", "--json")
    (found,) = valid("convert", result.out)["models"]
    assert (found["state"], found["target"], found["problem"]) == ("converted", "out.onnx", None)
    assert [change["node"] for change in found["plan"]["changes"]] == ["first", "second"]
    sites = {site["node"]: site["verdict"] for site in found["checks"]["each"]}
    assert sites == {"first": "bit-exact", "second": "bit-exact"}
    assert found["verified"]["equivalent"]


def test_a_failed_check_is_told_with_its_site(onnxreduce, monkeypatch):
    def spoil(site, *_):
        for node in site.result:
            if node.op_type == "ReduceMax":
                node.op_type = "ReduceMin"

    found = spoiled(onnxreduce, monkeypatch, spoil)
    assert found["state"] == "failed its check"
    (bad,) = [site for site in found["checks"]["each"] if site["verdict"] == "failed"]
    assert (bad["node"], bad["reason"] != "") == ("second", True)
    assert found["plan"]["changes"]
    cases = junit("report.xml")
    assert [name for name, what in cases.items() if what == "failure"] == [
        ("convert.model", "a.onnx"),
        ("convert.site", "ReduceMax: second"),
    ]


def spoiled(onnxreduce, monkeypatch, spoil):
    """What is told of a conversion whose replacement is wrong."""
    from onnxreduce_cli.engine import conversion

    made = conversion.make_plan

    def plan(*given):
        found = made(*given)
        for site in found.sites:
            spoil(site)
        return found

    monkeypatch.setattr(conversion, "make_plan", plan)
    call = ("convert", "a.onnx", "--opset", 13, "-o", "out.onnx", "--junit", "report.xml")
    result = onnxreduce(*call, "--json")
    assert result.code == 1
    return valid("convert", result.out)["models"][0]


def junit(path):
    """The cases of a file: by class and name ``failure``, ``skipped`` or ``None``."""
    root = ElementTree.parse(path).getroot()
    assert root.tag == "testsuites"
    assert list(junit_structure.errors(root)) == []
    found = {}
    for suite in root:
        for case in suite:
            assert set(case.keys()) == {"classname", "name", "time"}
            assert len(case) <= 1
            (item,) = list(case) or [None]
            if item is not None:
                assert item.get("message") in item.text
            name = case.get("classname").removeprefix("onnxreduce."), case.get("name")
            found[name] = None if item is None else item.tag
    assert root.get("tests") == str(len(found))
    return found


def test_json_in_a_file_leaves_the_text(onnxreduce):
    for number, written in enumerate((["--json", "there/a.json"], ["--json=there/a.json"])):
        target = f"out{number}.onnx"
        result = onnxreduce("convert", "a.onnx", "--opset", 13, "-o", target, *written)
        assert result.out.startswith("Converted to opset 13: 1 node changed, ")
        assert f"({target})" in result.out
        assert valid("convert", Path("there/a.json").read_text())["models"][0]["target"] == target


def test_json_takes_no_model_for_its_file(onnxreduce):
    before = Path("a.onnx").read_bytes()
    result = onnxreduce("inspect", "--json", "a.onnx")
    assert valid("inspect", result.out)["model"] == "a.onnx"
    onnx.save(onnx.load("a.onnx"), "m.json", format="json")
    result = onnxreduce("inspect", "--json", "m.json")
    assert valid("inspect", result.out)["model"] == "m.json"
    for option in ("--json=a.onnx", "--json=./a.onnx", "--junit=a.onnx", "--junit=."):
        result = onnxreduce("convert", "a.onnx", "--opset", 13, option)
        assert (result.code, result.out) == (2, "")
        assert option.split("=")[0] in result.err
    assert Path("a.onnx").read_bytes() == before
    assert not Path("a.opset13.onnx").exists()


def test_json_and_the_model_cannot_share_standard_output(onnxreduce):
    result = onnxreduce("convert", "a.onnx", "--opset", 13, "-o", "-", "--json")
    assert result.code == 2
    assert "--json FILE" in result.err
    assert "--json FILE" in valid("convert", result.out)["problem"]["message"]


def test_json_and_the_model_of_a_stream_neither():
    source = Path("a.onnx").read_bytes()
    call = [sys.executable, "-m", "onnxreduce", "convert", "-", "--opset", "13", "--json"]
    done = subprocess.run(call, input=source, capture_output=True, check=False)
    assert done.returncode == 2
    assert "--json FILE" in valid("convert", done.stdout)["problem"]["message"]
    done = subprocess.run([*call, "--dry-run"], input=source, capture_output=True, check=True)
    assert valid("convert", done.stdout)["models"][0]["plan"]["possible"]


@pytest.mark.parametrize("option", ["--junit", "--code-quality", "--report"])
def test_other_forms_are_files(onnxreduce, option):
    result = onnxreduce("convert", "a.onnx", "--opset", 13, "--dry-run", option, "-")
    assert (result.code, result.out) == (2, "")
    assert f"{option} needs the name of a file, not '-'" in result.err


def test_junit(onnxreduce):
    call = ("convert", "a.onnx", "hard.onnx", "--opset", 7, "--out-dir", "out", "--verify")
    assert onnxreduce(*call, "--junit", "out.xml").code == 1
    assert junit("out.xml") == {
        ("convert.model", "a.onnx"): None,
        ("convert.site", "Softmax: first"): None,
        ("convert.site", "ReduceMax: second"): None,
        ("convert.output", "y"): None,
        ("convert.output", "z"): None,
        ("convert.model", "hard.onnx"): "failure",
    }
    assert "node hard" in Path("out.xml").read_text()
    assert onnxreduce("verify", "a.onnx", "b.onnx", "--junit", "out.xml").code == 1
    assert junit("out.xml") == {("verify.output", "y"): "failure", ("verify.output", "z"): None}
    assert onnxreduce("diff", "a.onnx", "b.onnx", "--junit", "out.xml").code == 1
    assert list(junit("out.xml").values()) == ["failure"]
    assert onnxreduce("diff", "a.onnx", "none.onnx", "--junit", "out.xml").code == 2
    assert junit("out.xml") == {("diff.command", "diff"): "failure"}


def test_junit_has_times_that_add_up(onnxreduce):
    call = ("convert", "a.onnx", "--opset", 7, "-o", "out.onnx", "--verify", "--junit", "out.xml")
    result = onnxreduce(*call, "--json")
    found = valid("convert", result.out)
    (told,) = found["models"]
    (suite,) = ElementTree.parse("out.xml").getroot()
    times = [float(case.get("time")) for case in suite]
    assert len(times) == 5
    assert all(time > 0 for time in times)
    assert float(suite.get("time")) == pytest.approx(sum(times), abs=0.01)
    assert float(suite.get("time")) == pytest.approx(told["seconds"], abs=0.01)
    assert sum(times[3:]) == pytest.approx(told["verified"]["seconds"], abs=0.01)
    assert suite.get("timestamp") + "+00:00" == found["call"]["started"]


def test_a_summary_where_github_runs_it(onnxreduce, monkeypatch):
    odd = model(HARD)
    odd.graph.node[0].name = "a|b`<img src=x>`[c](d)\n# e"
    onnx.save(odd, "odd.onnx")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "step.md")
    onnxreduce("convert", "hard.onnx", "--opset", 7, "--dry-run", "-q")
    assert not Path("step.md").exists()
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    onnxreduce("convert", "a.onnx", "odd.onnx", "--opset", 7, "--out-dir", "out")
    onnxreduce("verify", "a.onnx", "b.onnx", "--trials", 1)
    onnxreduce("inspect", "a.onnx")
    head, _, names, _, first, second, _, other, _, _, _, differs = (
        Path("step.md").read_text().rstrip().split("\n")
    )
    assert head == "### onnxreduce convert: 1 failure, 0 not checked, of 4 cases"
    assert names == "| model | result | verdict, or what is wrong |"
    assert first.startswith(
        "| odd.onnx | cannot be converted | StringNormalizer node a&#124;b&#96;"
    )
    assert "<" not in first
    assert first.count("|") == 4
    assert second.startswith("| a.onnx | converted | Converted to opset 7&#58; 2 nodes changed")
    assert second.endswith(" (out/a.onnx) |")
    assert other == "### onnxreduce verify: 1 failure, 0 not checked, of 2 cases"
    assert differs.startswith("| a.onnx | output y | a.onnx in onnxruntime and b.onnx in ")


def code_quality(path):
    """The entries of a file, which have what GitLab documents and no entry twice."""
    entries = json.loads(Path(path).read_text())
    for entry in entries:
        assert set(entry) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert set(entry["location"]) == {"path", "lines"}
        assert entry["location"]["lines"] == {"begin": 1}
        assert entry["severity"] in ("info", "minor", "major", "critical", "blocker")
        texts = (entry["description"], entry["check_name"], entry["fingerprint"])
        assert all(isinstance(text, str) and text for text in texts)
    assert len({entry["fingerprint"] for entry in entries}) == len(entries)
    return entries


def test_code_quality_for_gitlab(onnxreduce):
    call = ("convert", "a.onnx", "hard.onnx", "--opset", 7, "--out-dir", "out", "--force")
    marks = []
    for _ in range(2):
        assert onnxreduce(*call, "--code-quality", "out.json").code == 1
        (entry,) = code_quality("out.json")
        assert entry["check_name"] == "onnxreduce.model"
        assert entry["severity"] == "critical"
        assert entry["location"]["path"] == "hard.onnx"
        assert "cannot be converted" in entry["description"]
        marks.append(entry["fingerprint"])
    assert marks[0] == marks[1]
    assert onnxreduce("verify", "a.onnx", "b.onnx", "--code-quality", "out.json").code == 1
    assert [entry["check_name"] for entry in code_quality("out.json")] == ["onnxreduce.output"]
    assert onnxreduce("verify", "a.onnx", "a.onnx", "--code-quality", "out.json").code == 0
    assert code_quality("out.json") == []


def test_code_quality_has_paths_as_gitlab_takes_them(onnxreduce):
    here = Path("hard.onnx").absolute()
    for path in (here, "./hard.onnx", f"../{here.parent.name}/hard.onnx"):
        onnxreduce("convert", path, "--opset", 7, "--dry-run", "--code-quality", "out.json")
        (entry,) = code_quality("out.json")
        assert entry["location"]["path"] == "hard.onnx"


def test_annotations_for_github(onnxreduce, monkeypatch):
    call = ("convert", "hard.onnx", "--opset", 7, "--dry-run", "-q")
    assert "::" not in onnxreduce(*call).err
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = onnxreduce(*call)
    (line,) = [line for line in result.err.splitlines() if line.startswith("::")]
    head, message = line.removeprefix("::").split("::", 1)
    assert head == "error file=hard.onnx,title=onnxreduce%3A model hard.onnx"
    assert "%0AStringNormalizer node hard: " in message
    assert result.out == ""
    assert "::" not in onnxreduce("convert", "a.onnx", "--opset", 13, "-q").err


def test_what_is_not_checked_is_a_warning_where_jobs_run(onnxreduce, monkeypatch):
    onnx.save(model(RANDOM), "random.onnx")
    call = ("convert", "random.onnx", "--opset", 14, "--force", "-q")
    onnxreduce(*call, "--code-quality", "out.json")
    (entry,) = code_quality("out.json")
    assert entry["severity"] == "minor"
    assert "not checked: " in entry["description"]
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    lines = [line for line in onnxreduce(*call).err.splitlines() if line.startswith("::")]
    assert len(lines) == 1
    assert lines[0].startswith("::warning file=random.onnx,")
    assert "not checked: " in lines[0]


def test_names_break_out_of_no_form(onnxreduce, monkeypatch):
    odd = model(HARD)
    odd.graph.node[0].name = "a\n::error::forged %0A </testcase>]]>\x1b\x00,b:c"
    onnx.save(odd, "o,d:d%.onnx")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    call = ("convert", "o,d:d%.onnx", "--opset", 7, "--dry-run", "--junit", "out.xml")
    result = onnxreduce(*call, "--json")
    assert valid("convert", result.out)["models"][0]["problem"]["blockers"][0]["node"].endswith("c")
    lines = [line for line in result.err.splitlines() if line.startswith("::")]
    assert len(lines) == 1
    assert lines[0].startswith("::error file=o%2Cd%3Ad%25.onnx,title=")
    assert "%250A" in lines[0]
    assert "failure" in junit("out.xml").values()


@pytest.mark.parametrize("runner", ["GITHUB_ACTIONS", "TF_BUILD", "TEAMCITY_VERSION", None])
@pytest.mark.parametrize(
    "name", ["::stop-commands::t", "::error file=a.py::x", "##[error]x", "##vso[a]x", "###[group]x"]
)
def test_names_are_no_commands_for_the_runners_of_jobs(onnxreduce, monkeypatch, name, runner):
    odd = model(HARD)
    odd.opset_import.add(domain="d", version=1)
    odd.graph.node[0].name = name
    odd.graph.node.add(op_type=name, domain="d", input=["x"], output=[name])
    onnx.save(odd, "odd.onnx")
    onnx.save(odd, "##[a]::b.onnx")
    onnx.save(odd, "::warning::f.onnx")
    if runner is not None:
        monkeypatch.setenv(runner, "true")
    printed = []
    for call in (
        ("inspect", "odd.onnx"),
        ("inspect", "::warning::f.onnx"),
        ("inspect", "##[a]::b.onnx"),
        ("inspect", "::nothing.onnx"),
        ("ops", "--of", "odd.onnx"),
        ("ops", name),
        ("diff", "odd.onnx", "a.onnx"),
        ("convert", "odd.onnx", "--opset", 7, "--dry-run"),
        ("convert", "odd.onnx", "--opset", 7, "--dry-run", "--json"),
    ):
        result = onnxreduce(*call)
        if "--json" in call:
            (entry,) = json.loads(result.out)["models"]
            assert name in str(entry)
        printed += [*result.out.splitlines(), *result.err.splitlines()]
    own = ("::error file=odd.onnx,title=onnxreduce%3A",)
    commands = [
        line
        for line in printed
        if (line.lstrip().startswith("::") and not line.startswith(own))
        or ("##" in line and re.search(r"##\w*\[", line) and not line.startswith(own))
    ]
    assert bool(commands) == (runner is None)


def test_names_as_long_as_a_book_make_short_reports(onnxreduce, monkeypatch):
    long = "L" * 3_000_000
    odd = model(HARD)
    odd.graph.node[0].name = odd.graph.node[0].output[0] = odd.graph.output[0].name = long
    onnx.save(odd, "long.onnx")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    forms = ("--junit", "out.xml", "--code-quality", "out.json", "--report", "out.html")
    for call in (
        ("convert", "long.onnx", "--opset", 7, "--dry-run"),
        ("verify", "long.onnx", "a.onnx"),
    ):
        result = onnxreduce(*call, *forms)
        assert result.code == 1
        assert "::error file=long.onnx" in result.err
        assert len(result.err) < 20_000
        assert Path("out.xml").stat().st_size < 20_000
        assert Path("out.json").stat().st_size < 20_000
        assert Path("out.html").stat().st_size < 300_000


def test_annotations_tell_some_of_many_blockers(onnxreduce, monkeypatch):
    hard = model(HARD)
    for index in range(100):
        hard.graph.node.add().CopyFrom(hard.graph.node[0])
        hard.graph.node[-1].name = hard.graph.node[-1].output[0] = f"hard{index}"
    onnx.save(hard, "many.onnx")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = onnxreduce("convert", "many.onnx", "--opset", 7, "--dry-run", "-q")
    (line,) = [line for line in result.err.splitlines() if line.startswith("::")]
    assert line.endswith("%0Aand 82 lines more")


def test_what_could_not_be_read_is_no_file_of_the_commands_name(onnxreduce, monkeypatch):
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = onnxreduce("verify", "nothing.onnx", "--junit", "out.xml")
    assert "::error title=onnxreduce%3A command verify::Error: nothing.onnx cannot" in result.err
    assert "failure" in junit("out.xml").values()


def test_reports_are_the_same_on_every_terminal(onnxreduce, monkeypatch):
    onnx.save(
        model("<ir_version: 8, opset_import: ['': 18]> g () => () {}".replace("'", '"')), "e.onnx"
    )
    found = []
    for columns in ("40", "200"):
        monkeypatch.setenv("COLUMNS", columns)
        result = onnxreduce("convert", "e.onnx", "--opset", 13, "--dry-run", "--verify", "--json")
        found.append(valid("convert", result.out)["models"][0]["problem"])
    assert found[0] == found[1]
    assert "nothing could compare" in found[0]["message"]


def test_a_run_in_numbers(onnxreduce):
    result = onnxreduce("run", "a.onnx", "-i", "x=x.npy", "--executor", "numpy", "--json")
    z = valid("run", result.out)["outputs"][1]
    assert (z["name"], z["dtype"], z["shape"], z["nans"]) == ("z", "float32", [2, 1], 1)
    assert (z["min"], z["max"], z["values"]) == ("inf", "inf", [["nan"], ["inf"]])


# What an audit asks for: how a report came to be, and of which files it is


def sha256(path):
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


def digests_by_role(found):
    return {(item["role"], item["path"]): item["sha256"] for item in found["files"]}


@pytest.mark.parametrize(
    ("command", "call", "read"),
    [
        ("inspect", "inspect a.onnx", ["a.onnx"]),
        ("ops", "ops --of a.onnx", ["a.onnx"]),
        ("ops", "ops Relu", []),
        ("targets", "targets opencv", []),
        ("diff", "diff a.onnx b.onnx", ["a.onnx", "b.onnx"]),
        ("run", "run a.onnx -i x=x.npy", ["a.onnx", "x.npy"]),
        ("verify", "verify a.onnx b.onnx --trials 1", ["a.onnx", "b.onnx"]),
        ("inspect", "inspect nothing.onnx", []),
        ("convert", "convert a.onnx --opset 400", []),
    ],
)
def test_each_report_says_how_it_came_to_be(onnxreduce, command, call, read):
    before = datetime.now(timezone.utc).replace(microsecond=0)
    result = onnxreduce(*call.split(), "--json")
    found = valid(command, result.out)["call"]
    assert found["arguments"] == [*call.split(), "--json"]
    assert before <= datetime.fromisoformat(found["started"]) <= datetime.now(timezone.utc)
    assert 0 < found["seconds"] < 600
    assert found["versions"]["onnx"] == onnx.__version__
    assert found["versions"]["numpy"] == np.__version__
    assert ("onnxruntime" in found["versions"]) == (command in ("convert", "run", "verify"))
    assert digests_by_role(found) == {("read", path): sha256(path) for path in read}


def test_options_are_told_with_their_defaults_and_the_projects_settings(onnxreduce):
    Path("pyproject.toml").write_text("[tool.onnxreduce]\nrtol = 0.5\n")
    result = onnxreduce("verify", "a.onnx", "a.onnx", "--trials", 2, "--seed", 7, "--json")
    found = valid("verify", result.out)
    told = {
        name: found["call"]["options"][name] for name in ("a", "seed", "trials", "rtol", "atol")
    }
    assert told == {"a": "a.onnx", "seed": 7, "trials": 2, "rtol": 0.5, "atol": None}
    assert found["call"]["options"]["executor"] == "both"
    assert found["seed"] == 7
    assert found["tolerances"]["float32"] == [0.5, 1e-5]
    assert 0 < found["seconds"] < found["call"]["seconds"]


@pytest.mark.parametrize("names", [["text.onnx"], ["text.onnx", "a.onnx"]])
def test_a_file_that_is_no_model_has_a_digest(onnxreduce, names):
    Path("text.onnx").write_text("no model")
    result = onnxreduce("convert", *names, "--opset", 13, "--dry-run", "--json")
    models = valid("convert", result.out)["models"]
    found = {model["source"]: digests_by_role(model) for model in models}
    assert found["text.onnx"] == {("read", "text.onnx"): sha256("text.onnx")}
    found = valid("inspect", onnxreduce("inspect", "text.onnx", "--json").out)["call"]
    assert digests_by_role(found) == {("read", "text.onnx"): sha256("text.onnx")}


def test_the_table_of_many_gives_the_reason_and_not_what_announces_it(onnxreduce, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", "summary.md")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    text = """<ir_version: 8, opset_import: ["" : 17]>
        g (int64[2] x) => (int64[2] y) { [double] y = Add(x, x) }"""
    onnx.save(onnx.parser.parse_model(text), "numbers.onnx")
    call = ("convert", "numbers.onnx", "a.onnx", "--dtype", "int64=int32", "--dry-run")
    result = onnxreduce(*call)
    row = next(line for line in result.out.splitlines() if line.startswith("numbers.onnx"))
    assert "Add node double" in row
    assert "Add node double" in Path("summary.md").read_text()


def test_what_was_checked_has_its_tolerances_and_times(onnxreduce):
    call = ("convert", "a.onnx", "--opset", 10, "-o", "out.onnx", "--verify", "--json")
    (found,) = valid("convert", onnxreduce(*call).out)["models"]
    assert found["checks"]["tolerances"]["float16"] == [5e-3, 5e-3]
    assert all(site["seconds"] > 0 for site in found["checks"]["each"])
    assert found["verified"]["tolerances"]["float32"] == [1e-4, 1e-5]
    assert found["verified"]["seconds"] + found["checks"]["each"][0]["seconds"] < found["seconds"]


def test_a_conversion_has_the_digests_of_what_it_read_and_wrote(onnxreduce):
    weights = model(TEXT)
    weights.graph.initializer[0].ClearField("int64_data")
    weights.graph.initializer[0].raw_data = np.int64([1]).tobytes()
    Path("there").mkdir()
    stored = {"save_as_external_data": True, "location": "w.data", "size_threshold": 0}
    onnx.save(weights, "there/w.onnx", **stored)
    before = sha256("there/w.onnx"), sha256("there/w.data")
    call = ("convert", "there/w.onnx", "--opset", 17, "-o", "out/w.onnx", "--json")
    (found,) = valid("convert", onnxreduce(*call).out)["models"]
    assert digests_by_role(found) == {
        ("read", "there/w.onnx"): before[0],
        ("read", str(Path("there/w.data").absolute())): before[1],
        ("written", "out/w.onnx"): sha256("out/w.onnx"),
    } | {
        ("written", item["path"]): sha256(item["path"])
        for item in found["files"]
        if item["path"].endswith("out/w.data")
    }
    sizes = {item["path"]: item["size"] for item in found["files"]}
    assert all(size == Path(path).stat().st_size for path, size in sizes.items())


def test_the_digest_of_a_model_that_is_overwritten_is_the_one_that_was_read(onnxreduce):
    before = sha256("a.onnx")
    call = ("convert", "a.onnx", "--opset", 13, "--in-place", "--json")
    (found,) = valid("convert", onnxreduce(*call).out)["models"]
    after = sha256("a.onnx")
    assert before != after
    assert digests_by_role(found) == {("read", "a.onnx"): before, ("written", "a.onnx"): after}


def test_digests_of_many_models_and_of_one_that_fails(onnxreduce):
    call = ("convert", "a.onnx", "hard.onnx", "--opset", 7, "--out-dir", "out", "--json")
    good, bad = valid("convert", onnxreduce(*call).out)["models"]
    assert digests_by_role(good) == {
        ("read", "a.onnx"): sha256("a.onnx"),
        ("written", "out/a.onnx"): sha256("out/a.onnx"),
    }
    assert digests_by_role(bad) == {("read", "hard.onnx"): sha256("hard.onnx")}
    assert good["seconds"] > 0
    assert bad["seconds"] > 0


def test_digests_of_streams():
    source = Path("a.onnx").read_bytes()
    call = [sys.executable, "-m", "onnxreduce", "convert", "-", "--opset", "13", "--json=r.json"]
    done = subprocess.run(call, input=source, capture_output=True, check=True)
    (found,) = valid("convert", Path("r.json").read_text())["models"]
    assert [(item["role"], item["path"], item["sha256"]) for item in found["files"]] == [
        ("read", "-", hashlib.sha256(source).hexdigest()),
        ("written", "-", hashlib.sha256(done.stdout).hexdigest()),
    ]


def test_no_file_is_digested_that_no_report_asks_for(onnxreduce, monkeypatch):
    def digest():
        raise AssertionError("a digest that nobody reads")

    monkeypatch.setattr("onnxreduce_cli.model.file.digest._sha256", digest)
    assert onnxreduce("convert", "a.onnx", "--opset", 13, "--junit", "out.xml").code == 0
    assert onnxreduce("verify", "a.onnx", "--trials", 1).code == 0
    assert "nobody reads" in onnxreduce("inspect", "a.onnx", "--json").err
