"""Access control: bearer tokens with scopes, read from a file; without tokens only this machine has access."""

from __future__ import annotations

import hmac
import ipaddress
import os
import stat
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

from banbury import errors

SCOPES = ("read", "learn")
SHORTEST_TOKEN = 16  # characters


class Tokens:
    """Bearer tokens with their scopes. Only hashes are stored, and they are compared in constant time."""

    def __init__(self, scopes: Mapping[str, frozenset[str]]) -> None:
        """``scopes``: the scopes of each token."""
        # Pairs of the token's hash and its scopes.
        self._scopes_by_hash = [
            (sha256(token.encode()).digest(), token_scopes) for token, token_scopes in scopes.items()
        ]

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Tokens:
        """Returns the tokens in a file: one per line, followed by its scopes ``read``, ``learn`` or both. Raises
        BadFile for anything else.
        """
        try:
            lines = Path(path).read_text("utf-8").splitlines()
            permissions = os.stat(path).st_mode
        except (OSError, UnicodeError) as error:
            raise errors.bad_file(path, getattr(error, "strerror", None) or "it is not UTF-8 text") from None
        if permissions & (stat.S_IRGRP | stat.S_IROTH):
            errors.warn(f"other users can read the tokens in {path}. Run: chmod 600 {path}")
        scopes: dict[str, frozenset[str]] = {}  # of each token
        for number, line in enumerate(lines, 1):
            token, *token_scopes = line.partition("#")[0].split() or [""]
            if not token:
                continue
            has_valid_scopes = token_scopes and set(token_scopes).issubset(SCOPES)
            if len(token) < SHORTEST_TOKEN or not token.isascii() or not has_valid_scopes or token in scopes:
                requirement = f"a unique token of at least {SHORTEST_TOKEN} characters, followed by read, learn or both"
                raise errors.bad_file(path, f"line {number} is not {requirement}")  # the line itself is secret
            scopes[token] = frozenset(token_scopes)
        if not scopes:
            raise errors.bad_file(path, "it contains no token. Write one per line, followed by read, learn or both")
        return cls(scopes)

    def scopes(self, header: str) -> frozenset[str] | None:
        """Returns the scopes of the token in ``header``, the value of an Authorization header; None if the token is
        unknown.
        """
        scheme, _, token = header.partition(" ")
        digest = sha256(token.strip().encode("utf-8", "surrogatepass")).digest()
        granted: frozenset[str] | None = None  # the scopes of the token
        # Every hash is compared, so that the time does not depend on the token.
        for known_digest, token_scopes in self._scopes_by_hash:
            if hmac.compare_digest(digest, known_digest):
                granted = token_scopes
        return granted if scheme.lower() == "bearer" else None


def is_loopback(host: str) -> bool:
    """Returns whether a host name or address is that of this machine alone."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """Returns the host in ``header``, the value of a Host header, in lower case and without its port.

    >>> host_of("localhost:8000"), host_of("[::1]:80"), host_of("example.org")
    ('localhost', '[::1]', 'example.org')
    """
    if header.startswith("["):
        return header.partition("]")[0] + "]"
    return header.partition(":")[0].lower()


def check_address(host: str, tokens: Tokens | None) -> None:
    """Raises BadSetting if a service without tokens (None) would be reachable from other machines."""
    errors.require(
        tokens is not None or is_loopback(host),
        "host",
        host,
        "127.0.0.1 or another loopback address unless --tokens is given",
    )
