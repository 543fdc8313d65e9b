"""Eight tasks on the tracker: the program that solves each, and the calls that do so one by one.

The conversation of single calls is that of a reader who makes no mistake: it searches, reads many
results with one `call_tools` where it can, and writes side by side. With `fields` it asks only for
what the task needs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

Result: TypeAlias = dict[str, Any]
NamedCall: TypeAlias = tuple[str, dict[str, Any]]
MONDAY = "2026-03-09"
WEEK_AGO = "2026-03-05T15:00:00Z"
QUARTER = {"first_day": "2026-01-01", "last_day": "2026-03-31"}


class Conversation(Protocol):
    """What a reader can do with a mode that calls tools one by one."""

    async def read(self, name: str, arguments: dict[str, Any], fields: Sequence[str]) -> Result: ...
    async def read_all(self, calls: Sequence[NamedCall], fields: Sequence[str]) -> list[Result]: ...
    async def write(self, calls: Sequence[NamedCall], risk: str = "write") -> None: ...


@dataclass(frozen=True, slots=True)
class Task:
    """Something to do, the searches for it, the tools that it needs, and both ways to do it."""

    name: str
    text: str
    queries: tuple[str, ...]
    needs: tuple[str, ...]
    risk: Literal["read", "write", "destructive"]
    program: str
    by_calls: Callable[[Conversation], Awaitable[None]]


async def _issues(talk: Conversation, fields: Sequence[str], **wanted: Any) -> list[Result]:
    """All pages of a list of issues."""
    rows: list[Result] = []
    while True:
        page = {"offset": len(rows)} if rows else {}
        found = await talk.read("list_issues", {**wanted, "limit": 100, **page}, fields)
        rows += found["issues"]
        if len(rows) >= found["total"]:
            return rows


def _number(key: str) -> int:
    return int(key.split("-")[1])


OWNERS = """
projects = (await list_projects())["projects"]
async def issues_of(key):
    rows = []
    while True:
        page = await list_issues(project=key, limit=100, offset=len(rows))
        rows += page["issues"]
        if len(rows) >= page["total"]: return rows
out = {}
for p, rows in zip(projects, await asyncio.gather(*[issues_of(p["key"]) for p in projects])):
    load = collections.Counter(i["assignee"] for i in rows if i["assignee"])
    out[p["key"]] = {"unowned": [i["key"] for i in rows if not i["assignee"] and i["priority"] in ("urgent", "high")],
                     "least loaded": min(load, key=lambda m: load[m]) if load else None}
out
"""


async def owners(talk: Conversation) -> None:
    projects = (await talk.read("list_projects", {}, ["projects.key"]))["projects"]
    fields = ["issues.key", "issues.priority", "issues.assignee", "total"]
    wanted = [{"project": project["key"], "limit": 100} for project in projects]
    first = await talk.read_all([("list_issues", one) for one in wanted], fields)
    more = [
        ("list_issues", {**one, "offset": 100})
        for one, page in zip(wanted, first, strict=True)
        if page["total"] > 100
    ]
    if more:
        await talk.read_all(more, fields)


WEEK = """
people = [m["handle"] for m in (await list_members())["members"]]
async def week(who):
    count, before = collections.Counter(), None
    while True:
        events = (await list_activity(member=who, limit=100, before=before) if before else await list_activity(member=who, limit=100))["events"]
        count.update(e["kind"] for e in events if e["at"] >= "2026-03-09")
        if len(events) < 100 or events[-1]["at"] < "2026-03-09": return dict(count)
        before = events[-1]["id"]
