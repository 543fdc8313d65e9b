"""Queries that share few words with the tool they need, by kind, over one catalog of an office.

Each kind has several queries, so that no single one is worth a special case in the ranking.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from pegboard.core.json import JsonObject
from pegboard.core.search import SearchIndex
from pegboard.core.tools import Catalog, Tool, constant_definition
from pegboard.embed.live_index import LiveIndex
from pegboard.embed.vectorizer import LocalVectorizer

TEXT: JsonObject = {"type": "string"}
STATUS: JsonObject = {"type": "string", "enum": ["open", "in progress", "closed"]}
TOOLS: Mapping[str, tuple[str, dict[str, JsonObject]]] = {
    "tracker.create_issue": ("Create an issue.", {"title": TEXT, "project": TEXT}),
    "tracker.get_issue": ("Get one issue with its comments.", {"key": TEXT}),
    "tracker.search_issues": ("Search issues by words.", {"query": TEXT, "limit": TEXT}),
    "tracker.update_issue": (
        "Change fields of an issue.",
        {"key": TEXT, "assignee": TEXT, "status": STATUS, "due_date": TEXT, "priority": TEXT},
    ),
    "tracker.delete_issue": ("Delete an issue.", {"key": TEXT}),
    "tracker.add_comment": ("Add a comment to an issue.", {"key": TEXT, "text": TEXT}),
    "tracker.log_time": ("Record hours worked on an issue.", {"key": TEXT, "minutes": TEXT}),
    "time.get_current_time": ("Get the current time in a time zone.", {"timezone": TEXT}),
    "time.convert_time": (
        "Convert a time between time zones.",
        {"source_timezone": TEXT, "time": TEXT, "target_timezone": TEXT},
    ),
    "mail.send_message": ("Send an e-mail.", {"to": TEXT, "subject": TEXT, "body": TEXT}),
    "mail.search_messages": ("Search the mailbox.", {"query": TEXT}),
    "mail.delete_message": ("Delete an e-mail.", {"id": TEXT}),
    "calendar.create_event": ("Create an event.", {"title": TEXT, "start": TEXT, "guests": TEXT}),
    "calendar.list_events": ("List the events of a day.", {"day": TEXT}),
    "files.read_file": ("Read the contents of a file.", {"path": TEXT}),
    "files.write_file": ("Write a file.", {"path": TEXT, "content": TEXT}),
    "files.move_file": ("Move or rename a file.", {"source": TEXT, "destination": TEXT}),
    "db.run_query": ("Run a read-only SQL query.", {"sql": TEXT}),
    "db.describe_table": ("Show the columns of a table.", {"table": TEXT}),
    "web.fetch": ("Fetch a page of the web as text.", {"url": TEXT}),
}
PARAMETER_ONLY = {
    "assign the bug to me": "tracker.update_issue",
    "the login bug is due on Friday": "tracker.update_issue",
    "the report bug is urgent, raise its priority": "tracker.update_issue",
    "invite Ben to a meeting on Friday": "calendar.create_event",
}
SYNONYMS = {
    "what time is it in Tokyo": "time.get_current_time",
    "file a defect about the login page": "tracker.create_issue",
    "drop Ann a line that I am late": "mail.send_message",
    "rename notes.txt to todo.txt": "files.move_file",
    "which columns does the customers table have": "db.describe_table",
}
STATEMENTS = {
    "the login page shows an error, somebody must fix this bug": "tracker.create_issue",
    "I worked two hours on ABC-12": "tracker.log_time",
    "that mail from the bank should be gone": "mail.delete_message",
    "what is on my agenda tomorrow": "calendar.list_events",
}
OTHER_LANGUAGES = {
    "Lege ein neues Ticket an": "tracker.create_issue",
    "Wie spät ist es in Tokio": "time.get_current_time",
    "envoie un e-mail à Paul": "mail.send_message",
    "borra el correo": "mail.delete_message",
}
KINDS = {
    "parameter only": PARAMETER_ONLY,
    "synonyms": SYNONYMS,
    "statements": STATEMENTS,
    "other languages": OTHER_LANGUAGES,
}


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    tools = [
        Tool(
            name.partition(".")[2],
            constant_definition({"type": "object", "properties": parameters}),
            id=name,
            server=name.partition(".")[0],
            description=text,
        )
        for name, (text, parameters) in TOOLS.items()
    ]
    return LiveIndex(LocalVectorizer()).prepare(Catalog(tools))


def find(index: SearchIndex, query: str, limit: int) -> Sequence[str]:
    return [match.tool.id for match in index.search(query, limit)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_right_tool_is_among_the_first_three(index: SearchIndex, kind: str) -> None:
    missed = {q: find(index, q, 3) for q, right in KINDS[kind].items()
              if right not in find(index, q, 3)}  # fmt: skip
    assert not missed


@pytest.mark.parametrize("kind", KINDS)
def test_at_least_half_of_the_right_tools_come_first(index: SearchIndex, kind: str) -> None:
    first = [find(index, query, 1) == [right] for query, right in KINDS[kind].items()]
    assert sum(first) >= 0.5 * len(first)
