"""A complete measurement of a board's token costs, its most expensive tools, and its JSON form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias

from pegboard.board import Pegboard
from pegboard.core.calls import Caller
from pegboard.core.json import Json, JsonObject, compact
from pegboard.core.options import ModeName
from pegboard.core.tools import Tool
from pegboard.measure.mode_costs import SAMPLE, ModeCost, measure_modes
from pegboard.measure.result_costs import RecordedResult, ResultCost, result_costs
from pegboard.measure.session_costs import Prices, SessionCost, SessionProfile, price_session
from pegboard.modes.auto import choose_mode
from pegboard.oauth.grants import LoginState
from pegboard.tokens import DEFAULT_TOKENIZER, count_tokens


@dataclass(frozen=True, slots=True)
class ServerCost:
    """One server: its number of tools, and the tokens of listing them."""

    name: str
    tools: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ToolCost:
    """One tool: the tokens of listing it, and of its output schema, which some clients send too."""

    id: str
    server: str | None
    tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """The token costs of a catalog."""

    tokenizer: str
    use: SessionProfile
    prices: Prices
    servers: tuple[ServerCost, ...]
    tools: tuple[ToolCost, ...]
    modes: Mapping[ModeName, ModeCost]
    sessions: Mapping[ModeName, SessionCost]
    expensive_tools: tuple[ExpensiveTool, ...]
    results: tuple[ResultCost, ...] = ()
    chosen: ModeName = "proxy"
    """The mode that `auto` would choose for an unknown client."""
    failures: Mapping[str, str] = field(default_factory=dict[str, str])
    """Servers that could not be listed, with the reason."""
    logins: Mapping[str, LoginState] = field(default_factory=dict[str, LoginState])
    """The state of the user's login to each server that has or needs one."""

    @property
    def everything(self) -> int:
        """Tokens of listing every tool."""
        return self.modes["eager"].list

    def saved(self, mode: ModeName) -> float:
        """The share of the list's tokens that a mode saves."""
        return 1 - self.modes[mode].list / self.everything if self.everything else 0.0

    def to_json(self) -> JsonObject:
        """The measurement as `pegboard measure --json` prints it."""
        results = None
        if self.results:
            whole, given = sum(r.whole for r in self.results), sum(r.given for r in self.results)
            results = {
                "whole": whole,
                "given": given,
                "saved": round(1 - given / whole, 4) if whole else 0.0,
                "results": [asdict(result) for result in self.results],
            }
        return {
            "tokenizer": self.tokenizer,
            "session": {**asdict(self.use), "prices": asdict(self.prices)},
            "servers": [asdict(server) for server in self.servers],
            "modes": {mode: self.mode_json(mode) for mode in self.modes},
            "auto": self.chosen,
            "tools": [asdict(tool) for tool in self.tools],
            "most_expensive": [
                {**asdict(tool), "reasons": [asdict(reason) for reason in tool.reasons]}
                for tool in self.expensive_tools
            ],
            "results": results,
            "failures": dict(self.failures),
            "logins": dict(self.logins),
        }

    def mode_json(self, mode: ModeName) -> JsonObject:
        """The costs of one mode."""
        cost, use = self.modes[mode], self.sessions[mode]
        return {
            "list": cost.list,
            "instructions": cost.instructions,
            "first_definition": cost.first_definition,
            "session": use.sent,
            "session_cached": use.cached,
            "session_plain": use.plain,
            "context": use.context,
            "requests": use.requests,
            "entries": cost.entries,
            "saved": round(self.saved(mode), 4),
        }


async def measure(
    board: Pegboard,
    *,
    use: SessionProfile | None = None,
    prices: Prices | None = None,
    tokenizer: str = DEFAULT_TOKENIZER,
    recorded: Sequence[RecordedResult] = (),
    sample: int = SAMPLE,
) -> Measurement:
    """Measure a board's catalog in every mode, per server and per tool."""
    use, prices = use or SessionProfile(), prices or Prices()
    catalog = (await board.view(whole=True)).catalog
    enabled = catalog.enabled
    counts = {tool.id: count_tokens(tool, tokenizer) for tool in enabled}
    modes = await measure_modes(board, tokenizer=tokenizer, sample=sample)
    read_logins = getattr(board, "read_login_states", None)  # a board of servers has it

    def count(text: Json) -> int:
        return count_tokens(text, tokenizer) if text else 0

    by_server: dict[str, list[int]] = {}
    for tool in enabled:  # tools without a server belong to the board
        by_server.setdefault(tool.server or board.name, []).append(counts[tool.id])
    servers = [ServerCost(name, len(tokens), sum(tokens)) for name, tokens in by_server.items()]
    # The most expensive first; by name where they cost the same, so that reports are comparable.
    servers.sort(key=lambda server: (-server.tokens, server.name))
    return Measurement(
        tokenizer=tokenizer,
        use=use,
        prices=prices,
        servers=tuple(servers),
        tools=tuple(
            ToolCost(tool.id, tool.server, counts[tool.id], count(tool.output_schema or ""))
            for tool in enabled
        ),
        modes=modes,
        sessions={
            mode: price_session(cost.list + cost.instructions, cost.finding, use, prices)
            for mode, cost in modes.items()
        },
        expensive_tools=tuple(find_expensive_tools(enabled, lambda t: counts[t.id], count)),
        results=tuple(await result_costs(board, recorded, tokenizer=tokenizer)),
        chosen=choose_mode("auto", Caller(), catalog, board.options),
        failures=dict(getattr(board, "failures", {})),
        logins=await read_logins() if read_logins is not None else {},
    )


