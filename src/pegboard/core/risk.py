"""The risk of a tool: from the operator's rules, else its annotations, else its name.

It decides which calls need consent, and which scope an access token must have (`RiskScopes`).

    operator    a rule in the configuration; it overrides everything else
    annotated   `readOnlyHint` and `destructiveHint`; if they contradict, the stricter one
    inferred    by name: `get_...` reads, `delete_...` destroys, everything else writes

MCP's own default for a tool without annotations is destructive. Taken literally, most tools of most
servers would need the strictest approval, and people would learn to approve without reading. So a
tool without annotations is `write`, and `destructive` only under `strict`. A rule that *denies* by
risk always uses the strict value: a tool does not get through by saying nothing.

An inferred `read` holds under `strict` too. A server that lies can annotate its tool as easily as
it can name it, and honest servers name readers `get_`, `list_` or `search_`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from itertools import pairwise

from pegboard.core.json import Json
from pegboard.core.tools import RISKS, Risk, RiskSource, Tool

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_READERS = _words(
    "get list search read find fetch show view describe lookup count browse inspect retrieve "
    "preview"
)
_READERS_ANYWHERE = _words("get search read fetch retrieve describe lookup")
"""Verbs that are hardly ever nouns, so that `brave_web_search` and `issue_read` count as readers.

