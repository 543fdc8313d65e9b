"""Where grants are stored: a private file each, or the shared store of several replicas.

Both have a lock for each grant that all processes respect, since a refresh token that two of them
use at once is often revoked. If a grant cannot be read, the person has to log in again.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import secrets
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import (
    AbstractAsyncContextManager,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from pathlib import Path
from typing import Final, Protocol, TypeVar, TypeVarTuple

import anyio
from anyio import to_thread

from pegboard.core.caches import BoundedCache
from pegboard.core.json import Json
from pegboard.credentials import KeyringLocked
from pegboard.errors import ConfigError, PegboardError, StoreError
from pegboard.oauth.encryption import Cipher, DecryptionError, KeyProvider
from pegboard.oauth.grants import Grant, GrantKey, parse_grant
from pegboard.ports import Store
from pegboard.private_files import (
    home_folder,
    is_open_to_others,
    make_private_folder,
    replace_file,
    restrict_file,
    suppress_missing_locks,
    try_lock_file,
)

LOCK_TIMEOUT: Final = 60.0
"""Seconds to wait for another process that refreshes a grant; more than its requests may take."""
LEASE_SECONDS: Final = 45.0
"""Seconds after which the lock of a replica that died is released."""
KEYRING_TIMEOUT: Final = 30.0
"""Seconds for a keyring that may ask its user for a password."""
MAX_IN_MEMORY: Final = 4_096
_LOCK_HELD: Final = "another process has been refreshing it for too long"
_POLL_INTERVAL: Final = 0.02
_MAX_FILE_BYTES: Final = 1 << 20

logger = logging.getLogger(__name__)

T = TypeVar("T")
Arguments = TypeVarTuple("Arguments")


class GrantUnreadable(PegboardError):
    """A stored grant cannot be read; the message says why."""

    kind = "configuration"
    is_locked = False
    """Whether it becomes readable once the keyring is available, without another login."""


class GrantStorage(Protocol):
    """Stores grants. Every method may raise `OSError` or `StoreError` when it cannot."""

    async def load(self, key: GrantKey) -> Grant | None:
        """The stored grant. Raises `GrantUnreadable` where there is one that cannot be read."""
        ...

    async def save(self, key: GrantKey, grant: Grant) -> None: ...

    async def delete(self, key: GrantKey) -> None: ...

    async def check(self, key: GrantKey) -> None:
        """Raise an error if a grant could not be stored."""
        ...

    def lock(self, key: GrantKey) -> AbstractAsyncContextManager[None]:
        """Hold the lock of a grant while it is changed. Raises `TimeoutError`."""
        ...


def grants_folder(environ: Mapping[str, str]) -> Path:
    """Where grants are stored: not in the cache, which people delete."""
    if environ.get("PEGBOARD_HOME"):
        return home_folder(environ) / "logins"
    from platformdirs import user_data_path  # here, because it is slow to import

    return user_data_path("pegboard", appauthor=False) / "logins"


def _digest(key: GrantKey) -> str:
    text = "\0".join((key.server, key.url, key.principal))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _serialize(grant: Grant, key: GrantKey, cipher: Cipher | None) -> dict[str, Json]:
    if cipher is None:
        return {"version": 1, "grant": grant.to_json()}
    text = json.dumps(grant.to_json()).encode()
    return {"version": 1, "encrypted": cipher.encrypt(text, _digest(key).encode())}


def _parse(value: Json, key: GrantKey, keys: KeyProvider) -> Grant:
    """The grant in a stored value. Raises `ValueError`, or `ConfigError` without a key."""
    match value:
        case {"encrypted": str(encrypted)}:
            text = keys.for_reading().decrypt(encrypted, _digest(key).encode())
            return parse_grant(json.loads(text))
        case {"grant": found}:
            return parse_grant(found)
        case _:
            raise ValueError("it is not the file of a login")


def _build_unreadable(key: GrantKey, reason: str, *, is_locked: bool = False) -> GrantUnreadable:
    message = f"The stored login for {key.server} cannot be read: {reason}."
    error = GrantUnreadable(message, server=key.server)
    error.is_locked = is_locked
    return error


class FileGrants:
    """One file for each grant, 0600 in a folder of 0700, replaced as a whole."""

    def __init__(self, folder: Path, keys: KeyProvider) -> None:
        self.folder = folder
        self._keys = keys
        self.lock_problem: str | None = None
        """Why files cannot be locked here; `None` as long as they can."""

    def path(self, key: GrantKey) -> Path:
        readable = re.sub(r"[^A-Za-z0-9_-]", "_", key.server)[:40]
        return self.folder / f"{readable}-{_digest(key)[:24]}.json"

    async def load(self, key: GrantKey) -> Grant | None:
        if not self.path(key).exists():
            return None
        try:
            # In a thread, since the keyring may wait for its user.
            return await _run_blocking(self.load_now, key)
        except TimeoutError as exc:
            raise _build_unreadable(key, str(exc), is_locked=True) from exc

    def load_now(self, key: GrantKey) -> Grant | None:
        """As `load`, for code that is not asynchronous."""
        path = self.path(key)
        try:
            if is_open_to_others(path):
                restrict_file(path)
                logger.warning(
                    "%s could be read by other users. It is private again; if you do not trust "
                    "them, run `pegboard logout %s` and log in again.",
                    path,
                    key.server,
                )
            with path.open("rb") as file:
                if os.name == "posix" and os.fstat(file.fileno()).st_uid != os.geteuid():
                    # Its tokens could belong to somebody else, who put the file here.
                    raise ValueError("it belongs to another user")
                return _parse(json.loads(file.read(_MAX_FILE_BYTES)), key, self._keys)
        except FileNotFoundError:
            return None
        except KeyringLocked as exc:
            reason = f"{exc.message.rstrip('.')}: unlock it"
            raise _build_unreadable(key, reason, is_locked=True) from exc
        except (ValueError, DecryptionError, ConfigError, OSError) as exc:
            advice = f"run `pegboard login {key.server}`"
            reason = f"{str(exc).rstrip('.')} ({path}): {advice}"
            raise _build_unreadable(key, reason) from exc

    async def save(self, key: GrantKey, grant: Grant) -> None:
        def write() -> None:
            make_private_folder(self.folder)
            value = _serialize(grant, key, self._keys.for_writing())
            with replace_file(self.path(key)) as file:
                file.write(json.dumps(value).encode())

        await _run_blocking(write)

    async def delete(self, key: GrantKey) -> None:
        self.path(key).unlink(missing_ok=True)

    async def check(self, key: GrantKey) -> None:
        async with self.lock(key):
            await _run_blocking(self._keys.for_writing)

    @asynccontextmanager
    async def lock(self, key: GrantKey) -> AsyncGenerator[None]:
        make_private_folder(self.folder)
        path = self.path(key).with_suffix(".lock")
        with ExitStack() as held:
            # Polled instead of waiting in a thread, because a thread could not be canceled.
            with _fail_after(LOCK_TIMEOUT, _LOCK_HELD):
                while not self._try_lock(path, held):  # noqa: ASYNC110 - held by other processes
                    await anyio.sleep(_POLL_INTERVAL)
            yield

    def _try_lock(self, path: Path, held: ExitStack) -> bool:
        with suppress_missing_locks():
            return held.enter_context(try_lock_file(path))
        if self.lock_problem is None:
            self.lock_problem = (
                f"Files cannot be locked in {self.folder}, as on some network drives: two "
                f"gateways that refresh a login at once may end it. Set PEGBOARD_HOME to a folder "
                f"on a local disk."
            )
            logger.warning("%s", self.lock_problem)
        return True


class StoreGrants:
    """Grants in the store that replicas share; always encrypted, since others read it too."""

    def __init__(self, store: Store, keys: KeyProvider, *, lease: float = LEASE_SECONDS) -> None:
        self._store = store
        self._keys = keys
        self._lease = lease

    async def load(self, key: GrantKey) -> Grant | None:
        value = await self._store.get(self._name(key))
        if value is None:
            return None
        try:
            return _parse(value, key, self._keys)
        except (ValueError, ConfigError) as exc:
            raise _build_unreadable(key, f"{str(exc).rstrip('.')}: log in again") from exc

    async def save(self, key: GrantKey, grant: Grant) -> None:
        value = _serialize(grant, key, self._keys.for_writing())
        await self._store.update(self._name(key), lambda _: value)

    async def delete(self, key: GrantKey) -> None:
        await self._store.update(self._name(key), lambda _: None)

    async def check(self, key: GrantKey) -> None:
        async with self.lock(key):
            return

    @asynccontextmanager
    async def lock(self, key: GrantKey) -> AsyncGenerator[None]:
        name, holder = f"oauth:lock:{_digest(key)}", secrets.token_hex(8)

        def take(lease: Json) -> Json:
            is_free = not isinstance(lease, dict) or lease.get("until", 0) < time.time()
            return {"holder": holder, "until": time.time() + self._lease} if is_free else lease

        def release(lease: Json) -> Json:
            return None if isinstance(lease, dict) and lease.get("holder") == holder else lease

        with _fail_after(LOCK_TIMEOUT, _LOCK_HELD):
            lease = await self._store.update(name, take, ttl=self._lease)
            while lease["holder"] != holder:
                await anyio.sleep(_POLL_INTERVAL)
                lease = await self._store.update(name, take, ttl=self._lease)
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                try:
                    await self._store.update(name, release, ttl=self._lease)
                except StoreError:
                    logger.debug("a lease could not be released; it will expire", exc_info=True)

    def _name(self, key: GrantKey) -> str:
        return f"oauth:grant:{_digest(key)}"


class MemoryGrants:
    """Grants of this process alone, for tokens that can be requested again at any time."""

    def __init__(self, capacity: int = MAX_IN_MEMORY) -> None:
        self._grants: BoundedCache[GrantKey, Grant] = BoundedCache(capacity)

    async def load(self, key: GrantKey) -> Grant | None:
        return self._grants.get(key)

    async def save(self, key: GrantKey, grant: Grant) -> None:
        self._grants.put(key, grant)

    async def delete(self, key: GrantKey) -> None:
        self._grants.pop(key)

    async def check(self, key: GrantKey) -> None: ...

    @asynccontextmanager
    async def lock(self, key: GrantKey) -> AsyncGenerator[None]:
        yield  # `ServerTokens` has one for each principal, and no other process has these grants


async def _run_blocking(work: Callable[[*Arguments], T], *arguments: *Arguments) -> T:
    with _fail_after(KEYRING_TIMEOUT, "the keyring did not answer: unlock it and try again"):
        return await to_thread.run_sync(work, *arguments, abandon_on_cancel=True)


@contextmanager
def _fail_after(seconds: float, message: str) -> Generator[None]:
    try:
        with anyio.fail_after(seconds):
            yield
    except TimeoutError as exc:
        raise TimeoutError(message) from exc
