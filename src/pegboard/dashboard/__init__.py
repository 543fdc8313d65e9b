"""The dashboard: the catalog, its token cost and the calls, for people with a browser.

    /              statistics, servers, recent calls; updated live by server-sent events
    /ui/tools      the catalog: filtered, paged, and searched with the reason for each match
    /ui/tool       one tool, with a switch to turn it off
    /ui/calls      recent calls, and the results that were too large to send
    /ui/result     one of those results, in pages, for the caller that made the call
    /ui/SECTION    further pages, such as approvals

All HTML is rendered here; the script only replaces parts of a page. The `identify` function of a
`Dashboard` decides who is let in, and `visibility` what they see.
"""

from pegboard.dashboard.interface import Dashboard, Section, ServerRow, Viewer, build_dashboard
from pegboard.dashboard.markup import Html, tag
from pegboard.dashboard.routes import dashboard_routes, metrics_route

__all__ = [
    "Dashboard", "Html", "Section", "ServerRow", "Viewer",
    "build_dashboard", "dashboard_routes", "metrics_route", "tag",
]  # fmt: skip
