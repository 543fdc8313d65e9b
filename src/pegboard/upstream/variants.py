"""Servers that list other tools to clients that can be asked: by sampling, elicitation, roots.

A client's *kind* is what it declares of these, as a text such as `elicitation.form+roots`; it is
empty for a client that declares nothing. What a server lists is recorded for each kind seen:

    {"roots": None}                          the same as for a client that declares nothing
    {"": ["echo"], "roots": ["echo", "ls"]}  by kind; a kind that is not there sees what "" sees

The catalog of a server holds each tool once, whoever it is listed to, so that the lock, search and
names cover all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from pegboard.core.json import Json, JsonObject

Kind: TypeAlias = str
Variants: TypeAlias = Mapping[Kind, Sequence[str] | None]
"""The names of the tools that clients of each kind are listed."""

PLAIN: Final[Kind] = ""
"""A client that cannot be asked anything."""
_MODES: Final = ("form", "url")


def kind_of(capabilities: Mapping[str, Json]) -> Kind:
    """The kind of a client that declares these capabilities."""
    parts = [name for name in ("roots", "sampling") if capabilities.get(name) is not None]
    elicitation = capabilities.get("elicitation")
    if isinstance(elicitation, dict):
        modes = [mode for mode in _MODES if mode in elicitation] or [
            "form"
        ]  # before there were two
        parts += [f"elicitation.{mode}" for mode in modes]
    return "+".join(sorted(parts))


def capabilities_of(kind: Kind) -> JsonObject:
    """What a client of a kind declares."""
    declared: JsonObject = {}
    for part in filter(None, kind.split("+")):
        name, _, mode = part.partition(".")
        members = declared.setdefault(name, {})
        if mode:
            members[mode] = {}
    return declared


def is_known(variants: Variants, kind: Kind) -> bool:
    """Whether it is known what clients of a kind are listed.

    A server that lists nothing more to a client that can be asked more does not to this one.
    """
    parts = set(kind.split("+"))
    return not kind or any(
        kind == other or (listed is None and parts <= set(other.split("+")))
        for other, listed in variants.items()
    )


def alike(variants: Variants) -> tuple[Kind, ...]:
    """The kinds of clients that are known to be listed the same as one that declares nothing."""
    return (PLAIN, *(kind for kind, listed in variants.items() if kind and listed is None))


def varying(variants: Variants) -> list[Kind]:
    """The kinds of clients that are listed something else."""
    return [kind for kind, listed in variants.items() if kind and listed is not None]


def listed_to(variants: Variants, kind: Kind) -> Sequence[str] | None:
    """The names of the tools that clients of a kind see; `None` for all of them."""
    return variants.get(kind) or variants.get(PLAIN)


def merged(
    entries: Sequence[JsonObject], variants: Variants, kind: Kind, listed: Iterable[JsonObject]
) -> tuple[list[JsonObject], dict[Kind, Sequence[str] | None]]:
    """A catalog and its variants, with what clients of one more kind are listed."""
    known = [str(entry.get("name")) for entry in entries]
    plain = list(listed_to(variants, PLAIN) or known)
    more = {str(entry.get("name")): entry for entry in listed}
    if set(more) == set(plain):
        return list(entries), {**variants, kind: None}
    added = [entry for name, entry in more.items() if name not in known]
    return [*entries, *added], {**variants, PLAIN: plain, kind: list(more)}