`view` and `count` are often nouns, and so is `list` (a `todo_list` is not a reader) unless a plural
follows it.
"""
_DELETERS = _words(
    "delete remove drop purge destroy erase wipe truncate clear prune expunge uninstall terminate "
    "unlink del rm rmdir"
)
_DELETERS_ANYWHERE = _words("delete remove purge destroy erase wipe truncate")
"""Verbs that mean deletion after other words too: `message_delete`, but not `drag_and_drop`."""
_WRITERS = _words(
    "add append apply approve archive assign cancel change close create deploy disable edit "
    "enable exec execute insert install invoke mark merge modify move overwrite patch publish "
    "push put rename replace reset restart restore run save send set start stop submit sync "
    "toggle trigger update upload upsert write and or then"
)
_CONJUNCTIONS = _words("and or then")
"""Words that show that a tool does more than read: `get_or_create`, `mark_as_read`."""
_CHANGERS = _WRITERS | _DELETERS
_ALSO_NOUNS = _words(
    "ask book buy call check comment commit copy export fork import invite join link lock log make "
    "open order pay pin place play post query record register release reply request schedule "
    "share sign store subscribe tag transfer type vote"
)
"""Verbs that are nouns after a reader (`get_post`) and verbs before one (`post_search`)."""


_CREATORS = _words("add create insert make new register")
_UNCLEAR_REQUESTS = _words(
    "and ask call check exec execute invoke log open or order place play query record request run "
    "store then type"
)
"""Verbs that say too little in a request: "open the report" reads, "open a ticket" writes."""


def verb_risk(verb: str) -> Risk | None:
    """The risk of what somebody asks for with a verb in the imperative; `None` if unclear."""
    if verb in _UNCLEAR_REQUESTS:
        return None
    if verb in _DELETERS:
        return "destructive"
    if verb in _READERS:
        return "read"
    return "write" if verb in _WRITERS | _ALSO_NOUNS | _CREATORS else None


def find_operation(tool: Tool) -> Risk | None:
    """Whether a tool reads, writes or deletes, by its own name; `None` if that says too little."""
    risk = infer_risk(tool.own_name, tool.server)
    # `infer_risk` treats unknown names as writers, and `get_profit_and_loss` too, to be safe.
    is_clear = risk != "write" or _has_word(tool.own_name, (_CHANGERS | _CREATORS) - _CONJUNCTIONS)
    return risk if is_clear else None


def surely_changes(tool: Tool) -> bool:
    """Whether there is evidence that a tool changes something, and not just a default risk."""
    if tool.risk == "read":
        return False
    return tool.risk_source != "inferred" or find_operation(tool) is not None


def creates(name: str) -> bool:
    """Whether a name says that something new is made."""
    return _has_word(name, _CREATORS)


def _has_word(name: str, words: frozenset[str]) -> bool:
    return not words.isdisjoint(word.lower() for word in _WORDS.findall(name))


def annotated_risk(annotations: Mapping[str, Json]) -> Risk | None:
    """The risk that MCP annotations state; `None` when they do not."""
    reads, destroys = annotations.get("readOnlyHint"), annotations.get("destructiveHint")
    if destroys is True:  # also beside `readOnlyHint: true`, which contradicts it
        return "destructive"
    if reads is True:
        return "read"
    return "write" if destroys is False else None


@lru_cache(maxsize=16_384)
def infer_risk(name: str, server: str | None = None) -> Risk:
    """The risk that a tool's own name suggests; the server's name before it does not count."""
    words = [word.lower() for word in _WORDS.findall(name)]
    prefix = [word.lower() for word in _WORDS.findall(server or "")]
    if prefix and words[: len(prefix)] == prefix:
        words = words[len(prefix) :]
    if not words:  # only signs, or letters of another script
        return "write"
    if words[0] in _DELETERS:
        return "destructive"
    # `get_delete_options` starts with a reader, so it does not delete.
    if words[0] not in _READERS and not _DELETERS_ANYWHERE.isdisjoint(words):
        return "destructive"
    if not _CHANGERS.isdisjoint(words):
        return "write"
    if words[0] in _READERS:
        return "read"
    # In doubt it writes: a reader that needs one more approval does no harm.
    for at, (word, following) in enumerate(pairwise([*words, ""])):
        # A verb inside a name reads too: `web_search`, and `slack_list_channels` by its plural.
        if word in _READERS_ANYWHERE or (word == "list" and following.endswith("s")):
            return "read" if _ALSO_NOUNS.isdisjoint(words[:at]) else "write"
    return "write"


def assess_risk(
    name: str, annotations: Mapping[str, Json], server: str | None = None
) -> tuple[Risk, RiskSource]:
    """The risk of a tool by its own name and its annotations, and which of the two decided.

    `readOnlyHint: false` alone rules out `read` and leaves the rest to the name.
    """
    stated = annotated_risk(annotations)
    if stated is not None:
        return stated, "annotated"
    risk = infer_risk(name, server)
    if risk == "read" and annotations.get("readOnlyHint") is False:
        return "write", "inferred"
    return risk, "inferred"


def apply_risk_rules(tool: Tool, rules: Mapping[str, Risk], *, strict: bool = False) -> Tool:
    """The tool with the risk that the operator's rules give it, else the one that it has.

    Args:
        tool: The tool, assessed by its annotations and name.
        rules: Risks by globs over ids and names; the first match decides.
        strict: Whether a tool of unknown risk counts as destructive.
    """
    for pattern, risk in rules.items():
        if any(fnmatchcase(name, pattern) for name in (tool.id, tool.name)):
            return replace(tool, risk=risk, risk_source="operator")
    if strict and (tool.risk, tool.risk_source) == ("write", "inferred"):
        return replace(tool, risk="destructive")
    return tool


def any_risk_declared(tools: Iterable[Tool], rules: Mapping[str, Risk]) -> bool:
    """Whether there is any rule, or any tool with annotations about its risk."""
    return bool(rules) or any(
        "readOnlyHint" in tool.annotations or "destructiveHint" in tool.annotations
        for tool in tools
    )


def strict_risk(tool: Tool) -> Risk:
    """The risk that a denial uses: never milder than what the tool's name says it does."""
    if tool.risk_source == "operator":
        return tool.risk
    if (tool.risk, tool.risk_source) == ("write", "inferred"):
        return "destructive"
    # A server that calls its tool `delete_...` and annotates it as read-only is not believed.
    named = infer_risk(tool.own_name, tool.server)
    return "destructive" if named == "destructive" else tool.risk


@dataclass(frozen=True, slots=True, kw_only=True)
class RiskScopes:
    """A scope for each risk; one that is not given needs that of the next lower risk.

    The scope of a higher risk includes the lower ones: who may delete may read.
    """

    read: str | None = None
    write: str | None = None
    destructive: str | None = None

    @property
    def in_order(self) -> tuple[str | None, ...]:
        """The scopes from the lowest risk to the highest."""
        return (self.read, self.write, self.destructive)

    def needed(self, risk: Risk) -> str | None:
        """The scope for tools of a risk; `None` if none is needed."""
        given = [scope for scope in self.in_order[: RISKS.index(risk) + 1] if scope]
        return given[-1] if given else None

    def missing(self, tool: Tool, scopes: frozenset[str]) -> str | None:
        """The scope that a call to this tool needs and a token with these scopes does not have."""
        # As for a denial: a tool of unknown risk, or whose annotations contradict its name, counts
        # as destructive.
        risk = strict_risk(tool)
        needed = self.needed(risk)
        if needed is None or needed in scopes:
            return None
        broader = {scope for scope in self.in_order[RISKS.index(risk) :] if scope}
        return None if broader & scopes else needed
