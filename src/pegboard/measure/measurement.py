"""A complete measurement of a board's token costs, and its JSON form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from pegboard.board import Pegboard
from pegboard.core.calls import Caller
from pegboard.core.json import Json, JsonObject
from pegboard.core.options import ModeName
from pegboard.core.tools import Tool
from pegboard.measure.expensive_tools import ExpensiveTool, find_expensive_tools
from pegboard.measure.mode_costs import SAMPLE, ModeCost, measure_modes
from pegboard.measure.result_costs import RecordedResult, ResultCost, result_costs
from pegboard.measure.session_costs import Prices, SessionCost, SessionProfile, price_session
from pegboard.modes.auto import choose_mode
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
    enabled = board.catalog.enabled
    counts = {tool.id: count_tokens(tool, tokenizer) for tool in enabled}
    modes = await measure_modes(board, tokenizer=tokenizer, sample=sample)

    def count(text: Json) -> int:
        return count_tokens(text, tokenizer) if text else 0

    return Measurement(
        tokenizer=tokenizer,
        use=use,
        prices=prices,
        servers=_servers(board.name, enabled, counts),
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
        chosen=choose_mode("auto", Caller(), board.catalog, board.options),
        failures=dict(getattr(board, "failures", {})),
    )


def format_percent(part: float) -> str:
    """A share in percent; a share just below 1 is not rounded up to 100 %."""
    # "100.0%" would claim that nothing is left.
    return ">99.9%" if 0.9995 <= part < 1 else f"{part:.1%}"


def format_difference(saved: float) -> str:
    """A saving in words: `12.3% less`, or `more` if it is negative."""
    return f"{format_percent(saved)} less" if saved >= 0 else f"{format_percent(-saved)} more"


def _servers(
    board: str, tools: Sequence[Tool], counts: Mapping[str, int]
) -> tuple[ServerCost, ...]:
    """All servers, the most expensive first; tools without a server belong to the board."""
    groups: dict[str, list[int]] = {}
    for tool in tools:
        groups.setdefault(tool.server or board, []).append(counts[tool.id])
    costs = [ServerCost(name, len(tokens), sum(tokens)) for name, tokens in groups.items()]
    return tuple(sorted(costs, key=lambda s: (-s.tokens, s.name)))
