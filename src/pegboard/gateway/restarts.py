"""Which settings of a changed configuration count only after a restart.

Most take effect with the file. These are built into what runs: where the gateway listens and whom
it asks who they are, where state is kept, who is told of its work.
"""

from __future__ import annotations

from dataclasses import fields

from pegboard.config.settings import Settings

_SECTIONS = ("auth", "store", "observe", "http")
_KEYS = (("trust", "lock"), ("upstreams", "folder"))


def waiting_for_restart(started: Settings, now: Settings) -> list[str]:
    """The keys that differ from those that the gateway was started with, and do not count yet."""
    places = [
        (section, field.name)
        for section in _SECTIONS
        for field in fields(getattr(started, section))
    ]  # fmt: skip
    changed = [
        f"{section}.{key}"
        for section, key in (*places, *_KEYS)
        if getattr(getattr(started, section), key) != getattr(getattr(now, section), key)
    ]
    if started.auth.kind == now.auth.kind == "keys":  # taken at once, so that a key can be revoked
        changed = [key for key in changed if key != "auth.keys"]
    if started.instructions != now.instructions:
        changed.append("instructions")
    return changed
