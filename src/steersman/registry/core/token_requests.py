"""`serviceaccounts/NAME/token`: signs a token for a service account, which may be bound to a pod, secret or node.

Follows pkg/registry/core/serviceaccount/storage/token.go and pkg/serviceaccount/claims.go.
"""

from __future__ import annotations

import time
from typing import Any, Final

from msgspec import Struct

from steersman.api.authentication.v1 import BoundObjectReference, TokenRequest, TokenRequestStatus
from steersman.api.core.v1 import Node, Pod, Secret, ServiceAccount
from steersman.api.meta.v1 import ObjectMeta
from steersman.authentication.user import service_account_username
from steersman.machinery.errors.field import Path, invalid
from steersman.machinery.errors.status import bad_request, conflict
from steersman.machinery.errors.status import invalid as invalid_object
from steersman.machinery.identity.names import new_uid
from steersman.machinery.identity.schema import GroupKind, GroupResource
from steersman.machinery.values import times
from steersman.registry.services import Services
from steersman.rest.context import Context

DEFAULT_SECONDS: Final = 3600
MIN_SECONDS: Final = 600
MAX_SECONDS: Final = 1 << 32
WARN_ONLY_SECONDS: Final = 3607
"""The lifetime in seconds that admission requests for tokens in pods. Such a token lives for a year, and its use is
reported (`warnafter`) once this time has passed.
"""

_KIND: Final = GroupKind("authentication.k8s.io", "TokenRequest")


class _Bound(Struct, frozen=True):
    """The objects to which a token is bound."""

    pod: ObjectMeta | None = None
    secret: ObjectMeta | None = None
    node: ObjectMeta | None = None


async def create_token(services: Services, ctx: Context, name: str, request: TokenRequest) -> TokenRequest:
    """Sign and return the requested token. Raises StatusError: NotFound, Invalid, Conflict, BadRequest."""
    _check_metadata(request.metadata, name, ctx.action.namespace)
    account: ServiceAccount = await services.objects("", "serviceaccounts").get(ctx, name)
    _complete(ctx, request, account.metadata, services)
    bound = (
        await _bound(services, ctx, name, request.spec.bound_object_ref) if request.spec.bound_object_ref else _Bound()
    )
    _shorten(request, services.max_token_expiration, ctx)
    now = int(times.unix_now())
    request.metadata.creation_timestamp = _rfc3339(now)
    claims = _claims(services, account.metadata, request, bound, now)
    if ctx.audit is not None:
        ctx.audit.annotate("authentication.kubernetes.io/issued-credential-id", f"JTI={claims['jti']}")
    signed = services.sign_token(claims)
    request.status = TokenRequestStatus(
        token=signed if isinstance(signed, str) else await signed,
        expiration_timestamp=_rfc3339(now + (request.spec.expiration_seconds or 0)),
    )
    return request


def set_defaults(request: TokenRequest) -> None:
    """Default the lifetime of the token to an hour (SetDefaults_TokenRequestSpec)."""
    if request.spec.expiration_seconds is None:
        request.spec.expiration_seconds = DEFAULT_SECONDS


def _check_metadata(metadata: ObjectMeta, name: str, namespace: str) -> None:
    path = Path("metadata")
    if metadata.name and metadata.name != name:
        fault = invalid(path / "name", metadata.name, "must match the service account name if specified")
        raise invalid_object(_KIND, name, [fault])
    if metadata.namespace and metadata.namespace != namespace:
        fault = invalid(path / "namespace", metadata.namespace, "must match the service account namespace if specified")
        raise invalid_object(_KIND, name, [fault])


