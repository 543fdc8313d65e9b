"""The tools of the catalog: filtered and paged, searched with reasons, and one tool in full."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self, cast
from urllib.parse import quote, urlencode

from pegboard.core.json import Json, JsonObject
from pegboard.core.tool_lock import hold_reason
from pegboard.core.tools import RISKS, Risk, Tool, group_name
from pegboard.dashboard.markup import (
    Child,
    Html,
    badge,
    format_number,
    join,
    pluralize,
    tag,
)
from pegboard.dashboard.overview_page import count_failed, count_refused, format_slowest
from pegboard.dashboard.token_costs import TokenCosts
from pegboard.modes.mode import View

if TYPE_CHECKING:
    from pegboard.core.search import Match


PER_PAGE = 50
MOST_MATCHES = 20
_MAX_QUERY_LENGTH = 500
_STATES = ("enabled", "disabled")
RISK_BADGES: dict[Risk, str] = {"read": "good", "write": "warn", "destructive": "bad"}


@dataclass(frozen=True, slots=True)
class CatalogQuery:
    """The filters and the search of the tools page."""

    q: str = ""
    server: str = ""
    group: str = ""
    risk: str = ""
    state: str = ""
    page: int = 1

    @classmethod
    def parse(cls, values: Mapping[str, str]) -> Self:
        """Parse the query of a URL; values that are not valid are ignored."""
        page = values.get("page", "")
        return cls(
            q=values.get("q", "")[:_MAX_QUERY_LENGTH].strip(),
            server=values.get("server", ""),
            group=values.get("group", ""),
            risk=values.get("risk", "") if values.get("risk") in RISKS else "",
            state=values.get("state", "") if values.get("state") in _STATES else "",
            # Bounded: anybody can write a URL, and a number with many digits is slow to parse.
            page=int(page) if page.isdecimal() and len(page) < 7 and int(page) > 0 else 1,
        )

    def admits(self, tool: Tool) -> bool:
        """Whether a tool passes the filters."""
        return (
            (not self.server or tool.server == self.server)
            and (not self.group or group_name(tool) == self.group)
            and (not self.risk or tool.risk == self.risk)
            and (not self.state or tool.enabled == (self.state == _STATES[0]))
        )

    def page_url(self, page: int) -> str:
        """The URL of another page of the same list."""
        target = replace(self, page=page)
        values = {name: getattr(target, name) for name in self.__slots__}
        return f"/ui/tools?{urlencode({k: v for k, v in values.items() if v})}"


def filter_form(query: CatalogQuery, view: View) -> Html:
    """The form above the list."""
    servers = sorted({t.server for t in view.catalog if t.server})
    groups = sorted({group_name(t) for t in view.catalog})
    return tag(
        "form",
        tag("div",
            tag("label", "What do you want to do?", for_="q"),
            tag("input", id="q", name="q", type="search", value=query.q, autocomplete="off",
                placeholder="describe a task in your own words", maxlength=_MAX_QUERY_LENGTH),
            class_="query"),
        _select("server", "Server", servers, query.server) if servers else None,
        _select("group", "Group", groups, query.group)
        if len(groups) > 1 and groups != servers else None,
        _select("risk", "Risk", RISKS, query.risk),
        _select("state", "State", _STATES, query.state),
        tag("button", "Search", type="submit", class_="primary"),
        id="filters",
        role="search",
        method="get",
        action="/ui/tools",
    )  # fmt: skip


def render_tools(query: CatalogQuery, view: View, costs: TokenCosts) -> Html:
    """The best matches of a search, or a page of the list."""
    return _search_results(query, view, costs) if query.q else _list_page(query, view, costs)


def _search_results(query: CatalogQuery, view: View, costs: TokenCosts) -> Html:
    # The index covers the whole catalog; the viewer may see only a part of it.
    def allowed(tool: Tool) -> bool:
        return query.admits(tool) and view.catalog.get(tool.id) is not None

    risk = cast("Risk", query.risk) if query.risk else None
    matches = view.index().search(
        query.q,
        MOST_MATCHES,
        risk=risk,
        include_disabled=query.state == "disabled",
        allowed=allowed,
    )
    status = f"{pluralize(len(matches), 'tool')}, best first" if matches else "No tool matches."
    rows = [_row(view, m.tool, costs, render_match_reasons(m)) for m in matches]
    return join([_status_line(status), tag("ol", *rows, class_="tools")])


def _list_page(query: CatalogQuery, view: View, costs: TokenCosts) -> Html:
    chosen = [t for t in view.catalog if query.admits(t)]
    pages = max(1, -(-len(chosen) // PER_PAGE))
    page = min(query.page, pages)
    shown = chosen[(page - 1) * PER_PAGE : page * PER_PAGE]
    status = pluralize(len(chosen), "tool") + (f", page {page} of {pages}" if pages > 1 else "")
    if not len(view.catalog):
        status = "There are no tools yet."
    rows = [_row(view, tool, costs) for tool in shown]
    return join(
        [_status_line(status), tag("ul", *rows, class_="tools"), _pager(query, page, pages)]
    )


def render_match_reasons(match: Match) -> Html:
    """The score of a match, and the reasons for it."""
    score = f"{match.score:.2f}"
    return tag(
        "div",
        tag("meter", score, value=score, min=0, max=1, aria_label=f"score {score} of 1"),
        tag("span", score, class_="number"),
        [badge(reason, "why") for reason in match.why],
        class_="why-line",
    )


def _row(view: View, tool: Tool, costs: TokenCosts, more: Html | None = None) -> Html:
    marks: list[Child] = [badge(tool.risk, RISK_BADGES[tool.risk])]
    if not tool.enabled:
        marks.append(_off_badge(tool))
    if tool.deprecated:
        marks.append(badge("deprecated", "warn"))
    places = list(dict.fromkeys(filter(None, [tool.server, group_name(tool)])))
    tokens = costs.get_cached_tool(tool)
    if tokens is not None:
        places.append(pluralize(tokens, "token"))
    tool = view.catalog.as_shown(tool)
    return tag(
        "li",
        tag("h3", tag("a", tool.name, href=f"/ui/tool?id={quote(tool.id)}"), *marks),
        tag("p", tool.summary or tool.title) if tool.summary or tool.title else None,
        tag("code", tool.signature, class_="signature"),
        more,
        tag("p", " · ".join(places), class_="quiet"),
    )


def _off_badge(tool: Tool) -> Html:
    return badge("disabled", "off") if hold_reason(tool) is None else badge("held back", "warn")


def _status_line(status: str) -> Html:
    return tag("p", status, role="status", class_="count")


def _pager(query: CatalogQuery, page: int, pages: int) -> Html | None:
    if pages == 1:
        return None
    near = sorted({1, *range(max(1, page - 2), min(pages, page + 2) + 1), pages})
    items: list[Child] = []
    for before, number_ in zip([0, *near], near, strict=False):
        if number_ - before > 1:
            items.append(tag("li", "…", aria_hidden="true"))
        current = "page" if number_ == page else None
        link = tag("a", format_number(number_), href=query.page_url(number_), aria_current=current,
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
    statistics: JsonObject | None,
    related: Sequence[str],
    switch: Html | None,
) -> Html:
    """The details of one tool; `switch` is the form that enables or disables it, for operators."""
    examples = [
        tag("li", e.description, tag("pre", tag("code", json.dumps(dict(e.invocation), indent=2))))
        for e in tool.examples
    ]
    links = [tag("li", tag("a", n, href=f"/ui/tool?id={quote(n)}")) for n in related]
    return join(
        [
            tag("h1", tool.name, badge(tool.risk, RISK_BADGES[tool.risk]),
                None if tool.enabled else _off_badge(tool)),
            tag("p", tool.title, class_="quiet") if tool.title else None,
            tag("p", tool.deprecated, class_="problem") if tool.deprecated else None,
            tag("code", tool.signature, class_="signature"),
            tag("p", tool.description or tool.summary, class_="description"),
            _facts(tool, tokens, statistics),
            switch,
            _json("Input schema", tool.input_schema),
            _json("Output schema", tool.output_schema) if tool.output_schema else None,
            tag("section", tag("h2", "Examples"), tag("ul", *examples, class_="plain"))
            if examples else None,
            tag("section", tag("h2", "Related"), tag("ul", *links, class_="row"))
            if links else None,
        ]
    )  # fmt: skip


def tool_url(tool: Tool) -> str:
    """The URL of a tool's page."""
    return f"/ui/tool?id={quote(tool.id)}"