dict(zip(people, await asyncio.gather(*[week(p) for p in people])))
"""


async def week(talk: Conversation) -> None:
    members = (await talk.read("list_members", {}, ["members.handle"]))["members"]
    wanted: list[Result] = [{"member": member["handle"], "limit": 100} for member in members]
    fields = ["events.kind", "events.at", "events.id"]
    while wanted:
        pages = await talk.read_all([("list_activity", one) for one in wanted], fields)
        wanted = [
            {**one, "before": page["events"][-1]["id"]}
            for one, page in zip(wanted, pages, strict=True)
            if len(page["events"]) == 100 and page["events"][-1]["at"] >= MONDAY
        ]


CUSTOMER_TIME = """
rows = []
while True:
    page = await list_issues(label="customer", status="any", limit=100, offset=len(rows))
    rows += page["issues"]
    if len(rows) >= page["total"]: break
people = [m["handle"] for m in (await list_members())["members"]]
keys = {i["key"] for i in rows}
per, by_issue = collections.Counter(), collections.Counter()
for r in await asyncio.gather(*[list_time_entries(member=p, first_day="2026-01-01", last_day="2026-03-31") for p in people]):
    for e in r["entries"]:
        if e["issue"] in keys:
            per[e["member"]] += e["minutes"]; by_issue[e["issue"]] += e["minutes"]
{"total": sum(per.values()), "per member": dict(per), "top": by_issue.most_common(3)}
"""


async def customer_time(talk: Conversation) -> None:
    await _issues(talk, ["issues.key", "total"], label="customer", status="any")
    members = (await talk.read("list_members", {}, ["members.handle"]))["members"]
    calls = [("list_time_entries", {"member": one["handle"], **QUARTER}) for one in members]
    await talk.read_all(calls, ["entries.issue", "entries.minutes", "entries.member"])


STALE = """
rows = (await list_issues(status="in_progress", limit=100))["issues"]
full = await asyncio.gather(*[get_issue(issue=i["key"]) for i in rows])
stale = [i for i in full if i["updated_at"] < "2026-03-05T15:00:00Z" and i["assignee"]]
await asyncio.gather(*[add_comment(issue=i["key"], body=f"@{i['assignee']} what is the state of this?") for i in stale])
{"asked": [i["key"] for i in stale], "of": len(rows)}
"""


async def stale(talk: Conversation) -> None:
    rows = await _issues(talk, ["issues.key", "total"], status="in_progress")
    calls = [("get_issue", {"issue": row["key"]}) for row in rows]
    full = await talk.read_all(calls, ["key", "updated_at", "assignee"])
    await talk.write(
        [
            (
                "add_comment",
                {"issue": one["key"], "body": f"@{one['assignee']} what is the state of this?"},
            )
            for one in full
            if one["updated_at"] < WEEK_AGO and one["assignee"]
        ]
    )


DUPLICATES = """
bugs = []
while True:
    page = await list_issues(type="bug", sort="created", limit=100, offset=len(bugs))
    bugs += page["issues"]
    if len(bugs) >= page["total"]: break
near = await asyncio.gather(*[find_similar_issues(issue=b["key"], limit=5) for b in bugs])
number = lambda k: int(k.split("-")[1])
pairs = []
for b, r in zip(bugs, near):
    same = [s["issue"]["key"] for s in r["similar"] if s["issue"]["title"] == b["title"] and s["issue"]["key"].split("-")[0] == b["key"].split("-")[0] and number(s["issue"]["key"]) < number(b["key"])]
    if same: pairs.append((b["key"], min(same, key=number)))
for new, old in pairs:
    await link_issues(source=new, kind="duplicates", target=old)
