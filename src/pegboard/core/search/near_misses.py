"""Near misses: the right subject and another operation, which no score can tell from a match.

"Drop the customers table" scores higher with `describe_table` than many queries do with the tool
that answers them. What gives it away is the operation: a query that begins with a verb says whether
it wants to read, change or delete something, and so does the name of a tool. The words are those
that also tell the risk of a tool (`core/risk.py`).

Only clear cases count: a query that begins otherwise ("the table is no longer needed"), a tool
without a verb in its name, and "remove" beside "update" (which may well remove) decide nothing.
"""

from __future__ import annotations

import re

from pegboard.core.risk import creates, find_operation, verb_risk
from pegboard.core.search.relevance import WEAK_SCORE, raw_score
from pegboard.core.search.terms import word_set
from pegboard.core.tools import Risk, Tool

SURE_SCORE = 0.6
"""From this score on a tool is believed to fit, whatever its verb: "read the deal" is answered by
`update_deal` if its description says that it reads too."""

_WORD = re.compile(r"[a-z']+")
_FILLERS = word_set(
    "please kindly can could would you just now i we want to need help me lets let's hey hi ok"
)
_QUESTIONS = word_set("what which who whose where when how is are")
_IDIOMS = re.compile(
    r"(?:get rid of|throw (?:\S+ ){0,3}(?:out|away)|call (?:\S+ ){0,4}off"
    r"|take (?:\S+ ){0,3}(?:down|back))\b"
)
"""Ways to say `delete` that begin with a verb of another meaning."""
_LEADING_WORDS = 12


def is_near_miss(query: str, tool: Tool, score: float) -> bool:
    """Whether the best match of a query probably does something else than what was asked for."""
    if score < WEAK_SCORE:
        return True
    return raw_score(score) < SURE_SCORE and is_other_operation(query, tool)


def is_other_operation(query: str, tool: Tool) -> bool:
    """Whether a query clearly asks for another operation than the one that a tool is named for."""
    asked = find_requested_operation(query)
    does = find_operation(tool)
    if asked is None or does is None or asked == does:
        return False
    if (asked, does) == ("destructive", "write"):
        return creates(tool.own_name)
    return True


def find_requested_operation(query: str) -> Risk | None:
    """Whether a query asks to read, write or delete, by its first words; `None` if unclear."""
    words = _WORD.findall(query.lower())[:_LEADING_WORDS]
    while words and words[0] in _FILLERS:
        del words[0]
    if not words:
        return None
    if _IDIOMS.match(" ".join(words)):
        return "destructive"
    return "read" if words[0] in _QUESTIONS else verb_risk(words[0])
