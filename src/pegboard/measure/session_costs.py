"""The cost of a session: an explicit model of requests, context and prompt cache.

A session has `turns` turns, one request each, and uses `tools` different tools; their first uses
are spread evenly. Every request sends the whole context again: the list, the answers that were read
to find tools, and the conversation. Before the first use of a tool, a mode may need extra requests
to search or describe.

The model counts the tokens that tools cause: the list and those answers in every request, and in an
extra request the conversation too. Results of calls are the same in every mode and are not counted.

    without a cache   every token at the base price
    with a cache      tokens of the previous request are read at `read`, new ones are written at
                      `write`. The list is at the start of the prompt: if it changes, everything
                      after it, the conversation included, is written again
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from pegboard.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Prices:
    """Relative prices of a token: uncached, written to the prompt cache, read from it."""

    base: float = 1.0
    write: float = 1.25
    read: float = 0.1

    def __post_init__(self) -> None:
        if min(self.base, self.write, self.read) < 0:
            raise ConfigError("A price cannot be negative.", field="prices")


@dataclass(frozen=True, slots=True)
class SessionProfile:
    """The shape of a session: tools used, turns, and tokens per turn."""

    tools: int = 5
    turns: int = 20
    conversation: int = 500
    """Tokens that each turn adds, results of calls included."""

    def __post_init__(self) -> None:
        if self.turns < 1 or self.tools < 0 or self.conversation < 0:
            raise ConfigError(
                "A session needs at least one turn, and its numbers cannot be negative."
            )
        if self.tools > self.turns:
            raise ConfigError(
                f"{self.tools} tools cannot be used in {self.turns} turns: each use takes a turn.",
                field="use",
            )


@dataclass(frozen=True, slots=True)
class DiscoveryCost:
    """The cost of a tool's first use: extra requests with their answers, or a longer list."""

    answers: tuple[float, ...] = ()
    """Tokens of the answer to each extra request."""
    growth: float = 0.0
    """Tokens by which the list grows."""


@dataclass(frozen=True, slots=True)
class SessionCost:
    """The cost of one session."""

    requests: int
    context: int
    """Tokens of the list and those answers in the context at the end."""
    sent: int
    """Tokens sent over all requests: the cost without a cache, in tokens."""
    plain: float
    """The cost without a cache, in tokens of the base price."""
    cached: float
    """The cost with a cache, in tokens of the base price."""


def price_session(
    listed: float, finding: DiscoveryCost, use: SessionProfile, prices: Prices
) -> SessionCost:
    """The cost of a session in a mode whose list has `listed` tokens."""
    ledger = _Ledger(listed, prices)
    # How many tools are used for the first time in each turn, spread over the session: a tool that
    # is used late is paid for in few requests.
    due = Counter(number * use.turns // use.tools for number in range(use.tools))
    for turn in range(use.turns):
        ledger.conversation += use.conversation
        for _ in range(due[turn]):
            for tokens in finding.answers:
                ledger.request(is_extra=True)
                ledger.found += tokens
            # The list has grown before the turn's own request, which sends it.
            ledger.grow(finding.growth)
        ledger.request(is_extra=False)
    return ledger.cost()


class _Ledger:
    """Adds up the cost of requests."""

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
        if tokens:  # an unchanged list stays in the cache
            self.listed += tokens
            self._is_cold = True

    def request(self, *, is_extra: bool) -> None:
        tools = self.listed + self.found
        was_cold, first = self._is_cold, self._requests == 0
        self._requests += 1
        self._sent += tools + (self.conversation if is_extra else 0.0)
        # A provider caches a prefix of the prompt; the list is at its start.
        known = 0.0 if was_cold else self._cached_tools
        self._billed += known * self._prices.read + (tools - known) * self._prices.write
        if is_extra:
            # The request would not exist without the tool, so its conversation counts too.
            self._billed += self.conversation * self._prices.read
        if was_cold and not first:
            # With an unchanged list the conversation would have been read from the cache.
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
