"""What the dashboard and its live stream show to people with keys who are not operators."""

from __future__ import annotations

import re

import pytest
from tests.gate.world import Person, World, eventually

HIDDEN = ("payroll", "ledger", "pay_everyone", "sk-live", "broken-backend")


@pytest.fixture(scope="module", autouse=True)
def _calls(world: World) -> None:
    ann, bob = world.person("ann"), world.person("bob")
    for _ in range(3):
        assert ann.call("payroll_fail")["isError"]
    ann.text("payroll_pay_everyone")
    ann.text("wiki_edit")
    assert bob.text("wiki_look") == "wiki did look"


def test_an_operator_sees_all_servers_breakers_and_calls(world: World) -> None:
    ann = world.person("ann")
    eventually(lambda: "broken-backend" in ann.get("/").text)
    shown = ann.get("/").text
    assert "payroll.fail" in shown.split('id="breakers-title"')[1]
    assert "payroll.pay_everyone" in ann.get("/ui/calls").text


@pytest.mark.parametrize("path", ["/", "/ui/calls", "/ui/tools", "/ui/tools/list?q=pay"])
def test_no_page_shows_anybody_else_hidden_servers_breakers_or_calls(
    world: World, path: str
) -> None:
    shown = world.person("bob").get(path)
    assert shown.status_code == 200
    for word in (*HIDDEN, "wiki.edit", "wiki_edit"):
        assert word not in shown.text
    if path in ("/", "/ui/calls"):
        assert "wiki.look" in shown.text, "their own call"


def test_the_figures_of_a_viewer_are_of_their_own_calls(world: World) -> None:
    bob, ann = world.person("bob"), world.person("ann")
    # Other tests may have called tools of the same gateway before.
    before, of_tool = shown_calls(bob, "/"), shown_calls(bob, "/ui/tool?id=wiki.look")
    ann.text("wiki_look")
    bob.text("wiki_look")
    eventually(lambda: shown_calls(bob, "/ui/tool?id=wiki.look") > of_tool)
    assert shown_calls(bob, "/ui/tool?id=wiki.look") == of_tool + 1
    assert shown_calls(bob, "/") == before + 1
    assert shown_calls(ann, "/") > before + 1, "an operator sees the calls of both"


def shown_calls(person: Person, path: str) -> int:
    """The number of calls that a page shows."""
    found = re.search(r"<dt>Calls</dt><dd>(?:<strong>)?(\d+)", person.get(path).text)
    assert found
    return int(found[1])


def test_the_live_stream_shows_no_more_than_the_pages(world: World) -> None:
    parts = "statistics+usage+servers+breakers+all-calls"
    with world.person("bob").events(f"/ui/live?parts={parts}") as stream:
        shown = stream.until("data: ")
        assert "wiki.look" in shown
        for word in (*HIDDEN, "wiki.edit", "wiki_edit", "<svg"):
            assert word not in shown
    with world.person("ann").events("/ui/live?parts=servers+breakers") as stream:
        shown = stream.until("data: ")
        assert "payroll.fail" in shown


def test_metrics_are_for_operators_and_those_named_for_them(world: World) -> None:
    assert world.stranger().get("/metrics").status_code == 401
    assert world.person("bob").get("/metrics").status_code == 403
    for who in ("ann", "scraper"):
        answer = world.person(who).get("/metrics")
        assert answer.status_code == 200
        assert 'name="payroll.fail"' in answer.text
    assert world.person("scraper").get("/").status_code == 200
    assert "payroll" not in world.person("scraper").get("/").text


def test_an_error_names_no_server_that_is_hidden(world: World) -> None:
    bob = world.person("bob")
    unknown = bob.error("tools/call", name="ledger_close", arguments={})
    for word in HIDDEN:
        assert word not in unknown.replace("ledger_close", "")
    assert "ledger" not in bob.text("search_tools", query="close the books").lower()
    assert "ledger" not in bob.text("list_tool_categories")
