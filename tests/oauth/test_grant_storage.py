"""Where grants are stored: private files, encrypted where there is a key, and the shared store."""

from __future__ import annotations

import errno
import json
import logging
import os
import secrets
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from pegboard.errors import ConfigError
from pegboard.oauth import grant_storage
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


class Keyring:
    """The keyring of an operating system, in memory; `locked` refuses everything."""

    def __init__(self) -> None:
        self.entries: dict[tuple[str, str], str] = {}
        self.locked = False

    def read(self, service: str, name: str) -> str | None:
        if self.locked:
            raise ConfigError("The keyring cannot be read (KeyringLocked).")
        return self.entries.get((service, name))

    def write(self, service: str, name: str, secret: str) -> None:
        if self.locked:
            raise ConfigError("The keyring cannot be written (KeyringLocked).")
        self.entries[service, name] = secret

    def key(self, folder: Path, *, is_required: bool = False) -> KeyringKey:
        return KeyringKey(folder, is_required=is_required, read=self.read, write=self.write)


@pytest.fixture(params=["plain", "keyring", "key", "store"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> GrantStorage:
    folder = tmp_path / "logins"
    if request.param == "store":
        return StoreGrants(MemoryStore(), ConfiguredKey(PASSPHRASE))
    keys: dict[str, KeyProvider] = {
        "plain": NoKey(),
        "keyring": Keyring().key(folder),
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


async def test_files_are_private_and_hold_no_secret_where_there_is_a_key(tmp_path: Path) -> None:
    for keys in (Keyring().key(tmp_path), ConfiguredKey(PASSPHRASE)):
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


async def test_a_locked_keyring_is_reported_and_a_missing_one_leaves_plain_files(
    tmp_path: Path,
) -> None:
    keyring = Keyring()
    grants = FileGrants(tmp_path / "logins", keyring.key(tmp_path))
    await grants.save(KEY, GRANT)
    keyring.locked = True
    later = FileGrants(tmp_path / "logins", keyring.key(tmp_path))
    with pytest.raises(GrantUnreadable, match="keyring cannot be read"):
        await later.load(KEY)
    await later.save(BOB, GRANT)  # nobody can be asked: private, but not encrypted
    assert "the-access-token" in later.path(BOB).read_text()
    strict = FileGrants(tmp_path / "logins", keyring.key(tmp_path, is_required=True))
    with pytest.raises(ConfigError, match="keyring"):
        await strict.save(BOB, GRANT)


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


async def test_a_folder_without_locks_is_reported_and_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    @contextmanager
    def no_locks(path: Path) -> Generator[bool]:
        raise OSError(errno.ENOLCK, "No locks available")
        yield True

    monkeypatch.setattr(grant_storage, "try_lock_file", no_locks)
    grants = FileGrants(tmp_path / "logins", NoKey())
    with caplog.at_level(logging.WARNING):
        async with grants.lock(KEY):
            await grants.save(KEY, GRANT)
    assert grants.lock_problem is not None
    assert "PEGBOARD_HOME" in grants.lock_problem
    assert "network" in caplog.text


async def test_a_replica_that_died_holds_its_lock_for_a_while_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = MemoryStore()
    monkeypatch.setattr(grant_storage, "LEASE_SECONDS", 0.2)
    dead = StoreGrants(store, ConfiguredKey(PASSPHRASE)).lock(KEY)
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
