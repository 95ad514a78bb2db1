"""Version, changelog and tag agree, and nothing promises a release that there is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from onnxreduce_cli import __version__
from tests.pages import ROOT, pages
from tests.release_notes import changelog, headings, release_notes, version

TEXT = """# Changelog

Intro.

## 1.2.3 (2026-12-01)

- One thing.
  And more of it.

## 1.2.2 (2026-11-01)

- Another.
"""

#: What takes onnxreduce from the package index, which has it from the first release on.
FROM_INDEX = re.compile(
    r"\b(?:install|inject|uvx|pipx run|uv add)\s+(?:-\S+\s+)*['\"]?onnxreduce\b"
)


def test_version_and_changelog_agree(onnxreduce):
    assert onnxreduce("--version").out.splitlines()[0] == f"onnxreduce {__version__}"
    assert version() == __version__
    assert headings(changelog())[0][0] == __version__
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert 'dynamic = ["version"]' in project
    assert 'version = { attr = "onnxreduce_cli.__version__" }' in project


def test_each_version_of_the_changelog_has_a_day():
    lines = re.findall(r"^## (.*)$", changelog(), flags=re.MULTILINE)
    found = headings(changelog())
    assert lines == [f"{number} ({day})" for number, day in found]
    assert "unreleased" not in [day for _, day in found[1:]]


def test_notes_of_a_release():
    assert release_notes("v1.2.3", "1.2.3", TEXT) == "- One thing.\n  And more of it."


@pytest.mark.parametrize(
    ("tag", "package", "text", "message"),
    [
        ("v1.2.4", "1.2.3", TEXT, "the tag is v1.2.4, .* says 1.2.3"),
        ("1.2.3", "1.2.3", TEXT, "the tag is 1.2.3, "),
        ("v1.2.4", "1.2.4", TEXT, "CHANGELOG.md begins with 1.2.3"),
        ("v1.2.3", "1.2.3", TEXT.replace("2026-12-01", "unreleased"), "write the day there"),
    ],
)
def test_what_is_no_release(tag, package, text, message):
    with pytest.raises(ValueError, match=message):
        release_notes(tag, package, text)


def read_by_users() -> dict[str, Path]:
    """The pages, and the files with messages, help and settings."""
    found = {**pages(), "SECURITY.md": ROOT / "SECURITY.md", "action.yml": ROOT / "action.yml"}
    for folder in ("onnxreduce", "onnxreduce_cli", "docs/generator"):
        for path in (ROOT / folder).rglob("*.py"):
            found[path.relative_to(ROOT).as_posix()] = path
    return found


def test_what_is_in_no_package_index_is_not_taken_from_it():
    """From the first release on, the README says how to take it from there."""
    promised = {
        name for name, path in read_by_users().items() if FROM_INDEX.search(path.read_text("utf-8"))
    }
    if all(day == "unreleased" for _, day in headings(changelog())):
        assert promised == set()
    else:
        assert "README.md" in promised


@pytest.mark.parametrize(
    ("line", "promises"),
    [
        ("pip install onnxreduce", True),
        ("pip install --no-deps 'onnxreduce[cluster]'", True),
        ("pipx install onnxreduce==0.1.0", True),
        ("uv tool install onnxreduce", True),
        ("uvx onnxreduce inspect model.onnx", True),
        ("pip install .", False),
        ("pip install git+https://example.com/OWNER/onnxreduce@v0.1.0", False),
        ("pip install --quiet --target $RUNNER_TEMP/onnxreduce $GITHUB_ACTION_PATH", False),
    ],
)
def test_what_a_promise_is(line, promises):
    assert bool(FROM_INDEX.search(line)) is promises


def workflow(name: str) -> dict:
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text("utf-8"))


def test_who_may_publish_runs_nothing_of_the_repository():
    """Only what was built and tested is published, by a job that has no script to change it."""
    jobs = workflow("release")["jobs"]
    assert workflow("release")["permissions"] == {}
    (publishing,) = [job for job in jobs.values() if "id-token" in job["permissions"]]
    assert publishing["environment"] == "pypi"
    assert set(publishing["needs"]) == {"tests", "build"}
    assert publishing["permissions"] == {"id-token": "write", "attestations": "write"}
    used = [step["uses"].split("@")[0] for step in publishing["steps"]]
    assert used == [
        "actions/download-artifact",
        "actions/attest-build-provenance",
        "pypa/gh-action-pypi-publish",
    ]
    assert jobs["tests"]["uses"] == "./.github/workflows/tests.yml"
    # YAML reads the key `on` as true.
    assert "workflow_call" in workflow("tests")[True]
    (writing,) = [job for job in jobs.values() if job["permissions"].get("contents") == "write"]
    assert writing["needs"] == "publish"
