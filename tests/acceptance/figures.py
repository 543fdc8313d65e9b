"""Token figures that the designs give a number for, measured through a client.

Tokens are those of `o200k_base`. Each figure is measured once per process: the limits are checked
by `test_limits.py`, and the acceptance page shows the same values.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import anyio
from tests.acceptance.criteria import Figure
from tests.acceptance.support import (
    BOARDS,
    LIST,
    as_read,
    ask,
    call,
    memory_board,
    play,
    tracker_board,
    twelve_tools,
    twenty_tools,
)
from tests.conformance.clients import Scenario, Step

from examples.memory import RICH_EPISODE
from pegboard.core.json import compact
from pegboard.core.results.output_fields import list_field_entries
from pegboard.tokens import count_tokens

PAIR = ("query_memory", "create_episode")
"""The two tools that the design uses in its own calculation."""
TASKS = ("create an issue", "file a bug report", "log time on an issue", "upload a file")


def _at_most(value: int, limit: int, unit: str = "tokens") -> Figure:
    return Figure(f"{value:,} {unit} (at most {limit:,})", value <= limit)


def _below(value: int, limit: int, what: str) -> Figure:
    return Figure(f"{value:,} tokens, {what} (below {limit:,})", value < limit)


def _saved(part: int, whole: int, least: float) -> Figure:
    saved = 1 - part / whole
    return Figure(f"{saved:.1%} saved: {part:,} of {whole:,} tokens", saved >= least)


@cache
def _lists() -> tuple[int, int, int]:
    """Tokens of twenty stubs, of the twenty whole tools, of the list in the `proxy` mode."""
    board = twenty_tools()
    stubs = play(board, "modern", {"list": LIST}, mode="stub")["list"].ok["tools"]
    whole = play(board, "modern", {"list": LIST}, mode="eager")["list"].ok["tools"]
    proxy = play(board, "modern", {"list": LIST}, mode="proxy")["list"].ok["tools"]
    assert len(stubs) == len(whole) == 20
    return count_tokens(stubs), count_tokens(whole), count_tokens(proxy)


def twenty_stubs() -> Figure:
    return _at_most(_lists()[0], 500)


def twenty_stubs_saved() -> Figure:
    stubs, whole, _ = _lists()
    return _saved(stubs, whole, 0.9)


@cache
def stubs_per_list() -> Figure:
    """The same limit for lists of other lengths: 25 tokens for each stub, over the whole list."""
    texts: list[str] = []
    met = True
    for name, make in BOARDS.items():
        tools = play(make(), "modern", {"list": LIST}, mode="stub")["list"].ok["tools"]
        stubs = [t for t in tools if t["inputSchema"] == {"type": "object"}]  # pins are whole
        limit = 25 * len(stubs)
        tokens = as_read(stubs)
        texts.append(f"{name}: {tokens:,} tokens for {len(stubs)} stubs (at most {limit:,})")
        met &= tokens <= limit
    return Figure("; ".join(texts), met)


@cache
def _described() -> dict[str, int]:
    """Tokens of `tools/describe` for each of the twenty tools, as the design counts them."""
    board = twenty_tools()
    steps: Scenario = {t.name: ask("tools/describe", tool_name=t.name) for t in board.tools()}
    told = play(board, "modern", steps, mode="stub")
    return {name: count_tokens(answer.ok) for name, answer in told.answers.items()}


def pair_by_stubs() -> Figure:
    tokens = _described()
    return _saved(_lists()[0] + sum(tokens[name] for name in PAIR), sum(tokens.values()), 0.75)


@cache
def _pair_found(limit: int | None = None) -> float:
    """What one search that finds the pair saves; its words are close to the tools' own names."""
    words = "query the memory for earlier work, then create an episode"
    arguments: dict[str, Any] = {"query": words} | ({"limit": limit} if limit else {})
    search = call("search_tools", **arguments)
    text = play(twenty_tools(), "modern", {"search": search}, mode="proxy")["search"].text
    assert all(f"{name}(" in text for name in PAIR)
    return 1 - (_lists()[2] + count_tokens(text)) / sum(_described().values())


def pair_by_search() -> Figure:
    saved = _pair_found(limit=2)
    return Figure(f"{saved:.0%} saved, one search with `limit` 2", saved >= 0.9)


def pair_by_default_search() -> Figure:
    # Which ten tools it shows changes with the model: the page says which side of 90% it is on.
    side = "over" if _pair_found() >= 0.9 else "under"
    return Figure(f"{side} 90% saved, the same search without `limit`", None)


@cache
def _largest(kind: str) -> tuple[int, str]:
    """The most that one description of this kind costs, over all tools of both servers."""
    found: list[tuple[int, str]] = []
    for make in BOARDS.values():
        board = make()
        steps: Scenario = {tool.name: _describing(kind, tool.name) for tool in board.tools()}
        told = play(board, "modern", steps, mode="index" if "get" in kind else "proxy")
        for name, answer in told.answers.items():
            text = compact(answer.ok) if "/" in kind else answer.text
            found.append((count_tokens(text), name))
    return max(found)


def _describing(kind: str, name: str) -> Step:
    match kind:
        case "tools/describe":
            return ask(kind, names=[name])
        case "describe_tools":
            return call(kind, names=[name])
        case _:
            return call(kind, tool_name=name)


def largest_describe() -> Figure:
    tokens, name = _largest("tools/describe")
    return _below(tokens, 1_000, f"{name}, the largest of both servers")


