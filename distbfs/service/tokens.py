"""The bearer token of the HTTP service, from a file that only its owner may read."""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import secrets
import signal
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_address
from pathlib import Path

from distbfs.errors import DistbfsError, InputError, UsageError, naming

LOG = logging.getLogger("distbfs.service")
SHORTEST, LONGEST = 16, 4096


def read_token(path: Path) -> str:
    """Return the token in a file; if there is no file, create one with a new token.

    Raises UsageError for a file that others may read, or a token that is too short.
    """
    with naming(path):
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return _read(path)
    token = secrets.token_urlsafe(32)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(token + "\n")
    return token


def _read(path: Path) -> str:
    try:
        with naming(path), path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            token = file.read(LONGEST + 1).decode("ascii").strip()
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: the token is not ASCII") from error
    if stat.S_IMODE(mode) & 0o077:
        raise UsageError(f"{path}: others may read the token; chmod 600 it")
    if not SHORTEST <= len(token) <= LONGEST or not token.isprintable():
        raise UsageError(
            f"{path}: a token must have {SHORTEST} to {LONGEST} printable characters"
        )
    return token


class Guard:
    """Compares tokens in constant time."""

    def __init__(self, token: str) -> None:
        self.change(token)

    def change(self, token: str) -> None:
        """Replace the accepted token; callable from any thread."""
        self._digest = hashlib.sha256(token.encode()).digest()

    def allows(self, header: str | None) -> bool:
        """Return whether an Authorization header carries the accepted token."""
        scheme, _, token = (header or "").partition(" ")
        digest = hashlib.sha256(token.strip().encode("utf-8", "replace")).digest()
        same = hmac.compare_digest(digest, self._digest)
        return same and scheme.lower() == "bearer"


@contextmanager
def renewed(guard: Guard, path: Path) -> Iterator[None]:
    """Read the token file again at each SIGHUP; keep the old token on errors."""

    def renew() -> None:
        try:
            guard.change(_read(path))
            LOG.info("the token was read again")
        except DistbfsError as error:
            LOG.warning("%s; the old token stays valid", error)

    def note(*_: object) -> None:
        """Read in a new thread: the signal may arrive while a log line is written."""
        threading.Thread(target=renew, daemon=True).start()

    before = signal.signal(signal.SIGHUP, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def check_host(host: str, *, remote: bool) -> None:
    """Refuse an address that other machines can reach, unless ``remote``."""
    try:
        near = host == "localhost" or ip_address(host).is_loopback
    except ValueError as error:
        raise UsageError(f"--http-host {host}: give an IP address") from error
    if not near and not remote:
        raise UsageError(
            f"--http-host {host} can be reached from other machines; add --allow-remote"
        )
