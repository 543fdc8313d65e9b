"""A page on another port of this machine cannot have an operator's browser decide anything."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Generator
from contextlib import contextmanager

import httpx2
import pytest
from tests.gate.world import World

FORM = {"id": "wiki.edit", "enabled": ""}


def proof(secret: str, token: str = "") -> str:
    said = b"pegboard form of ann"
    keys = {"": secret, "token": f"{secret} {token}"}
    return hmac.new(keys["token" if token else ""].encode(), said, hashlib.sha256).hexdigest()


@contextmanager
def browser(world: World) -> Generator[httpx2.Client]:
    """Ann's browser, signed in, with a cookie that a page on another port has planted."""
    port = httpx2.URL(world.url).port
    with httpx2.Client(base_url=world.url, timeout=20) as client:
        assert client.post("/ui/enter", data={"token": "key-of-ann"}).status_code == 303
        assert list(client.cookies) == [f"pegboard-token-{port}"]
        client.cookies.set(f"pegboard-form-{port}", "planted")
        yield client


@pytest.mark.parametrize("origin", ["http://127.0.0.1:1", "http://localhost:{port}", "null", None])
@pytest.mark.parametrize("site", ["same-site", "cross-site", None])
def test_a_planted_cookie_and_a_forged_proof_switch_nothing(
    world: World, origin: str | None, site: str | None
) -> None:
    headers = {"Sec-Fetch-Site": site} if site else {}
    if origin:
        headers["Origin"] = origin.format(port=httpx2.URL(world.url).port)
    with browser(world) as client:
        form = {**FORM, "csrf_token": proof("planted")}
        answer = client.post("/ui/tool/switch", data=form, headers=headers)
        assert answer.status_code == 403
        assert "Disable" in client.get("/ui/tool?id=wiki.edit").text


def test_a_form_of_our_own_page_is_taken(world: World) -> None:
    with browser(world) as client:
        shown = client.get("/ui/tool?id=wiki.edit").text
        ours = shown.split('name="csrf_token" value="')[1].split('"')[0]
        assert ours == proof("planted", "key-of-ann")
        headers = {"Origin": world.url, "Sec-Fetch-Site": "same-origin"}
        for enabled in ("", "1"):
            form = {**FORM, "enabled": enabled, "csrf_token": ours}
            answer = client.post("/ui/tool/switch", data=form, headers=headers)
            assert answer.status_code == 303
