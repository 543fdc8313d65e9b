"""Words about words: which say nothing about a tool, and which are short for others."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP_WORDS = _words(
    """
    a about above after again against all also am an and any anyone anything are as at be
    because been before being below between both but by can cannot could did do does doing don
    done down during each either else etc ever every few for from further had has have having he
    hello her here hers herself hey hi him himself his how i if in into is it its itself just
    kindly let lets ll m many may me might mine more most much must my myself need needs neither
    no nor not now of off ok okay on once one only onto or other our ours ourselves out over own
    please quite rather re really s said same says shall she should simply since so some somehow
    someone something sure t than thank thanks that the their theirs them themselves then there
    these they this those through to too under until up upon us use used user uses using ve very
    via want wants was way we well were what whatever when where whether which while who whom
    whose why will wish with within without would yes yet you your yours yourself yourselves
    tool tools
    """
)

GROUP_WORDS = _words(
    "actions anything category commands everything functions operations stuff toolbox tools"
)
"""Words that ask for a whole group; "all" alone does not: "list all calendars" wants one tool."""

GROUP_FILLERS = _words(
    """
    a about all and any are available can concerning do entire every for from give have i in is
    list me of on please regarding related see server show that the there things to tool what which
    whole with works you your
    """
)
"""Words that stand around the name of a group in such a query."""

TOPIC_WORDS = _words("administration handling management managing")
"""Words that make a subject of the name of a group: "issue management"."""

ABBREVIATIONS: dict[str, tuple[str, ...]] = {
    "admin": ("administrator",),
    "app": ("application",),
    "apps": ("application",),
    "args": ("argument",),
    "auth": ("authentication",),
    "cal": ("calendar",),
    "calc": ("calculate",),
    "cfg": ("configuration",),
    "cmd": ("command",),
    "config": ("configuration",),
    "conv": ("conversation",),
    "db": ("database",),
    "dbs": ("database",),
    "del": ("delete",),
    "desc": ("description",),
    "dest": ("destination",),
    "dev": ("developer",),
    "dir": ("directory",),
    "dirs": ("directory",),
    "doc": ("document",),
    "docs": ("document",),
    "env": ("environment",),
    "exec": ("execute",),
    "img": ("image",),
    "imgs": ("image",),
    "info": ("information",),
    "k8s": ("kubernetes",),
    "lang": ("language",),
    "loc": ("location",),
    "max": ("maximum",),
    "mem": ("memory",),
    "min": ("minimum",),
    "msg": ("message",),
    "msgs": ("message",),
    "num": ("number",),
    "org": ("organization",),
    "orgs": ("organization",),
    "param": ("parameter",),
    "params": ("parameter",),
    "perf": ("performance",),
    "pic": ("picture",),
    "pics": ("picture",),
    "pkg": ("package",),
    "pr": ("pull", "request"),
    "prs": ("pull", "request"),
    "proj": ("project",),
    "pwd": ("password",),
    "repo": ("repository",),
    "repos": ("repository",),
    "req": ("request",),
    "sched": ("schedule",),
    "spec": ("specification",),
    "specs": ("specification",),
    "stats": ("statistics",),
    "temp": ("temperature",),
    "tx": ("transaction",),
    "txn": ("transaction",),
    "vid": ("video",),
    "vm": ("virtual", "machine"),
    "vms": ("virtual", "machine"),
}
