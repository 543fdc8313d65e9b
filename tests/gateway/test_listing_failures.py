"""Servers that list their tools and fail at something else, or fail in words that name nobody."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.gateway.support import called, client_of, faulty, running, searched, write
from tests.upstream.support import script

from pegboard.config.settings import Settings
from pegboard.gateway.catalogs import build_profile
from pegboard.upstream.catalog_cache import ServerProfile
from pegboard.upstream.listing import Listing

pytestmark = pytest.mark.anyio

PROXY = Settings(mode="proxy")


async def test_a_failing_list_of_resources_or_prompts_costs_no_tools(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spec = script("misbehaving", "broken_lists", server="shop")
    async with (
        running([spec], tmp_path, settings=PROXY) as gateway,
        client_of(gateway, "legacy") as client,
    ):
        assert gateway.failures == {}
        assert [tool.id for tool in gateway.board.catalog] == ["shop.echo"]
        assert await called(client, "shop_echo") == "here"
    assert "shop: resources/list failed: Fetch failed (its tools are not affected)" in caplog.text
    assert "shop: prompts/list failed: shop exited with code 3" in caplog.text


def test_a_list_that_fails_leaves_what_was_known_of_it() -> None:
    known = ServerProfile(prompts=[{"name": "greet"}], resources=[{"uri": "a://b"}])
    listing = Listing("shop", failures={"prompts": "shop: prompts/list failed: no"})
    assert build_profile(listing, known) == ServerProfile(prompts=[{"name": "greet"}])


@pytest.mark.parametrize("fault", ["cannot_list", "dies_at_start"])
async def test_every_message_about_a_server_names_it(fault: str, tmp_path: Path) -> None:
    specs = [script("misbehaving", fault, server="shop"), script("polite")]
    async with (
        running(specs, tmp_path, settings=PROXY) as gateway,
        client_of(gateway, "legacy") as client,
    ):
        assert gateway.failures["shop"].startswith("shop")
        assert "Not available: shop" in await searched(client, "echo")


def test_doctor_names_the_server_and_what_it_cannot_list(tmp_path: Path) -> None:
    config = write(tmp_path, {"shop": faulty("broken_lists"), "post": faulty("cannot_list")})
    env = {**os.environ, "PEGBOARD_HOME": str(tmp_path / "home")}
    done = subprocess.run(
        [sys.executable, "-m", "pegboard", "doctor", "--config", str(config), "--json"],
        capture_output=True, text=True, env=env, check=False,
    )  # fmt: skip
    shop, post = json.loads(done.stdout)["servers"]
    assert (shop["reachable"], shop["tools"]) == (True, 1)
    assert shop["problems"][0] == "shop: resources/list failed: Fetch failed"
    assert (post["reachable"], post["problems"]) == (False, ["post: Fetch failed"])


async def test_all_pages_together_are_within_the_limit_of_a_message(tmp_path: Path) -> None:
    spec = script("misbehaving", "large_pages", server="shop", max_message_bytes=1_000_000)
    async with running([spec], tmp_path) as gateway:
        assert gateway.failures["shop"].startswith("shop: the pages of tools/list never end: they")
