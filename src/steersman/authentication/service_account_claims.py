"""What a service account token claims, and whether it is true now (pkg/serviceaccount/claims.go).

A token is good for as long as its service account and what it is bound to are there, whatever its time of expiry: that
is how a token that leaked is taken back.
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
"""Seconds that clocks may differ by; as long after its deletion began, an object still vouches for a token."""

POD_NAME: Final = "authentication.kubernetes.io/pod-name"
POD_UID: Final = "authentication.kubernetes.io/pod-uid"
NODE_NAME: Final = "authentication.kubernetes.io/node-name"
NODE_UID: Final = "authentication.kubernetes.io/node-uid"

INVALIDATED: Final = "service account token has been invalidated"

Seconds = int | float
"""NumericDate of RFC 7519, section 2: seconds since the epoch."""


class Reference(msgspec.Struct, frozen=True):
    """An object as a token names it."""

    name: str = ""
    uid: str = ""


class KubernetesClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The claim `kubernetes.io`. A pod's token may name its node besides."""

    namespace: str = ""
    serviceaccount: Reference = Reference()
    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None
    warnafter: Seconds | None = None


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a token (RFC 7519, section 4.1) as far as they matter here."""

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
        """The audiences, none if the token says none."""
        if self.aud is None:
            return ()
        return (self.aud,) if isinstance(self.aud, str) else self.aud


class Named(Protocol):
    """A stored object, as far as it matters here."""

    metadata: ObjectMeta


Find = Callable[[str, str], Named | None]
"""(namespace, name) -> the object, None if there is none."""


LookUp = Callable[[str, str, str], Awaitable[None]]
"""(plural, namespace, name): has an object known that another server may just have written. Raises StatusError."""


class NotThere(AuthenticationError):
    """An object that a token is about is not there, as far as this server knows: that of the resource `plural`."""

    def __init__(self, message: str, plural: str, namespace: str, name: str) -> None:
        super().__init__(message)
        self.object: Final = plural, namespace, name


class BoundObjects(Struct, frozen=True, kw_only=True):
    """Where to look for what tokens name. Nodes are looked up in the namespace ""."""

    service_account: Find
    pod: Find
    secret: Find
    node: Find
    look_up: LookUp | None = None
    """None where nobody else writes."""


def common_audiences(claims: Claims, requested: tuple[str, ...], api_audiences: tuple[str, ...]) -> tuple[str, ...]:
    """Those of the `requested` audiences that the token is meant for; one that names none is meant for the API.

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
    """Counts a token that names no audience, and what there is to say of one."""
    if claims.audiences:
        return NO_REMARKS
    metrics.legacy.inc()
    return Remarks((("authentication.k8s.io/legacy-token", claims.sub),))


def note_age(claims: Claims, now: float, metrics: ServiceAccountMetrics, remarks: Remarks) -> Remarks:
    """These remarks, and one if the token should have been renewed: it counts for longer than it says, for clients
    that read it once."""
    if not (warn_after := claims.kubernetes.warnafter):
        return remarks
    if now <= int(warn_after):
        metrics.valid.inc()
        return remarks
    metrics.stale.inc()
    told = f"subject: {claims.sub}, seconds after warning threshold: {int(now) - int(warn_after)}"
    return Remarks((*remarks.annotations, ("authentication.k8s.io/stale-token", told)))


def judge(claims: Claims, objects: BoundObjects, now: float) -> UserInfo:
    """The service account that the claims of a verified token make known at `now` (seconds since the epoch).

    Raises AuthenticationError if the token is out of its time, or what it names is not there any more.
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
        raise NotThere(f"serviceaccounts {quote(account.name)} not found", "serviceaccounts", namespace, account.name)
    if found.uid != account.uid:
        raise AuthenticationError(f"service account UID ({found.uid}) does not match claim ({account.uid})")
    if _deleted(found, now):
        raise AuthenticationError(f"service account {namespace}/{account.name} has been deleted")
    if private.secret is not None:
        _check_bound("secret", private.secret, namespace, _find(objects.secret, namespace, private.secret.name), now)
    if private.pod is not None:
        _check_bound("pod", private.pod, namespace, _find(objects.pod, namespace, private.pod.name), now)
    elif private.node is not None:  # of a pod's token the node is told, and does not matter
        _check_bound("node", private.node, "", _find(objects.node, "", private.node.name, namespaced=False), now)


def _check_bound(kind: str, reference: Reference, namespace: str, found: ObjectMeta | None, now: float) -> None:
    """Raises AuthenticationError unless the object that a token is bound to is there and the same."""
    if found is None:
        raise NotThere(INVALIDATED, f"{kind}s", namespace, reference.name)
    if found.uid != reference.uid:
        raise AuthenticationError(
            f"{kind} UID ({found.uid}) does not match service account {kind} ref claim ({reference.uid})"
        )
    if _deleted(found, now):
        raise AuthenticationError(INVALIDATED)


def _find(find: Find, namespace: str, name: str, *, namespaced: bool = True) -> ObjectMeta | None:
    """The object, None also for names that no object can have: they must not lead to another's key."""
    if not name or "/" in name or "/" in namespace or (namespaced and not namespace):
        return None
    found = find(namespace, name)
    return None if found is None else found.metadata


def _deleted(metadata: ObjectMeta, now: float) -> bool:
    """True if the deletion of an object began so long ago that it counts as gone."""
    return metadata.deletion_timestamp is not None and (
        times.parse(metadata.deletion_timestamp).timestamp() < now - LEEWAY
    )


def _quoted(texts: tuple[str, ...]) -> str:
    return f"[{' '.join(map(quote, texts))}]"
