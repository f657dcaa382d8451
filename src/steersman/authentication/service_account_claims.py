"""The claims of a service account token, and their check against present objects (pkg/serviceaccount/claims.go).

Regardless of its expiry, a token is valid only while its service account and its bound object exist: this is how a
leaked token is revoked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.interface import NO_REMARKS, AuthenticationError, Remarks
from steersman.authentication.service_account_metrics import ServiceAccountMetrics
from steersman.authentication.user import CREDENTIAL_ID, UserInfo, service_account_groups, service_account_username
from steersman.machinery.errors.field import quote
from steersman.machinery.values import times

LEEWAY: Final = 60.0
"""Tolerance of clocks in seconds; a bound object stays valid as long after the start of its deletion."""

POD_NAME: Final = "authentication.kubernetes.io/pod-name"
POD_UID: Final = "authentication.kubernetes.io/pod-uid"
NODE_NAME: Final = "authentication.kubernetes.io/node-name"
NODE_UID: Final = "authentication.kubernetes.io/node-uid"

INVALIDATED: Final = "service account token has been invalidated"

Seconds = int | float
"""NumericDate of RFC 7519, section 2: seconds since the epoch."""


class Reference(msgspec.Struct, frozen=True):
    """A reference to an object in a token."""

    name: str = ""
    uid: str = ""


class KubernetesClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The claim `kubernetes.io`. A pod's token may name its node too."""

    namespace: str = ""
    serviceaccount: Reference = Reference()
    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None
    warnafter: Seconds | None = None


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The used claims of a token (RFC 7519, section 4.1)."""

    iss: str = ""
    sub: str = ""
    aud: str | tuple[str, ...] | None = None
    exp: Seconds | None = None
    nbf: Seconds | None = None
    iat: Seconds | None = None
    jti: str = ""
    kubernetes: KubernetesClaims = msgspec.field(name="kubernetes.io", default_factory=KubernetesClaims)

    @property
    def audiences(self) -> tuple[str, ...]:
        """The audiences, () if the token has none."""
        if self.aud is None:
            return ()
        return (self.aud,) if isinstance(self.aud, str) else self.aud


class Named(Protocol):
    """The metadata of a stored object."""

    metadata: ObjectMeta


Find = Callable[[str, str], Named | None]
"""Function (namespace, name) -> the object, or None."""


LookUp = Callable[[str, str, str], Awaitable[None]]
"""Function (plural, namespace, name) that makes an object visible which another server may just have written.