def largest_description() -> Figure:
    tokens, name = _largest("get_tool_description")
    return _below(tokens, 400, f"{name}, the largest of both servers")


def largest_describe_tools() -> Figure:
    tokens, name = _largest("describe_tools")
    return _below(tokens, 400, f"{name}, the largest of both servers")


@cache
def average_describe() -> Figure:
    total = count = 0
    for make in BOARDS.values():
        board = make()
        steps: Scenario = {t.name: ask("tools/describe", names=[t.name]) for t in board.tools()}
        for answer in play(board, "modern", steps, mode="stub").answers.values():
            total, count = total + count_tokens(answer.ok), count + 1
    return Figure(f"{total // count} tokens on average over {count} tools, both schemas", None)


@cache
def _episode(*fields: str, episode: str = RICH_EPISODE) -> int:
    get = call("get_episode", episode_id=episode, include_fields=list(fields))
    told = play(memory_board(), "modern", {"get": get}, mode="eager")
    return count_tokens(compact(told["get"].ok["structuredContent"]))


def minimal_fields() -> Figure:
    return _saved(_episode("id", "task_description", "outcome_type"), _episode(), 0.9)


def learning_fields() -> Figure:
    return _saved(_episode("reward_score", "patterns", "reflection"), _episode(), 0.2)


def learning_of_five_patterns() -> Figure:
    """The design counts with five patterns; our large episode has eighteen."""
    tokens = _episode("reward_score", "patterns", "reflection", episode="ep-0003")
    return _below(
        tokens, 800, "ep-0003 with five patterns; our large episode has 18 and costs more"
    )


def status_fields() -> Figure:
    fields = ("status", "outcome_type", "created_at", "completed_at")
    return _saved(_episode(*fields), _episode(), 0.9)


@cache
def first_dynamic_list() -> Figure:
    told = play(tracker_board(), "legacy", {"list": LIST}, mode="dynamic")
    return _at_most(as_read(told["list"].ok["tools"]), 2_000)


@cache
def whole_tracker_list() -> Figure:
    tools = play(tracker_board(), "modern", {"list": LIST}, mode="eager")["list"].ok["tools"]
    return Figure(f"{as_read(tools):,} tokens for {len(tools)} tools, without output schemas", None)


@cache
def search_overhead() -> Figure:
    """What one search costs: its answer, and the definitions that it adds to the list."""
    costs: list[int] = []
    for words in TASKS:
        steps: Scenario = {
            "before": LIST,
            "search": call("search_tools", query=words),
            "after": LIST,
        }
        told = play(tracker_board(), "legacy", steps, mode="dynamic")
        known = set(told["before"].names)
        added = [t for t in told["after"].ok["tools"] if t["name"] not in known]
        costs.append(count_tokens(told["search"].text) + as_read(added))
    # Which tools come fourth and fifth changes with the model, so the page has the limit alone.
    return Figure(f"at most 2,000 tokens in {len(costs)} searches", max(costs) <= 2_000)


@cache
def proxy_list() -> Figure:
    """The meta-tools alone; the design has three of them and no pins."""
    tools = play(tracker_board(), "modern", {"list": LIST}, mode="proxy")["list"].ok["tools"]
    pins = {"list_projects", "fulltext_search"}
    return _at_most(as_read([t for t in tools if t["name"] not in pins]), 500)


@cache
def twelve_listed() -> Figure:
    told = play(twelve_tools(), "modern", {"all": call("list_available_tools")})
    return _at_most(count_tokens(told["all"].text), 500)


@cache
def index_saved() -> Figure:
    """List, one category, one description: against the list of everything."""
    steps: Scenario = {
        "list": LIST,
        "all": call("list_available_tools"),
        "one": call("get_tool_description", tool_name="create_issue"),
    }
    told = play(tracker_board(), "modern", steps, mode="index")
    way = as_read(told["list"].ok["tools"])
    way += sum(count_tokens(told[key].text) for key in ("all", "one"))
    whole = play(tracker_board(), "modern", {"list": LIST}, mode="eager")["list"].ok["tools"]
    return _saved(way, as_read(whole), 0.47)


@cache
def four_schemas() -> Figure:
    tools = play(tracker_board(), "modern", {"list": LIST}, mode="hierarchy")["list"].ok["tools"]
    return _at_most(as_read(tools[:4]), 400)


@cache
def fields_described() -> Figure:
    entries = [e for make in BOARDS.values() for t in make().tools() for e in list_field_entries(t)]
    described = sum(bool(entry.description) for entry in entries)
    return Figure(f"{described:,} of {len(entries):,} fields", described == len(entries))


@cache
def complete_metadata() -> Figure:
    tools = [t for make in BOARDS.values() for t in make().tools()]
    complete = sum(bool(t.examples and t.related and t.description) for t in tools)
    return Figure(f"{complete} of {len(tools)} tools", complete == len(tools))


@cache
def cache_hit_rate() -> Figure:
    """A session of two hundred calls over the twenty tools."""
    board = twenty_tools()
    tools = board.tools()
    before = board.schema_cache.stats()

    async def session() -> None:
        for number in range(200):
            assert tools[number % 20].input_schema

    anyio.run(session)
    after = board.schema_cache.stats()
    hits, misses = after.hits - before.hits, after.misses - before.misses
    rate = hits / (hits + misses)
    return Figure(f"{rate:.0%} of 200 calls over 20 tools (above 80%)", rate > 0.8)
