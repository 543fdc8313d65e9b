"""The page: what a catalogue holds, what it costs, and what is being done with it, for people.

    /              figures, servers, the last calls; kept up to date by server-sent events
    /ui/tools      the catalogue: filtered, paged, and searched with the reason for each match
    /ui/tool       one tool, with its switch
    /ui/calls      the last calls and the results that were kept back
    /ui/kept       one of those results, read in pages by whoever made the call
    /ui/SECTION    what else an owner of the page adds, such as approvals

Everything is rendered here; the scripts only replace parts of it. A page is shown to whoever the
`identify` of its `Panel` knows, and shows what that caller may see.
"""

from pegboard.web.interface import Panel, Section, ServerLine, Viewer, panel_of
from pegboard.web.markup import Html, tag
from pegboard.web.routes import metrics_route, page_routes

__all__ = [
    "Html", "Panel", "Section", "ServerLine", "Viewer",
    "metrics_route", "page_routes", "panel_of", "tag",
]  # fmt: skip