pairs
"""


async def duplicates(talk: Conversation) -> None:
    fields = ["issues.key", "issues.title", "total"]
    bugs = await _issues(talk, fields, type="bug", sort="created")
    calls = [("find_similar_issues", {"issue": bug["key"], "limit": 5}) for bug in bugs]
    near = await talk.read_all(calls, ["similar.issue.key", "similar.issue.title"])
    links: list[NamedCall] = []
    for bug, found in zip(bugs, near, strict=True):
        project, title = bug["key"].split("-")[0], bug["title"]
        same = [
            one["issue"]["key"]
            for one in found["similar"]
            if one["issue"]["title"] == title
            and one["issue"]["key"].split("-")[0] == project
            and _number(one["issue"]["key"]) < _number(bug["key"])
        ]
        if same:
            pair = {"source": bug["key"], "kind": "duplicates", "target": min(same, key=_number)}
            links.append(("link_issues", pair))
    await talk.write(links)


MEETING = """
leads = sorted({p["lead"] for p in (await list_projects())["projects"] if p["lead"]})
slots, late = await asyncio.gather(
    find_free_slots(members=leads, start="2026-03-16T09:00:00Z", end="2026-03-20T17:00:00Z", minutes=45),
    list_issues(overdue=True, sort="due", limit=100))
agenda = "\\n".join(f"- {i['key']} {i['title']} (due {i['due_on']}, {i['assignee']})" for i in late["issues"])
e = await create_calendar_event(title="Overdue issues", starts_at=slots["slots"][0]["start"], minutes=45, attendees=leads, description=agenda)
{"event": e["id"], "at": e["starts_at"], "with": leads, "issues": len(late["issues"])}
"""


async def meeting(talk: Conversation) -> None:
    projects = (await talk.read("list_projects", {}, ["projects.lead"]))["projects"]
    leads = sorted({project["lead"] for project in projects if project["lead"]})
    times = {"start": "2026-03-16T09:00:00Z", "end": "2026-03-20T17:00:00Z", "minutes": 45}
    slots, late = await talk.read_all(
        [
            ("find_free_slots", {"members": leads, **times}),
            ("list_issues", {"overdue": True, "sort": "due", "limit": 100}),
        ],
        [],
    )
    lines = [
        f"- {one['key']} {one['title']} (due {one['due_on']}, {one['assignee']})"
        for one in late["issues"]
    ]
    event = {"title": "Overdue issues", "starts_at": slots["slots"][0]["start"], "minutes": 45}
    about = {"attendees": leads, "description": "\n".join(lines)}
    await talk.write([("create_calendar_event", {**event, **about})])


NOTES = """
m = next(m for m in (await list_milestones(project="WEB"))["milestones"] if m["name"] == "Sprint 8")
done = [i for i in (await get_milestone(milestone=m["id"]))["issues"] if i["status"] == "done"]
talk = await asyncio.gather(*[list_comments(issue=i["key"]) for i in done])
lines = ["# Sprint 8"]
for kind in ("feature", "bug", "task", "question"):
    rows = [f"- {i['title']} ({i['key']}, {i['assignee'] or 'nobody'}, {c['total_comments']} comments)" for i, c in zip(done, talk) if i["type"] == kind]
    if rows: lines += ["", f"## {kind.title()}s", *rows]
