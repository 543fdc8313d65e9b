"""Results of the shapes that tools give, made up the same way each time."""

from __future__ import annotations

import random
from typing import Any

_TEXT = (
    "fix crash when opening large file add retry to client update docs for release refactor parser "
    "handle timeout in worker remove unused option support dark mode speed up first start"
)
_WORDS = _TEXT.split()


def listings(rows: int = 50, seed: int = 1) -> dict[str, Any]:
    """Named results: flat and nested listings, a tree, a record, a log."""
    chance = random.Random(seed)
    return {
        "customers": [_customer(chance, i) for i in range(rows)],
        "metrics": {"points": [_metric(chance, i) for i in range(rows)], "step": 60},
        "files": [_file(chance, i) for i in range(rows)],
        "issues": {"total_count": rows, "items": [_issue(chance, i) for i in range(rows)]},
        "tree": _tree(chance, 4),
        "log": "\n".join(_line(chance, i) for i in range(rows * 4)),
    }


def fifty_kilobytes() -> dict[str, Any]:
    """A listing of issues of about 50 KB as compact JSON."""
    return listings(230, seed=2)["issues"]


def _sentence(chance: random.Random, words: int) -> str:
    return " ".join(chance.choice(_WORDS) for _ in range(words))


def _time(chance: random.Random) -> str:
    return f"2026-0{chance.randint(1, 9)}-1{chance.randint(0, 9)}T0{chance.randint(0, 9)}:15:00Z"


def _customer(chance: random.Random, i: int) -> dict[str, Any]:
    return {
        "id": i,
        "name": chance.choice(["Ann Lee", "Bo Chen", "Cy Diaz"]),
        "email": f"user{i}@example.com",
        "country": chance.choice(["DE", "FR", "US"]),
        "balance": round(chance.random() * 1000, 2),
        "active": chance.random() < 0.8,
    }


def _metric(chance: random.Random, i: int) -> dict[str, Any]:
    return {
        "ts": 1_700_000_000 + 60 * i,
        "cpu": round(chance.random() * 100, 2),
        "memory": round(chance.random() * 100, 2),
    }


def _file(chance: random.Random, i: int) -> dict[str, Any]:
    return {
        "path": f"src/{chance.choice(_WORDS)}/{chance.choice(_WORDS)}_{i}.py",
        "size": chance.randint(100, 99_999),
        "sha": f"{chance.getrandbits(160):040x}",
        "type": "file",
    }


def _issue(chance: random.Random, i: int) -> dict[str, Any]:
    issue = {
        "number": 1000 + i,
        "title": _sentence(chance, 7),
        "state": chance.choice(["open", "closed"]),
        "user": {"login": chance.choice(["ann", "bob", "cyd"]), "id": chance.randint(1, 9999)},
        "labels": chance.sample(["bug", "docs", "p1"], chance.randint(0, 2)),
        "comments": chance.randint(0, 40),
        "created_at": _time(chance),
        "milestone": None,
    }
    return issue | ({"closed_at": _time(chance)} if issue["state"] == "closed" else {})


def _tree(chance: random.Random, depth: int) -> dict[str, Any]:
    inner = [_tree(chance, depth - 1) for _ in range(3)] if depth else []
    return {"name": _sentence(chance, 2), "size": chance.randint(1, 99), "children": inner}


def _line(chance: random.Random, i: int) -> str:
    level = chance.choice(["INFO", "INFO", "INFO", "WARN", "ERROR"])
    return f"{_time(chance)} {level} worker-{i % 4} {_sentence(chance, 8)}"
