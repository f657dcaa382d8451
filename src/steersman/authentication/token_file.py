"""Static tokens from a file (`--token-auth-file`)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from hashlib import sha256
from io import StringIO
from pathlib import Path

from steersman.authentication.interface import TokenIdentity
from steersman.authentication.user import UserInfo, authenticated
from steersman.machinery.private_files import read_private

logger = logging.getLogger(__name__)


class TokenFileError(Exception):
    """A token file that cannot be used."""


class StaticTokens:
    """Authenticator of a fixed set of tokens, each valid for all of `audiences` (the API's own).

    Tokens are stored and looked up as SHA-256 digests, so that timing reveals nothing about them.
    """

    def __init__(self, users: Mapping[str, UserInfo], audiences: tuple[str, ...] = ()) -> None:
        self._audiences = audiences
        self._identities: dict[bytes, TokenIdentity] = {}
        for token, user in users.items():
            self.add(token, user)

    def add(self, token: str, user: UserInfo) -> None:
        """Add a token."""
        self._identities[sha256(token.encode()).digest()] = TokenIdentity(authenticated(user), self._audiences)

    @classmethod
    def load(cls, path: str | Path, audiences: tuple[str, ...] = ()) -> StaticTokens:
        """Read a token file. Raises OSError, and TokenFileError for a malformed line."""
        try:
            text = read_private(path).decode()
        except UnicodeDecodeError as error:
            raise TokenFileError(f"token file '{path}' is not text in UTF-8: {error.reason} at {error.start}") from None
        users = parse_token_file(text, str(path))
        if not users:
            logger.warning("token file '%s' holds no token", path)
        return cls(users, audiences)

    def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> TokenIdentity | None:
        """Return the identity of a token in the file, None for others and for tokens that are valid for none of the
        audiences.
        """
        if not self._identities:
            return None
        identity = self._identities.get(sha256(token.encode("utf-8", "surrogateescape")).digest())
        if identity is None or not audiences or audiences == self._audiences:
            return identity
        common = tuple(each for each in self._audiences if each in audiences)
        return TokenIdentity(identity.user, common) if common else None


def parse_token_file(text: str, path: str) -> dict[str, UserInfo]:
    """Parse a CSV text of `token,user,uid` and optionally `,"group,group"`; return the users by token.

    `path` is for messages. Lines without a token are skipped; of two lines with one token the later counts. Raises
    TokenFileError for a line with fewer than three columns and for malformed CSV.
    """
    import csv  # with the first file

    users: dict[str, UserInfo] = {}
    try:
        records = [record for record in csv.reader(StringIO(text, newline=""), strict=True) if record]
    except csv.Error as error:
        raise TokenFileError(f"token file '{path}': {error}") from None
    for number, record in enumerate(records, start=1):
        if len(record) < 3:
            raise TokenFileError(
                f"token file '{path}' must have at least 3 columns (token, user name, user uid), found {len(record)}"
            )
        token, name, uid = record[:3]
        if not token:
            logger.warning("empty token has been found in token file '%s', record number '%d'", path, number)
            continue
        if token in users:
            logger.warning("duplicate token has been found in token file '%s', record number '%d'", path, number)
        users[token] = UserInfo(name, uid, tuple(record[3].split(",")) if len(record) > 3 else ())
    return users