def _complete(ctx: Context, request: TokenRequest, account: ObjectMeta, services: Services) -> None:
    """Fill in the omitted members of the request and validate them."""
    metadata, spec = request.metadata, request.spec
    if metadata.uid and metadata.uid != account.uid:
        why = (
            f"the UID in the token request ({metadata.uid}) does not match "
            f"the UID of the service account ({account.uid})"
        )
        if ctx.audit is not None:
            ctx.audit.annotate("authentication.k8s.io/token-request-uid-mismatch", why)
        raise conflict(GroupResource(_KIND.group, _KIND.kind), account.name, why)
    metadata.name, metadata.namespace, metadata.uid = account.name, account.namespace, account.uid
    if not spec.audiences:
        spec.audiences = list(services.api_audiences)
    set_defaults(request)
    assert spec.expiration_seconds is not None
    path = Path("spec", "expirationSeconds")
    if spec.expiration_seconds < MIN_SECONDS:
        fault = invalid(path, spec.expiration_seconds, "may not specify a duration less than 10 minutes")
        raise invalid_object(_KIND, "", [fault])
    if spec.expiration_seconds > MAX_SECONDS:
        fault = invalid(path, spec.expiration_seconds, "may not specify a duration larger than 2^32 seconds")
        raise invalid_object(_KIND, "", [fault])


def _shorten(request: TokenRequest, longest: int, ctx: Context) -> None:
    """Shorten the token's lifetime to `longest` seconds (0 for no limit), and warn if that changes it."""
    seconds = request.spec.expiration_seconds or 0
    if longest and seconds > longest:
        ctx.warn(f"requested expiration of {seconds} seconds shortened to {longest} seconds")
        request.spec.expiration_seconds = longest


async def _bound(services: Services, ctx: Context, account: str, ref: BoundObjectReference) -> _Bound:
    """Return the metadata of the object that `ref` names. Raises StatusError."""
    group, _, version = ref.api_version.rpartition("/")
    name, kind = ref.name, ref.kind
    bound: _Bound
    if not name and kind in ("Pod", "Node", "Secret") and not group:
        raise bad_request("Name parameter required.")
    if group == "" and kind == "Pod":
        pod: Pod = await services.objects("", "pods").get(ctx, name)
        if (pod.spec.service_account_name or "") != account:
            raise bad_request(
                f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
            )
        bound = _Bound(pod=pod.metadata, node=await _node_of(services, pod))
        uid = pod.metadata.uid
    elif group == "" and kind == "Node":
        node: Node = await services.objects("", "nodes").get(ctx, name)
        bound = _Bound(node=node.metadata)
        uid = node.metadata.uid
    elif group == "" and kind == "Secret":
        secret: Secret = await services.objects("", "secrets").get(ctx, name)
        bound = _Bound(secret=secret.metadata)
        uid = secret.metadata.uid
    else:
        raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    if ref.uid and ref.uid != uid:
        raise conflict(
            GroupResource(group, kind),
            name,
            f"the UID in the bound object reference ({ref.uid}) does not match the UID in record. "
            "The object might have been deleted and then recreated",
        )
    return bound


async def _node_of(services: Services, pod: Pod) -> ObjectMeta | None:
    """Return the metadata of a pod's node; for a node that does not exist any more, only its name."""
    name = pod.spec.node_name
    if not name:
        return None
    node = await services.objects("", "nodes").get_cached("", name)
    return node.metadata if node is not None else ObjectMeta(name=name)


def _claims(services: Services, account: ObjectMeta, request: TokenRequest, bound: _Bound, now: int) -> dict[str, Any]:
    """Return the claims of the token, in upstream's order."""
    spec = request.spec
    seconds = spec.expiration_seconds or 0
    extended = (
        services.extend_token_expiration
        and bound.pod is not None
        and seconds == WARN_ONLY_SECONDS
        and set(spec.audiences or ()) <= set(services.api_audiences)
    )
    private: dict[str, Any] = {"namespace": account.namespace}
    if bound.node is not None:
        private["node"] = _reference(bound.node)
    if bound.pod is not None:
        private["pod"] = _reference(bound.pod)
    if bound.secret is not None:
        private["secret"] = _reference(bound.secret)
    private["serviceaccount"] = _reference(account)
    if extended:
        private["warnafter"] = now + seconds
    return {
        "aud": spec.audiences,
        "exp": now + (services.max_extended_token_expiration if extended else seconds),
        "iat": now,
        "iss": services.service_account_issuer,
        "jti": new_uid(),
        "kubernetes.io": private,
        "nbf": now,
        "sub": service_account_username(account.namespace, account.name),
    }


def _reference(metadata: ObjectMeta) -> dict[str, str]:
    reference = {"name": metadata.name}
    if metadata.uid:
        reference["uid"] = metadata.uid
    return reference


def _rfc3339(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))
