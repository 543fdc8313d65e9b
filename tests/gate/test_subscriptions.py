"""Updates of a resource reach who subscribed to it and may read it, whoever listens besides."""

from __future__ import annotations

from contextlib import ExitStack

import httpx2
from tests.gate.world import Person, World, eventually

PLANS = "vault://plans"


def test_a_hidden_resource_is_not_heard_of_and_not_kept_from_others(world: World) -> None:
    bob, carol, subscribed = world.person("bob"), world.person("carol"), "resources/subscribe"
    with bob.listening(PLANS) as bobs:
        assert not world.was_asked("vault", f"{subscribed} {PLANS}")
        with carol.listening(PLANS) as carols:
            assert world.was_asked("vault", f"{subscribed} {PLANS}"), "although bob was first"
            world.person("ann").call("vault_announce", uri=PLANS)
            assert PLANS in carols.until("resources/updated")
        eventually(lambda: world.was_asked("vault", f"resources/unsubscribe {PLANS}"))
        world.person("ann").switch("wiki.edit", on=False)
        bobs.until("tools/list_changed")
        assert not [line for line in bobs.lines if "updated" in line]
        world.person("ann").switch("wiki.edit", on=True)


def test_one_stream_of_a_principal_ending_leaves_the_other_subscribed(world: World) -> None:
    carol, uri, other = world.person("carol"), "vault://papers/1", "vault://papers/2"
    with carol.listening(uri) as first:
        with carol.listening(uri, other):
            pass
        eventually(lambda: world.was_asked("vault", f"resources/unsubscribe {other}"))
        world.person("ann").call("vault_announce", uri=uri)
        assert uri in first.until("resources/updated")
        assert not world.was_asked("vault", f"resources/unsubscribe {uri}")


def test_updates_stop_when_the_server_is_no_longer_permitted(world: World) -> None:
    carol, before = world.person("carol"), world.settings
    with carol.listening(PLANS) as carols:
        world.reload(before.replace('"vault", ', ""))
        try:
            world.person("ann").call("vault_announce", uri=PLANS)
            world.person("ann").switch("wiki.edit", on=False)
            carols.until("tools/list_changed")
            assert not [line for line in carols.lines if "updated" in line]
        finally:
            world.reload(before)
            world.person("ann").switch("wiki.edit", on=True)


def test_nobody_takes_all_the_streams_of_changes(world: World) -> None:
    many = Person(world.url, "key-of-bob")
    many.client.close()
    headers = {"Authorization": "Bearer key-of-bob"}
    limits = httpx2.Limits(max_connections=200)
    with (
        httpx2.Client(base_url=world.url, headers=headers, timeout=20, limits=limits) as client,
        ExitStack() as open_streams,
    ):
        many.client = client
        for _ in range(64):
            open_streams.enter_context(many.listening())
        refused = many.error("subscriptions/listen", notifications={"toolsListChanged": True})
        assert "too many notification streams" in refused
        with world.person("carol").listening() as stream:
            assert stream.lines
