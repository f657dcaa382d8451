"""Service account tokens kept in secrets, which do not expire (pkg/serviceaccount/legacy.go)."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from steersman.api.core.v1 import ObjectReference
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.interface import AuthenticationError, Remarks, TokenIdentity
from steersman.authentication.service_account_claims import (
    Claims,
    LookUp,
    MissingObject,
    common_audiences,
    note_use,
)
from steersman.authentication.service_account_keys import ServiceAccountKeys
from steersman.authentication.service_account_metrics import ServiceAccountMetrics
from steersman.authentication.service_account_tokens import SignedTokens, Verifiers, read_claims
from steersman.authentication.user import UserInfo, authenticated, service_account_groups, service_account_username
from steersman.machinery.built_in.token_secrets import INVALID_SINCE, ISSUER, LAST_USED
from steersman.machinery.values import times

_DAY: Final = 86400.0
_INVALIDATED: Final = "Token has been invalidated"
_GENERATED: Final = (
    "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated "
    "secret-based tokens."
)


class _LegacyClaims(msgspec.Struct, frozen=True, kw_only=True):
    sub: str = ""
    aud: str | tuple[str, ...] | None = None
    namespace: str = msgspec.field(name="kubernetes.io/serviceaccount/namespace", default="")
    secret: str = msgspec.field(name="kubernetes.io/serviceaccount/secret.name", default="")
    account: str = msgspec.field(name="kubernetes.io/serviceaccount/service-account.name", default="")
    account_uid: str = msgspec.field(name="kubernetes.io/serviceaccount/service-account.uid", default="")


class TokenSecret(Struct, frozen=True):
    """The fields of a secret that authentication needs."""

    is_being_deleted: bool
    token: bytes
    labels: Mapping[str, str]


class TokenAccount(Protocol):
    """The fields of a service account that authentication needs."""

    metadata: ObjectMeta
    secrets: list[ObjectReference]


class LegacyTokens(SignedTokens):
    """Authenticates service accounts by tokens that equal the one in their secret.

    `secret` and `account` find the objects that a token names; `look_up` makes objects visible that another server has
    just written. `used` is called with the namespace and name of a secret at the first use of its token in a day. With
    `looks_up` False, a token is valid regardless of its secret.
    """

    def __init__(
        self,
        keys: Callable[[], ServiceAccountKeys] | Verifiers,
        api_audiences: tuple[str, ...],
        secret: Callable[[str, str], TokenSecret | None],
        account: Callable[[str, str], TokenAccount | None],
        used: Callable[[str, str], None],
        metrics: ServiceAccountMetrics,
        *,
        looks_up: bool = True,
        look_up: LookUp | None = None,
    ) -> None:
        super().__init__(keys, (ISSUER,), look_up)
        self._api_audiences = api_audiences
        self._secret = secret
        self._account = account
        self._used = used
        self._metrics = metrics
        self._looks_up = looks_up

    def validate(self, claims: bytes, token: str, audiences: tuple[str, ...]) -> TokenIdentity:
        found = read_claims(claims, _LegacyClaims)
        public = Claims(aud=found.aud, sub=found.sub)
        remarks = note_use(public, self._metrics)
        common = common_audiences(public, audiences or self._api_audiences, self._api_audiences)
        _check(found)
        if self._looks_up:
            remarks = self._check_secret(found, token, remarks)
        groups = service_account_groups(found.namespace)
        return TokenIdentity(authenticated(UserInfo(found.sub, found.account_uid, groups)), common, remarks)

    def _check_secret(self, claims: _LegacyClaims, token: str, remarks: Remarks) -> Remarks:
        """Check the secret and account of a token; return `remarks` with additional ones.

        Raises AuthenticationError unless secret and account exist and the token equals the secret's.
        """
        namespace, name = claims.namespace, claims.secret
        secret = None if "/" in namespace + name else self._secret(namespace, name)
        if secret is None:
            raise MissingObject(_INVALIDATED, "secrets", namespace, name)
        if secret.is_being_deleted:
            raise AuthenticationError(_INVALIDATED)
        if not hmac.compare_digest(secret.token, token.encode()):
            raise AuthenticationError("Token does not match server's copy")
        account = None if "/" in claims.account else self._account(namespace, claims.account)
        if account is None:
            message = f'serviceaccounts "{claims.account}" not found'
            raise MissingObject(message, "serviceaccounts", namespace, claims.account)
        if account.metadata.deletion_timestamp is not None:
            raise AuthenticationError(f"ServiceAccount {namespace}/{claims.account} has been deleted")
        if account.metadata.uid != claims.account_uid:
            uid = account.metadata.uid
            raise AuthenticationError(f"ServiceAccount UID ({uid}) does not match claim ({claims.account_uid})")
        now = times.unix_now()
        if secret.labels.get(LAST_USED) not in (times.day(now), times.day(now + _DAY)):
            self._used(namespace, name)
        if secret.labels.get(INVALID_SINCE):
            self._metrics.invalid.inc()
            raise AuthenticationError(
                f"the token in secret {namespace}/{name} for service account {namespace}/{claims.account} has been "
                "marked invalid. Use tokens from the TokenRequest API or manually created secret-based tokens, or "
                f"remove the '{INVALID_SINCE}' label from the secret to temporarily allow use of this token"
            )
        if any(each.name == name for each in account.secrets):
            self._metrics.generated.inc()
            annotation = ("authentication.k8s.io/legacy-token-autogenerated-secret", name)
            return Remarks((*remarks.annotations, annotation), (_GENERATED,))
        self._metrics.manual.inc()
        return Remarks((*remarks.annotations, ("authentication.k8s.io/legacy-token-manual-secret", name)))


def _check(claims: _LegacyClaims) -> None:
    """Raise AuthenticationError for a token with a missing claim."""
    if not claims.sub:
        raise AuthenticationError("sub claim is missing")
    for name, text in (
        ("namespace", claims.namespace),
        ("secretName", claims.secret),
        ("serviceAccountName", claims.account),
        ("serviceAccountUID", claims.account_uid),
    ):
        if not text:
            raise AuthenticationError(f"{name} claim is missing")
    if claims.sub != service_account_username(claims.namespace, claims.account):
        raise AuthenticationError("sub claim is invalid")
