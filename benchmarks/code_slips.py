"""Slips in programs: every name, parameter, listed value, key and `await` misspelled in turn.

How many are found before anything is called depends on what is known of results: the declared
output schemas, nothing (as of most servers), or what one earlier call of each tool returned.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from benchmarks.code_tasks import TASKS
from benchmarks.code_workspace import build_workspace
from benchmarks.runner import WrongAnswer, say
from pegboard import CallResult, Pegboard, Tool
from pegboard.core.calls import ToolCall
from pegboard.core.tools import constant_definition

LISTED = ("status", "sort", "type", "kind")
"""Parameters whose values are listed."""


class Slip(NamedTuple):
    """A program with one mistake in it."""

    kind: str
    program: str


def slips(program: str, names: Mapping[str, Any]) -> Iterator[Slip]:
    """The program with each mistake that a writer could make in it, one at a time."""
    lines = program.split("\n")
    for node in ast.walk(ast.parse(program)):
        for kind, at, old, new in _slips_at(node, names):
            row, column = at.lineno - 1, at.col_offset + (1 if kind in ("value", "key") else 0)
            line = lines[row].encode()
            if line[column : column + len(old)] == old.encode():
                changed = line[:column] + new.encode() + line[column + len(old) :]
                made = [*lines[:row], changed.decode(), *lines[row + 1 :]]
                yield Slip(kind, "\n".join(made))


def _slips_at(node: ast.AST, names: Mapping[str, Any]) -> Iterator[tuple[str, Any, str, str]]:
    match node:
        case ast.Call(func=ast.Name(id=name)) if name in names:
            yield "name", node.func, name, f"{name}s"
            for one in node.keywords:
                if one.arg is None:
                    continue
                yield "parameter", one, one.arg, f"{one.arg}_id"
                match one.value:
                    case ast.Constant(value=str(value)) if one.arg in LISTED:
                        yield "value", one.value, value, f"{value}x"
                    case _:
                        pass
        case ast.Subscript(slice=ast.Constant(value=str(key))):
            yield "key", node.slice, key, f"{key}_x"
        case ast.Await(value=ast.Call(func=ast.Name(id=name))) if name in names:
            yield "await", node, "await ", ""
        case _:
            return


@dataclass(frozen=True, slots=True)
class Undeclared:
    """The tools of a board without output schemas, as most servers have them."""

    board: Pegboard

    async def tools(self) -> Sequence[Tool]:
        return [
            replace(
                tool, server="tracker", id="", definition=constant_definition(tool.input_schema)
            )
            for tool in self.board.tools()
        ]

    async def call(self, call: ToolCall) -> CallResult:
        arguments: Any = call.arguments
        result = await self.board.call(call.tool.name, arguments)
        return CallResult({"content": result.content, "isError": result.is_error})


async def undeclared_board(*, learns: bool) -> Pegboard:
    """The workspace behind a server that declares nothing about its results."""
    source = Undeclared(build_workspace())
    board = Pegboard("slips", learn_shapes=learns)
    board.mount({"tracker": source}, await source.tools())
    return board


async def measure_slips() -> dict[str, Any]:
    """The share of slips that is found before any call, by what is known of results."""
    return {
        "declared output schemas": await _share(declared=True, learned=False),
        "nothing": await _share(declared=False, learned=False),
        "one earlier call of each tool": await _share(declared=False, learned=True),
    }


async def _share(*, declared: bool, learned: bool) -> dict[str, Any]:
    found: Counter[str] = Counter()
    wrote = silent = 0
    for task in TASKS:
        program = task.program.strip()
        names = {tool.name: tool for tool in build_workspace().tools()}
        board: Pegboard | None = None
        for slip in slips(program, names):
            if board is None:
                board = build_workspace() if declared else await undeclared_board(learns=learned)
                if learned:
                    await _run(board, program)
            result = await _run(board, slip.program)
            about = result.meta["io.github.pegboard/run"]
            found["all"] += 1
            found["before"] += about["ran"] == "nothing"
            silent += about["ran"] == "finished"
            if about["writes"]:
                wrote += 1
                board = None  # the next slip meets the workspace as it was
    say(f"  slips: {found['before']} of {found['all']}")
    if not found["all"]:
        raise WrongAnswer("no slip could be made")
    share = round(100 * found["before"] / found["all"], 1)
    return {**found, "share": share, "wrote_first": wrote, "silent": silent}


async def _run(board: Pegboard, program: str) -> CallResult:
    return await board.run_code(program, write=True, consent=lambda _: True)
