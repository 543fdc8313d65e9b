"""Code mode through `pegboard serve`, over HTTP and stdio, with official clients of both eras."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import anyio
import httpx2
import pytest
from anyio import to_thread
from mcp import Client, StdioServerParameters
from mcp_types import ElicitResult
from tests.conformance.clients import Job, play_typescript
from tests.replicas.test_suspended_runs import DELETE, RUN, SERVER, Library
from tests.replicas.world import Replica

Era = Literal["legacy", "modern"]
QUESTION = "- work_delete_book(number=1)\n- work_delete_book(number=3)"
DONE = ["note first", "delete 1", "delete 3", "note last"]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    made = Library(tmp_path_factory.mktemp("code"), "memory:", mode="code", server=SERVER)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def gateway(library: Library) -> Replica:
    return library.start()


@pytest.fixture(autouse=True)
def _fresh(library: Library) -> None:
    library.forget()


def call_python(url: str, era: Era, action: str | None) -> tuple[list[str], list[str], Any]:
    """What a client of the Python SDK lists, what its user is asked, and what it gets."""
    asked: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action, content={} if action == "accept" else None)  # type: ignore[arg-type]

    async def main() -> tuple[list[str], list[str], Any]:
        mode = "legacy" if era == "legacy" else "auto"
        callback = None if action is None else answer
        with anyio.fail_after(60):
            async with Client(f"{url}/mcp", mode=mode, elicitation_callback=callback) as client:
                names = [tool.name for tool in (await client.list_tools()).tools]
                return names, asked, await client.call_tool("run_write_code", {"code": DELETE})

    return anyio.run(main)


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("action", ["accept", "decline"])
def test_a_python_client_asks_its_user_once(
    library: Library, gateway: Replica, era: Era, action: str
) -> None:
    names, asked, result = call_python(gateway.url, era, action)
    assert names == ["search_tools", "run_code", "run_write_code", "run_destructive_code"]
    assert [QUESTION in question for question in asked] == [True]
    text = result.content[0].text
    if action == "accept":
        assert (text, library.journal) == ('["deleted 1","deleted 3"]', DONE)
    else:
        assert "PermissionError: work_delete_book was declined by the user" in text
        assert library.journal == ["note first"]


@pytest.mark.parametrize(
    ("sdk", "era"), [("1", "legacy"), ("2", "legacy"), ("2", "modern")], ids=str
)
def test_a_typescript_client_asks_its_user_once_or_goes_on_by_name(
    library: Library, gateway: Replica, sdk: Literal["1", "2"], era: Era
) -> None:
    server = {"url": f"{gateway.url}/mcp"}
    steps = {
        "list": {"do": "list"},
        "search": {"do": "call", "name": "search_tools", "arguments": {"queries": ["books"]}},
        "read": {"do": "call", "name": "run_code", "arguments": {"code": "work_list_books()"}},
        "write": {"do": "call", "name": "run_write_code", "arguments": {"code": DELETE}},
    }
    jobs = [Job(server, era, steps, elicit=answer) for answer in ("accept", "decline", None)]
    accepted, declined, silent = play_typescript(sdk, jobs)
    assert accepted["list"].names[1:] == ["run_code", "run_write_code", "run_destructive_code"]
    assert "work_list_books() -> []int" in accepted["search"].text
    assert accepted["read"].text == "[1,2,3]"
    for played in (accepted, declined):
        assert [QUESTION in question for question in played.asked] == [True]
    assert accepted["write"].text == '["deleted 1","deleted 3"]'
    refused = declined["write"].result
    assert refused is not None
    assert "was declined by the user" in refused["content"][0]["text"]
    assert library.journal == [*DONE, "note first", "note first"]
    run = silent["write"].text.partition('run="')[2].partition('"')[0]
    by_name = {"do": "call", "name": "run_destructive_code", "arguments": {"run": run}}
    [later] = play_typescript(sdk, [Job(server, era, {"go on": by_name})])
    assert later["go on"].text == '["deleted 1","deleted 3"]'
    assert library.journal[-3:] == DONE[1:]


def test_a_question_that_a_modern_client_answers_after_a_crash(
    library: Library, gateway: Replica
) -> None:
    """The client holds the state of the question: the gateway may die while its user thinks."""
    first = library.start()
    capable = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    order = {"name": "run_write_code", "arguments": {"code": DELETE}}
    asked = first.ask("tools/call", **order, meta=capable)["result"]
    assert asked["resultType"] == "input_required"
    assert QUESTION in asked["inputRequests"]["consent"]["params"]["message"]
    first.kill()
    answer = {"requestState": asked["requestState"], "inputResponses": {}}
    # A request of the model cannot give the consent that the client asked for.
    stolen = gateway.call("run_destructive_code", run=asked["requestState"])
    assert stolen["isError"]
    assert library.journal == ["note first"]
    answer["inputResponses"] = {"consent": {"action": "accept", "content": {}}}
    done = gateway.ask("tools/call", **order, **answer, meta=capable)["result"]
    assert done["content"][0]["text"] == '["deleted 1","deleted 3"]'
    assert library.journal == DONE
    twice = gateway.ask("tools/call", **order, **answer, meta=capable)["result"]
    assert twice["isError"]
    assert library.journal == DONE


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_client_that_leaves_ends_the_call_that_its_program_waits_for(
    library: Library, gateway: Replica, era: Era
) -> None:
    program = "await work_add_note(text='a')\nawait work_wait()\nawait work_add_note(text='b')"

    async def happened(what: str) -> None:
        while what not in library.journal:
            await to_thread.run_sync(time.sleep, 0.02)

    async def main() -> None:
        mode = "legacy" if era == "legacy" else "auto"
        with anyio.fail_after(30):
            async with Client(f"{gateway.url}/mcp", mode=mode) as client:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(client.call_tool, "run_write_code", {"code": program})
                    await happened("wait")
                    tasks.cancel_scope.cancel()
                await happened("cancelled")

    anyio.run(main)
    assert library.journal == ["note a", "wait", "cancelled"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize("action", ["accept", "decline", None])
def test_a_client_over_stdio_is_asked_or_goes_on_by_name_after_a_crash(
    library: Library, era: Era, action: Literal["accept", "decline"] | None
) -> None:
    asked: list[str] = []

    async def answer(context: Any, params: Any) -> ElicitResult:
        asked.append(params.message)
        return ElicitResult(action=action or "cancel", content={} if action == "accept" else None)

    pid = library.folder / "pid"
    # The shell leaves its process id, so that the test can kill the gateway and nothing else.
    serve = f'echo $$ > {pid}; exec "$0" -m pegboard serve --config {library.config}'
    server = StdioServerParameters(
        command="/bin/sh",
        args=["-c", serve, sys.executable],
        env={**os.environ, "PEGBOARD_HOME": str(library.folder / "kept")},
    )
    mode = "legacy" if era == "legacy" else "auto"

    async def run(tool: str, *, kill: bool = False, **arguments: Any) -> str:
        text = ""
        with anyio.fail_after(60):
            try:
                callback = None if action is None else answer
                async with Client(server, mode=mode, elicitation_callback=callback) as client:
                    result = await client.call_tool(tool, arguments)
                    text = result.content[0].text  # type: ignore[union-attr]
                    if kill:
                        os.kill(int(pid.read_text()), signal.SIGKILL)
            except Exception:
                assert kill  # closing a connection to a process that is gone may fail
        return text

    text = anyio.run(partial(run, "run_write_code", kill=action is None, code=DELETE))
    if action is None:
        assert library.journal == ["note first"]
        handle = text.partition('run="')[2].partition('"')[0]
        text = anyio.run(partial(run, "run_destructive_code", run=handle))
        again = anyio.run(partial(run, "run_destructive_code", run=handle))
        assert "already continued" in again
    assert [QUESTION in question for question in asked] == ([] if action is None else [True])
    if action == "decline":
        assert "was declined by the user" in text
        assert library.journal == ["note first"]
    else:
        assert text == '["deleted 1","deleted 3"]'
        assert library.journal == DONE


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    """A gateway that several people use, each with a key."""
    people = "".join(
        f'[[auth.keys]]\nprincipal = "{who}"\nsha256 = "{sha256(who.encode()).hexdigest()}"\n'
        for who in ("ann", "eve")
    )
    folder = tmp_path_factory.mktemp("shared")
    audit = f'[observe]\naudit = "{folder / "audit.jsonl"}"\n'
    settings = f'[auth]\nkind = "keys"\n{people}[code]\nworkers = 2\n{audit}'
    made = Library(folder, "memory:", mode="code", server=SERVER, settings=settings)
    made.start()
    yield made
    made.stop()


@pytest.fixture(scope="module")
def people(shared: Library) -> Iterator[dict[str, Replica]]:
    """The gateway, as each of them reaches it."""
    [gateway] = shared.replicas
    made = {
        who: replace(gateway, client=httpx2.Client(headers={"Authorization": f"Bearer {who}"}))
        for who in ("ann", "eve")
    }
    yield made
    for each in made.values():
        each.client.close()


def test_nothing_of_one_person_can_be_used_by_another(
    shared: Library, people: dict[str, Replica]
) -> None:
    ann, eve = people["ann"], people["eve"]
    kept = ann.text("run_code", code="keep({'secret': 'walrus'})")
    assert ann.text("run_code", code=f"kept('{kept}')['secret']") == "walrus"
    waiting = ann.call("run_write_code", code=DELETE)["_meta"][RUN]["run"]
    failed = ann.call("run_write_code", code="await work_add_note(text='a')\n1 / 0")
    after = failed["content"][0]["text"].partition('after="')[2].partition('"')[0]
    tries = {
        "kept": ("run_code", {"code": f"kept('{kept}')"}),
        "run": ("run_destructive_code", {"run": waiting}),
        "after": ("run_write_code", {"code": "await work_add_note(text='a')", "after": after}),
    }
    for what, (tool, arguments) in tries.items():
        stolen = eve.call(tool, **arguments)
        # A handle of somebody else is answered as one that never was.
        handle = {"kept": kept, "run": waiting, "after": after}[what]
        unknown = {key: value.replace(handle, "r-0") for key, value in arguments.items()}
        never = eve.call(tool, **unknown)
        assert stolen["isError"]
        text, like = stolen["content"][0]["text"], never["content"][0]["text"]
        assert text.replace(handle, "r-0") == like
        assert "walrus" not in text
    assert shared.journal == ["note first", "note a"]
    # Nobody took anything from its owner.
    assert ann.text("run_destructive_code", run=waiting) == '["deleted 1","deleted 3"]'
    ann.call("run_write_code", code="await work_add_note(text='a')", after=after)
    assert shared.journal == [*DONE[:1], "note a", *DONE[1:]]


def test_the_audit_log_has_a_line_for_a_run_and_for_each_of_its_calls(
    shared: Library, people: dict[str, Replica]
) -> None:
    run = people["ann"].call("run_code", code="len(await work_list_books())")["_meta"][RUN]["id"]
    log, deadline = shared.folder / "audit.jsonl", time.monotonic() + 10
    found: list[dict[str, Any]] = []
    while len(found) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)  # lines are written in the background
        lines = [json.loads(line) for line in log.read_text().splitlines()]
        found = [line for line in lines if line.get("run") == run]
    assert [(line["operation"], line["principal"]) for line in found] == [
        ("tools/call", "ann"),
        ("run", "ann"),
    ]
    assert (found[0]["tool"], found[1]["calls"]) == ("work.list_books", 1)


def test_a_worker_has_an_empty_environment_and_no_files(people: dict[str, Replica]) -> None:
    ann = people["ann"]
    program = "import os\nos.listdir('/')"
    assert "Error" in ann.text("run_code", code=program)
    below = [int(pid) for pid in _children(ann.process.pid)]
    workers = [pid for pid in below if b"worker" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert workers
    for pid in workers:
        assert b"PEGBOARD_HOME" not in Path(f"/proc/{pid}/environ").read_bytes()


def _children(pid: int) -> list[str]:
    """All processes below one."""
    found: list[str] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += [child, *_children(int(child))]
    return found
