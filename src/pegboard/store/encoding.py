"""JSON values as bytes, the same in every store."""

from __future__ import annotations

import json

from pegboard.core.json import Json


def encode(value: Json) -> bytes:
    """The bytes of a value. Raises `TypeError` or `ValueError` if it is not JSON."""
    try:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except RecursionError as exc:
        raise ValueError("The value is nested too deeply to be stored.") from exc
    return text.encode("utf-8", "surrogatepass")  # tools do return lone surrogates


def decode(data: bytes) -> Json:
    """A fresh value, which the caller may change."""
    return json.loads(data.decode("utf-8", "surrogatepass"))


def check_ttl(ttl: float | None) -> float | None:
    """The ttl, or an error: to remove a value, change it to `None`."""
    if ttl is not None and not 0 < ttl < float("inf"):
        raise ValueError(f"A ttl is a positive number of seconds; got {ttl}.")
    return ttl
