"""The README and what the documentation generates say what is so."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import onnx
import pytest

from docs.generator import comparison, family, screenshot
from onnxreduce_cli import schemas
from onnxreduce_cli.model.graph.domains import default_opset
from tests.exports import EXPORTS
from tests.pages import DOCS, ROOT, commands, pages


def test_the_readme_is_short():
    text = pages()["README.md"].read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150


@pytest.mark.parametrize("name", pages())
def test_links_lead_somewhere(name):
    path = pages()[name]
    for target in re.findall(r"\]\(([^)#:\s]+)[^)]*\)", path.read_text(encoding="utf-8")):
        if "generated/" not in target and target not in ("http", "https"):
            assert (path.parent / target).exists(), target


def test_the_picture_in_the_readme_is_current():
    """Written by `python -m docs.generator.screenshot`."""
    committed = screenshot.PICTURE.read_text(encoding="utf-8")
    fresh = screenshot.drawn(screenshot.session())
    ElementTree.fromstring(committed)
    assert committed == fresh


def test_the_comparison_in_the_readme_is_what_was_measured():
    found = comparison.recorded()
    text = pages()["README.md"].read_text(encoding="utf-8")
    rows = {
        "`onnxreduce`": "onnxreduce",
        "`onnx.version_converter`": "onnx.version_converter",
        "the same, IR version set by hand": "onnx.version_converter, IR version set by hand",
        "onnxscript's, `fallback=True`": "onnxscript, fallback=True",
    }
    for shown, recorded in rows.items():
        cells = re.search(rf"^\| {re.escape(shown)} \| (\d+).* \| (\d+) \|$", text, flags=re.M)
        assert cells, shown
        measured = [found["outcomes"][name][recorded].get("agrees", 0) for name in found["opsets"]]
        assert [int(cell) for cell in cells.groups()] == measured
    emulated = found["outcomes"]["1.8.1"]["onnxreduce --emulate"]["agrees"]
    assert f"({emulated} with `--emulate`)" in text
    assert f"of {found['exports']} exports" in text


def test_what_the_readme_says_to_errors_is_tried_on_their_page():
    text = pages()["README.md"].read_text(encoding="utf-8").partition("## Your error says")[2]
    rows = re.findall(r"^\| (`.*) \| (.*`.*) \|$", text.partition("\n## ")[0], flags=re.M)
    errors = pages()["errors.md"].read_text(encoding="utf-8")
    typed = [line for line, _ in commands(pages()["errors.md"])]
    assert len(rows) >= 9
    for said, answer in rows:
        for words in re.findall(r"`([^`]*)`", said):
            part = max(re.split(r"\.\.\.|\d+", words), key=len).strip(" :")
            assert part in errors, part
        for option in re.findall(r"`(--[^`]*)`", answer):
            if not re.search(r"\b[A-Z]{2,}\b", option):
                assert any(option in line for line in typed), option


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    return family.parts()


def test_each_boundary_of_the_family_has_pictures(drawn):
    assert len(drawn) == 13
    for op_type, text in drawn.items():
        parts = re.split(r"^## Opset (\d+)$", text.partition("## Written out")[0], flags=re.M)
        assert [int(part) for part in parts[1::2]] == list(schemas.versions(op_type)[1:])
        for boundary, part in zip(parts[1::2], parts[2::2], strict=True):
            older = int(boundary) - 1
            ways = re.split(r"^### (.*)$", part, flags=re.M)
            assert ways[1::2] == [f"{older} to {boundary}", f"{boundary} to {older}"]
            for pictures in ways[2::2]:
                assert pictures.count("<svg") >= 2


def test_pictures_show_what_the_conversion_makes(drawn):
    text = drawn["ReduceSum"]
    down = text[text.index("### 13 to 12") :]
    before, after = re.findall(r"<svg.*?</svg>", down)[:2]
    assert labels(before) == [
        "x",
        "float[2, 3, 4]",
        "ReduceSum",
        "axes: [1]",
        "y",
        "float[2, 1, 4]",
    ]
    assert labels(after) == ["x", "float[2, 3, 4]", "ReduceSum", "axes=[1]", "y", "float[2, 1, 4]"]
    assert "bfloat16), which came with opset 13" in down


def labels(svg: str) -> list[str]:
    return [item.text or "" for item in ElementTree.fromstring(svg).iter("text")]


def test_what_was_measured_is_whole():
    found = json.loads(comparison.RECORD.read_text(encoding="utf-8"))
    for by_converter in found["outcomes"].values():
        assert {sum(counts.values()) for counts in by_converter.values()} == {found["exports"]}


def test_what_other_converters_find_done_already() -> None:
    """As the text beside the comparison counts them."""
    found = [onnx.load(path, load_external_data=False) for path in EXPORTS.glob("*.onnx")]
    opsets = [default_opset(export) for export in found]
    text = pages()["comparison.md"].read_text(encoding="utf-8")
    assert f"{opsets.count(17)} of the exports are at opset 17" in text
    assert len(found) == comparison.recorded()["exports"]


def test_options_of_other_converters_are_code():
    """Sphinx makes a dash of the two hyphens of an option in a text."""
    names = [line.split("|")[1].strip() for line in comparison.table().splitlines()[2:10]]
    assert "`onnxreduce --emulate`" in names
    assert "`onnxscript, fallback=True`, IR version set by hand" in names
    for name in names:
        assert "--" not in re.sub(r"`[^`]*`", "", name)


def test_the_table_of_converters_is_what_was_measured():
    """As `python -m docs.generator.comparison` prints it."""
    assert comparison.table() in pages()["comparison.md"].read_text(encoding="utf-8")


def test_each_outcome_in_the_comparison_is_explained():
    assert "13 do not load or run" in comparison.table()
    text = pages()["comparison.md"].read_text(encoding="utf-8")
    for by_converter in comparison.recorded()["outcomes"].values():
        for outcome in {what for counts in by_converter.values() for what in counts} - {"agrees"}:
            assert f"- *{outcome.capitalize()}*: " in text, outcome


def test_the_figure_of_node_cases_is_the_one_recorded():
    record = (ROOT / "tests" / "node_cases.md").read_text(encoding="utf-8")
    converted, wrong, invalid = re.findall(
        r"^\| \*\*all\*\* \| (\d+) \| \d+ \| \d+ \| (\d+) \| (\d+) \|$", record, flags=re.M
    )[0]
    said = f"{int(converted):,} conversions: {wrong} wrong, {invalid} invalid"
    assert said in pages()["checks.md"].read_text(encoding="utf-8")


def test_pages_are_few_and_all_in_the_index():
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = {
        line
        for tree in re.findall(r"```{toctree}\n(.*?)```", index, flags=re.S)
        for line in tree.splitlines()
        if line and not line.startswith(":")
    }
    assert {name.removesuffix(".md") for name in pages()} - {"README", "index"} == listed
    assert len(listed) < 25
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").count("sphinx-build") == 1
