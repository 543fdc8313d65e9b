"""The published JSON Schemas are the ones that the code makes, and accept what it reads."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema_rs
import pytest

from pegboard.config.schema import FILES, main, render_schema, servers_schema, settings_schema

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", FILES)
def test_the_committed_schema_is_the_one_that_the_command_writes(name: str, tmp_path: Path) -> None:
    main([str(tmp_path)])
    committed = (REFERENCE / name).read_text(encoding="utf-8")
    assert committed == (tmp_path / name).read_text(encoding="utf-8") == render_schema(name)


def test_every_setting_is_described() -> None:
    schema = settings_schema()
    sections = [schema, *schema["$defs"].values()]
    bare = [
        key
        for section in sections
        for key, value in section["properties"].items()
        if "description" not in value and "$ref" not in json.dumps(value)
    ]
    assert bare == ["username", "password"]


def test_the_schema_of_settings_tells_right_from_wrong() -> None:
    valid = jsonschema_rs.validator_for(settings_schema()).is_valid
    assert valid({"mode": "proxy", "import": ["a"], "servers": {"a": {"command": "x"}}})
    assert not valid({"mdoe": "proxy"})
    assert not valid({"calls": {"timeout": 0}})
    assert not valid({"servers": {"a": {"command": 5}}})


def test_the_schema_of_servers_lets_clients_have_keys_of_their_own() -> None:
    valid = jsonschema_rs.validator_for(servers_schema()).is_valid
    assert valid({"mcpServers": {"a": {"command": "x", "idleStop": 5, "alwaysAllow": []}}})
    assert not valid({"mcpServers": {"a": {"command": "x", "idleStop": "5"}}})
    assert not valid({"mcpServers": {"a": {}}})


def test_naming_settings_imports_neither_pydantic_nor_yaml() -> None:
    code = "import sys, pegboard.config.settings; print(*sys.modules)"
    modules = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "pegboard.config.settings" in modules
    assert not {"pydantic", "ruamel.yaml", "mcp"} & set(modules)
