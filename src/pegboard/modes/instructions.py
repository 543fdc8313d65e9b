"""How to work with the tools of a mode, as a server says it in its `instructions`.

Clients pass these on to the model, at most once in a conversation. The sentences are constant, so
that prompt caches stay valid, and short: they are paid for like the list of tools. They say what
the descriptions of the tools do not. A server's own instructions come first.
"""

from __future__ import annotations

from collections.abc import Mapping

from pegboard.core.options import ModeName

_SEARCH = (
    "search_tools, all needs in one search; a match with its signature can be called right away. "
    "If a search says that no tool does something, believe it. "
)
_LARGE = "A result too large to show is stored; its notice says how to read on."
_PROXY = f"{_SEARCH}Batch calls with call_tools, and keep results small with include_fields."
_BY_MODE: Mapping[ModeName, str] = {
    "eager": _LARGE,
    "stub": _LARGE,
    "index": (
        "list_available_tools names the tools, and get_tool_description explains one. "
        "Then call it by its name."
    ),
    "hierarchy": (
        "Go from tools_list_categories to tools_list_tools to tools_get_schema. "
        "Then call the tool with tools_dispatch, or several at once with its calls."
    ),
    "proxy": f"Find tools with {_PROXY}",
    "code": (
        "Find tools with search_tools, all needs in one search. Then do the whole task in one "
        "program, with gather for calls that do not depend on each other, and return only what you "
        "need to read. A search line shows what a tool returns; ~ is from earlier results."
    ),
    "dynamic": f"Find tools with {_SEARCH}Then call them by their names.",
}


def build_instructions(own: str | None, mode: ModeName | None) -> str:
    """The instructions of a server: its own, then those of the mode.

    Args:
        own: What its author or operator wrote.
        mode: The mode that a client will get; `None` while that depends on tools that are not
            known yet.
    """
    general = f"Find tools that are not listed with {_PROXY}" if mode is None else _BY_MODE[mode]
    return f"{own.strip()}\n{general}" if own and own.strip() else general


def remove_mode_instructions(text: str) -> str:
    """The instructions of another Pegboard without those of its mode: only its list needs them."""
    for general in _BY_MODE.values():
        text = text.removesuffix(general)
    return text.rstrip()
