"""Queries of a special form: names of tools or groups, and several needs in one query.

    create_issue                            a tool
    everything about milestones             a group
    list projects, labels and milestones    several needs: a short list
    three sentences about one task          several needs, perhaps: each sentence is scored too
    book a room and let the team know       several needs, perhaps: each clause is scored too

Names are recognized before anything is scored, since a name is stronger evidence than any score.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import zip_longest
from typing import Literal, NamedTuple

from pegboard.core.risk import verb_risk
from pegboard.core.search.terms import (
    GROUP_FILLERS,
    GROUP_WORDS,
    TOPIC_WORDS,
    clean_text,
    extract_terms,
    identifier_to_phrase,
    normalize_name,
    split_identifier,
)
from pegboard.core.tools import Tool, group_name

_TOKEN = re.compile(r"[^\s,;\"'`()<>]+")
_JOINT = re.compile(r"[^\W_](?:[_./:-]+|(?<=[a-z])(?=[A-Z]))[^\W_]")
"""What makes a token an identifier: a separator, or a change from lower to upper case."""

_MAX_TOKENS = 20
"""Identifiers in one query that are looked up."""


# No pattern begins with a run of white space: it would be tried from each of its characters, and a
# query with a million of them would block the process.
_NEED_SEPARATOR = re.compile(r"[;\n]+|,\s+(?:and\s+|or\s+)?|(?<=\s)and\s+(?:then\s+)?")
_TOPIC = re.compile(r"\s*([^\s:;,][^:;,\n]*):\s+(?=\S)")
"""The topic at the start of a list: "memory: start an episode, add a step"."""
_LINE_SEPARATOR = re.compile(r"[;\n]+")
_MAX_WORDS_PER_LINE = 12
"""If a line has more words than this, the lines are a text, not needs."""
_MAX_NEEDS = 6
_MAX_WORDS_PER_NEED = 5
"""With more words per item than this on average, the commas separate parts of one thought."""
_SPEECH = frozenset(
    [
        "i",
        "i'm",
        "i'd",
        "my",
        "me",
        "we",
        "we're",
        "our",
        "us",
        "you",
        "your",
        "he",
        "she",
        "they",
        "please",
        "could",
        "would",
    ]
)
"""Words of conversational queries, which are not lists of needs."""
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
_LONG_QUERY = 25
"""Queries with at least this many words are also scored sentence by sentence."""
_MIN_SENTENCE = 3
_MAX_SENTENCES = 12
_CLAUSE_SEPARATOR = re.compile(
    r"[;\n]+|[,.!?:]\s+(?:(?:and|then|or|but)\s+)?|(?<=\s)(?:and|then|plus|but|before|after|so)\s+",
    re.IGNORECASE,
)
_MIN_WORDS_FOR_CLAUSES = 8
_MIN_CLAUSE = 3
_MAX_CLAUSES = 6


# --- several needs --------------------------------------------------------------------------------


def split_needs(query: str) -> tuple[str, ...]:
    """The needs in a query that is a short list, as agents write them; empty for one need.

    What comes before a colon is the topic of the list, and belongs to each of its needs.
    """
    needs = _share_objects(_split_list(query, _NEED_SEPARATOR))
    words = query.lower().split()
    if len(words) > _MAX_WORDS_PER_NEED * len(needs) or not _SPEECH.isdisjoint(words):
        return ()
    return needs


def _share_objects(needs: tuple[str, ...]) -> tuple[str, ...]:
    """The needs, in which a lone verb has the object of the next: "find and merge contacts"."""
    shared: list[str] = []
    for need, following in zip_longest(needs, needs[1:], fillvalue=""):
        _, _, target = following.partition(" ")
        is_verb = " " not in need and verb_risk(need.lower()) is not None
        shared.append(f"{need} {target}" if is_verb and target else need)
    return tuple(dict.fromkeys(shared))


def split_query_lines(query: str) -> tuple[str, ...]:
    """The queries in one that separates them by semicolons or line breaks; itself if it does not.

    These separators are unambiguous, so each part is always a query of its own.
    """
    lines = _split_list(query, _LINE_SEPARATOR)
    is_list = lines and all(len(line.split()) <= _MAX_WORDS_PER_LINE for line in lines)
    return lines if is_list else (query,)


def _split_list(query: str, separator: re.Pattern[str]) -> tuple[str, ...]:
    """The items of a list, each once and with the topic of the list; empty if it is not one."""
    found = _TOPIC.match(query)
    topic = f"{found[1]} " if found else ""
    listed = query[found.end() :] if found else query
    items = [topic + item for item in map(str.strip, separator.split(listed)) if item]
    return tuple(dict.fromkeys(items)) if 1 < len(items) <= _MAX_NEEDS else ()


def split_sentences(query: str) -> tuple[str, ...]:
    """The sentences of a long query; empty if there is just one, or the query is short."""
    if len(query.split()) < _LONG_QUERY:
        return ()
    sentences = [s for s in _SENTENCE_END.split(query) if len(s.split()) >= _MIN_SENTENCE]
    return tuple(sentences[:_MAX_SENTENCES]) if len(sentences) > 1 else ()


def split_clauses(query: str) -> tuple[str, ...]:
    """The clauses of a conversational request; empty if there is just one, or the request is short.

    Unlike the needs of a list, clauses may be parts of one thought. Fragments of one or two words
    belong to the clause before them, or to the one after them if they come first.
    """
    if len(query.split()) < _MIN_WORDS_FOR_CLAUSES:
        return ()
    clauses: list[list[str]] = []
    for part in _CLAUSE_SEPARATOR.split(query):
        words = part.split()
        if clauses and min(len(words), len(clauses[-1])) < _MIN_CLAUSE:
            clauses[-1] += words
        elif words:
            clauses.append(words)
    return tuple(map(" ".join, clauses[:_MAX_CLAUSES])) if len(clauses) > 1 else ()


# --- tools ----------------------------------------------------------------------------------------


class NamedTools(NamedTuple):
    """Tools by number: those of that name or id, and those that have it as another name."""

    exactly: list[int]
    otherwise: list[int]


class ToolNames:
    """Tools by all their names, ignoring case and separators.

    An alias, or a server's own name for its tool, counts only if no tool has that name: servers
    choose those, and must not be able to take precedence over the tool that is meant.
    """

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._names: dict[str, list[int]] = {}
        self._aliases: dict[str, list[int]] = {}
        for number, tool in enumerate(tools):
            names = {normalize_name(tool.name), normalize_name(tool.id)}  # often the same
            aliases = {normalize_name(alias) for alias in tool.aliases}
            if server := normalize_name(tool.server or ""):
                # The server's own name for the tool: its name or id without the server prefix.
                aliases |= {name.removeprefix(server) for name in names} - names
            for found, keys in ((self._names, names), (self._aliases, aliases)):
                for key in keys - {""}:
                    found.setdefault(key, []).append(number)

    def find(self, query: str) -> NamedTools:
        """The tools that the query names: all of it, or an identifier inside it."""
        whole = self._look_up([normalize_name(query)])
        if whole.exactly or whole.otherwise:
            return whole
        tokens = [token for token in _TOKEN.findall(query) if _JOINT.search(token)]
        return self._look_up([normalize_name(token) for token in tokens[:_MAX_TOKENS]])

    def _look_up(self, names: Sequence[str]) -> NamedTools:
        exactly = {n: None for name in names for n in self._names.get(name, ())}
        left = [name for name in names if name not in self._names]
        otherwise = {n: None for name in left for n in self._aliases.get(name, ())}
        return NamedTools(list(exactly), [n for n in otherwise if n not in exactly])


def matches_name(tool: Tool, words: frozenset[str]) -> bool:
    """Whether these are the words of a tool's name, in any order: "get jira issue"."""
    return words in (name_words(tool.own_name), name_words(tool.name))


