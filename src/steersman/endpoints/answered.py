"""The facts about an answered request, for the readers of traces.

They have no query, body, or header field but the user agent and Accept, as these may contain secrets; nothing here keeps
the request, its body or its object alive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from steersman.authentication.user import ANONYMOUS
from steersman.endpoints.filters.audit import request_uri
from steersman.endpoints.request import Request
from steersman.endpoints.spans import protocol_of, scope_of, storage_key
from steersman.flowcontrol.fairness import Fairness
from steersman.machinery.identity.action import NO_ACTION, Action
from steersman.net.message import Peer
from steersman.tracing.trace import MAX_TEXT, Trace, cut

if TYPE_CHECKING:
    from steersman.authentication.user import UserInfo
    from steersman.authorization.interface import Verdict
    from steersman.flowcontrol.fairness import Flow

_TOLD: Final = frozenset({"create", "update", "patch", "delete"})
"""Verbs of writes to one object."""
_APPLY: Final = "application/apply-patch+yaml"
_MANY: Final = 4 * MAX_TEXT
"""Characters of a client's texts from which they are cut at once, so that the kept traces stay small."""


class AnsweredRequest(Struct, gc=False):
    """An answered request (tracing.trace.Answered). Texts that a client chooses are cut."""

    method: str
    path: str
    verb: str
    action: Action
    user: UserInfo | None
    first_user: UserInfo | None
    """The authenticated user, before impersonation."""
    user_agent: str
    accept: str
    peer: Peer
    version: str
    host: str
    scheme: str
    target: str
    code: int
    size: int | None
    name: str
    flow: Flow | None
    seats: int
    queue_seconds: float
    watchers: int
    verdict: Verdict | None
    limited: bool
    unchanged: bool
    applies: bool

    def line(self) -> dict[str, Any]:
        """Return the facts that every reader sees, by name."""
        action, user, verb = self.action, self.user, self.verb
        found: dict[str, Any] = {
            "verb": verb or self.method,
            "method": self.method,
            "path": self.path,
            "apiGroup": action.group,
            "apiVersion": action.version,
            "resource": action.resource,
            "subresource": action.subresource,
            "namespace": action.namespace,
            "name": action.name or self.name,
            "user": "" if user is None else user.name,
            "userAgent": self.user_agent,
            "sourceIP": self.peer.host,
            "protocol": protocol_of(self.version),
            "code": self.code,
            "bytes": self.size,
        }
        if len(self.path) + len(found["user"]) + len(self.user_agent) > MAX_TEXT:
            found = {name: cut(each) for name, each in found.items()}
        if verb == "list":
            found["limited"] = self.limited
        elif verb in _TOLD:
            found["unchanged"] = self.unchanged
        return found

    def span_facts(self) -> dict[str, Any]:
        """Return the facts that only spans need, by name."""
        action, is_list = self.action, self.verb == "list"
        return {
            "pathName": cut(action.name),
            "accept": cut(self.accept),
            "scope": scope_of(action),
            "metricsVerb": "LIST" if is_list else "APPLY" if self.applies else self.method,
            "host": cut(self.host),
            "scheme": self.scheme,
            "target": cut(self.target),
            "sourcePort": self.peer.port,
            "storageKey": storage_key(action),
        }

    def of_filter(self, name: str) -> dict[str, Any]:
        """Return the attributes of a filter's step."""
        if name == "authentication":
            user = self.first_user
            known = user is not None and user.name != ANONYMOUS
            return {**({"authenticator": "cache of valid tokens"} if known else {}), **_about_user(user)}
        if name == "constrainedimpersonation":
            is_same = self.user is None or self.first_user is None or self.user.name == self.first_user.name
            return {} if is_same else _about_user(self.user)
        if name == "priorityandfairness" and (flow := self.flow) is not None:
            found = {"flowSchema": flow.schema, "priorityLevel": flow.level.name, "seats": self.seats}
            if self.queue_seconds >= 0.0:
                found["queueSeconds"] = round(self.queue_seconds, 6)
            return {**found, "watchers": self.watchers} if self.verb in _TOLD else found
        if name == "authorization" and (verdict := self.verdict) is not None:
            return {"decision": verdict.decision.value, "reason": cut(verdict.reason)}
        return {}


def _about_user(user: UserInfo | None) -> dict[str, Any]:
    return {} if user is None else {"user": cut(user.name), "groups": cut(",".join(user.groups))}


def answered(trace: Trace, fairness: Fairness | None, request: Request, code: int, size: int | None) -> AnsweredRequest:
    """Return the facts about an answered request, which is on a hot path while traces are read."""
    info = getattr(request, "info", None)  # absent if the path was unintelligible
    action = NO_ACTION if info is None or not info.resource_request else info.action
    verb = "" if info is None else info.action.verb
    http, headers, flow = request.http, request.headers, request.flow
    peer = http.peer
    path, agent, accept = request.path, headers.get("user-agent", ""), headers.get("accept", "")
    if len(path) + len(agent) + len(accept) > _MANY:
        path, agent, accept = str(cut(path)), str(cut(agent)), str(cut(accept))
    seats, queued, watchers, limited, applies = 1, -1.0, 0, False, False
    if flow is not None:
        ticket = request.ticket
        if ticket is not None and ticket.started >= 0.0:
            queued = max(ticket.started - ticket.arrived, 0.0)
        seats = request.estimate.initial
        if fairness is not None and verb in _TOLD:
            watchers = fairness.watches.interested(action)
    if verb == "list":
        limited = bool(http.query) and _is_limited(request)
    elif verb == "patch":
        applies = headers.get("content-type", "").partition(";")[0] == _APPLY
    return AnsweredRequest(
        request.method,
        path,
        verb,
        action,
        getattr(request, "user", None),  # absent if the request was not authenticated
        trace.user,
        agent,
        accept,
        Peer(peer.host, peer.port),
        http.version,
        http.host if len(http.host) <= MAX_TEXT else str(cut(http.host)),
        http.scheme,
        "" if trace.sampling is None else str(cut(request_uri(request))),
        code,
        size,
        trace.object_name,
        flow,
        seats,
        queued,
        watchers,
        request.verdict,
        limited,
        trace.is_unchanged,
        applies,
    )


def _is_limited(request: Request) -> bool:
    """Return True for a list with a limit or a selector."""
    return any(request.parameter(name) not in (None, "", "0") for name in ("limit", "labelSelector", "fieldSelector"))