def switch_form(tool: Tool, csrf_field: Html) -> Html:
    """The form that enables or disables a tool for everybody."""
    on = tool.enabled
    note = "A disabled tool is not listed and not found, and nobody can call it."
    return tag(
        "form",
        csrf_field,
        tag("input", type="hidden", name="id", value=tool.id),
        tag("input", type="hidden", name="enabled", value="" if on else "1"),
        tag("button", "Disable" if on else "Enable", type="submit", aria_describedby="switch"),
        tag("span", note, id="switch", class_="quiet"),
        method="post",
        action="/ui/tool/switch",
        class_="switch",
    )


def _facts(tool: Tool, tokens: int, statistics: JsonObject | None) -> Html:
    facts: list[tuple[str, Child]] = [("Definition", pluralize(tokens, "token"))]
    if tool.server:
        link = tag("a", tool.server, href=f"/ui/tools?server={quote(tool.server)}")
        facts.append(("Server", link))
    group = group_name(tool)
    if group != tool.server:
        facts.append(("Group", tag("a", group, href=f"/ui/tools?group={quote(group)}")))
    if statistics:
        facts.append(("Calls", format_number(statistics["calls"])))
        facts.append(("95th percentile", format_slowest(statistics)))
        facts.append(("Failed", format_number(count_failed(statistics))))
        if refused := count_refused(statistics):
            facts.append(("Refused", format_number(refused)))
    rows = [tag("div", tag("dt", name), tag("dd", value)) for name, value in facts]
    return tag("dl", *rows, class_="facts")


def _json(title: str, value: Json) -> Html:
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return tag(
        "details", tag("summary", title), tag("pre", tag("code", text), tabindex="0"), open=True
    )
