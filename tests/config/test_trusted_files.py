"""A configuration in a working folder is used only as the user has seen it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard.config.server_entries import ConfigEnvironment
from pegboard.config.trusted_files import TrustDecisions, TrustedFile
from pegboard.errors import ConfigError
from pegboard.gateway.config_source import ConfigSource


@pytest.fixture
def environment(tmp_path: Path) -> ConfigEnvironment:
    return ConfigEnvironment({"FOLDER": str(tmp_path)}, tmp_path / "home", tmp_path)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "pegboard.toml"
    path.write_text(
        'import = ["mcp.json", "${FOLDER}/other.json"]\n'
        '[servers.a]\ncommand = "${file:command.txt}"\nenv_file = ".env"\n'
    )
    (tmp_path / "mcp.json").write_text(
        '{"mcpServers": {"b": {"command": "b", "envFile": "b.env"}}}'
    )
    return path


def test_a_decision_is_for_one_path_and_one_content(
    file: Path, environment: ConfigEnvironment, tmp_path: Path
) -> None:
    decisions = TrustDecisions(tmp_path / "ours" / "trusted.json")
    seen = TrustedFile.read(file, environment)
    assert decisions.find(seen) is None
    decisions.save(seen, trusted=True)
    assert decisions.find(seen) is True
    copy = tmp_path / "clone" / "pegboard.toml"
    copy.parent.mkdir()
    copy.write_bytes(file.read_bytes())
    assert decisions.find(TrustedFile.read(copy, environment)) is None
    file.write_text(file.read_text() + "# changed\n")
    assert decisions.find(TrustedFile.read(file, environment)) is None


def test_a_refusal_is_remembered_too(
    file: Path, environment: ConfigEnvironment, tmp_path: Path
) -> None:
    decisions = TrustDecisions(tmp_path / "ours" / "trusted.json")
    decisions.save(TrustedFile.read(file, environment), trusted=False)
    assert decisions.find(TrustedFile.read(file, environment)) is False


@pytest.mark.parametrize("name", ["mcp.json", "other.json", ".env", "b.env", "command.txt"])
def test_every_file_that_commands_come_from_is_part_of_the_content(
    name: str, file: Path, environment: ConfigEnvironment, tmp_path: Path
) -> None:
    seen = TrustedFile.read(file, environment)
    (tmp_path / name).write_text('{"mcpServers": {"b": {"command": "rm", "envFile": "b.env"}}}')
    with pytest.raises(ConfigError, match="changed since you trusted it"):
        seen.require_unchanged()


def test_files_that_imported_files_import_are_part_of_the_content(
    environment: ConfigEnvironment, tmp_path: Path
) -> None:
    file = tmp_path / "pegboard.toml"
    file.write_text('import = ["b.toml"]\n')
    (tmp_path / "b.toml").write_text('import = ["c.json", "x/../b.toml", "pegboard.toml"]\n')
    (tmp_path / "x").mkdir()
    (tmp_path / "c.json").write_text('{"mcpServers": {"c": {"command": "c"}}}')
    seen = TrustedFile.read(file, environment)
    seen.require_unchanged()
    (tmp_path / "c.json").write_text('{"mcpServers": {"c": {"command": "rm"}}}')
    with pytest.raises(ConfigError, match="changed since you trusted it"):
        seen.require_unchanged()


@pytest.mark.parametrize(
    "reference", ["$\\u007bfile:command.txt}", "${file:$FOLDER/command.txt}", "{file:command.txt}"]
)
def test_no_spelling_hides_the_file_that_a_command_comes_from(
    reference: str, environment: ConfigEnvironment, tmp_path: Path
) -> None:
    file = tmp_path / "pegboard.toml"
    file.write_text(f'[servers.a]\ncommand = "{reference}"\n')
    (tmp_path / "command.txt").write_text("ls")
    seen = TrustedFile.read(file, environment)
    (tmp_path / "command.txt").write_text("rm")
    with pytest.raises(ConfigError, match="changed since you trusted it"):
        seen.require_unchanged()


def test_a_running_gateway_does_not_read_a_file_that_has_changed(
    file: Path, environment: ConfigEnvironment
) -> None:
    seen = TrustedFile.read(file, environment)
    source = ConfigSource.from_path(file, environ=environment.env, trust=seen)
    source.read()
    file.write_text('[servers.a]\ncommand = "rm"\n')
    with pytest.raises(ConfigError, match="changed since you trusted it"):
        source.read()


def test_damaged_decisions_trust_nothing(
    file: Path, environment: ConfigEnvironment, tmp_path: Path
) -> None:
    path = tmp_path / "trusted.json"
    for content in ("[]", "{", '{"x": 1}', "null"):
        path.write_text(content)
        assert TrustDecisions(path).find(TrustedFile.read(file, environment)) is None


def test_every_process_reads_the_same_content(tmp_path: Path) -> None:
    path = tmp_path / "pegboard.toml"
    path.write_text('import = ["$HOME/a.json", "$HOME/b.json", "$HOME/c.json", "$HOME/d.json"]\n')
    program = (
        "import sys; from pathlib import Path\n"
        "from pegboard.config.server_entries import ConfigEnvironment\n"
        "from pegboard.config.trusted_files import TrustedFile\n"
        "path = Path(sys.argv[1]); folder = path.parent\n"
        "around = ConfigEnvironment({'HOME': str(folder)}, folder, folder)\n"
        "print(TrustedFile.read(path, around).digest)\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", program, str(path)],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(digests) == 1
