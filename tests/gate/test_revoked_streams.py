"""No stream outlives the key that it was opened with."""

from __future__ import annotations

import time

from tests.gate.world import World, hashed


def test_streams_end_when_their_key_is_taken_out(world: World) -> None:
    dave, before = world.person("dave"), world.settings
    began = time.monotonic()
    with (
        dave.events("/ui/live?parts=calls") as page,
        dave.listening() as changes,
        world.person("carol").listening("vault://papers/8") as carols,
    ):
        page.until("data: ")
        world.reload(before.replace(hashed("key-of-dave"), hashed("another")))
        assert "data" not in "".join(page.rest())
        changes.rest()
        assert time.monotonic() - began < 15
        assert dave.get("/").status_code == 401
        world.person("ann").call("vault_announce", uri="vault://papers/8")
        carols.until("resources/updated")  # whose key is still good
    world.reload(before)


def test_a_live_stream_shows_less_as_soon_as_the_rules_give_less(world: World) -> None:
    before = world.settings
    with world.person("carol").events("/ui/live?parts=servers") as page:
        assert "vault" in page.until("data: ")
        world.reload(before.replace('"jobs", "vault", "forger"', '"jobs", "forger"'))
        assert "vault" not in page.until("data: ")
    world.reload(before)
