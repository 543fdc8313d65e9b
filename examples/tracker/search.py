"""Search: full text over everything written, and issues by a query in one line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Literal

from pydantic import Field

from pegboard import Example

from ..database import Record, Refused, Value, unknown
from ..fulltext import WORD, any_word
from ..toolbox import READS, REMOVES, SETS, Toolbox
from .lifecycle import PRIORITY_ORDER, IssueBrief, Issues, brief
from .lookup import need_issue, need_project
from .tracker import Tracker
from .words import AnyProject, Limit
from .workflow import CLOSED, NEXT, OPEN

search = Toolbox[Tracker](
    "search",
    "Find things: full text over all content, issue queries, saved searches, similar issues.",
)

Kind = Literal["issue", "comment", "document", "message", "contact"]
Query = Annotated[
    str, Field(min_length=1, description="Such as: status:open assignee:me label:bug crash")
]
SearchName = Annotated[str, Field(min_length=1, description="Name of the saved search.")]
TOKEN = re.compile(r'-?(?:\w+:)?"[^"]*"\*?|\S+')  # a word, or words in quotes, perhaps of a field


class Hit(Record):
    kind: Kind
    ref: str = Field(description="Issue key, comment or message number, slug, contact number.")
    title: str
    snippet: str = Field(description="Text around the match, with it in **bold**.")
    project: str | None


class Hits(Record):
    hits: list[Hit]
    total: int
    by_kind: dict[str, int]


class SavedSearch(Record):
    name: str
    query: str


class SavedSearches(Record):
    searches: list[SavedSearch]


class SearchRun(Record):
    query: str
    issues: list[IssueBrief]
    total: int


class Term(Record):
    term: str
    entries: int


class Terms(Record):
    terms: list[Term]


class Similar(Record):
    issue: IssueBrief
    score: float = Field(description="1 is the best match found.")


class SimilarIssues(Record):
    similar: list[Similar]


class Rebuilt(Record):
    entries: dict[str, int]


@search.tool(
    summary="Search the text of issues, comments, documents, messages and contacts",
    annotations=READS,
    aliases=("find", "look up", "grep"),
    related=("search_issues", "find_similar_issues"),
    examples=[
        Example("Anywhere", {"query": "login safari"}),
        Example("A phrase in documents", {"query": '"release branch"', "kinds": ["document"]}),
    ],
)
def fulltext_search(
    t: Tracker,
    query: Annotated[
        str, Field(min_length=1, description='Words; "a phrase", -without, prefix* also work.')
    ],
    kinds: Annotated[list[Kind] | None, Field(description="Only these kinds of content.")] = None,
    project: AnyProject = None,
    limit: Limit = 10,
) -> Hits:
    """Search everything that was written in the workspace, best match first.

    All words must occur, in whatever form; matches in titles count more. Messages of private
    channels that you are not in are left out.
    """
    key = need_project(t, project)["key"] if project else None
    wanted = kinds or list[Kind](("issue", "comment", "document", "message", "contact"))
    marks = ", ".join("?" * len(wanted))
    where = f"""FROM search_index JOIN search_entries s ON s.id = search_index.rowid
        WHERE search_index MATCH ? AND kind IN ({marks}) AND (? IS NULL OR project = ?)
        AND NOT (kind = 'message' AND s.title IN (SELECT name FROM channels WHERE private
            AND name NOT IN (SELECT channel FROM channel_members WHERE member = ?)))"""
    values: list[Value] = [_match(query), *wanted, key, key, t.me]
    rows = t.rows(
        "SELECT kind, ref, s.title, project, snippet(search_index, 1, '**', '**', ' ... ', 16) "
        f"AS snippet {where} ORDER BY bm25(search_index, 4.0, 1.0), s.id LIMIT ?",
        *values,
        limit,
    )
    counts = {
        r["kind"]: r["n"] for r in t.rows(f"SELECT kind, count(*) AS n {where} GROUP BY 1", *values)
    }
    hits = [Hit.model_validate(r) for r in rows]
    return Hits(hits=hits, total=sum(counts.values()), by_kind=counts)


@search.tool(
    summary="Find issues by a query such as status:open assignee:me label:bug",
    annotations=READS,
    aliases=("jql", "filter tickets"),
    related=("list_issues", "save_search"),
    examples=[
        Example("My urgent work", {"query": "assignee:me priority:urgent,high"}),
        Example("Stuck bugs", {"query": "type:bug status:in_review -label:wontfix timeout"}),
    ],
)
def search_issues(t: Tracker, query: Query, limit: Limit = 20) -> Issues:
    """Find issues by fields and words in one line, most urgent first.

    Fields: project, status (or open, closed), type, priority, assignee (me, nobody), reporter,
    label, milestone, due (overdue, none). Several values take a comma, a minus in front excludes;
    other words must occur in title or description.
    """
    where, values = _conditions(t, query)
    sql = f"FROM issues WHERE {' AND '.join(where) or '1'}"
    rows = t.rows(f"SELECT * {sql} ORDER BY {PRIORITY_ORDER}, key LIMIT ?", *values, limit)
    return Issues(issues=[brief(r) for r in rows], total=t.value(f"SELECT count(*) {sql}", *values))


@search.tool(
    summary="Save an issue query under a name",
    annotations=SETS,
    related=("run_saved_search",),
    examples=[
        Example(
            "For every morning", {"name": "urgent", "query": "assignee:me priority:urgent,high"}
        )
    ],
)
def save_search(t: Tracker, name: SearchName, query: Query) -> SavedSearches:
    """Keep a query of `search_issues` for yourself; a name that you have used is overwritten."""
    _conditions(t, query)
    t.run(
        "INSERT INTO saved_searches VALUES (?, ?, ?) "
        "ON CONFLICT DO UPDATE SET query = excluded.query",
        t.me,
        name,
        query,
    )
    return list_saved_searches(t)


@search.tool(
    summary="List your saved searches",
    annotations=READS,
    related=("run_saved_search",),
    examples=[Example("Yours", {})],
)
def list_saved_searches(t: Tracker) -> SavedSearches:
    """List the queries that you have saved, by name."""
    rows = t.rows("SELECT name, query FROM saved_searches WHERE member = ? ORDER BY name", t.me)
    return SavedSearches(searches=[SavedSearch.model_validate(r) for r in rows])


@search.tool(
    summary="Run a saved search",
    annotations=READS,
    related=("save_search",),
    examples=[Example("By name", {"name": "urgent"})],
)
def run_saved_search(t: Tracker, name: SearchName, limit: Limit = 20) -> SearchRun:
    """Run a query that you have saved and show the query with the issues that it finds."""
    query = _saved(t, name)
    found = search_issues(t, query, limit)
    return SearchRun(query=query, issues=found.issues, total=found.total)


@search.tool(
    summary="Delete a saved search",
    annotations=REMOVES,
    related=("list_saved_searches",),
    examples=[Example("By name", {"name": "urgent"})],
)
def delete_saved_search(t: Tracker, name: SearchName) -> SavedSearches:
    """Delete a saved search of yours; the answer lists those that are left."""
    _saved(t, name)
    t.run("DELETE FROM saved_searches WHERE member = ? AND name = ?", t.me, name)
    return list_saved_searches(t)


@search.tool(
    summary="Complete the beginning of a word with words that occur",
    annotations=READS,
    aliases=("autocomplete",),
    examples=[Example("How is it spelled here?", {"prefix": "auth"})],
    related=("fulltext_search",),
)
def suggest_terms(
    t: Tracker,
    prefix: Annotated[str, Field(min_length=2, description="At least two letters.")],
    limit: Limit = 10,
) -> Terms:
    """Complete a prefix with indexed word stems, most frequent first.

    Use it when `fulltext_search` finds nothing and the spelling may be the reason.
    """
    rows = t.rows(
        "SELECT term, doc AS entries FROM search_terms WHERE substr(term, 1, ?) = ? "
        "ORDER BY doc DESC, term LIMIT ?",
        len(prefix),
        prefix.lower(),
        limit,
    )
    return Terms(terms=[Term.model_validate(r) for r in rows])


@search.tool(
    summary="Find similar issues, to avoid duplicates",
    annotations=READS,
    aliases=("duplicates", "already reported"),
    related=("create_issue", "link_issues"),
    examples=[Example("Before reporting", {"text": "cannot log in with Safari"})],
)
def find_similar_issues(
    t: Tracker,
    issue: Annotated[str | None, Field(description="Key of an issue to compare with.")] = None,
    text: Annotated[str | None, Field(description="A text to compare with.")] = None,
    limit: Annotated[int, Field(ge=1, le=20, description="How many to show.")] = 5,
) -> SimilarIssues:
    """Find issues that share words with an issue or a text, closest first; give one of the two.

    Words that are rare in this workspace weigh more. Closed issues are included.
    """
    if (issue is None) == (text is None):
        raise Refused("Give either an issue or a text to compare with.")
    row = need_issue(t, issue) if issue else None
    source = f"{row['title']} {row['description']}" if row else text or ""
    words = any_word(source)
    if not words:
        raise Refused("There are no words to compare; give a sentence.")
    rows = t.rows(
        "SELECT issues.*, -bm25(search_index, 3.0, 1.0) AS score FROM search_index "
        "JOIN search_entries s ON s.id = search_index.rowid "
        "JOIN issues ON kind = 'issue' AND key = ref "
        "WHERE search_index MATCH ? AND key IS NOT ? ORDER BY score DESC, key LIMIT ?",
        words,
        row["key"] if row else None,
        limit,
    )
    best = max((r["score"] for r in rows), default=0.0) or 1.0
    return SimilarIssues(
        similar=[Similar(issue=brief(r), score=round(r["score"] / best, 3)) for r in rows]
    )


@search.tool(
    summary="Rebuild the full-text index",
    annotations=SETS,
    related=("fulltext_search",),
    examples=[Example("The whole index", {})],
)
def rebuild_search_index(t: Tracker) -> Rebuilt:
    """Build the full-text index anew from what is stored and count what is in it.

    The index follows every change by itself; this is for repair after a restored backup.
    """
    t.run("INSERT INTO search_index (search_index) VALUES ('rebuild')")
    counts = t.rows("SELECT kind, count(*) AS n FROM search_entries GROUP BY kind ORDER BY kind")
    return Rebuilt(entries={r["kind"]: r["n"] for r in counts})


def _saved(t: Tracker, name: str) -> str:
    sql = "SELECT query FROM saved_searches WHERE member = ? AND name = ?"
    query = t.value(sql, t.me, name)
    if query is None:
        names = t.column("SELECT name FROM saved_searches WHERE member = ?", t.me)
        raise unknown("saved search", name, names)
    return query


def _tokens(query: str) -> list[str]:
    return [token.replace('"', "") for token in TOKEN.findall(query)]


def _match(query: str) -> str:
    """An FTS5 expression for words, phrases, exclusions and prefixes; nothing else gets through."""
    must: list[str] = []
    without: list[str] = []
    for token in _tokens(query):
        words = WORD.findall(token)
        if words:
            phrase = '"' + " ".join(words) + '"' + ("*" if token.endswith("*") else "")
            (without if token.startswith("-") else must).append(phrase)
    if not must:
        raise Refused(
            f"The query {query!r} has no word to look for; exclusions need one beside them."
        )
    return " AND ".join(must) + "".join(f" NOT {phrase}" for phrase in without)


def _conditions(t: Tracker, query: str) -> tuple[list[str], list[Value]]:
    """What `search_issues` asks of an issue, as SQL."""
    where: list[str] = []
    values: list[Value] = []
    for token in _tokens(query):
        excluded, token = token.startswith("-"), token.removeprefix("-")
        field, colon, asked = token.partition(":")
        if colon:
            if field not in _FIELDS:
                raise unknown("field", field, _FIELDS)
            tests = [_FIELDS[field](t, value) for value in asked.split(",") if value]
            if not tests:
                raise Refused(f"{field}: needs a value.")
        else:
            word = f"%{token}%"
            tests = [("(title LIKE ? OR description LIKE ?)", [word, word])]
        where.append(("NOT " if excluded else "") + f"({' OR '.join(sql for sql, _ in tests)})")
        values += [value for _, given in tests for value in given]
    return where, values


Test = tuple[str, list[Value]]


def _column(name: str) -> Callable[[Tracker, str], Test]:
    return lambda t, value: (f"{name} = ?", [value])


def _status(t: Tracker, value: str) -> Test:
    groups = {"open": OPEN, "closed": CLOSED}
    if value not in groups and value not in NEXT:
        raise unknown("status", value, [*groups, *NEXT])
    wanted = groups.get(value, (value,))
    return f"status IN ({', '.join('?' * len(wanted))})", [*wanted]


def _who(name: str) -> Callable[[Tracker, str], Test]:
    def test(t: Tracker, value: str) -> Test:
        if value == "nobody":
            return f"{name} IS NULL", []
        # `IS`, since NOT (NULL = 'ana') would leave unassigned issues out of -assignee:ana
        return f"{name} IS ?", [t.me if value == "me" else value]

    return test


def _due(t: Tracker, value: str) -> Test:
    if value == "none":
        return "due_on IS NULL", []
    if value == "overdue":
        return "(closed_at IS NULL AND coalesce(due_on, '9999') < ?)", [t.today.isoformat()]
    raise Refused(f"due: takes none or overdue; got {value!r}.")


def _label(t: Tracker, value: str) -> Test:
    return "key IN (SELECT issue FROM issue_labels WHERE label = ?)", [value.lower()]


_FIELDS: dict[str, Callable[[Tracker, str], Test]] = {
    "project": lambda t, value: ("project = ?", [value.upper()]),
    "status": _status,
    "type": _column("type"),
    "priority": _column("priority"),
    "assignee": _who("assignee"),
    "reporter": _who("reporter"),
    "label": _label,
    "milestone": lambda t, value: ("milestone IS ?", [int(value) if value.isdigit() else None]),
    "due": _due,
}
