"""What was measured as exported and after --for, and the document that is made of it."""

from __future__ import annotations

from pathlib import Path

from lab.matrix import (
    BLOCKED,
    CAUSES,
    DOCUMENT,
    NOT_RUN,
    WHOLE,
    Result,
    counts,
    markdown,
    merge,
    read,
)


def test_results_are_added_to_a_file(tmp_path: Path) -> None:
    path = tmp_path / "matrix.json"
    merge(path, "b==2", {"Abs_f": Result("wrong", "right")})
    merge(path, "a==1", {"Abs_f": Result("right", "wrong")})
    merge(path, "b==2", {"Add_f": Result("refused", BLOCKED)})
    merge(path, "b==2", {"net": Result("right", "crash", "right", "SIGSEGV: ")})
    found = read(path)
    assert found["b==2"].pop("net") == ("right", "crash", "right", "SIGSEGV: ")
    assert list(found) == ["a==1", "b==2"]
    assert found["b==2"] == {"Abs_f": Result("wrong", "right"), "Add_f": Result("refused", BLOCKED)}


def test_what_is_wrong_and_what_is_broken() -> None:
    assert Result("right", "wrong").is_wrong
    assert Result("right", "refused").is_broken
    assert Result("right", BLOCKED).is_broken
    assert not Result("wrong", "refused").is_broken
    assert not Result(NOT_RUN, "right").is_broken


def test_counts() -> None:
    results = [Result("right", "right"), Result("right", "refused"), Result("wrong", BLOCKED)]
    said = "as exported 2 right, 1 wrong; --for 1 right, 1 refused, 1 refused by us; 1 broken"
    assert counts(results) == said
    assert counts([Result(NOT_RUN, "right")]) == "--for 1 right; 0 broken"


def test_the_table() -> None:
    text = markdown(
        {"a==1": {"Abs_f": Result("right", "wrong"), "Add_f": Result("wrong", "right")}},
        {
            "b==2": {
                "lost": Result("right", "refused", "right", "no `Abs`"),
                "missed": Result("refused", BLOCKED, "right", "Abs is not taken"),
                "off": Result("refused", "wrong", "refused"),
            }
        },
    )
    assert "| b==2 | 3 | 1 | 2 | 0 | 1 | 1 | 0 | 1 | 1 |" in text
    lists = text.partition("## Whole models")[2].split("\n\n")
    assert lists[lists.index("Right as exported and not after `--for`:") + 1] == (
        "- b==2, lost: refused, `no 'Abs'`"
    )
    assert lists[lists.index("Silently wrong after `--for`:") + 1] == "- b==2, off: wrong"
    assert lists[-1].strip() == "- b==2, missed: refused by us, `Abs is not taken`"
    assert "| a==1 | 2 | 1 | 1 | 0 | 1 | 1 | 0 | 0 | 1 |" in text
    assert "| all | 2 | 1 | 1 | 0 | 1 | 1 | 0 | 0 | 1 |" in text
    assert "- a==1: Abs_f (wrong)" in text


def test_the_document_is_up_to_date() -> None:
    written = DOCUMENT.read_text(encoding="utf-8")
    assert written == markdown(read(), read(WHOLE)), "run python -m lab.matrix"


def test_nothing_is_broken_or_wrong() -> None:
    found = {
        (runtime, source): result
        for runtime, own in read().items()
        for source, result in own.items()
    }
    assert len(found) >= 3057
    assert not any(result.is_wrong or result.is_broken for result in found.values())


def test_of_whole_models_none_is_broken_and_each_wrong_one_has_a_cause() -> None:
    found = {
        (runtime, source): result
        for runtime, own in read(WHOLE).items()
        for source, result in own.items()
    }
    assert not any(result.is_broken for result in found.values())
    wrong = {name for name, result in found.items() if result.is_wrong}
    assert {(runtime.partition("==")[0], source) for runtime, source in wrong} == set(CAUSES)
