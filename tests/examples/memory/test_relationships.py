"""Relationships: links, circles, graphs, similarity."""

from __future__ import annotations

import pytest
from tests.examples.world import Caller

pytestmark = pytest.mark.anyio


async def test_a_link_is_seen_from_both_ends(recall: Caller) -> None:
    await recall("link_episodes", source="ep-0008", kind="similar_to", target="ep-0011")
    seen = await recall("link_episodes", source="ep-0011", kind="supersedes", target="ep-0012")

    assert [(r["kind"], r["episode_id"]) for r in seen["outgoing"]] == [("supersedes", "ep-0012")]
    assert [(r["kind"], r["episode_id"]) for r in seen["incoming"]] == [
        ("follows", "ep-0013"),
        ("similar_to", "ep-0008"),
    ]


async def test_linking_again_replaces_the_reason(recall: Caller) -> None:
    link = {"source": "ep-0001", "kind": "depends_on", "target": "ep-0002"}
    seen = await recall("link_episodes", **link, reason="Better said")

    reasons = {r["episode_id"]: r["reason"] for r in seen["outgoing"]}
    assert reasons["ep-0002"] == "Better said"
    assert len(seen["outgoing"]) == 2


async def test_dependencies_may_not_form_a_circle(recall: Caller) -> None:
    await recall("link_episodes", source="ep-0002", kind="depends_on", target="ep-0003")

    circle = {"source": "ep-0003", "kind": "depends_on", "target": "ep-0001"}
    assert "circle" in await recall.refused("link_episodes", **circle)
    await recall("link_episodes", **{**circle, "kind": "follows"})


async def test_an_episode_is_not_linked_to_itself_or_to_nothing(recall: Caller) -> None:
    itself = {"source": "ep-0001", "kind": "follows", "target": "ep-0001"}
    nothing = {"source": "ep-0001", "kind": "follows", "target": "ep-0099"}

    assert "itself" in await recall.refused("link_episodes", **itself)
    assert "no episode 'ep-0099'" in await recall.refused("link_episodes", **nothing)


async def test_a_removed_link_is_gone_and_a_missing_one_is_said_to_be(recall: Caller) -> None:
    ends = {"source": "ep-0006", "target": "ep-0005"}
    assert "No such link" in await recall.refused("unlink_episodes", **ends, kind="depends_on")

    assert (await recall("unlink_episodes", **ends))["outgoing"] == []


async def test_a_graph_follows_links_both_ways_to_a_depth(recall: Caller) -> None:
    await recall("link_episodes", source="ep-0003", kind="follows", target="ep-0002")
    near = await recall("get_episode_graph", episode_id="ep-0001", depth=1)
    far = await recall("get_episode_graph", episode_id="ep-0001", depth=2)

    assert {n["episode"]["id"]: n["distance"] for n in near["nodes"]} == {
        "ep-0001": 0,
        "ep-0002": 1,
        "ep-0010": 1,
    }
    assert {n["episode"]["id"] for n in far["nodes"]} == {
        "ep-0001",
        "ep-0002",
        "ep-0003",
        "ep-0010",
    }
    assert len(far["edges"]) == 3


async def test_similar_episodes_leave_out_the_one_compared_with(recall: Caller) -> None:
    found = await recall("find_similar_episodes", episode_id="ep-0013")

    ids = [m["episode"]["id"] for m in found["matches"]]
    assert ids[0] == "ep-0011"
    assert "ep-0013" not in ids
