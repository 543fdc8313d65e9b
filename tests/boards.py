"""The board that the tests share: an office with some thirty tools of every kind.

Every risk, tools without annotations, output schemas, a deprecated and a disabled tool, a category
with a loader, one name in two categories, tools without a category. Run as a program it serves
itself on stdio.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from mcp.server.mcpserver.context import Context
from pydantic import BaseModel, Field

from pegboard import Example, Pegboard, ToolError

READ = {"readOnlyHint": True}
WRITE = {"readOnlyHint": False, "destructiveHint": False}
DESTRUCTIVE = {"destructiveHint": True}

Priority = Literal["low", "medium", "high"]


class Issue(BaseModel):
    """What an issue tool answers."""

    id: int
    project: str
    title: str
    priority: Priority = "medium"
    status: Literal["open", "closed"] = "open"


class Attendee(BaseModel):
    """Somebody who is invited."""

    name: str
    email: str | None = None


class Usage(BaseModel):
    """How full the storage is."""

    files: int
    size: int = Field(alias="bytes")


@dataclass
class Office:
    """What the tools work on."""

    issues: dict[int, Issue] = field(default_factory=dict[int, Issue])
    documents: dict[str, str] = field(default_factory=dict[str, str])
    files: dict[str, str] = field(default_factory=dict[str, str])
    projects: list[str] = field(default_factory=lambda: ["apollo", "gemini"])

    def add(self, project: str, title: str, priority: Priority = "medium") -> Issue:
        issue = Issue(id=len(self.issues) + 1, project=project, title=title, priority=priority)
        self.issues[issue.id] = issue
        return issue


def office_board(**options: Any) -> Pegboard:
    """A fresh office, on a board of these options."""
    board = Pegboard("office", version="1.2.3", instructions="An office to test with.", **options)
    office = Office(documents={"charter": "We build things."})
    office.add("apollo", "Door does not open")
    _issues(board, office)
    _projects(board, office)
    _documents(board, office)
    _calendar(board)
    _storage(board, office)
    _loose(board)
    board.load("reports", _reports, description="Figures over time")
    return board


def _issues(board: Pegboard, office: Office) -> None:
    issues = board.category("issues", description="Bugs and tasks")

    @issues.tool(
        annotations=WRITE,
        aliases=("file a bug",),
        related=("get_issue", "issues.search"),
        examples=[
            Example("A bug", {"project": "apollo", "title": "Lamp is dark"}),
            {
                "description": "Urgent",
                "invocation": {"project": "apollo", "title": "x", "priority": "high"},
            },
        ],
    )
    def create_issue(project: str, title: str, priority: Priority = "medium") -> Issue:
        """Create an issue.

        Args:
            project: Where it belongs.
            title: One line that says what is wrong.
            priority: How soon it is needed.
        """
        return office.add(project, title, priority)

    @issues.tool(annotations=READ)
    def get_issue(id: int) -> Issue:
        """Read one issue by its number."""
        if id not in office.issues:
            raise ValueError(f"There is no issue {id}.")
        return office.issues[id]

    @issues.tool(annotations=READ)
    def list_issues(status: Literal["open", "closed"] = "open") -> list[Issue]:
        """List the issues of one status."""
        return [i for i in office.issues.values() if i.status == status]

    @issues.tool(annotations=WRITE)
    def close_issue(id: int) -> Issue:
        """Close an issue that is done."""
        office.issues[id] = office.issues[id].model_copy(update={"status": "closed"})
        return office.issues[id]

    @issues.tool(annotations=DESTRUCTIVE)
    def delete_issue(id: int) -> str:
        """Remove an issue for ever."""
        del office.issues[id]
        return f"deleted {id}"

    @issues.tool(annotations=READ)
    def search(query: str) -> list[str]:
        """Find issues whose title has these words."""
        return [i.title for i in office.issues.values() if query.lower() in i.title.lower()]


def _projects(board: Pegboard, office: Office) -> None:
    projects = board.category("projects")

    @projects.tool(annotations=READ)
    def list_projects() -> list[str]:
        """List all projects."""
        return office.projects

    @projects.tool(annotations=WRITE)
    def create_project(name: str) -> str:
        """Start a new project."""
        office.projects.append(name)
        return name

    @projects.tool(annotations=WRITE, deprecated="use close_project")
    def archive_project(name: str) -> str:
        """Put a project away."""
        return f"archived {name}"

    @projects.tool(annotations=WRITE)
    def close_project(name: str) -> str:
        """End a project."""
        return f"closed {name}"


def _documents(board: Pegboard, office: Office) -> None:
    documents = board.category("documents", description="Texts that people write together")

    @documents.tool(annotations=READ)
    def search(query: str) -> list[str]:
        """Find documents that contain these words."""
        return [name for name, text in office.documents.items() if query in text]

    @documents.tool(annotations=READ)
    def read_document(name: str) -> str:
        """Give the text of a document."""
        return office.documents[name]

    @documents.tool(annotations=WRITE)
    def write_document(name: str, text: str) -> str:
        """Store a text under a name."""
        office.documents[name] = text
        return name

    @documents.tool(annotations=DESTRUCTIVE)
    def delete_document(name: str) -> str:
        """Throw a document away."""
        return f"deleted {name}"

    @documents.tool(annotations=READ)
    def list_documents() -> list[str]:
        """List all documents."""
        return sorted(office.documents)


def _calendar(board: Pegboard) -> None:
    calendar = board.category("calendar")

    @calendar.tool(annotations=READ)
    def list_events(day: str) -> list[str]:
        """List what happens on a day."""
        return [f"standup on {day}"]

    @calendar.tool(annotations=WRITE)
    def create_event(
        title: str, attendees: list[Attendee], minutes: Annotated[int, Field(ge=5, le=480)] = 30
    ) -> str:
        """Invite people to an event."""
        return f"{title} with {', '.join(a.name for a in attendees)} for {minutes} minutes"

    @calendar.tool(annotations=DESTRUCTIVE)
    def cancel_event(title: str) -> str:
        """Call an event off."""
        return f"cancelled {title}"

    @calendar.tool(annotations=READ)
    async def find_slot(minutes: int = 30) -> str:
        """Find time that is free for everybody."""
        return f"{minutes} minutes at noon"


def _storage(board: Pegboard, office: Office) -> None:
    storage = board.category("storage")

    @storage.tool(annotations=READ)
    def list_files() -> list[str]:
        """List the stored files."""
        return sorted(office.files)

    @storage.tool()
    def upload_file(name: str, content: str) -> str:
        """Store a file; says nothing of its risk."""
        office.files[name] = content
        return name

    @storage.tool(annotations=DESTRUCTIVE)
    def delete_file(name: str) -> str:
        """Delete a stored file."""
        return f"deleted {name}"

    @storage.tool(annotations=READ)
    def disk_usage() -> Usage:
        """Say how full the disk is."""
        return Usage(files=len(office.files), bytes=sum(map(len, office.files.values())))

    @storage.tool(annotations=DESTRUCTIVE, enabled=False)
    def shred_file(name: str) -> str:
        """Destroy a file beyond repair."""
        return f"shredded {name}"


def _loose(board: Pegboard) -> None:
    @board.tool(annotations=READ)
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @board.tool(annotations=READ)
    def fail(how: Literal["value", "tool", "crash"]) -> str:
        """Fail in the way that is asked for."""
        if how == "value":
            raise ValueError("That value does not exist.")
        if how == "tool":
            raise ToolError("The printer has no paper.")
        raise RuntimeError("secret inner detail")

    @board.tool(annotations=READ)
    def whoami(ctx: Context[Any, Any]) -> str:
        """Say who calls."""
        return ctx.session.client_params.client_info.name if ctx.session.client_params else "nobody"


def _reports() -> list[Any]:
    def burndown(project: str) -> list[int]:
        """Open issues by day."""
        return [3, 2, len(project)]

    def velocity(weeks: int = 4) -> float:
        """Closed issues a week."""
        return 12 / weeks

    def workload(person: str) -> str:
        """What somebody has to do."""
        return f"{person} has enough to do"

    return [burndown, velocity, workload]


if __name__ == "__main__":
    office_board(mode=os.environ.get("OFFICE_MODE", "auto")).run()
