"""Files that are better left alone: each is refused with the reason and stays byte for byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.install.machines import desk

from pegboard.errors import ConfigError
from pegboard.install.plan import apply_install

REFUSED = {
    "broken JSON": ("cursor", b'{"mcpServers": {', r"mcp\.json:1: this is not valid JSON"),
    "broken TOML": ("codex", b"[mcp_servers\n", "not valid TOML"),
    "broken YAML": ("goose", b"extensions: {a\n", "not valid YAML"),
    "not text": ("cursor", b"\xff\xfe{\x00}\x00", "not UTF-8 text"),
    "a list": ("cursor", b"[]", "an object is expected at the top"),
    "servers in a list": ("cursor", b'{"mcpServers": []}', "layout is not supported"),
    "a server that is text": (
        "cursor",
        b'{"mcpServers": {"a": "b"}}',
        "expected a table for this server",
    ),
    "one name twice": (
        "cursor",
        b'{"mcpServers": {"a": {"command": "a"}, "a": {"command": "b"}}}',
        "two servers have this name",
    ),
    "a pegboard of somebody's own": (
        "cursor",
        b'{"mcpServers": {"pegboard": {"command": "uvx", "args": ["pegboard", "serve"]}}}',
        "already a server 'pegboard' that this command did not write",
    ),
    "a list of what may run": (
        "gemini-cli",
        b'{"mcp": {"allowed": ["a"]}, "mcpServers": {"a": {"command": "a"}}}',
        'add "pegboard" to the list',
    ),
    "YAML in braces": (
        "goose",
        b"extensions: {a: {type: stdio, cmd: a}}\n",
        "A table in braces",
    ),
    "an alias into what would go": (
        "goose",
        b"extensions:\n  a: &a\n    type: stdio\n    cmd: a\nother: *a\n",
        "cannot be changed safely",
    ),
    "TOML servers on one line": (
        "codex",
        b'mcp_servers = { a = { command = "a" } }\n',
        "cannot be changed safely",
    ),
}


@pytest.mark.parametrize("case", list(REFUSED))
def test_the_reason_is_said_and_the_file_stays(case: str, tmp_path: Path) -> None:
    key, data, reason = REFUSED[case]
    there = desk(key, tmp_path)
    path = there.write(data)
    with pytest.raises(ConfigError, match=reason):
        there.install()
    assert path.read_bytes() == data
    assert not (tmp_path / ".config/pegboard").exists()


def test_a_read_only_file_is_refused(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    path = there.write('{"mcpServers": {}}')
    path.chmod(0o444)
    with pytest.raises(ConfigError, match="read-only: make it writable"):
        there.install()
    assert path.read_text() == '{"mcpServers": {}}'


def test_a_link_is_refused_and_its_target_named(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    target = tmp_path / "dotfiles.json"
    target.write_text("{}")
    there.file.parent.mkdir(parents=True)
    there.file.symlink_to(target)
    with pytest.raises(ConfigError, match=r"link to .*dotfiles\.json.*--file"):
        there.install()
    assert there.file.is_symlink()


def test_a_file_that_changed_after_it_was_shown_is_not_written(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    path = there.write('{"mcpServers": {}}')
    plan = there.plan()
    path.write_text('{"mcpServers": {"new": {"command": "new"}}}')
    with pytest.raises(ConfigError, match="changed in the meantime"):
        apply_install(plan)
    assert "new" in path.read_text()


def test_a_record_of_another_version_is_not_guessed_at(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    there.write('{"mcpServers": {"a": {"command": "a"}}}')
    record = there.install().folder.record
    before = there.text()
    record.write_text('{"version": 99}')
    with pytest.raises(ConfigError, match="another version"):
        there.uninstall()
    assert there.text() == before


def test_a_damaged_record_says_where_the_backup_is(tmp_path: Path) -> None:
    there = desk("cursor", tmp_path)
    there.write('{"mcpServers": {"a": {"command": "a"}}}')
    plan = there.install()
    plan.folder.record.write_text("{")
    with pytest.raises(ConfigError, match="before"):
        there.uninstall()
