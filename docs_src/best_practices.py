"""One tool that does everything, and four tools that replace it."""

from typing import Annotated, Any, Literal

import anyio
from pydantic import BaseModel, Field

from pegboard import Example, InvalidArguments, Pegboard, ToolError

READ = {"readOnlyHint": True}
CHANGE = {"readOnlyHint": False, "destructiveHint": False}
DESTROY = {"readOnlyHint": False, "destructiveHint": True}

board = Pegboard("tracker", mode="proxy")
issues = board.category("issues", description="Bugs and tasks")


@board.tool  # before: any risk, any argument, any result
def issue_handler(action: str, data: dict[str, Any]) -> str:
    """This tool can be used in order to handle issues: create, read, close, delete."""
    return f"{action} done"


class Issue(BaseModel):
    id: int
    title: str
    state: Literal["open", "closed"] = "open"


_issues = {7: Issue(id=7, title="The lamp is dark")}


def _issue(number: int) -> Issue:
    if number not in _issues:
        raise ToolError(f"There is no issue {number}. Call list_issues to see all issues.")
    return _issues[number]


@issues.tool(annotations=READ)
def list_issues(state: Literal["open", "closed"] = "open") -> list[Issue]:
    """List issues by their state."""
    return [issue for issue in _issues.values() if issue.state == state]


@issues.tool(
    annotations=CHANGE,
    aliases=["file a bug"],
    examples=[Example("Something is broken", {"title": "The door is stuck"})],
    related=["list_issues"],
)
def create_issue(title: Annotated[str, Field(min_length=3)]) -> Issue:
    """Create an issue."""
    issue = Issue(id=max(_issues, default=0) + 1, title=title)
    _issues[issue.id] = issue
    return issue


@issues.tool(annotations=CHANGE)
def close_issue(id: int) -> Issue:
    """Close an issue that is done."""
    closed = _issue(id)
    closed.state = "closed"
    return closed


@issues.tool(annotations=DESTROY)
def delete_issue(id: int) -> Issue:
    """Delete an issue permanently."""
    _issue(id)
    return _issues.pop(id)


async def main() -> None:
    board.check()
    vague, create, delete = board.describe("issue_handler", "create_issue", "delete_issue")

    assert vague.signature == "issue_handler(action: str, data: {[key]: any})"  # what can it do?
    assert create.signature == "create_issue(title: str 3..)"  # everything a call needs
    assert (vague.risk, create.risk, delete.risk) == ("write", "write", "destructive")
    assert board.search("file a bug")[0].tool == create

    await board.call("issue_handler", {"action": "explode", "data": {}})  # accepted without a check
    try:
        await board.call("create_issue", {"title": ""})
    except InvalidArguments as error:
        message = error.message
    assert "title" in message  # rejected before the function ran

    result = await board.call("list_issues", include_fields=["id"])  # fields of the return type
    assert result.output == {"result": [{"id": 7}]}


if __name__ == "__main__":
    anyio.run(main)
