"""Versions compare as pip's do."""

from __future__ import annotations

import pytest

from onnxreduce_cli.targets.versions import Version, meets_all, version_conditions


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("1.9", "1.10"),
        ("1.8", "1.8.1"),
        ("1.8.0.dev1", "1.8.0a1"),
        ("1.8.0a1", "1.8.0b1"),
        ("1.8.0b2", "1.8.0rc1"),
        ("1.8.0rc1", "1.8"),
        ("1.8", "1.8.post1"),
        ("1.8.post1", "1.8.post2"),
        ("4.12", "5.0"),
        ("2025.4.1", "2026.4"),
    ],
)
def test_order(older: str, newer: str) -> None:
    assert Version.of(older) < Version.of(newer)
    assert not Version.of(newer) < Version.of(older)


def test_zeros_at_the_end_count_for_nothing() -> None:
    assert Version.of("1.8") == Version.of("1.8.0") == Version.of("v1.8.0.0")
    assert hash(Version.of("1.8")) == hash(Version.of("1.8.0"))
    assert Version.of("1.8+cpu") == Version.of("1.8")


def test_a_version_is_of_its_series() -> None:
    assert Version.of("1.14.1").is_of(Version.of("1.14"))
    assert Version.of("1").is_of(Version.of("1.0"))
    assert not Version.of("1.14.1").is_of(Version.of("1.1"))


@pytest.mark.parametrize(
    ("conditions", "meets", "fails"),
    [
        ("==1.8", ["1.8", "1.8.0"], ["1.8.1"]),
        ("==1.8.*", ["1.8", "1.8.1"], ["1.9", "1.18"]),
        ("!=1.8.*", ["1.9"], ["1.8.1"]),
        (">=1.8,<1.12", ["1.8", "1.11.1"], ["1.7", "1.12"]),
        (" > 1.8 , <= 1.10 ", ["1.8.1", "1.10"], ["1.8", "1.10.1"]),
        ("~=1.4.2", ["1.4.2", "1.4.9"], ["1.4.1", "1.5"]),
        ("~=1.4", ["1.4", "1.9"], ["1.3", "2.0"]),
        ("", ["0", "99"], []),
    ],
)
def test_conditions(conditions: str, meets: list[str], fails: list[str]) -> None:
    found = version_conditions(conditions)
    assert [text for text in meets + fails if meets_all(Version.of(text), found)] == meets


@pytest.mark.parametrize(
    "text", ["=1.8", "1.8", "==", "==new", ">=1.8 <2", ">=1.*", "~=1", ",", "===1"]
)
def test_no_condition(text: str) -> None:
    with pytest.raises(ValueError, match=r"no condition|no version|no series"):
        version_conditions(text)
