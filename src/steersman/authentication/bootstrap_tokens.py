"""Bootstrap tokens of joining nodes, from secrets in kube-system (`plugin/pkg/auth/authenticator/token/bootstrap`)."""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Mapping

from msgspec import Struct

from steersman.authentication.interface import TokenIdentity
from steersman.authentication.user import UserInfo, authenticated
from steersman.machinery.built_in import bootstrap_tokens as tokens
from steersman.machinery.values import times

logger = logging.getLogger(__name__)


class BootstrapSecret(Struct, frozen=True):
    """The fields of a bootstrap token secret that authentication needs."""

    is_being_deleted: bool
    type: str
    data: Mapping[str, bytes]


class BootstrapTokens:
    """Authenticates `ID.SECRET` by the secret `bootstrap-token-ID`, valid for all `audiences` (the API's own).

    An invalid token is treated as unknown, without a reason. `secret` returns a secret by name or None, `clock` returns
    seconds since the epoch.
    """

    def __init__(
        self,
        audiences: tuple[str, ...],
        secret: Callable[[str], BootstrapSecret | None],
        clock: Callable[[], float] = times.unix_now,
    ) -> None:
        self._audiences = audiences
        self._secret = secret
        self._clock = clock

    def authenticate_token(self, token: str, audiences: tuple[str, ...]) -> TokenIdentity | None:
        """Authenticate a token. See TokenAuthenticator."""
        parts = tokens.parse_token(token)
        if parts is None:
            return None
        common = tuple(each for each in self._audiences if each in audiences) if audiences else ()
        if audiences and not common:
            return None
        token_id, token_secret = parts
        name = f"{tokens.PREFIX}{token_id}"
        secret = self._secret(name)
        if secret is None:
            logger.debug("no secret of name %s to match bootstrap bearer token", name)
            return None
        user, fault = _validated(secret, token_id, token_secret, self._clock())
        if user is None:
            logger.debug("bootstrap secret kube-system/%s matching bearer token %s", name, fault)
            return None
        return TokenIdentity(authenticated(user), common)


def _validated(secret: BootstrapSecret, token_id: str, token_secret: str, now: float) -> tuple[UserInfo | None, str]:
    """Return the user, or None and the fault of the secret."""
    data = secret.data
    if secret.is_being_deleted:
        return None, "is deleted and awaiting removal"
    if secret.type != tokens.SECRET_TYPE:
        return None, f"has invalid type, expected {tokens.SECRET_TYPE}."
    if not hmac.compare_digest(data.get(tokens.TOKEN_SECRET, b""), token_secret.encode()):
        return None, f"has invalid value for key {tokens.TOKEN_SECRET}."
    if tokens.value_text(data, tokens.TOKEN_ID) != token_id:
        return None, f"has invalid value for key {tokens.TOKEN_ID}."
    if tokens.has_expired(data, now):
        return None, "has expired"
    if tokens.value_text(data, tokens.AUTHENTICATES) != "true":
        return None, f"not marked {tokens.AUTHENTICATES}=true."
    groups = tokens.parse_groups(data)
    if groups is None:
        return None, f"has invalid value for key {tokens.GROUPS}"
    return UserInfo(f"{tokens.USER_PREFIX}{token_id}", groups=groups), ""
