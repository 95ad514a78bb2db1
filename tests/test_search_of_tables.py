"""The field above long tables of the documentation: what stays when words are typed into it."""

from __future__ import annotations

import html
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.browser import browse
from tests.pages import DOCS

pytestmark = pytest.mark.browser

#: The site's own settings for two of its pages, without what is drawn when it is built.
CONF = f"""
extensions = ["myst_parser"]
html_theme = "furo"
html_static_path = [{str(DOCS / "_static")!r}]
html_css_files = ["site.css"]
html_js_files = ["filter.js"]
"""

#: What a reader sees of a page: rows of its table, sections, and what the field says of them.
SEEN = """
    const seen = (items) => [...items].filter((item) => item.checkVisibility());
    const cells = (row) => [...row.cells].slice(0, 2).map((cell) => cell.textContent);
    const look = () => ({
        rows: seen(document.querySelectorAll(".long tbody tr")).map(cells),
        heads: seen(document.querySelectorAll("article h2")).map((item) => item.firstChild.data),
        field: document.querySelector(".table-filter output").value,
    });
    const type = (text) => {
        const field = document.querySelector(".table-filter input");
        field.value = text;
        field.dispatchEvent(new Event("input"));
        return look();
    };
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of operators and runtimes, built as they are published."""
    source = tmp_path_factory.mktemp("docs")
    (source / "conf.py").write_text(CONF, encoding="utf-8")
    (source / "index.md").write_text("# Pages\n\n```{toctree}\noperators\ntargets\n```\n")
    for name in ("operators", "targets"):
        text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
        text = re.sub(r"```{include}.*?```", "", text, flags=re.S)
        (source / f"{name}.md").write_text(text, encoding="utf-8")
    call = [sys.executable, "-m", "sphinx", "-q", "-W", source, source / "built"]
    subprocess.run(call, check=True, timeout=120)
    return source / "built"


def found(site: Path, page: str, script: str, query: str = "", scripts: bool = True) -> Any:
    """What a script leaves in `found`, after a page was opened with or without its own scripts."""
    probe = "addEventListener('load', () => {" + SEEN + script
    probe += "document.getElementById('found').textContent = JSON.stringify(found);})"
    text = (site / f"{page}.html").read_text(encoding="utf-8")
    if not scripts:
        text = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    probed = site / f"{page}-probed.html"
    text = text.replace("</body>", f"<pre id=found></pre><script>{probe}</script></body>")
    probed.write_text(text, encoding="utf-8")
    done = browse("--dump-dom", "--enable-logging=stderr", path=probed, query=query)
    assert [line for line in done.stderr.splitlines() if "CONSOLE" in line] == []
    (told,) = re.findall(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)
    return json.loads(html.unescape(told))


def rows(*words: str) -> list[list[str]]:
    """Operator and opset of the rows of the table that have all of the words."""
    lines = (DOCS / "operators.md").read_text(encoding="utf-8").splitlines()
    table = [line for line in lines if line.startswith("| ")][1:]
    kept = [line for line in table if all(word in line.lower() for word in words)]
    return [[cell.strip() for cell in line.split("|")[1:3]] for line in kept]


def titles() -> list[str]:
    """The runtimes, with apostrophes as Sphinx sets them."""
    text = (DOCS / "targets.md").read_text(encoding="utf-8")
    return re.findall(r"^## (.*)$", text.replace("'", "’"), flags=re.M)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_rows_with_all_words_stay(site):
    all_rows, resize = rows(), rows("resize", "axes")
    script = """
        const found = ["resize", " AXES Resize ", "no such row", ""].map(type);
    """
    one, two, none, cleared = found(site, "operators", script)
    assert cleared["rows"] == all_rows
    assert cleared["field"] == f"{len(all_rows)} of {len(all_rows)} rows"
    assert one["rows"] == rows("resize")
    assert two["rows"] == resize
    assert 0 < len(resize) < len(rows("resize")) < len(all_rows)
    assert two["field"] == f"{len(resize)} of {len(all_rows)} rows"
    assert none["rows"] == []


def test_a_link_may_bring_its_search(site):
    opened = found(site, "operators", "const found = look();", "?q=gelu")
    assert opened["rows"] == rows("gelu")


def test_runtimes_are_folded_until_they_are_opened(site):
    script = """
        const body = () => seen(document.querySelectorAll("article details table")).length;
        const found = [look(), body(), type("opencv reduces")];
        location.hash = "opencv-its-dnn-module";
        dispatchEvent(new Event("hashchange"));
        found.push(body());
    """
    everything, open_tables, typed, unfolded = found(site, "targets", script)
    assert everything["heads"] == titles()
    assert open_tables == 0
    assert typed["heads"] == ["OpenCV, its dnn module"]
    assert unfolded == 2


def test_without_the_scripts_of_a_page_all_is_there(site):
    script = """
        const heads = seen(document.querySelectorAll("article h2"));
        const found = [seen(document.querySelectorAll("article tbody tr")).map(cells),
            heads.map((item) => item.firstChild.data),
            document.querySelectorAll("article :is(input, details)").length];
    """
    assert found(site, "operators", script, scripts=False)[0] == rows()
    every_row, heads, made = found(site, "targets", script, scripts=False)
    assert heads == titles()
    text = (DOCS / "targets.md").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line.startswith("|")]
    assert len(every_row) == len(lines) - 2 * sum(line.startswith("|---") for line in lines)
    assert made == 0
