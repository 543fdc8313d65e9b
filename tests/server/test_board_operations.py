"""A served board has what a gateway has for operators: probes, metrics, a rollout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import anyio
import httpx2
import pytest
from tests.conformance.clients import play_python, served
from tests.conformance.scenarios import LISTING, call
from tests.real_redis import RedisServer, redis_program, redis_server
from tests.server.test_http_server import free_address

from pegboard import Pegboard
from pegboard.dashboard.interface import allow_everybody
from pegboard.store.redis import RedisStore

__all__ = ["redis_program", "redis_server"]  # fixtures

BOARD = """
import sys
from dataclasses import replace
from pegboard import Pegboard
from pegboard.store.redis import RedisStore

board = Pegboard("own", mode="eager", metrics=True)
if len(sys.argv) > 2:
    board.parts = replace(board.parts, store=RedisStore.from_url(sys.argv[2]))

@board.tool
def greet(name: str) -> str:
    "Say hello."
    return name

board.run(http=sys.argv[1])
"""


def make_board(**options: Any) -> Pegboard:
    board = Pegboard("own", mode="eager", **options)

    @board.tool
    def greet(name: str) -> str:
        """Say hello."""
        return name

    return board


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 40
    while not holds():
        assert time.monotonic() < until, "not within forty seconds"
        Event().wait(0.05)  # leaves the processor to those who are waited for


@contextmanager
def running(home: Path, *arguments: str) -> Generator[str]:
    """The address of a board with metrics, in a process of its own."""
    address = free_address()
    env = {**os.environ, "PEGBOARD_HOME": str(home)}
    process = subprocess.Popen([sys.executable, "-c", BOARD, address, *arguments], env=env)
    try:
        eventually(lambda: is_ready(f"http://{address}"))
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(timeout=20)


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("home")) as address:
        yield address


def is_ready(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/ready").status_code == 200
    except httpx2.TransportError:
        return False


def test_health_and_readiness_are_reported(url: str) -> None:
    assert httpx2.get(f"{url}/health").json() == {"status": "ok"}
    assert httpx2.get(f"{url}/ready").json() == {"ready": True, "tools": 1, "in_flight": 0}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_metrics_count_calls_lists_and_tokens(url: str, era: Any) -> None:
    def counted(figure: str) -> float:
        text = httpx2.get(f"{url}/metrics").text
        return sum(float(found) for found in re.findall(rf"^{figure}.* ([0-9.]+)$", text, re.M))

    figures = ("pegboard_calls_total", "pegboard_questions_total", "pegboard_tokens_total")
    before = [counted(figure) for figure in figures]
    steps = {"list": LISTING, "call": call("greet", name="Ada")}
    assert play_python(f"{url}/mcp", era, steps)["call"].ok
    assert all(counted(f) > was for f, was in zip(figures, before, strict=True))


def test_a_board_without_metrics_has_probes_alone() -> None:
    with served(make_board().asgi()) as address:
        assert httpx2.get(f"{address}/metrics").status_code == 404
        assert httpx2.get(f"{address}/ready").status_code == 200


def test_a_board_that_is_not_served_yet_is_not_ready() -> None:
    board = make_board()

    async def asked() -> int:
        transport = httpx2.ASGITransport(app=board.asgi())
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.get("/ready")).status_code

    assert anyio.run(asked) == 503


def test_a_rollout_is_begun_and_ended_on_the_page() -> None:
    shared = make_board().asgi(
        identify=allow_everybody
    )  # with an identity, since several people may use it
    with served(shared) as address, httpx2.Client(base_url=address) as operator:

        def names() -> list[str]:
            return play_python(f"{address}/mcp", "modern", {"list": LISTING})["list"].names

        def post(action: str, **form: str) -> str:
            shown = operator.get("/ui/rollout")
            [proof] = set(re.findall(r'name="csrf_token" value="([^"]+)"', shown.text))
            sent = operator.post(
                f"/ui/rollout/{action}", data={**form, "csrf_token": proof}, follow_redirects=True
            )
            return sent.text

        assert names() == ["greet"]
        begun = post("start", mode="proxy", percent="100", by="principal")
        assert "100% of callers, by principal, get the proxy mode." in begun
        eventually(lambda: names()[0] == "search_tools")
        eventually(lambda: "Tokens per session" in operator.get("/ui/rollout").text)
        post("stop")
        eventually(lambda: names() == ["greet"])


def test_replicas_follow_a_rollout_from_the_command_line(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    store = f"redis://127.0.0.1:{redis_server.port}/9"

    def rollout(*words: str) -> str:
        command = [sys.executable, "-m", "pegboard", "rollout", *words, "--store", store]
        done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
        return done.stdout

    with running(tmp_path, store) as one, running(tmp_path, store) as other:

        def modes() -> set[str]:
            steps = {"list": LISTING}
            lists = [play_python(f"{a}/mcp", "modern", steps)["list"].names for a in (one, other)]
            return {names[0] for names in lists}

        assert modes() == {"greet"}
        assert "100% of principals get index." in rollout("start", "index", "--percent", "100")
        eventually(lambda: modes() == {"list_available_tools"})
        rollout("stop")
        eventually(lambda: modes() == {"greet"})


def test_a_store_that_is_away_keeps_no_board_from_serving() -> None:
    board = make_board()
    board.parts = replace(board.parts, store=RedisStore.from_url("redis://127.0.0.1:1/0"))
    with served(board.asgi()) as address:
        names = play_python(f"{address}/mcp", "modern", {"list": LISTING})["list"].names
        assert names == ["greet"]
        assert httpx2.get(f"{address}/ready").status_code == 200
