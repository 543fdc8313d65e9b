"""What servers say of themselves beside their tools, and what has changed of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeAlias

from pegboard.config import Configuration
from pegboard.core.json import JsonObject
from pegboard.upstream.kept import About

if TYPE_CHECKING:
    from pegboard.upstream.listing import Listing

OtherList: TypeAlias = Literal["prompts", "resources"]


def about(listing: Listing, before: About | None = None) -> About:
    """What a server said of itself, as it is stored; a list that failed stays as it was before."""
    known = before or About()
    unread = {name: getattr(known, name) for name in listing.failures}
    said = About(
        server_info=listing.server_info,
        capabilities=listing.capabilities,
        instructions=listing.instructions,
        era=listing.era,
        protocol_version=listing.protocol_version,
        resources=list(listing.resources),
        resource_templates=list(listing.resource_templates),
        prompts=list(listing.prompts),
        variants=dict(listing.variants),
    )
    return replace(said, **unread)


def changed_lists(before: About, after: About) -> list[OtherList]:
    """Which lists beside that of the tools are others now."""
    kinds: list[OtherList] = []
    if before.prompts != after.prompts:
        kinds.append("prompts")
    if _resources(before) != _resources(after):
        kinds.append("resources")
    return kinds


def _resources(said: About) -> list[JsonObject]:
    return [*said.resources, *said.resource_templates]


def unusable(configuration: Configuration) -> dict[str, str]:
    """What to say of the servers that a configuration names and cannot use."""
    return {name: f"{name} is left out: {why}" for name, why in configuration.unusable.items()}


_REASON_LENGTH = 200


def missing_notes(starting: Sequence[str], reasons: Sequence[str]) -> list[str]:
    """What a model should know of servers whose tools are not there yet, or not at all."""
    notes = [f"Still starting: {', '.join(starting)}. Search again soon."] if starting else []
    return notes + [f"Not available: {why[:_REASON_LENGTH]}" for why in reasons]
