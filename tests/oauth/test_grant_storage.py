"""Where grants are stored: private files, encrypted where there is a key, and the shared store."""

from __future__ import annotations

import errno
import json
import logging
import os
import secrets
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import keyring
import pytest
from keyring.backends.fail import Keyring as FailingKeyring
from tests.oauth.file_keyring import BACKEND

from pegboard.errors import ConfigError
from pegboard.oauth.encryption import ConfiguredKey, KeyProvider, KeyringKey, NoKey
from pegboard.oauth.grant_storage import FileGrants, GrantStorage, GrantUnreadable, StoreGrants
from pegboard.oauth.grants import Grant, GrantKey
from pegboard.store.memory import MemoryStore

pytestmark = pytest.mark.anyio

GRANT = Grant(
    issuer="https://login.example.com",
    token_endpoint="https://login.example.com/token",
    client_id="c",
    client_secret="secret-of-the-client",
    access_token="the-access-token",
    refresh_token="the-refresh-token",
    expires_at=2e9,
    lifetime=3600.0,
    scope="a b",
)
KEY = GrantKey("notes", "https://notes.example.com/mcp", "ann")
BOB = replace(KEY, principal="bob")
PASSPHRASE = "0123456789" * 4


@pytest.fixture(params=["plain", "keyring", "key", "store"])
def storage(request: pytest.FixtureRequest, tmp_path: Path, system_keyring: Path) -> GrantStorage:
    folder = tmp_path / "logins"
    if request.param == "store":
        return StoreGrants(MemoryStore(), ConfiguredKey(PASSPHRASE))
    keys: dict[str, KeyProvider] = {
        "plain": NoKey(),
        "keyring": KeyringKey(folder, is_required=True),
        "key": ConfiguredKey(PASSPHRASE),
    }
    return FileGrants(folder, keys[request.param])


async def test_a_grant_is_read_as_it_was_written_and_only_by_its_owner(
    storage: GrantStorage,
) -> None:
    assert await storage.load(KEY) is None
    await storage.save(KEY, GRANT)
    assert await storage.load(KEY) == GRANT
    assert await storage.load(BOB) is None
    await storage.save(KEY, GRANT.end("invalid_grant"))
    ended = await storage.load(KEY)
    assert ended is not None
    assert ended.state == "sign in again"
    await storage.delete(KEY)
    assert await storage.load(KEY) is None


async def test_the_lock_admits_one_at_a_time(storage: GrantStorage) -> None:
    inside, most = 0, 0

    async def work() -> None:
        nonlocal inside, most
        async with storage.lock(KEY):
            inside += 1
            most = max(most, inside)
            await anyio.sleep(0.01)
            inside -= 1

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(work)
    assert most == 1


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("logins/*.json"))


async def test_files_are_private_and_hold_no_secret_where_there_is_a_key(
    tmp_path: Path, system_keyring: Path
) -> None:
    for keys in (KeyringKey(tmp_path), ConfiguredKey(PASSPHRASE)):
        grants = FileGrants(tmp_path / "logins", keys)
        await grants.save(KEY, GRANT)
        [path] = files(tmp_path)
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
        text = path.read_text()
        assert not any(secret in text for secret in GRANT.secrets)
        path.unlink()


async def test_one_principals_file_is_of_no_use_to_another(tmp_path: Path) -> None:
    grants = FileGrants(tmp_path / "logins", ConfiguredKey(PASSPHRASE))
    await grants.save(KEY, GRANT)
    grants.path(BOB).write_bytes(grants.path(KEY).read_bytes())
    with pytest.raises(GrantUnreadable):
        await grants.load(BOB)


async def test_a_locked_keyring_is_reported_and_nothing_is_stored_in_plain_text(
    tmp_path: Path, system_keyring: Path
) -> None:
    grants = FileGrants(tmp_path / "logins", KeyringKey(tmp_path))
    await grants.save(KEY, GRANT)
    assert keyring.get_password("pegboard", "oauth-key") is not None
    await anyio.Path(system_keyring.with_suffix(".locked")).touch()
    later = FileGrants(tmp_path / "logins", KeyringKey(tmp_path))
    with pytest.raises(GrantUnreadable, match=r"keyring cannot be read \(KeyringLocked\)"):
        await later.load(KEY)
    with pytest.raises(ConfigError, match="KeyringLocked"):
        await later.save(BOB, GRANT)
    assert not later.path(BOB).exists()


