"""What eight tasks cost a model: one call at a time, by programs, and by FastMCP's CodeMode.

    context   everything that the model reads and writes, once
    input     what it reads over all its turns, each of which begins with all before it

Every result is real. The choices are those of a reader who makes no mistake and takes the fewest
turns. The person's consent to deletions is asked for through the client and costs no tokens.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mcp import Client
from mcp_types import ElicitResult

from benchmarks.code_tasks import TASKS, NamedCall, Result, Task
from benchmarks.code_workspace import build_workspace
from benchmarks.contestants import READ, peer
from benchmarks.runner import Missing, WrongAnswer, say
from pegboard import Pegboard, build_server, count_tokens
from pegboard.core.json import compact

PLAIN = "pegboard proxy, a search per step"
FIELDS = "pegboard proxy, one search, `include_fields`"
CODE = "pegboard code"
FASTMCP = "fastmcp CodeMode"
RUN = {"read": "run_code", "write": "run_write_code", "destructive": "run_write_code"}
CALL = {"write": "call_write_tool", "destructive": "call_destructive_tool"}
_PEER = Path(__file__).with_name("code_peer.py")
_PEER_TIMEOUT = 600


@dataclass
class Count:
    """The tokens of one conversation or of several together."""

    context: int = 0
    input: int = 0
    output: int = 0
    turns: int = 0
    finished: int = 0

    def add(self, other: Count) -> None:
        for key, value in asdict(other).items():
            setattr(self, key, getattr(self, key) + value)


class Counter:
    """Adds up a conversation: the list and the task first, then each call and its answer."""

    def __init__(self, listing: Sequence[dict[str, Any]], task: Task) -> None:
        listed = sum(count_tokens(compact({k: e[k] for k in READ if k in e})) for e in listing)
        self.count = Count(context=listed + count_tokens(task.text))

    def turn(self) -> None:
        """The model reads everything so far and writes its next step."""
        self.count.turns += 1
        self.count.input += self.count.context

    def said(self, call: dict[str, Any], answer: str) -> None:
        sent = count_tokens(compact(call))
        self.count.output += sent
        self.count.context += sent + count_tokens(answer)


class Reader:
    """A conversation with a board, as `code_tasks.Conversation`, that counts what is read."""

    def __init__(self, board: Pegboard, client: Client, counter: Counter, selects: bool) -> None:
        self.board = board
        self.client = client
        self.counter = counter
        self.selects = selects

    async def ask(self, name: str, arguments: dict[str, Any], new_turn: bool = True) -> str:
        if new_turn:
            self.counter.turn()
        result = await self.client.call_tool(name, arguments)
        text = "\n".join(block.text for block in result.content if block.type == "text")
        if result.is_error:
            raise WrongAnswer(f"{name} {compact(arguments)[:200]}: {text[:300]}")
        self.counter.said({"name": name, "arguments": arguments}, text)
        return text

    async def search(self, task: Task, together: bool) -> None:
        """Find the tools of a task; each must be shown."""
        queries = list(task.queries)
        requests = [{"queries": queries}] if together else [{"query": one} for one in queries]
        shown = "\n".join([await self.ask("search_tools", one) for one in requests])
        for name in task.needs:
            if f"{name}(" not in shown:
                raise WrongAnswer(f"{task.name}: {name} was not found by {queries}")

    async def read(self, name: str, arguments: dict[str, Any], fields: Sequence[str]) -> Result:
        await self.ask("call_tool", self._call(name, arguments, fields))
        return await self._whole(name, arguments)

    async def read_all(self, calls: Sequence[NamedCall], fields: Sequence[str]) -> list[Result]:
        requests = [self._call(name, arguments, fields) for name, arguments in calls]
        for at in range(0, len(requests), 100):
            await self.ask("call_tools", {"calls": requests[at : at + 100]})
        return [await self._whole(*call) for call in calls]

    async def write(self, calls: Sequence[NamedCall], risk: str = "write") -> None:
        """Several calls of one turn, as clients send them side by side."""
        for number, (name, arguments) in enumerate(calls):
            call = {"name": name, "arguments": arguments}
            await self.ask(CALL[risk], call, new_turn=number == 0)

    def _call(self, name: str, arguments: Result, fields: Sequence[str]) -> dict[str, Any]:
        chosen = {"include_fields": list(fields)} if self.selects and fields else {}
        return {"name": name, "arguments": arguments, **chosen}

    async def _whole(self, name: str, arguments: dict[str, Any]) -> Result:
        """The result as a reader who reads on would have it; not counted."""
        return (await self.board.call(name, arguments)).structured


async def _agree(context: Any, params: Any) -> ElicitResult:
    """The person who looks at the list of deletions and agrees."""
    fields = params.requested_schema.get("properties", {})
    return ElicitResult(action="accept", content=dict.fromkeys(fields, True))


@asynccontextmanager
async def conversation(mode: str, task: Task, selects: bool = False) -> AsyncGenerator[Reader]:
    """A fresh workspace behind a mode, and a reader who has read its list."""
    board = build_workspace()
    server = build_server(board, environ={"PEGBOARD_MODE": mode})
    async with Client(server, elicitation_callback=_agree) as client:
        listed = await client.list_tools()
        entries = [tool.model_dump(by_alias=True, mode="json") for tool in listed.tools]
        yield Reader(board, client, Counter(entries, task), selects)


async def by_calls(task: Task, together: bool) -> Count:
    async with conversation("proxy", task, selects=together) as reader:
        await reader.search(task, together)
        await task.by_calls(reader)
        reader.counter.turn()
        reader.counter.count.finished = 1
        return reader.counter.count


async def by_program(task: Task) -> tuple[Count, str]:
    async with conversation("code", task) as reader:
        await reader.search(task, together=True)
        value = await reader.ask(RUN[task.risk], {"code": task.program.strip()})
        reader.counter.turn()
        reader.counter.count.finished = 1
        return reader.counter.count, value


def by_fastmcp() -> dict[str, Count]:
    """The same programs, with `call_tool`, after one search and one look at the schemas."""
    given = [
        {"name": t.name, "text": t.text, "needs": t.needs, "program": t.program} for t in TASKS
    ]
    ended = subprocess.run(
        [peer("python"), str(_PEER), sys.executable],
        input=json.dumps(given), capture_output=True, text=True, check=False, timeout=_PEER_TIMEOUT,
    )  # fmt: skip
    if ended.returncode:
        raise Missing((ended.stderr or "it printed nothing").strip().splitlines()[-1])
    found = json.loads(ended.stdout)
    counts: dict[str, Count] = {}
    for task in TASKS:
        one, counter = found["tasks"][task.name], Counter(found["list"], task)
        for call, answer in one["said"]:
            counter.turn()
            counter.said(call, answer)
        counter.turn()
        counter.count.finished = int(one["finished"])
        counts[task.name] = counter.count
    return counts


async def measure_tokens() -> dict[str, Any]:
    """The counts of every way, by task and together."""
    found: dict[str, dict[str, Count]] = {PLAIN: {}, FIELDS: {}, CODE: {}}
    values: dict[str, str] = {}
    for task in TASKS:
        say(f"  {task.name}")
        found[PLAIN][task.name] = await by_calls(task, together=False)
        found[FIELDS][task.name] = await by_calls(task, together=True)
        found[CODE][task.name], values[task.name] = await by_program(task)
    missing: dict[str, Any] = {}
    try:
        found[FASTMCP] = by_fastmcp()
    except Missing as exc:
        missing[FASTMCP] = {"missing": str(exc)}
    ways: dict[str, Any] = {}
    for who, counts in found.items():
        whole = Count()
        for count in counts.values():
            whole.add(count)
        by_task = {name: asdict(count) for name, count in counts.items()}
        ways[who] = {**asdict(whole), "tasks": by_task}
    return {"ways": {**ways, **missing}, "values": values}
