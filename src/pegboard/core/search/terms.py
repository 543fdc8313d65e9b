"""Text to terms: hidden characters removed, identifiers split, words stemmed.

`createIssue`, `create_issue` and "creating issues" give the same terms. Scripts written without
spaces give overlapping pairs of characters, which is the best that a word index can do for them.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from functools import lru_cache
from typing import Protocol, cast

import Stemmer

from pegboard.core import sanitization


def word_set(text: str) -> frozenset[str]:
    """The words of a text, as a set."""
    return frozenset(text.split())


STOP_WORDS = word_set(
    """
    a about above after again against all also am an and any anyone anything are as at be
    because been before being below between both but by can cannot could did do does doing don
    done down during each either else etc ever every few for from further had has have having he
    hello her here hers herself hey hi him himself his how i if in into is it its itself just
    kindly let lets ll m many may me might mine more most much must my myself need needs neither
    no nor not now of off ok okay on once one only onto or other our ours ourselves out over own
    please quite rather re really s said same says shall she should simply since so some somehow
    someone something sure t than thank thanks that the their theirs them themselves then there
    these they this those through to too under until up upon us use used user uses using ve very
    via want wants was way we well were what whatever when where whether which while who whom
    whose why will wish with within without would yes yet you your yours yourself yourselves
    tool tools
    """
)

GROUP_WORDS = word_set(
    "actions anything category commands everything functions operations stuff toolbox tools"
)
"""Words that ask for a whole group. "all" alone does not: "list all calendars" wants one tool."""

GROUP_FILLERS = word_set(
    """
    a about all and any are available can concerning do entire every for from give have i in is
    list me of on please regarding related see server show that the there things to tool what which
    whole with works you your
    """
)
"""Words around the name of a group in such a query."""

TOPIC_WORDS = word_set("administration handling management managing")
"""Words that turn the name of a group into a topic: "issue management"."""

ABBREVIATIONS: dict[str, tuple[str, ...]] = {
    "admin": ("administrator",),
    "app": ("application",),
    "apps": ("application",),
    "args": ("argument",),
    "auth": ("authentication",),
    "cal": ("calendar",),
    "calc": ("calculate",),
    "cfg": ("configuration",),
    "cmd": ("command",),
    "config": ("configuration",),
    "conv": ("conversation",),
    "db": ("database",),
    "dbs": ("database",),
    "del": ("delete",),
    "desc": ("description",),
    "dest": ("destination",),
    "dev": ("developer",),
    "dir": ("directory",),
    "dirs": ("directory",),
    "doc": ("document",),
    "docs": ("document",),
    "env": ("environment",),
    "exec": ("execute",),
    "img": ("image",),
    "imgs": ("image",),
    "info": ("information",),
    "k8s": ("kubernetes",),
    "lang": ("language",),
    "loc": ("location",),
    "max": ("maximum",),
    "mem": ("memory",),
    "min": ("minimum",),
    "msg": ("message",),
    "msgs": ("message",),
    "num": ("number",),
    "org": ("organization",),
    "orgs": ("organization",),
    "param": ("parameter",),
    "params": ("parameter",),
    "perf": ("performance",),
    "pic": ("picture",),
    "pics": ("picture",),
    "pkg": ("package",),
    "pr": ("pull", "request"),
    "prs": ("pull", "request"),
    "proj": ("project",),
    "pwd": ("password",),
    "repo": ("repository",),
    "repos": ("repository",),
    "req": ("request",),
    "sched": ("schedule",),
    "spec": ("specification",),
    "specs": ("specification",),
    "stats": ("statistics",),
    "temp": ("temperature",),
    "tx": ("transaction",),
    "txn": ("transaction",),
    "vid": ("video",),
    "vm": ("virtual", "machine"),
    "vms": ("virtual", "machine"),
}


WORD = re.compile(r"[^\W_]+")
# Runs of capitals, capitalized words, digits, and anything that is not ASCII.
_PARTS = re.compile(r"[A-Z]+(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+|[^\x00-\x7f]+")
_LATIN_MARKS = re.compile("[\u0300-\u036f]")
# Thai, Lao, Burmese, Khmer, kana, ideographs and Hangul.
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0002fa1f]+"
)
_MAX_WORD_LENGTH = 64
_MIN_PERSON = 6


def clean_text(text: str, limit: int = 20_000) -> str:
    """The text as a person sees it, on one line and in plain letters.

    Compatibility forms (full-width letters, ligatures, styled alphabets) become plain ones, so that
    a description cannot match by characters that nobody reads.
    """
    visible = sanitization.sanitize_text(text[:limit])
    return " ".join(
        (visible if visible.isascii() else unicodedata.normalize("NFKC", visible)).split()
    )


def split_identifier(identifier: str) -> list[str]:
    """The words of an identifier, in lower case: `getHTTPResponse2` -> get, http, response2."""
    return [
        part.lower() for word in WORD.findall(identifier) for part in _PARTS.findall(word) or [word]
    ]


def identifier_to_phrase(identifier: str) -> str:
    """An identifier as a phrase."""
    return " ".join(split_identifier(clean_text(identifier)))


def normalize_name(name: str) -> str:
    """A name without case and separators: `Create-Issue` and `createIssue` are one."""
    return "".join(WORD.findall(clean_text(name))).casefold()


def extract_terms(text: str) -> list[str]:
    """The stemmed terms of a cleaned text, in order, without stop words."""
    found: list[str] = []
    for word in WORD.findall(text):
        found.extend(word_terms(word))
    return found


# A catalog and its queries use the same few thousand words again and again.
@lru_cache(maxsize=100_000)
def word_terms(word: str) -> tuple[str, ...]:
    """The terms of one word as written: its parts and, for a compound, the whole word too."""
    word = word[:_MAX_WORD_LENGTH]
    if not word.isascii():
        # Accents are removed from Latin letters only: in other scripts they change the word.
        folded = _LATIN_MARKS.sub("", unicodedata.normalize("NFD", word.casefold()))
        folded = unicodedata.normalize("NFC", folded)
        if folded.isascii():
            return _stems(folded)
        found: list[str] = []
        for run in _UNSPACED.findall(folded):
            found.extend(run[i : i + 2] for i in range(max(1, len(run) - 1)))
        found.extend(_UNSPACED.sub(" ", folded).split())
        return tuple(found)
    parts = [p.lower() for p in _PARTS.findall(word)]
    if len(parts) > 1:
        parts.append(word.lower())  # people write "github" for GitHub
    return tuple(stem for part in parts for stem in _stems(part))


def _stems(word: str) -> tuple[str, ...]:
    if word in STOP_WORDS:
        return ()
    stem = stemmer().stemWord(word)
    long_form = ABBREVIATIONS.get(word)
    if not long_form and word.endswith("ee") and len(word) > _MIN_PERSON:
        # Stemmers leave `assignee` alone. People ask for the operation ("assign it to me"), and
        # parameters name the person to whom it is done.
        long_form = (word[:-2],)
    return (stem,) if long_form is None else (stem, *(stemmer().stemWord(w) for w in long_form))


class _Stemmer(Protocol):
    def stemWord(self, word: str, /) -> str: ...


_local = threading.local()


def stemmer(language: str = "english") -> _Stemmer:
    """One stemmer per thread: they are not thread-safe, and creating one is cheap but not free."""
    stemmers: dict[str, _Stemmer] = _local.__dict__
    found = stemmers.get(language)
    if found is None:
        found = stemmers[language] = cast(_Stemmer, Stemmer.Stemmer(language))
    return found
