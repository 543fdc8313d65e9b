"""What the figures of the benchmarks rest on: turns, medians, checks, metrics, plots."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from importlib import import_module

import numpy as np
import pytest
from benchmarks.arguments import arguments_for, fits
from benchmarks.contestants import Step
from benchmarks.counters import read
from benchmarks.parts import PROGRAMS
from benchmarks.plots import bars, lines
from benchmarks.results import kept
from benchmarks.retrieval import interval
from benchmarks.runner import Missing, WrongAnswer, interleave, percentile, spread
from benchmarks.timing import in_turn
from benchmarks.walks import Walk
from hypothesis import given
from hypothesis import strategies as st


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_part_of_a_call_has_a_program_that_fits_the_code(name: str) -> None:
    # A wrong import would not fail the benchmark, but leave its figures out.
    assert import_module(f"benchmarks.{name}").__doc__


def test_contestants_take_turns_within_each_round() -> None:
    order: list[str] = []

    def contestant(name: str) -> dict[str, float]:
        order.append(name)
        return {"seconds": float(len(order))}

    found = interleave({"a": lambda: contestant("a"), "b": lambda: contestant("b")}, rounds=3)
    assert order == ["a", "b"] * 3
    assert found["a"]["seconds"] == {"median": 3, "low": 1, "high": 5, "rounds": 3}


def test_a_missing_peer_is_named_and_the_others_are_measured() -> None:
    def absent() -> dict[str, float]:
        raise Missing("not installed")

    found = interleave({"absent": absent, "here": lambda: {"ms": 2.0}}, rounds=2)
    assert found["absent"] == {"missing": "not installed"}
    assert found["here"]["ms"]["rounds"] == 2


def test_a_contestant_that_did_not_do_the_work_fails_the_run() -> None:
    def idle() -> dict[str, float]:
        raise WrongAnswer("nothing was called")

    with pytest.raises(WrongAnswer):
        interleave({"idle": idle}, rounds=1)


@given(st.lists(st.floats(0, 1e6), min_size=1))
def test_a_median_lies_within_its_spread(values: list[float]) -> None:
    found = spread(values, digits=9)
    assert found["low"] <= found["median"] <= found["high"]
    assert min(values) <= percentile(values, 0.99) <= max(values)


def test_a_gain_that_every_query_shows_has_no_room_for_chance() -> None:
    assert interval(np.full(50, 7.0)) == [7.0, 7.0]
    low, high = interval(np.array([-10.0, 10.0] * 40))
    assert low < 0 < high


def test_instructions_are_read_from_what_perf_writes_and_are_none_where_it_has_none() -> None:
    counted = "# started on Mon\n\n1234567,,instructions:u,100,100.00,,\n"
    assert read(counted) == 1_234_567
    assert read("<not supported>,,instructions:u,0,100.00,,\n") is None
    assert read("") is None


@pytest.mark.anyio
async def test_acts_are_measured_in_turn() -> None:
    order: list[str] = []

    async def act(name: str) -> None:
        order.append(name)

    found = await in_turn({"a": lambda: act("a"), "b": lambda: act("b")}, times=1, rounds=2)
    assert order == ["a", "b"] + ["a", "b"] * 2
    assert set(found) == {"a", "b"}


def test_what_is_read_until_a_tool_can_be_called_leaves_the_call_out() -> None:
    steps = (Step("search", 20, 300), Step("describe", 10, 100), Step("call", 30, 50))
    walk = Walk(right=True, first_right=True, steps=steps)
    assert walk.until_callable == 430
    assert walk.tokens == 510


def test_arguments_hold_what_is_required_and_fit_the_schema() -> None:
    schema = {
        "type": "object",
        "properties": {
            "to": {"type": "array", "items": {"$ref": "#/$defs/who"}, "minItems": 2},
            "when": {"type": "string", "format": "date"},
            "note": {"type": "string"},
        },
        "required": ["to", "when"],
        "$defs": {"who": {"enum": ["ann", "bob"]}},
    }
    made = arguments_for(schema)
    assert made == {"to": ["ann", "ann"], "when": "2026-01-02"}
    assert fits(schema, made)
    assert not fits(schema, {"to": ["cyd"]})


def test_arguments_that_cannot_be_made_are_none() -> None:
    unmatched = {"type": "string", "pattern": "^[0-9]{7}$"}
    schema = {"type": "object", "properties": {"id": unmatched}, "required": ["id"]}
    assert arguments_for(schema) is None


def test_what_a_text_keeps_of_a_result_is_counted_by_its_values() -> None:
    sent = json.dumps([{"name": "Ann Lee", "n": 1}, {"name": "Bo Chen", "n": 2}])
    assert kept(sent, "Ann Lee") == 0.5
    assert kept(sent, "Ann Lee, Bo Chen") == 1
    assert kept("first line\nsecond line", "second line") == 0.5


def test_plots_are_well_formed_and_name_every_contestant() -> None:
    groups = {"a < b": {"us & them": 12.0, "others": 1_200.0}}
    series = {"us": [(50.0, 0.1), (5_000.0, 2.0)], "them": [(50.0, 3.0), (5_000.0, 90.0)]}
    for svg in (
        bars("Bars", groups, unit="ms", log=True),
        lines("Lines", series, across="tools", unit="ms"),
    ):
        text = "".join(ET.fromstring(svg).itertext())
        assert ("us & them" in text and "1,200" in text) or ("us" in text and "them" in text)
        assert "prefers-color-scheme:dark" in svg