d = await create_document(project="WEB", slug="sprint-8-notes", title="Sprint 8: release notes", body="\\n".join(lines))
{"document": d["slug"], "issues": len(done)}
"""


async def notes(talk: Conversation) -> None:
    fields = ["milestones.id", "milestones.name"]
    found = await talk.read("list_milestones", {"project": "WEB"}, fields)
    sprint = next(one for one in found["milestones"] if one["name"] == "Sprint 8")
    wanted = [f"issues.{field}" for field in ("key", "title", "type", "status", "assignee")]
    milestone = await talk.read("get_milestone", {"milestone": sprint["id"]}, wanted)
    done = [one for one in milestone["issues"] if one["status"] == "done"]
    calls = [("list_comments", {"issue": one["key"]}) for one in done]
    replies = await talk.read_all(calls, ["total_comments"])
    lines = ["# Sprint 8"]
    for kind in ("feature", "bug", "task", "question"):
        rows = [
            f"- {one['title']} ({one['key']}, {one['assignee'] or 'nobody'},"
            f" {said['total_comments']} comments)"
            for one, said in zip(done, replies, strict=True)
            if one["type"] == kind
        ]
        lines += ["", f"## {kind.title()}s", *rows] if rows else []
    document = {"project": "WEB", "slug": "sprint-8-notes", "title": "Sprint 8: release notes"}
    await talk.write([("create_document", {**document, "body": "\n".join(lines)})])


CLEAN_UP = """
groups = (await find_duplicate_attachments())["groups"]
freed, gone = 0, []
for g in groups:
    files = sorted(g["attachments"], key=lambda a: a["id"])
    if not (await verify_attachment(attachment=files[0]["id"]))["intact"]: continue
    for f in files[1:]:
        await delete_attachment(attachment=f["id"])
        freed += g["size"]; gone.append(f["id"])
{"deleted": gone, "bytes": freed}
"""


async def clean_up(talk: Conversation) -> None:
    found = await talk.read("find_duplicate_attachments", {}, ["groups.attachments.id"])
    groups = [sorted(one["id"] for one in group["attachments"]) for group in found["groups"]]
    calls = [("verify_attachment", {"attachment": group[0]}) for group in groups]
    await talk.read_all(calls, ["intact"])
    copies = [copy for group in groups for copy in group[1:]]
    await talk.write([("delete_attachment", {"attachment": one}) for one in copies], "destructive")


TASKS = (
    Task(
        "owners",
        "Which open urgent or high issues have nobody assigned, per project, and who of the assigned members has the"
        " fewest open issues there?",
        ("list projects", "list open issues of a project by priority and assignee"),
        ("list_projects", "list_issues"),
        "read",
        OWNERS,
        owners,
    ),
    Task(
        "week",
        "What did each member do since Monday 9 March: number of events by kind?",
        ("list members", "list activity events of a member"),
        ("list_members", "list_activity"),
        "read",
        WEEK,
        week,
    ),
    Task(
        "customer time",
        "How many minutes were logged on issues labelled customer, per member and in total, and which three issues took"
        " most?",
        ("list issues with a label", "list time entries of a member", "list members"),
        ("list_issues", "list_time_entries", "list_members"),
        "read",
        CUSTOMER_TIME,
        customer_time,
    ),
    Task(
        "stale",
        "For every issue in progress without an update for 7 days, leave a comment that asks the assignee for the state.",
        ("list issues filtered by status", "issue details", "comment on an issue"),
        ("list_issues", "get_issue", "add_comment"),
        "write",
        STALE,
        stale,
    ),
    Task(
        "duplicates",
        "Find open bugs that say the same as an older issue (same title) and link each as its duplicate.",
        ("list open bugs", "find issues similar to an issue", "link two issues as duplicates"),
        ("list_issues", "find_similar_issues", "link_issues"),
        "write",
        DUPLICATES,
        duplicates,
    ),
    Task(
        "meeting",
        "Find 45 minutes next week for all project leads and invite them, with the overdue issues as the agenda.",
        (
            *("list projects", "find free time of several members", "list overdue issues"),
            "create a calendar event",
        ),
        ("list_projects", "find_free_slots", "list_issues", "create_calendar_event"),
        "write",
        MEETING,
        meeting,
    ),
    Task(
        "notes",
        "Write release notes for the milestone Sprint 8 as a document sprint-8-notes: what is done, by type, with who did"
        " it and how many comments it had.",
        (
            *("list milestones", "show a milestone with its issues", "list comments of an issue"),
            "create a document",
        ),
        ("list_milestones", "get_milestone", "list_comments", "create_document"),
        "write",
        NOTES,
        notes,
    ),
    Task(
        "clean up",
        "Delete attachments whose content exists twice: keep the oldest copy of each, after checking that it is intact.",
        (
            *("find attachments with the same content", "check that an attachment is intact"),
            "delete an attachment",
        ),
        ("find_duplicate_attachments", "verify_attachment", "delete_attachment"),
        "destructive",
        CLEAN_UP,
        clean_up,
    ),
)
