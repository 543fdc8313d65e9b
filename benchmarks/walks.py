"""Tasks made of a catalog's queries, and walks through a contestant for each of them.

The questions about tokens and about the simulated agent look at the same walks, so a contestant is
started over a catalog once and both read what it did.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.arguments import arguments_for, fits
from benchmarks.contestants import (
    Contestant,
    Ledger,
    Step,
    Task,
    echoed,
    everyone,
    listing_of,
)
from benchmarks.data import Catalog, load_catalog
from benchmarks.runner import WrongAnswer, gathered, say
from pegboard import count_tokens

TURNS = 10
TOOLS_USED = (1, 3, 10)
CACHED = 0.1
"""What a token costs that the provider has cached, against one that it has not."""


def tasks_of(tools: Catalog, count: int) -> list[Task]:
    """So many tasks, evenly taken; only tools for which fitting arguments can be made."""
    schemas = {id: tool.get("inputSchema") or {} for id, tool in tools.by_id.items()}
    found: list[Task] = []
    queries = tools.queries or described(tools, count)
    step = max(1, len(queries) // count)
    for query in queries[::step]:
        made = {i: arguments_for(schemas[i]) for i in query["relevant"] if i in schemas}
        good = {id: arguments for id, arguments in made.items() if arguments is not None}
        if good:
            found.append(Task(query["query"], good))
    return found[:count]


def described(tools: Catalog, count: int) -> list[dict[str, Any]]:
    """Requests for a catalog that has none: how the descriptions of its tools begin."""
    step = max(1, len(tools.tools) // count)
    chosen = [tool for tool in tools.tools[::step] if tool.get("description")]
    return [
        {"query": " ".join(t["description"].split()[:8]), "relevant": [t["id"]]} for t in chosen
    ]


@dataclass(frozen=True, slots=True)
class Walk:
    """How one task went."""

    right: bool
    """The right tool was called, with arguments that fit, and the server says so."""
    first_right: bool | None
    """Whether the tool shown first was right; none for who is shown everything."""
    steps: tuple[Step, ...]

    @property
    def tokens(self) -> int:
        return sum(step.sent + step.received for step in self.steps)

    @property
    def until_callable(self) -> int:
        """Tokens read and written before the call itself."""
        return sum(step.sent + step.received for step in self.steps if step.kind != "call")


@dataclass(frozen=True, slots=True)
class Played:
    """What a contestant did with the tasks of a catalog."""

    listing: int
    instructions: int
    """Tokens of what its server says about itself: read beside the list."""
    walks: tuple[Walk, ...]
    sessions: dict[str, dict[str, int]]


_PLAYED: dict[tuple[str, str, int], Played] = {}


def over(names: Sequence[str], figures: Callable[[Catalog, Path], Any]) -> dict[str, Any]:
    """The figures of each catalog, by its name."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)

        def of(one: str) -> Any:
            say(f"  {one}")
            return figures(load_catalog(one, folder), folder)

        return gathered({one: partial(of, one) for one in names})


def by_everyone(
    tools: Catalog, folder: Path, tasks: Sequence[Task], figures: Callable[[Played], Any]
) -> dict[str, Any]:
    """The figures of what each contestant does with the tasks."""
    return gathered(
        {one.name: lambda c=one: figures(play(c, tools, folder, tasks)) for one in everyone()}
    )


def play(contestant: Contestant, tools: Catalog, folder: Path, tasks: Sequence[Task]) -> Played:
    """Every task by itself and whole sessions, with the contestant started once for all of them.

    Raises:
        Missing: The contestant is not on this machine, or cannot have this catalog.
        WrongAnswer: It did not do what it said.
    """
    key = (contestant.name, tools.name, len(tasks))
    if key not in _PLAYED:
        with contestant.start(tools, folder) as process:
            text = listing_of(process)
            _PLAYED[key] = Played(
                count_tokens(text),
                count_tokens(process.instructions) if process.instructions else 0,
                tuple(walk(contestant, Ledger(process, tools, text), t) for t in tasks),
                {
                    str(k): session(contestant, Ledger(process, tools, text), tasks, k)
                    for k in TOOLS_USED
                },
            )
    return _PLAYED[key]


def session(
    contestant: Contestant, ledger: Ledger, tasks: Sequence[Task], tools_used: int
) -> dict[str, int]:
    """Input tokens of ten turns, of which the first so many use one tool each.

    Every request carries all that was said before. With the prompt cache, what an earlier request
    carried costs a tenth; all contestants here keep their list, and so the cache.
    """
    context = count_tokens(ledger.listing) + count_tokens(ledger.process.instructions)
    plain = cached = 0.0
    known = 0
    for turn in range(TURNS):
        task = tasks[turn % len(tasks)]
        context += count_tokens(task.query)
        before = len(ledger.steps)
        if turn < tools_used:
            walk(contestant, ledger, task)
        for step in [*ledger.steps[before:], None]:
            plain += context
            cached += (context - known) + known * CACHED
            known = context
            context += step.sent + step.received if step else 0
    return {"plain": round(plain), "cached": round(cached)}


def walk(contestant: Contestant, ledger: Ledger, task: Task) -> Walk:
    """One task, from its words to the checked answer of the server.

    Raises:
        WrongAnswer: The contestant said that it called, and the server was called otherwise.
    """
    before = len(ledger.steps)
    found = contestant.find(ledger, task)
    right = found.id in task.arguments
    if right and ledger.catalog.runnable:
        assert found.id is not None
        arguments = task.arguments[found.id]
        text = contestant.call(ledger, found, arguments)
        right = answered(contestant, ledger.catalog.by_id[found.id], arguments, text)
    first = None if found.first is None else found.first in task.arguments
    return Walk(right, first, tuple(ledger.steps[before:]))


def answered(
    contestant: Contestant, tool: dict[str, Any], arguments: dict[str, Any], text: str
) -> bool:
    echo = echoed(text)
    if echo is None:
        return False  # refused or failed: a failure of the task, told to the model
    if echo["called"] != f"{tool['server']}/{tool['name']}":
        raise WrongAnswer(f"{contestant.name} called {echo['called']} for {tool['name']}")
    return echo["arguments"] == arguments and fits(tool.get("inputSchema") or {}, echo["arguments"])
