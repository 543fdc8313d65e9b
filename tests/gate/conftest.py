"""One gateway for all tests of this folder: who has a key sees different parts of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.gate.world import World, keys

SETTINGS = (
    'mode = "proxy"\n'
    + keys("ann", "bob", "carol", "dave", "eve", "hasty", "talkative", "scraper")
    + """
[http]
operators = ["ann"]
[observe]
audit = "audit.jsonl"
metrics = "protected"
metrics_readers = ["scraper"]
[trust]
lock = "pegboard.lock"
[[limits]]
principals = ["hasty"]
calls = 3
per = 3600
[[limits]]
principals = ["talkative"]
calls = 100
requests = 4
per = 3600
[calls]
breaker_failures = 2
breaker_cooldown = 600.0
[permissions]
default = "deny"
[[permissions.rules]]
principals = ["ann"]
[[permissions.rules]]
principals = ["bob"]
tools = ["wiki.look", "wiki_look", "jobs.look", "jobs.start"]
[[permissions.rules]]
principals = ["carol", "eve", "hasty", "talkative"]
servers = ["jobs", "vault", "forger"]
"""
)
SERVERS = {
    "wiki": {"tools": ["look", "edit"]},
    "payroll": {"tools": ["fail", "pay_everyone"]},
    "jobs": {"tools": ["look", "start", "other"], "settings": 'isolation = "shared"'},
    "vault": {
        "tools": ["announce"],
        "resources": ["vault://plans"],
        "templates": ["vault://papers/{id}"],
        "prompts": ["brief"],
        "settings": 'isolation = "shared"',
    },
    "forger": {"tools": ["link", "announce"], "resources": ["forger://own"]},
    "ledger": {"tools": [], "dies": "broken-backend token=sk-live-0123456789"},
}


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("gate"), SETTINGS, SERVERS)
    try:
        yield made.start()
    finally:
        made.stop()
