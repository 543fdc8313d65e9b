"""Nothing in the tables is typed by hand: they are what the result files give."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from benchmarks.losses import losses
from benchmarks.report import BEGIN, page, with_numbers
from benchmarks.runner import QUESTIONS, RESULTS, ROOT, read
from benchmarks.targets import judged

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
    catalog = {
        "contestants": {
            "pegboard proxy": {"list": 400, "first_definition": 700},
            "other": {"list": 200, "first_definition": 900},
        }
    }
    said = losses({"tokens": {"catalogs": {"some": catalog}}})
    assert "tokens of the list (on purpose" in said
    assert "some (other 200, we 400)" in said
    assert "until callable" not in said


def _parts(milliseconds: float) -> dict[str, Any]:
    return {"parts": {"parts": {"calls_pipeline": {"pipeline, ms": milliseconds}}}}


def _verdict(found: dict[str, Any]) -> str:
    return next(said for one, _, said in judged(found) if one.what == "CPU of all layers, ms")


def test_a_target_is_met_missed_or_not_measured() -> None:
    assert _verdict(_parts(0.2)) == "met"
    assert _verdict(_parts(0.3)) == "**missed**"
    assert _verdict({}) == "not measured"


def test_a_missed_target_is_among_the_losses() -> None:
    assert "CPU of all layers, ms: 0.3 instead of at most 0.25" in losses(_parts(0.3))
    assert "CPU of all layers" not in losses(_parts(0.2))


def test_a_time_of_a_busy_machine_neither_meets_nor_misses_a_target() -> None:
    for milliseconds in (0.2, 0.3):
        found = _parts(milliseconds)
        found["parts"]["machine"] = {"load_average": 20, "cores": 2}
        assert _verdict(found) == "machine too busy"


def test_every_question_is_measured_by_a_module_of_its_name() -> None:
    for name in QUESTIONS:
        question = import_module(f"benchmarks.{name}")
        assert (question.__doc__ or "").splitlines()[0].endswith("?")
        assert all(callable(getattr(question, part)) for part in ("measure", "section", "plots"))
