"""Search: full text, issue queries, saved searches, similarity."""

from __future__ import annotations

import pytest
from examples.database import Refused
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples.world import Caller, TrackerWorld

from examples.tracker import search

pytestmark = pytest.mark.anyio


async def found(call: Caller, query: str, **more: object) -> list[tuple[str, str]]:
    hits = (await call("fulltext_search", query=query, **more))["hits"]
    return [(hit["kind"], hit["ref"]) for hit in hits]


async def test_words_are_found_in_every_form_and_kind(world: TrackerWorld) -> None:
    kinds = (await world.ana("fulltext_search", query="customer"))["by_kind"]

    assert kinds == {"comment": 1, "issue": 1}
    assert ("issue", "WEB-2") in await found(world.ana, "customers")


async def test_titles_count_more_than_bodies(world: TrackerWorld) -> None:
    assert (await found(world.ana, "login"))[0] == ("issue", "WEB-3")


async def test_phrases_exclusions_and_prefixes_narrow_a_search(world: TrackerWorld) -> None:
    assert set(await found(world.ana, '"release branch"')) == {
        ("document", "release-plan"),
        ("message", "1"),
    }
    assert await found(world.ana, "release -branch", kinds=["document"]) == []
    assert ("issue", "OPS-1") in await found(world.ana, "back* host")
    assert "no word to look for" in await world.ana.refused("fulltext_search", query="-branch")


async def test_the_index_follows_every_change(world: TrackerWorld) -> None:
    created = await world.ana("create_issue", project="WEB", title="Xylophone sounds wrong")
    assert await found(world.ana, "xylophone") == [("issue", created["key"])]
    await world.ana("update_issue", issue=created["key"], title="Marimba sounds wrong")
    assert await found(world.ana, "xylophone") == []
    moved = await world.ana("move_issue", issue=created["key"], project="OPS")
    assert await found(world.ana, "marimba", project="OPS") == [("issue", moved["issue"]["key"])]
    await world.ana("delete_issue", issue=moved["issue"]["key"])
    assert await found(world.ana, "marimba") == []
    rebuilt = await world.ana("rebuild_search_index")
    assert rebuilt["entries"]["issue"] == 10


async def test_a_query_in_one_line_joins_fields_words_and_exclusions(world: TrackerWorld) -> None:
    async def keys(query: str) -> list[str]:
        return [i["key"] for i in (await world.ana("search_issues", query=query))["issues"]]

    assert await keys("assignee:me") == ["WEB-2"]
    assert await keys("priority:urgent,high type:bug") == ["WEB-1", "WEB-3"]
    assert await keys("status:open project:web -assignee:chen,nobody") == ["WEB-2", "WEB-3"]
    assert await keys("-assignee:chen project:OPS") == ["OPS-2"]
    assert await keys("due:overdue safari") == ["WEB-3"]
    assert await keys("label:security,triage") == ["API-2", "API-3"]


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("asignee:me", "assignee"),
        ("status:finished", "done"),
        ("due:soon", "overdue"),
        ("type:", "value"),
    ],
)
async def test_a_wrong_query_says_what_would_be_right(
    world: TrackerWorld, query: str, hint: str
) -> None:
    assert hint in await world.ana.refused("search_issues", query=query)


async def test_saved_searches_are_ones_own_and_checked_before_they_are_kept(
    world: TrackerWorld,
) -> None:
    await world.ana("save_search", name="mine", query="assignee:me")
    await world.ben("save_search", name="mine", query="assignee:me status:open")
    wrong = await world.ana.refused("save_search", name="bad", query="colour:red")

    assert "no field 'colour'" in wrong
    mine = await world.ana("run_saved_search", name="mine")
    assert [i["key"] for i in mine["issues"]] == ["WEB-2"]
    run = await world.ben("run_saved_search", name="mine")
    assert (run["query"], run["total"]) == ("assignee:me status:open", 2)
    assert (await world.ana("delete_saved_search", name="mine"))["searches"] == []
    assert "no saved search" in await world.ana.refused("run_saved_search", name="mine")


async def test_similar_issues_share_rare_words(world: TrackerWorld) -> None:
    by_text = await world.ana("find_similar_issues", text="Can't login in Safari, form shown again")
    by_issue = await world.ana("find_similar_issues", issue="WEB-3")

    assert by_text["similar"][0]["issue"]["key"] == "WEB-3"
    assert by_text["similar"][0]["score"] == 1
    assert "WEB-3" not in [s["issue"]["key"] for s in by_issue["similar"]]
    assert "either" in await world.ana.refused("find_similar_issues")


async def test_the_beginning_of_a_word_is_completed_from_what_occurs(world: TrackerWorld) -> None:
    terms = await world.ana("suggest_terms", prefix="lo")

    assert terms["terms"][0]["term"] in ("log", "login")
    assert all(t["term"].startswith("lo") for t in terms["terms"])


@settings(deadline=None)
@given(st.text(min_size=1, max_size=40))
def test_no_text_makes_a_broken_expression(text: str) -> None:
    try:
        expression = search._match(text)  # pyright: ignore[reportPrivateUsage] the law is about it
    except Refused:
        return
    with_quotes_gone = expression.replace('"', "").replace("*", "")
    assert all(c.isalnum() or c in "_ " for c in with_quotes_gone)