Raises StatusError.
"""


class MissingObject(AuthenticationError):
    """An object that a token refers to is missing, as far as this server knows; `plural` is its resource."""

    def __init__(self, message: str, plural: str, namespace: str, name: str) -> None:
        super().__init__(message)
        self.object: Final = plural, namespace, name


class BoundObjects(Struct, frozen=True, kw_only=True):
    """Functions that find the objects of tokens. Nodes have the namespace ""."""

    service_account: Find
    pod: Find
    secret: Find
    node: Find
    look_up: LookUp | None = None
    """None if no other server writes to the storage."""


def common_audiences(claims: Claims, requested: tuple[str, ...], api_audiences: tuple[str, ...]) -> tuple[str, ...]:
    """Return the `requested` audiences that the token is valid for; one without audiences is valid for the API.

    Raises AuthenticationError if there are none.
    """
    own = claims.audiences or api_audiences
    meant = frozenset(own)
    common = tuple(each for each in requested if each in meant)
    if not common and api_audiences:
        raise AuthenticationError(
            f"token audiences {_quoted(own)} is invalid for the target audiences {_quoted(requested)}"
        )
    return common


def note_use(claims: Claims, metrics: ServiceAccountMetrics) -> Remarks:
    """Count a token without audiences, and return the remark on it."""
    if claims.audiences:
        return NO_REMARKS
    metrics.legacy.inc()
    return Remarks((("authentication.k8s.io/legacy-token", claims.sub),))


def note_age(claims: Claims, now: float, metrics: ServiceAccountMetrics, remarks: Remarks) -> Remarks:
    """Return the remarks, with an additional one if the token should have been renewed.

    Such a token is valid for longer than it claims, for clients that read it only once.
    """
    if not (warn_after := claims.kubernetes.warnafter):
        return remarks
    if now <= int(warn_after):
        metrics.valid.inc()
        return remarks
    metrics.stale.inc()
    told = f"subject: {claims.sub}, seconds after warning threshold: {int(now) - int(warn_after)}"
    return Remarks((*remarks.annotations, ("authentication.k8s.io/stale-token", told)))


def validate_claims(claims: Claims, objects: BoundObjects, now: float) -> UserInfo:
    """Return the user of a verified token's claims at `now` (seconds since the epoch).

    Raises AuthenticationError if the token is expired or not yet valid, or an object that it names is gone.
    """
    _check_times(claims, now)
    _check_objects(claims.kubernetes, objects, now)
    private = claims.kubernetes
    account, pod, node = private.serviceaccount, private.pod, private.node
    extra: dict[str, tuple[str, ...]] = {}
    if pod is not None and pod.name and pod.uid:
        extra[POD_NAME] = (pod.name,)
        extra[POD_UID] = (pod.uid,)
    if claims.jti:
        extra[CREDENTIAL_ID] = (f"JTI={claims.jti}",)
    if node is not None and node.name:
        extra[NODE_NAME] = (node.name,)
        if node.uid:
            extra[NODE_UID] = (node.uid,)
    return UserInfo(
        service_account_username(private.namespace, account.name),
        account.uid,
        service_account_groups(private.namespace),
        MappingProxyType(extra),
    )


def _check_times(claims: Claims, now: float) -> None:
    if claims.nbf is not None and now + LEEWAY < int(claims.nbf):
        raise AuthenticationError("service account token is not valid yet")
    if claims.exp is not None and now - LEEWAY > int(claims.exp):
        raise AuthenticationError("service account token has expired")
    if claims.iat is not None and now + LEEWAY < int(claims.iat):
        raise AuthenticationError("service account token is issued in the future")


def _check_objects(private: KubernetesClaims, objects: BoundObjects, now: float) -> None:
    namespace, account = private.namespace, private.serviceaccount
    found = _find(objects.service_account, namespace, account.name)
    if found is None:
        raise MissingObject(
            f"serviceaccounts {quote(account.name)} not found", "serviceaccounts", namespace, account.name
        )
    if found.uid != account.uid:
        raise AuthenticationError(f"service account UID ({found.uid}) does not match claim ({account.uid})")
    if _deleted(found, now):
        raise AuthenticationError(f"service account {namespace}/{account.name} has been deleted")
    if private.secret is not None:
        _check_bound("secret", private.secret, namespace, _find(objects.secret, namespace, private.secret.name), now)
    if private.pod is not None:
        _check_bound("pod", private.pod, namespace, _find(objects.pod, namespace, private.pod.name), now)
    elif private.node is not None:  # a pod's token may name its node, which is not checked
        _check_bound("node", private.node, "", _find(objects.node, "", private.node.name, namespaced=False), now)


def _check_bound(kind: str, reference: Reference, namespace: str, found: ObjectMeta | None, now: float) -> None:
    """Raise AuthenticationError unless the bound object of a token exists with the same uid."""
    if found is None:
        raise MissingObject(INVALIDATED, f"{kind}s", namespace, reference.name)
    if found.uid != reference.uid:
        raise AuthenticationError(
            f"{kind} UID ({found.uid}) does not match service account {kind} ref claim ({reference.uid})"
        )
    if _deleted(found, now):
        raise AuthenticationError(INVALIDATED)


def _find(find: Find, namespace: str, name: str, *, namespaced: bool = True) -> ObjectMeta | None:
    """Return the metadata of an object; None also for invalid names, which must not lead to another object's key."""
    if not name or "/" in name or "/" in namespace or (namespaced and not namespace):
        return None
    found = find(namespace, name)
    return None if found is None else found.metadata


def _deleted(metadata: ObjectMeta, now: float) -> bool:
    """Return True if the deletion of an object began so long ago that it counts as gone."""
    return metadata.deletion_timestamp is not None and (
        times.parse(metadata.deletion_timestamp).timestamp() < now - LEEWAY
    )


def _quoted(texts: tuple[str, ...]) -> str:
    return f"[{' '.join(map(quote, texts))}]"
