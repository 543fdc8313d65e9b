"""Nothing in the tables is typed by hand: they are what the result files give."""

from __future__ import annotations

from benchmarks.losses import losses
from benchmarks.report import BEGIN, QUESTIONS, page, with_numbers
from benchmarks.runner import RESULTS, ROOT, read

FOUND = {name: figures for name in QUESTIONS if (figures := read(name))}


def test_benchmarks_page_is_what_the_results_give() -> None:
    assert FOUND, "there are no results"
    assert (ROOT / "BENCHMARKS.md").read_text(encoding="utf-8") == page(FOUND)


def test_numbers_in_the_readme_are_what_the_results_give() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert BEGIN in text
    assert with_numbers(text, FOUND) == text


def test_a_number_changed_by_hand_is_noticed() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    changed = text.replace(f"{BEGIN}\n", f"{BEGIN}\n| a better number | 1 | 2 |\n")
    assert with_numbers(changed, FOUND) == text


def test_every_plot_of_the_page_is_there() -> None:
    text = (ROOT / "BENCHMARKS.md").read_text(encoding="utf-8")
    shown = [line.split("/")[-1].rstrip(")") for line in text.splitlines() if line.startswith("![")]
    assert shown
    assert all((RESULTS / name).is_file() for name in shown)


def test_a_peer_that_is_ahead_is_named_among_the_losses() -> None:
    catalogue = {
        "contestants": {
            "pegboard proxy": {"list": 400, "first_definition": 700},
            "other": {"list": 200, "first_definition": 900},
        }
    }
    said = losses({"tokens": {"catalogues": {"some": catalogue}}})
    assert "tokens of the list: some (other 200, we 400)" in said
    assert "until callable" not in said


def test_a_missed_target_is_said() -> None:
    one = {"what": "a call, ms", "at_most": 5, "found": 9, "met": False}
    assert "target missed: a call, ms: 9 instead of 5" in losses({"parts": {"targets": [one]}})
