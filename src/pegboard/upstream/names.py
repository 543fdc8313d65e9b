"""What the tools of many servers are called: legal, never colliding, the same after every restart.

A tool has an id, `server.tool`, made of the name that the *configuration* gives the server and the
name that the server gives the tool. It never changes and is accepted wherever a name is. The name
that clients see is made from it, and from nothing else:

    id "github.create_issue"  --qualified-->  "github_create_issue"
                              --bare------->  "create_issue", where no other server has one

Model providers accept fewer names than MCP (`[A-Za-z0-9_-]{1,64}` against `[A-Za-z0-9_.-]{1,128}`),
so whatever does not fit is replaced, and a name that is cut, or that two tools would share, ends in
a digest of its id. The result depends on the set of tools and not on their order, on what a server
says of itself, or on what was there before.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from pegboard.core.tools import Tool

Style: TypeAlias = Literal["qualified", "bare"]

_DIGEST_LENGTHS = (6, 12, 24)
"""How much of a digest sets a name apart; more only where less did not."""
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_ILLEGAL_BUT_DOTS = re.compile(r"[^A-Za-z0-9_.-]")
_MEANINGFUL = re.compile(r"[A-Za-z0-9]")


@dataclass(frozen=True, slots=True)
class Naming:
    """How names are made."""

    style: Style = "qualified"
    separator: str = "_"
    max_length: int = 64

    def legal(self, name: str, tool_id: str) -> str:
        """The nearest legal name; cut or emptied ones end in a digest of the id."""
        pattern = _ILLEGAL_BUT_DOTS if self.separator == "." else _ILLEGAL
        legal = pattern.sub("_", name)
        if not _MEANINGFUL.search(legal):
            return self.distinct("tool", tool_id)
        return legal if len(legal) <= self.max_length else self.distinct(legal, tool_id)

    def distinct(self, name: str, tool_id: str, length: int = _DIGEST_LENGTHS[0]) -> str:
        """The name with a digest of the id, within `max_length`."""
        digest = hashlib.sha256(tool_id.encode("utf-8", "surrogatepass")).hexdigest()[
            : min(length, self.max_length - 2)
        ]
        return f"{name[: self.max_length - len(digest) - 1]}_{digest}"

    def qualified(self, prefix: str, own: str, tool_id: str) -> str:
        """A name that starts with the prefix of its server, where it has one."""
        return self.legal(f"{prefix}{self.separator}{own}" if prefix else own, tool_id)


DEFAULT_NAMING = Naming()


def settle(
    tools: Iterable[Tool],
    naming: Naming,
    *,
    prefixes: Mapping[str, str] | None = None,
    taken: Iterable[str] = (),
) -> list[Tool]:
    """The tools under names that are legal and all different.

    Args:
        tools: All tools of the catalogue, of every server.
        naming: The style, separator and length of names.
        prefixes: What names of a server's tools start with, where it is not the server's own name.
        taken: Names that no tool may have: those of meta-tools.
    """
    listed = list(tools)
    names = _names(listed, naming, prefixes or {}, frozenset(taken))
    return [
        tool if tool.name == name else replace(tool, name=name)
        for tool, name in zip(listed, names, strict=True)
    ]


def _names(
    tools: list[Tool], naming: Naming, prefixes: Mapping[str, str], taken: frozenset[str]
) -> list[str]:
    wanted = [_wanted(tool, naming, prefixes) for tool in tools]
    if naming.style == "bare":
        wanted = _bare_where_unique(tools, wanted, naming, taken)
    names = [naming.legal(name, tool.id) for name, tool in zip(wanted, tools, strict=True)]
    # A tool that is called exactly so keeps its name against those that only came to be called so.
    exact = Counter(name for name, was in zip(names, wanted, strict=True) if name == was)
    kept = {name for name, count in exact.items() if count == 1 and name not in taken}
    for length in _DIGEST_LENGTHS:
        shared = Counter(names)
        clashes = [
            (name in taken or shared[name] > 1) and not (name == was and name in kept)
            for name, was in zip(names, wanted, strict=True)
        ]
        if not any(clashes):
            break
        names = [
            naming.distinct(name, tool.id, length) if clash else name
            for tool, name, clash in zip(tools, names, clashes, strict=True)
        ]
    return names


def _wanted(tool: Tool, naming: Naming, prefixes: Mapping[str, str]) -> str:
    prefix = prefixes.get(tool.server, tool.server) if tool.server else ""
    return f"{prefix}{naming.separator}{tool.own_name}" if prefix else tool.own_name


def _bare_where_unique(
    tools: list[Tool], qualified: list[str], naming: Naming, taken: frozenset[str]
) -> list[str]:
    bare = [naming.legal(tool.own_name, tool.id) for tool in tools]
    count = Counter(bare)
    return [
        tool.own_name if count[name] == 1 and name not in taken else full
        for tool, name, full in zip(tools, bare, qualified, strict=True)
    ]
