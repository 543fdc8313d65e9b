"""What a session costs: a stated model of requests, context and prompt cache.

A session has `turns` requests of its own and uses `tools` different tools, their first uses spread
evenly. Every request sends the whole context again: the list, what was read to find tools, the
conversation. Before the first use of a tool a mode may need requests of its own, to search or to
describe.

Counted are the tokens that tools cause: list and findings in every request, and the conversation
too in the requests that exist only to find a tool. Results of calls are the same under every mode
and not counted.

    without a cache   all of them at the base price
    with a cache      what the request before had sent is read back at `read`, what is new is
                      written at `write`; a changed list stands at the front of the prompt, so
                      everything behind it is written again, the conversation included
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pegboard.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of a token relative to each other: sent plainly, into the cache, out of the cache."""

    base: float = 1.0
    write: float = 1.25
    read: float = 0.1

    def __post_init__(self) -> None:
        if min(self.base, self.write, self.read) < 0:
            raise ConfigError("A price cannot be below zero.", field="prices")


@dataclass(frozen=True, slots=True)
class Use:
    """What a session does: so many tools in so many turns of so many tokens."""

    tools: int = 5
    turns: int = 20
    conversation: int = 500
    """Tokens that each turn adds, results of calls included."""

    def __post_init__(self) -> None:
        if self.turns < 1 or self.tools < 0 or self.conversation < 0:
            raise ConfigError("A session has at least one turn, and no less than no tools.")
        if self.tools > self.turns:
            raise ConfigError(
                f"{self.tools} tools cannot be used in {self.turns} turns: each use takes a turn.",
                field="use",
            )


@dataclass(frozen=True, slots=True)
class Finding:
    """What one tool's first use takes: the answers read, one request each, or a longer list."""

    answers: tuple[float, ...] = ()
    """Tokens of each answer that the model reads."""
    growth: float = 0.0
    """Tokens by which the list grows."""


@dataclass(frozen=True, slots=True)
class SessionCost:
    """The cost of one session."""

    requests: int
    context: int
    """Tokens of list and findings in the window at the end."""
    sent: int
    """Tokens sent over all requests: the cost without a cache, in tokens."""
    plain: float
    """The cost without a cache, in tokens of the base price."""
    cached: float
    """The cost with a cache, in tokens of the base price."""


def session(listed: float, finding: Finding, use: Use, prices: Prices) -> SessionCost:
    """What a session costs under a mode that lists so many tokens."""
    ledger = _Ledger(listed, prices)
    due = _first_uses(use)
    for turn in range(use.turns):
        ledger.conversation += use.conversation
        for _ in range(due[turn]):
            for tokens in finding.answers:
                ledger.request(is_extra=True)
                ledger.found += tokens
            ledger.grow(finding.growth)
        ledger.request(is_extra=False)
    return ledger.cost()


def _first_uses(use: Use) -> Sequence[int]:
    """How many tools are used for the first time in each turn."""
    due = [0] * use.turns
    for number in range(use.tools):
        due[number * use.turns // use.tools] += 1
    return due


class _Ledger:
    """Adds up requests as they are made."""

    def __init__(self, listed: float, prices: Prices) -> None:
        self.listed = listed
        self.found = 0.0
        self.conversation = 0.0
        self._prices = prices
        self._cached_tools = 0.0
        self._is_cold = True
        self._requests = 0
        self._sent = 0.0
        self._billed = 0.0

    def grow(self, tokens: float) -> None:
        if tokens:
            self.listed += tokens
            self._is_cold = True

    def request(self, *, is_extra: bool) -> None:
        tools = self.listed + self.found
        was_cold, first = self._is_cold, self._requests == 0
        self._requests += 1
        self._sent += tools + (self.conversation if is_extra else 0.0)
        known = 0.0 if was_cold else self._cached_tools
        self._billed += known * self._prices.read + (tools - known) * self._prices.write
        if is_extra:
            self._billed += self.conversation * self._prices.read
        if was_cold and not first:  # the conversation would have been read back
            self._billed += self.conversation * (self._prices.write - self._prices.read)
        self._cached_tools, self._is_cold = tools, False

    def cost(self) -> SessionCost:
        base = self._prices.base
        return SessionCost(
            requests=self._requests,
            context=round(self.listed + self.found),
            sent=round(self._sent),
            plain=round(self._sent * base, 1),
            cached=round(self._billed, 1),
        )
