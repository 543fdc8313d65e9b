"""Encryption of stored grants: AES-GCM, with a key from the configuration or from the keyring.

Only a key is in the keyring, and the grants are files. A keyring limits the size of what it stores,
and some ask the user for every entry. Each grant is bound to its server and principal: one
principal's file, copied over another's, cannot be decrypted.
"""

from __future__ import annotations

import base64
import hashlib
import os
import secrets
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol

from pegboard.credentials import KeyringMissing, read_keyring, write_keyring
from pegboard.errors import ConfigError
from pegboard.private_files import lock_file, make_private_folder, suppress_missing_locks

KEYRING_SERVICE: Final = "pegboard"
KEYRING_USER: Final = "oauth-key"
MIN_KEY_LENGTH: Final = 32
_KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12


class DecryptionError(ValueError):
    """What is stored was encrypted with another key, for another purpose, or is damaged."""


class Cipher:
    """Encrypts small texts with one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def encrypt(self, text: bytes, context: bytes) -> str:
        """The encrypted text; only the same `context` decrypts it."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE_BYTES)
        return base64.b64encode(nonce + AESGCM(self._key).encrypt(nonce, text, context)).decode()

    def decrypt(self, encrypted: str, context: bytes) -> bytes:
        """The text. Raises `DecryptionError`."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            data = base64.b64decode(encrypted, validate=True)
            return AESGCM(self._key).decrypt(data[:_NONCE_BYTES], data[_NONCE_BYTES:], context)
        except (InvalidTag, ValueError) as exc:
            raise DecryptionError("it was encrypted with another key, or is damaged") from exc


def cipher_from_key(key: str) -> Cipher:
    """A cipher with the key of the configuration.

    Raises:
        ConfigError: It is too short to protect anything.
    """
    if len(key) < MIN_KEY_LENGTH:
        raise ConfigError(
            f"`key` in `[oauth]` needs at least {MIN_KEY_LENGTH} characters: "
            f"`openssl rand -base64 32` makes one."
        )
    return Cipher(hashlib.sha256(b"pegboard oauth\0" + key.encode()).digest())


class KeyProvider(Protocol):
    """Where the cipher comes from. Both block, and a keyring may ask its user."""

    def for_reading(self) -> Cipher:
        """Raises `ConfigError` if there is no key."""
        ...

    def for_writing(self) -> Cipher | None:
        """The cipher, with a new key if there was none; `None` if grants are not encrypted."""
        ...


class ConfiguredKey:
    """The key of `[oauth]`."""

    def __init__(self, key: str) -> None:
        self._cipher = cipher_from_key(key)

    def for_reading(self) -> Cipher:
        return self._cipher

    def for_writing(self) -> Cipher | None:
        return self._cipher


class NoKey:
    """Grants are not encrypted."""

    def for_reading(self) -> Cipher:
        raise ConfigError("it is encrypted, and encryption is switched off (`[oauth] store`)")

    def for_writing(self) -> Cipher | None:
        return None


class KeyringKey:
    """The key in the operating system's keyring.

    Args:
        folder: Where processes lock a file while one of them creates the key.
        is_required: Whether a missing keyring is an error; otherwise grants are not encrypted.
    """

    def __init__(self, folder: Path, *, is_required: bool = False) -> None:
        self._folder = folder
        self._is_required = is_required
        self._cipher: Cipher | None = None

    def for_reading(self) -> Cipher:
        if self._cipher is None:
            stored = read_keyring(KEYRING_SERVICE, KEYRING_USER)
            if stored is None:
                raise ConfigError("the keyring has no key to decrypt it with")
            try:
                key = base64.b64decode(stored, validate=True)
            except ValueError:
                key = b""
            if len(key) != _KEY_BYTES:
                raise ConfigError(
                    f"the entry {KEYRING_USER!r} of {KEYRING_SERVICE!r} in the keyring is not a key"
                )
            self._cipher = Cipher(key)
        return self._cipher

    def for_writing(self) -> Cipher | None:
        try:
            return self._cipher or self._make()
        except KeyringMissing:
            if self._is_required:
                raise
            return None
        except ConfigError as exc:
            # The keyring is only locked, which is no reason to write secrets in plain text.
            raise ConfigError(
                f"{exc.message} Unlock it, or store logins without it: set `key`, or "
                f'`store = "file"`, in `[oauth]`.'
            ) from exc

    def _make(self) -> Cipher:
        if read_keyring(KEYRING_SERVICE, KEYRING_USER) is None:
            make_private_folder(self._folder)
            with ExitStack() as held:
                # If two processes each created a key, nobody could read the files of one of them.
                # Where there are no locks, the storage warns about that.
                with suppress_missing_locks():
                    held.enter_context(lock_file(self._folder / "key.lock"))
                if read_keyring(KEYRING_SERVICE, KEYRING_USER) is None:
                    key = base64.b64encode(secrets.token_bytes(_KEY_BYTES)).decode()
                    write_keyring(KEYRING_SERVICE, KEYRING_USER, key)
        return self.for_reading()
