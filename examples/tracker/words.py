"""The parameters that many tools share, described once, and the closed sets of the domain."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

ProjectKey: TypeAlias = Annotated[str, Field(description="Project key, such as WEB.")]
IssueKey: TypeAlias = Annotated[str, Field(description="Key of the issue, such as WEB-3.")]
Member: TypeAlias = Annotated[str, Field(description="Handle of the member, such as ana.")]
ChannelName: TypeAlias = Annotated[str, Field(description="Name of the channel, without the #.")]
Slug: TypeAlias = Annotated[str, Field(description="Slug of the document, such as release-plan.")]
MilestoneId: TypeAlias = Annotated[int, Field(description="Number of the milestone.")]

AnyProject: TypeAlias = Annotated[
    str | None, Field(description="Key of a project; all if left out.")
]
AnyMember: TypeAlias = Annotated[
    str | None, Field(description="Handle of a member; leave out for yourself.")
]
Limit: TypeAlias = Annotated[int, Field(ge=1, le=100, description="At most so many.")]
Offset: TypeAlias = Annotated[int, Field(ge=0, description="How many to skip.")]
FirstDay: TypeAlias = Annotated[date, Field(description="First day of the period, inclusive.")]
LastDay: TypeAlias = Annotated[date, Field(description="Last day of the period, inclusive.")]
From: TypeAlias = Annotated[datetime, Field(description="Start of the window, UTC.")]
To: TypeAlias = Annotated[datetime, Field(description="End of the window, not included.")]

Role: TypeAlias = Literal["owner", "admin", "member", "guest"]
ProjectStatus: TypeAlias = Literal["active", "paused", "archived"]
IssueType: TypeAlias = Literal["bug", "feature", "task", "question"]
Status: TypeAlias = Literal["backlog", "todo", "in_progress", "in_review", "done", "canceled"]
Priority: TypeAlias = Literal["low", "medium", "high", "urgent"]
LinkKind: TypeAlias = Literal["blocks", "relates_to", "duplicates"]
Topic: TypeAlias = Literal["assigned", "mentioned", "status", "comment", "document", "calendar"]
Delivery: TypeAlias = Literal["inbox", "digest", "off"]
