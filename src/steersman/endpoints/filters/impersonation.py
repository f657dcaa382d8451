"""Impersonation of other users (WithImpersonation): `kubectl --as`."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable
from typing import Final

from steersman.audit.latencies import IMPERSONATION
from steersman.authentication.user import UserInfo
from steersman.authorization.impersonation import Impersonation
from steersman.authorization.interface import Authorizer
from steersman.endpoints.filters.authorization import request_attributes
from steersman.endpoints.metrics import RequestMetrics
from steersman.endpoints.request import Filter, Handler, Request
from steersman.endpoints.responses import NOSNIFF, long_error_response
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import StatusError, bad_request
from steersman.machinery.go.urls import unescape_path
from steersman.net.message import Headers, Response

logger = logging.getLogger(__name__)

_PREFIX: Final = "impersonate-"
_USER: Final = "impersonate-user"
_UID: Final = "impersonate-uid"
_GROUP: Final = "impersonate-group"
_EXTRA: Final = "impersonate-extra-"


def with_impersonation(authorizer: Authorizer, metrics: RequestMetrics) -> Filter:
    """Return a filter that replaces `request.user` by the user in the headers; 403 if the request user may not do that.

    The headers are removed, so that later filters and handlers cannot see the impersonation. Groups, a uid or extra
    values without a user name are answered with 400.
    """
    impersonation = Impersonation(authorizer)

    def impersonate(request: Request, next_: Handler) -> Awaitable[Response]:
        # one search is cheaper than a look at each name
        return impersonate_named(request, next_) if _PREFIX in " ".join(request.headers) else next_(request)

    async def impersonate_named(request: Request, next_: Handler) -> Response:
        headers = request.headers
        named = [name for name in headers if name.startswith(_PREFIX)]
        if not named:
            return await next_(request)
        try:
            requested = _requested_user(headers, named)
            if requested is None:
                return await next_(request)
            for name in named:
                if name in (_USER, _UID, _GROUP) or name.startswith(_EXTRA):
                    del headers[name]
            began = time.monotonic()
            try:
                impersonated = await impersonation.impersonate(requested, request_attributes(request))
            except StatusError:
                _count(request, metrics, "", "denied", began)
                raise
        except StatusError as error:
            response = await long_error_response(request, error)
            response.headers.append(NOSNIFF)
            return response
        _count(request, metrics, impersonated.constraint.partition(":")[2] or "legacy", "allowed", began)
        logger.info("%s is impersonating %s", _shown(request.user), _shown(impersonated.user))
        request.user = impersonated.user
        if request.audit is not None:
            request.audit.set_impersonated_user(impersonated.user, impersonated.constraint)
        return await next_(request)

    return impersonate


def _count(request: Request, metrics: RequestMetrics, mode: str, decision: str, began: float) -> None:
    duration = time.monotonic() - began
    metrics.impersonations_total.inc((mode, decision))
    metrics.impersonations.observe(duration, (mode, decision))
    if request.audit is not None:
        request.audit.add_latency(IMPERSONATION, duration)


def _requested_user(headers: Headers, named: list[str]) -> UserInfo | None:
    """Return the user in the headers, None if they are empty. Raises StatusError 400 for attributes without a user
    name.
    """
    values: dict[str, list[str]] = {name: [] for name in named}
    for name, value in headers.sent:
        if name in values:
            values[name].append(value)
    extra: dict[str, tuple[str, ...]] = {}
    for name in named:
        if name.startswith(_EXTRA):
            key = unescape_path(name.removeprefix(_EXTRA))
            extra[key] = (*extra.get(key, ()), *values[name])
    user = UserInfo(_first(headers, _USER), _first(headers, _UID), tuple(headers.get_all(_GROUP)), extra)
    if user.name:
        return user
    if not (user.uid or user.groups or extra):
        return None
    raise bad_request(f"requested {_go_source(user)} without impersonating a user name")


def _first(headers: Headers, name: str) -> str:
    return next(iter(headers.get_all(name)), "")


def _go_source(user: UserInfo) -> str:
    """Return a user as upstream's message prints it."""
    extra = ", ".join(f"{quote(key)}:{_go_strings(user.extra[key])}" for key in sorted(user.extra))
    return (
        f"&user.DefaultInfo{{Name:{quote(user.name)}, UID:{quote(user.uid)}, Groups:{_go_strings(user.groups)}, "
        f"Extra:map[string][]string{f'{{{extra}}}' if extra else '(nil)'}}}"
    )


def _go_strings(values: tuple[str, ...]) -> str:
    return "[]string{" + ", ".join(quote(value) for value in values) + "}" if values else "[]string(nil)"


def _shown(user: UserInfo) -> str:
    return f"{user.name}[{','.join(user.groups)}]"