def name_words(name: str) -> frozenset[str]:
    """The terms of a name, or of a query that may be one, whatever its separators."""
    return frozenset(extract_terms(identifier_to_phrase(name)))


@lru_cache(maxsize=10_000)
def server_terms(server: str) -> frozenset[str]:
    """The terms of a server's name as people write it: `HubSpot` is not a hub and a spot."""
    return name_words(server.lower())


# --- groups ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ToolGroup:
    """A category, a server, or a section of one, by its name in the catalog."""

    kind: Literal["category", "server", "section"]
    name: str

    def holds(self, tool: Tool) -> bool:
        """Whether the tool belongs to it."""
        if self.kind == "section":
            return tool.section is not None and group_name(tool) == self.name
        return (tool.category if self.kind == "category" else tool.server) == self.name


class GroupNames:
    """The groups of a catalog, by the words of their names."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        seen: dict[tuple[ToolGroup, str], None] = {}
        for tool in tools:
            if tool.category:
                seen[ToolGroup("category", tool.category), tool.category] = None
            if tool.server:
                seen[ToolGroup("server", tool.server), tool.server] = None
            if tool.section:
                seen[ToolGroup("section", group_name(tool)), tool.section] = None
        self._groups: dict[frozenset[str], ToolGroup] = {}
        # Sections come last: servers name them, and must not take the name of another group.
        for group, name in sorted(seen, key=lambda g: (g[0].kind == "section", g[0].kind, g[1])):
            if words := _group_words(name):
                self._groups.setdefault(words, group)

    def find_requested(self, query: str) -> ToolGroup | None:
        """The group that a query asks for as a whole; `None` for a query about one tool."""
        words = split_identifier(clean_text(query, 200))
        if not GROUP_WORDS.intersection(words):
            return None
        rest = " ".join(w for w in words if w not in GROUP_WORDS and w not in GROUP_FILLERS)
        by_rest = self._groups.get(_group_words(rest))
        return by_rest or self._groups.get(_group_words(clean_text(query, 200)))

    def find_topic(self, query: str) -> ToolGroup | None:
        """The group that a query names and nothing else: "issues", "issue management"."""
        words = split_identifier(clean_text(query, 200))
        rest = " ".join(word for word in words if word not in TOPIC_WORDS)
        by_all = self._groups.get(_group_words(" ".join(words)))
        return by_all or self._groups.get(_group_words(rest))


def _group_words(name: str) -> frozenset[str]:
    return frozenset(extract_terms(clean_text(name, 200)))
