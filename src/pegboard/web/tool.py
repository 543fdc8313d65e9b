"""One tool: what a model would read of it, what it costs, how it fares, and its switch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from urllib.parse import quote

from pegboard.core.json import Json, JsonObject
from pegboard.core.tools import Tool, group_name
from pegboard.web.catalog_page import RISK_BADGES
from pegboard.web.markup import Child, Html, badge, join, milliseconds, number, several, tag


def page(
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


def address(tool: Tool) -> str:
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
    facts: list[tuple[str, Child]] = [("Definition", several(tokens, "token"))]
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
