"""Types that several records of settings use."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

from annotated_types import Ge, Gt

Seconds: TypeAlias = Annotated[float, Gt(0)]
Count: TypeAlias = Annotated[int, Ge(1)]

STRICT: dict[str, Any] = {"extra": "forbid"}
"""The configuration of every record: a key that it does not have is an error."""
