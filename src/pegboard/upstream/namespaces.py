"""Names for the tools of many servers: valid, unique, and the same after every restart.

A tool has an id, `server.tool`, made of the name that the *configuration* gives the server and the
name that the server gives the tool. It never changes and is accepted wherever a name is. The name
that clients see is made from it:

    id "github.create_issue"  --qualified-->  "github_create_issue"
                              --bare------->  "create_issue", where the caller sees no other one

A name depends on the configuration and on the tool's own id, and on no other tool. So no server can
change, take or shadow the name of another's tool, and a tool that is hidden from a caller leaves no
trace in the names that the caller sees:

- Every server has a namespace, such as `github_`, in which no other server's tool is named. Where
  the namespaces of `a` and `a_b` overlap, the longer one has what starts with it: the tool `b_c` of
  `a` is not `a_b_c` but `a_<digest>_b_c`.
- Model providers accept fewer names than MCP (`[A-Za-z0-9_-]{1,64}` against
  `[A-Za-z0-9_.-]{1,128}`). A name that has to be changed or cut ends in a digest of its id, and so
  does one that only looks as if it had been changed.
- Whether a name is shown bare is decided among the tools that a caller sees: `Catalog.address`.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from pegboard.core import defaults

NamingStyle: TypeAlias = Literal["qualified", "bare"]

_DIGEST_LENGTH = 6
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_ILLEGAL_BUT_DOTS = re.compile(r"[^A-Za-z0-9_.-]")
_MEANINGFUL = re.compile(r"[A-Za-z0-9]")
_HAS_DIGEST = re.compile(r"(?:[0-9a-f]{6}_|.*_[0-9a-f]{6}\Z)", re.DOTALL)
"""How names that were changed begin or end."""


@dataclass(frozen=True, slots=True)
class Naming:
    """How names are made."""

    style: NamingStyle = "qualified"
    separator: str = "_"
    max_length: int = defaults.NAME_MAX_LENGTH

    def make_legal(self, name: str) -> str:
        """The name with every character replaced that is not legal."""
        pattern = _ILLEGAL_BUT_DOTS if self.separator == "." else _ILLEGAL
        return pattern.sub("_", name)

    def make_distinct(self, name: str, tool_id: str) -> str:
        """The nearest legal name, with a digest of the id, within `max_length`."""
        legal = self.make_legal(name)
        readable = legal if _MEANINGFUL.search(legal) else "tool"
        return f"{readable[: self.max_length - _DIGEST_LENGTH - 1]}_{_digest(tool_id)}"


DEFAULT_NAMING = Naming()


class DisplayNames(NamedTuple):
    """The names of one tool, as `Tool` has them."""

    name: str
    bare: str
    is_shown_bare: bool


class Namespaces:
    """The namespaces of all servers of a configuration, and the names of tools in them.

    Args:
        servers: Every configured server, whether or not its tools are known.
        naming: The style, separator and length of names.
        prefixes: What names of a server's tools start with, where it is not the server's own name;
            an empty one has them shown bare. One that two servers share is used by neither.
        taken: Names that no tool may have: those of meta-tools.
    """

    def __init__(
        self,
        servers: Iterable[str],
        naming: Naming,
        *,
        prefixes: Mapping[str, str] | None = None,
        taken: Iterable[str] = (),
    ) -> None:
        self._naming = naming
        self._taken = frozenset(taken)
        known = list(dict.fromkeys(servers))
        given = prefixes or {}
        self._shown_bare = {s for s in known if naming.style == "bare" or given.get(s) == ""}
        legal = {server: naming.make_legal(server) for server in known}
        wanted = {server: naming.make_legal(given.get(server) or server) for server in known}
        # A prefix that is another server's name, or that two servers want, is used by neither.
        others = [legal[server] for server in known if legal[server] != wanted[server]]
        wanted_by = Counter([*wanted.values(), *others])
        named = Counter(legal.values())
        self._namespaces: dict[str, str] = {}
        for server in known:
            if wanted_by[wanted[server]] == 1:
                start = wanted[server]
            elif named[legal[server]] == 1 or legal[server] == server:
                start = legal[server]
            else:  # two names that became the same: `my server` and `my.server`
                start = f"{legal[server]}_{_digest(server)}"
            self._namespaces[server] = start + naming.separator
        self._all = frozenset(self._namespaces.values())

    def of(self, server: str, own: str) -> DisplayNames:
        """The names of one tool; they do not depend on other tools."""
        # Without a bare name for those in another namespace, a server cannot list a tool
        # `github.create_pr` and answer for `github`.
        owner = self._owner(own)
        repeats_server = owner == self._namespaces[server]
        bare = "" if "." in own or "/" in own or (owner and not repeats_server) else own
        # `git_branch` of the server `git` is in its namespace already: `git_git_branch` says no
        # more. If the server has a tool `branch` too, that one is `git_branch` (`Catalog.address`).
        is_shown_bare = (
            (server in self._shown_bare or repeats_server)
            and self._is_plain(bare)
            and self._fits(bare)
        )
        return DisplayNames(self.name(server, own), bare, is_shown_bare)

    def name(self, server: str, own: str) -> str:
        """The qualified name of one tool."""
        naming, tool_id, namespace = self._naming, f"{server}.{own}", self._namespaces[server]
        name = namespace + own
        if self._owner(name) != namespace:
            # It would be in the namespace of another server, which may list a tool of that very
            # name tomorrow. The digest comes first, so that what follows cannot lead there again.
            marked = f"{namespace}{_digest(tool_id)}_{naming.make_legal(own)}"[: naming.max_length]
            if marked.startswith(f"{namespace}{_digest(tool_id)}"):
                return marked
        elif self._is_plain(own) and self._fits(name):
            return name
        return naming.make_distinct(name, tool_id)

    def _owner(self, name: str) -> str:
        """The longest namespace that a name starts with; empty if it is in none."""
        separator = self._naming.separator
        at = name.rfind(separator)
        while at >= 0:
            if (start := name[: at + len(separator)]) in self._all:
                return start
            at = name.rfind(separator, 0, at + len(separator) - 1)
        return ""

    def _is_plain(self, own: str) -> bool:
        """Whether a name can stay as it is."""
        # A name that looks changed is changed too: else it could be the same as one that was.
        return bool(
            _MEANINGFUL.search(own)
            and own == self._naming.make_legal(own)
            and not _HAS_DIGEST.match(own)
        )

    def _fits(self, name: str) -> bool:
        return len(name) <= self._naming.max_length and name not in self._taken


def find_server_of_id(tool_id: str, servers: Iterable[str]) -> str | None:
    """The server that an id belongs to: of `a` and `a.b`, the latter has `a.b.c`."""
    return max((s for s in servers if tool_id.startswith(f"{s}.")), key=len, default=None)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_LENGTH]
