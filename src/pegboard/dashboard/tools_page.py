"""The tools of the catalog: filtered and paged, searched with reasons, and one tool in full."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, cast
from urllib.parse import quote, urlencode

from pegboard.core.json import Json, JsonObject
from pegboard.core.tools import RISKS, Risk, Tool, group_name
from pegboard.dashboard.markup import Child, Html, badge, join, milliseconds, number, pluralize, tag
from pegboard.dashboard.token_costs import Costs
from pegboard.modes.mode import View

if TYPE_CHECKING:
    from pegboard.core.search import Match


PER_PAGE = 50
BEST = 20
_LONGEST_QUERY = 500
RISK_BADGES: dict[Risk, str] = {"read": "good", "write": "warn", "destructive": "bad"}


@dataclass(frozen=True, slots=True)
class CatalogQuery:
    """What of the catalogue is asked for."""

    q: str = ""
    server: str = ""
    group: str = ""
    risk: str = ""
    state: str = ""
    page: int = 1

    @classmethod
    def of(cls, query: Mapping[str, str]) -> Self:
        """What an address asks for; what makes no sense is passed over."""
        page = query.get("page", "")
        return cls(
            q=query.get("q", "")[:_LONGEST_QUERY].strip(),
            server=query.get("server", ""),
            group=query.get("group", ""),
            risk=query.get("risk", "") if query.get("risk") in RISKS else "",
            state=query.get("state", "") if query.get("state") in ("on", "off") else "",
            page=int(page) if page.isdecimal() and len(page) < 7 and int(page) > 0 else 1,
        )

    def admits(self, tool: Tool) -> bool:
        """Whether the filters let a tool through."""
        return (
            (not self.server or tool.server == self.server)
            and (not self.group or group_name(tool) == self.group)
            and (not self.risk or tool.risk == self.risk)
            and (not self.state or tool.enabled == (self.state == "on"))
        )

    def address(self, page: int) -> str:
        """Where another page of the same is."""
        given = replace(self, page=page)
        words = {name: getattr(given, name) for name in self.__slots__}
        return f"/ui/tools?{urlencode({k: v for k, v in words.items() if v})}"


def filter_form(asked: CatalogQuery, view: View) -> Html:
    """The form above the list."""
    servers = sorted({t.server for t in view.catalog if t.server})
    groups = sorted({group_name(t) for t in view.catalog})
    return tag(
        "form",
        tag("div",
            tag("label", "What do you want to do?", for_="q"),
            tag("input", id="q", name="q", type="search", value=asked.q, autocomplete="off",
                placeholder="a task in your own words", maxlength=_LONGEST_QUERY),
            class_="query"),
        _select("server", "Server", servers, asked.server) if servers else None,
        _select("group", "Group", groups, asked.group)
        if len(groups) > 1 and groups != servers else None,
        _select("risk", "Risk", RISKS, asked.risk),
        _select("state", "State", ("on", "off"), asked.state),
        tag("button", "Search", type="submit", class_="primary"),
        id="filters",
        role="search",
        method="get",
        action="/ui/tools",
    )  # fmt: skip


def render_tools(asked: CatalogQuery, view: View, costs: Costs) -> Html:
    """The tools that are asked for: the best matches, or a page of the list."""
    return _found(asked, view, costs) if asked.q else _listed(asked, view, costs)


def _found(asked: CatalogQuery, view: View, costs: Costs) -> Html:
    def allowed(tool: Tool) -> bool:
        return asked.admits(tool) and view.catalog.get(tool.id) is not None

    risk = cast("Risk", asked.risk) if asked.risk else None
    matches = view.index().search(
        asked.q, BEST, risk=risk, include_disabled=asked.state == "off", allowed=allowed
    )
    said = f"{pluralize(len(matches), 'tool')}, best first" if matches else "No tool fits this."
    rows = [_row(m.tool, costs, render_match_reasons(m)) for m in matches]
    return join([_status(said), tag("ol", *rows, class_="tools")])


def _listed(asked: CatalogQuery, view: View, costs: Costs) -> Html:
    chosen = [t for t in view.catalog if asked.admits(t)]
    pages = max(1, -(-len(chosen) // PER_PAGE))
    page = min(asked.page, pages)
    shown = chosen[(page - 1) * PER_PAGE : page * PER_PAGE]
    said = pluralize(len(chosen), "tool") + (f", page {page} of {pages}" if pages > 1 else "")
    if not len(view.catalog):
        said = "There are no tools here yet."
    rows = [_row(tool, costs) for tool in shown]
    return join([_status(said), tag("ul", *rows, class_="tools"), _pager(asked, page, pages)])


def render_match_reasons(match: Match) -> Html:
    """How well a tool fits, and what of it."""
    score = f"{match.score:.2f}"
    return tag(
        "div",
        tag("meter", score, value=score, min=0, max=1, aria_label=f"fits {score} of 1"),
        tag("span", score, class_="number"),
        [badge(reason, "why") for reason in match.why],
        class_="why-line",
    )


def _row(tool: Tool, costs: Costs, more: Html | None = None) -> Html:
    marks: list[Child] = [badge(tool.risk, RISK_BADGES[tool.risk])]
    if not tool.enabled:
        marks.append(badge("off", "off"))
    if tool.deprecated:
        marks.append(badge("deprecated", "warn"))
    places = list(dict.fromkeys(filter(None, [tool.server, group_name(tool)])))
    tokens = costs.counted(tool)
    if tokens is not None:
        places.append(pluralize(tokens, "token"))
    return tag(
        "li",
        tag("h3", tag("a", tool.title or tool.name, href=f"/ui/tool?id={quote(tool.id)}"), *marks),
        tag("p", tool.summary) if tool.summary else None,
        tag("code", tool.signature, class_="signature"),
        more,
        tag("p", " · ".join(places), class_="quiet"),
    )


def _status(said: str) -> Html:
    return tag("p", said, role="status", class_="count")


def _pager(asked: CatalogQuery, page: int, pages: int) -> Html | None:
    if pages == 1:
        return None
    near = sorted({1, *range(max(1, page - 2), min(pages, page + 2) + 1), pages})
    items: list[Child] = []
    for before, number_ in zip([0, *near], near, strict=False):
        if number_ - before > 1:
            items.append(tag("li", "…", aria_hidden="true"))
        current = "page" if number_ == page else None
        link = tag("a", number(number_), href=asked.address(number_), aria_current=current,
                   aria_label=f"Page {number_}")  # fmt: skip
        items.append(tag("li", link))
    return tag("nav", tag("ul", *items), aria_label="Pages of the list", class_="pager")


def _select(name: str, label: str, choices: Iterable[str], chosen: str) -> Html:
    options = [tag("option", "any", value="")]
    options += [tag("option", c, value=c, selected=c == chosen) for c in choices]
    return tag("div", tag("label", label, for_=name), tag("select", *options, id=name, name=name))


def render_tool(
    tool: Tool,
    tokens: int,
    figures: JsonObject | None,
    related: Sequence[str],
    switch: Html | None,
) -> Html:
    """The whole of one tool; `switch` is the form that turns it on or off, for who may."""
    return join(
        [
            tag("h1", tool.title or tool.name, badge(tool.risk, RISK_BADGES[tool.risk]),
                None if tool.enabled else badge("off", "off")),
            tag("p", tool.deprecated, class_="problem") if tool.deprecated else None,
            tag("code", tool.signature, class_="signature"),
            tag("p", tool.description or tool.summary, class_="description"),
            _facts(tool, tokens, figures),
            switch,
            _json("Takes", tool.input_schema),
            _json("Gives", tool.output_schema) if tool.output_schema else None,
            _examples(tool),
            _related(related),
        ]
    )  # fmt: skip


def tool_url(tool: Tool) -> str:
    """Where the page of a tool is."""
    return f"/ui/tool?id={quote(tool.id)}"


def switch_form(tool: Tool, proof: Html) -> Html:
    """The form that turns a tool on or off for everybody."""
    on = tool.enabled
    note = "Off, it is not listed, not found and cannot be called, by anybody."
    return tag(
        "form",
        proof,
        tag("input", type="hidden", name="id", value=tool.id),
        tag("input", type="hidden", name="enabled", value="" if on else "1"),
        tag("button", f"Switch {'off' if on else 'on'}", type="submit", aria_describedby="switch"),
        tag("span", note, id="switch", class_="quiet"),
        method="post",
        action="/ui/tool/switch",
        class_="switch",
    )


def _facts(tool: Tool, tokens: int, figures: JsonObject | None) -> Html:
    facts: list[tuple[str, Child]] = [("Definition", pluralize(tokens, "token"))]
    if tool.server:
        link = tag("a", tool.server, href=f"/ui/tools?server={quote(tool.server)}")
        facts.append(("Server", link))
    group = group_name(tool)
    if group != tool.server:
        facts.append(("Group", tag("a", group, href=f"/ui/tools?group={quote(group)}")))
    if figures:
        facts.append(("Calls", number(figures["calls"])))
        facts.append(("95th percentile", milliseconds(figures["p95_ms"])))
        failed = figures["calls"] - figures["outcomes"].get("ok", 0)
        facts.append(("Not well", number(failed)))
    rows = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts]
    return tag("dl", *rows, class_="facts")


def _json(title: str, value: Json) -> Html:
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return tag(
        "details", tag("summary", title), tag("pre", tag("code", text), tabindex="0"), open=True
    )


def _examples(tool: Tool) -> Html | None:
    if not tool.examples:
        return None
    items = [
        tag("li", e.description, tag("pre", tag("code", json.dumps(dict(e.invocation), indent=2))))
        for e in tool.examples
    ]
    return tag("section", tag("h2", "Examples"), tag("ul", *items, class_="plain"))


def _related(names: Sequence[str]) -> Html | None:
    if not names:
        return None
    links = [tag("li", tag("a", n, href=f"/ui/tool?id={quote(n)}")) for n in names]
    return tag("section", tag("h2", "Related"), tag("ul", *links, class_="row"))
