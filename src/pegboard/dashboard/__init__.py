"""The page: what a catalogue holds, what it costs, and what is being done with it, for people.

    /              figures, servers, the last calls; kept up to date by server-sent events
    /ui/tools      the catalogue: filtered, paged, and searched with the reason for each match
    /ui/tool       one tool, with its switch
    /ui/calls      the last calls and the results that were kept back
    /ui/kept       one of those results, read in pages by whoever made the call
    /ui/SECTION    what else an owner of the page adds, such as approvals

Everything is rendered here; the scripts only replace parts of it. A page is shown to whoever the
`identify` of its `Dashboard` knows, and shows what that caller may see.
"""

from pegboard.dashboard.interface import Dashboard, Section, ServerRow, Viewer, build_dashboard
from pegboard.dashboard.markup import Html, tag
from pegboard.dashboard.routes import dashboard_routes, metrics_route

__all__ = [
    "Dashboard",
    "Html",
    "Section",
    "ServerRow",
    "Viewer",
    "build_dashboard",
    "dashboard_routes",
    "metrics_route",
    "tag",
]  # fmt: skip