def format_percent(part: float) -> str:
    """A share in percent; a share just below 1 is not rounded up to 100%."""
    # "100.0%" would claim that nothing is left.
    return ">99.9%" if 0.9995 <= part < 1 else f"{part:.1%}"


def format_difference(saved: float) -> str:
    """A saving in words: `12.3% less`, or `more` if it is negative."""
    return f"{format_percent(saved)} less" if saved >= 0 else f"{format_percent(-saved)} more"


Kind: TypeAlias = Literal[
    "long description", "long parameters", "repeated enum", "deep schema", "output schema"
]

LONG_DESCRIPTION = 150
LONG_PARAMETERS = 200
LARGE_OUTPUT = 150
DEEP = 4
LONG_ENUM = 5
"""Enums with fewer values are not reported as repeated."""

_ADVICE: dict[Kind, str] = {
    "long description": "describe it in two sentences and move the rest into examples",
    "long parameters": "shorten the descriptions of parameters; a good name often needs none",
    "repeated enum": "define it once and refer to it, or accept text and check it in the server",
    "deep schema": "use flat arguments, or split it into tools with one purpose each",
    "output schema": "clients that send output schemas pay for it: declare only what callers use",
}

Count: TypeAlias = Callable[[str | Json], int]


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a tool's cost, its tokens, and advice."""

    kind: Kind
    tokens: int
    advice: str


@dataclass(frozen=True, slots=True)
class ExpensiveTool:
    """An expensive tool and the reasons, the most expensive first."""

    id: str
    server: str | None
    tokens: int
    reasons: tuple[Reason, ...]


def find_expensive_tools(
    tools: Sequence[Tool], cost: Callable[[Tool], int], count: Count, limit: int = 10
) -> list[ExpensiveTool]:
    """The most expensive tools of a catalog, with the reasons."""
    ranked = sorted(tools, key=lambda t: (-cost(t), t.id))[:limit]
    enums = Counter(enum for tool in tools for enum in _enums(tool.input_schema))
    expensive: list[ExpensiveTool] = []
    for tool in ranked:
        nodes = list(_nodes(tool.input_schema))
        parameters = sum(
            count(node["description"])
            for node, depth in nodes
            if depth and isinstance(node.get("description"), str)
        )
        own_enums = Counter(_enums(tool.input_schema))
        found: list[tuple[Kind, int]] = [
            ("long description", _if_over(count(tool.description), LONG_DESCRIPTION)),
            ("long parameters", _if_over(parameters, LONG_PARAMETERS)),
            # An enum that occurs once cannot be shared; only repeated ones are worth mentioning.
            ("repeated enum", sum(count(e) * n for e, n in own_enums.items() if enums[e] > 1)),
            # Callers rarely get more deeply nested arguments right.
            ("deep schema", sum(count(node) for node, depth in nodes if depth == DEEP)),
            ("output schema", _if_over(count(tool.output_schema or ""), LARGE_OUTPUT)),
        ]
        reasons = [Reason(kind, tokens, _ADVICE[kind]) for kind, tokens in found if tokens]
        reasons.sort(key=lambda reason: -reason.tokens)
        expensive.append(ExpensiveTool(tool.id, tool.server, cost(tool), tuple(reasons)))
    return expensive


def _if_over(tokens: int, limit: int) -> int:
    return tokens if tokens > limit else 0


def _enums(schema: Json) -> Iterable[str]:
    for node, _ in _nodes(schema):
        values = node.get("enum")
        if isinstance(values, list) and len(values) >= LONG_ENUM:
            yield compact(values)


_MAPS = ("properties", "$defs", "definitions", "patternProperties")
_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
_ONE = ("items", "additionalProperties", "not")


def _nodes(schema: Json, depth: int = 0) -> Iterator[tuple[JsonObject, int]]:
    """Every schema inside a schema, with its nesting depth."""
    # The limit keeps a hostile schema from exhausting the stack.
    if not isinstance(schema, dict) or depth > 64:
        return
    yield schema, depth
    for key in _MAPS:
        inside = schema.get(key)
        for part in inside.values() if isinstance(inside, dict) else ():
            yield from _nodes(part, depth + 1)
    # Alternatives lie as deep as what they are alternatives for.
    for key in _LISTS:
        inside = schema.get(key)
        for part in inside if isinstance(inside, list) else ():
            yield from _nodes(part, depth)
    for key in _ONE:
        yield from _nodes(schema.get(key), depth + 1)
