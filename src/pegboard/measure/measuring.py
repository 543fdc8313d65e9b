"""A whole measurement of a board, and its JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from pegboard.board import Pegboard
from pegboard.core.calls import Caller
from pegboard.core.json import Json, JsonObject
from pegboard.core.options import ModeName
from pegboard.core.tools import Tool
from pegboard.measure.expensive_tools import ExpensiveTool, dearest
from pegboard.measure.mode_costs import SAMPLE, ModeCost, measure_modes
from pegboard.measure.result_costs import RecordedResult, ResultCost, result_costs
from pegboard.measure.sessions import Prices, SessionCost, Use, session
from pegboard.modes.auto import choose_mode
from pegboard.tokens import DEFAULT_TOKENIZER, count_tokens


@dataclass(frozen=True, slots=True)
class ServerCost:
    """One server: how many tools, and what listing them costs."""

    name: str
    tools: int
    tokens: int


@dataclass(frozen=True, slots=True)
class ToolCost:
    """One tool: what listing it costs, and its output schema where a client shows that too."""

    id: str
    server: str | None
    tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """What a catalogue costs."""

    tokenizer: str
    use: Use
    prices: Prices
    servers: tuple[ServerCost, ...]
    tools: tuple[ToolCost, ...]
    modes: Mapping[ModeName, ModeCost]
    sessions: Mapping[ModeName, SessionCost]
    dearest: tuple[ExpensiveTool, ...]
    results: tuple[ResultCost, ...] = ()
    chosen: ModeName = "proxy"
    """The mode that `auto` would choose for a client that nothing is known of."""
    failures: Mapping[str, str] = field(default_factory=dict[str, str])
    """Servers that could not be asked, with the reason."""

    @property
    def everything(self) -> int:
        """Tokens of listing every tool."""
        return self.modes["eager"].list

    def saved(self, mode: ModeName) -> float:
        """The part of the list that a mode saves."""
        return 1 - self.modes[mode].list / self.everything if self.everything else 0.0

    def to_json(self) -> JsonObject:
        """The measurement as `pegboard measure --json` prints it."""
        return {
            "tokenizer": self.tokenizer,
            "session": {**asdict(self.use), "prices": asdict(self.prices)},
            "servers": [asdict(server) for server in self.servers],
            "modes": {mode: self._mode_json(mode) for mode in self.modes},
            "auto": self.chosen,
            "tools": [asdict(tool) for tool in self.tools],
            "dearest": [_dear_json(dear) for dear in self.dearest],
            "results": _results_json(self.results),
            "failures": dict(self.failures),
        }

    def _mode_json(self, mode: ModeName) -> JsonObject:
        cost, use = self.modes[mode], self.sessions[mode]
        return {
            "list": cost.list,
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
    use: Use | None = None,
    prices: Prices | None = None,
    tokenizer: str = DEFAULT_TOKENIZER,
    recorded: Sequence[RecordedResult] = (),
    sample: int = SAMPLE,
) -> Measurement:
    """What the board's catalogue costs under every mode, per server and per tool."""
    use, prices = use or Use(), prices or Prices()
    enabled = board.catalog.enabled
    counts = {tool.id: count_tokens(tool, tokenizer) for tool in enabled}
    modes = await measure_modes(board, tokenizer=tokenizer, sample=sample)

    def count(text: Json) -> int:
        return count_tokens(text, tokenizer)

    return Measurement(
        tokenizer=tokenizer,
        use=use,
        prices=prices,
        servers=_servers(board.name, enabled, counts),
        tools=tuple(_tool_cost(tool, counts, tokenizer) for tool in enabled),
        modes=modes,
        sessions={f: session(cost.list, cost.finding, use, prices) for f, cost in modes.items()},
        dearest=tuple(dearest(enabled, lambda t: counts[t.id], count)),
        results=tuple(await result_costs(board, recorded, tokenizer=tokenizer)),
        chosen=choose_mode("auto", Caller(), board.catalog, board.options),
        failures=dict(getattr(board, "failures", {})),
    )


def percent(part: float) -> str:
    """A part in percent; one that is almost all is not called all."""
    return ">99.9%" if 0.9995 <= part < 1 else f"{part:.1%}"


def difference(saved: float) -> str:
    """What is saved in words; where more is spent, it says so."""
    return f"{percent(saved)} less" if saved >= 0 else f"{percent(-saved)} more"


def _servers(
    board: str, tools: Sequence[Tool], counts: Mapping[str, int]
) -> tuple[ServerCost, ...]:
    """Every server, the dearest first; tools of no server are the board's own."""
    groups: dict[str, list[int]] = {}
    for tool in tools:
        groups.setdefault(tool.server or board, []).append(counts[tool.id])
    costs = [ServerCost(name, len(tokens), sum(tokens)) for name, tokens in groups.items()]
    return tuple(sorted(costs, key=lambda s: (-s.tokens, s.name)))


def _tool_cost(tool: Tool, counts: Mapping[str, int], tokenizer: str) -> ToolCost:
    output = count_tokens(tool.output_schema, tokenizer) if tool.output_schema else 0
    return ToolCost(tool.id, tool.server, counts[tool.id], output)


def _dear_json(dear: ExpensiveTool) -> JsonObject:
    return {**asdict(dear), "reasons": [asdict(reason) for reason in dear.reasons]}


def _results_json(results: Sequence[ResultCost]) -> JsonObject | None:
    if not results:
        return None
    whole, given = sum(r.whole for r in results), sum(r.given for r in results)
    return {
        "whole": whole,
        "given": given,
        "saved": round(1 - given / whole, 4) if whole else 0.0,
        "results": [asdict(result) for result in results],
    }