async def test_a_machine_without_a_keyring_has_private_plain_files(
    tmp_path: Path, system_keyring: Path
) -> None:
    keyring.set_keyring(FailingKeyring())  # what `keyring` itself uses on such a machine
    grants = FileGrants(tmp_path / "logins", KeyringKey(tmp_path))
    await grants.save(KEY, GRANT)
    assert "the-access-token" in grants.path(KEY).read_text()
    strict = FileGrants(tmp_path / "logins", KeyringKey(tmp_path, is_required=True))
    with pytest.raises(ConfigError, match="keyring"):
        await strict.save(KEY, GRANT)


_PROCESS = """
import anyio, sys
from pathlib import Path
from pegboard.oauth.encryption import KeyringKey
from pegboard.oauth.grant_storage import FileGrants
from pegboard.oauth.grants import Grant, GrantKey

folder = Path(sys.argv[1])
grant = Grant(issuer="i", token_endpoint="t", client_id="c", access_token="a" + sys.argv[2])
key = GrantKey("s", "u", sys.argv[2])
anyio.run(FileGrants(folder, KeyringKey(folder, is_required=True)).save, key, grant)
"""


async def test_processes_that_start_together_make_one_key(
    tmp_path: Path, system_keyring: Path
) -> None:
    env = {**os.environ, "PYTHON_KEYRING_BACKEND": BACKEND, "PYTHONPATH": os.pathsep.join(sys.path)}
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for who in ("1", "2"):
                command = [sys.executable, "-c", _PROCESS, str(tmp_path), who]
                tasks.start_soon(partial(anyio.run_process, command, env=env))
    grants = FileGrants(tmp_path, KeyringKey(tmp_path))
    found = [await grants.load(GrantKey("s", "u", who)) for who in ("1", "2")]
    assert [one.access_token if one else None for one in found] == ["a1", "a2"]


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"grant": {}}', b'{"encrypted": "AAAA"}', b"{}" * 900_000],
)
async def test_a_damaged_file_is_reported_with_what_to_do(tmp_path: Path, content: bytes) -> None:
    grants = FileGrants(tmp_path / "logins", ConfiguredKey(PASSPHRASE))
    await grants.save(KEY, GRANT)
    grants.path(KEY).write_bytes(content)
    with pytest.raises(GrantUnreadable, match="pegboard login notes"):
        await grants.load(KEY)


@pytest.mark.skipif(os.name != "posix", reason="file modes")
async def test_a_file_that_others_could_read_is_closed_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    grants = FileGrants(tmp_path / "logins", NoKey())
    await grants.save(KEY, GRANT)
    grants.path(KEY).chmod(0o644)
    with caplog.at_level(logging.WARNING):
        assert await grants.load(KEY) == GRANT
    assert grants.path(KEY).stat().st_mode & 0o777 == 0o600
    assert "could be read by other users" in caplog.text


@pytest.mark.skipif(os.name != "posix", reason="how locks are missing")
@pytest.mark.parametrize("has_keyring", [False, True])
async def test_a_folder_without_locks_is_reported_and_works(
    tmp_path: Path,
    system_keyring: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    has_keyring: bool,
) -> None:
    def no_locks(file: object, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", no_locks)
    keys = KeyringKey(tmp_path, is_required=True) if has_keyring else NoKey()
    grants = FileGrants(tmp_path / "logins", keys)
    with caplog.at_level(logging.WARNING):
        await grants.check(KEY)
        async with grants.lock(KEY):
            await grants.save(KEY, GRANT)
    assert await grants.load(KEY) == GRANT
    assert grants.lock_problem is not None
    assert "PEGBOARD_HOME" in grants.lock_problem
    assert "network" in caplog.text


async def test_a_replica_that_died_holds_its_lock_for_a_while_only() -> None:
    store = MemoryStore()
    dead = StoreGrants(store, ConfiguredKey(PASSPHRASE), lease=0.2).lock(KEY)
    await dead.__aenter__()
    began = anyio.current_time()
    with anyio.fail_after(5):
        async with StoreGrants(store, ConfiguredKey(PASSPHRASE)).lock(KEY):
            assert anyio.current_time() - began >= 0.1, "the lock was held until then"


async def test_another_key_makes_stored_logins_unreadable_and_not_wrong() -> None:
    store = MemoryStore()
    await StoreGrants(store, ConfiguredKey(PASSPHRASE)).save(KEY, GRANT)
    with pytest.raises(GrantUnreadable, match="another key"):
        await StoreGrants(store, ConfiguredKey(secrets.token_hex(32))).load(KEY)


def test_a_short_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="32 characters"):
        ConfiguredKey("too short")


def test_what_is_printed_of_a_grant_is_not_secret() -> None:
    assert not any(secret in repr(GRANT) for secret in GRANT.secrets)
    assert all(secret in json.dumps(GRANT.to_json()) for secret in GRANT.secrets)
