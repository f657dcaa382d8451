"""The facts about an answered request, for the readers of traces.

They have no query, body, or header field but the user agent and Accept, as these may contain secrets; nothing here keeps
the request, its body or its object alive.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from steersman.authentication.user import ANONYMOUS
from steersman.authorization.attributes import Attributes
from steersman.endpoints.request import Request
from steersman.endpoints.spans import PROTOCOLS, TRACE_FIELDS, scope_of, storage_key
from steersman.machinery.identity.action import NO_ACTION, Action
from steersman.net.message import Peer
from steersman.tracing.trace import COMPONENT, MAX_TEXT, StepKind, Trace, cut

if TYPE_CHECKING:
    from steersman.authentication.user import UserInfo
    from steersman.authorization.interface import Verdict
    from steersman.endpoints.request_info import RequestInfo
    from steersman.flowcontrol.fairness import Flow
    from steersman.flowcontrol.queue_set import Ticket

_TOLD: Final = frozenset({"create", "update", "patch", "delete"})
"""Verbs of writes to one object."""
_READS: Final = frozenset({"list", "watch"})
"""Verbs of reads of many objects."""
_MOST_WARNINGS: Final = 5
"""Warnings of an answer that are told."""
_APPLY: Final = "application/apply-patch+yaml"
_MANY: Final = 4 * MAX_TEXT
"""Characters of a client's texts from which they are cut at once, so that the kept traces stay small."""


_OPERATIONS: Final = {
    "get": "Get",
    "list": "List",
    "create": "Create",
    "update": "Update",
    "patch": "Patch",
    "delete": "Delete",
    "deletecollection": "Delete",
}
"""Spans of kube-apiserver's handlers, by verb."""
_HANDLERS: Final = {
    verb: StepKind(name, COMPONENT, TRACE_FIELDS, stays_open=True) for verb, name in _OPERATIONS.items()
}
_HANDLERS["watch"] = StepKind("watch", stays_open=True)
_HANDLER: Final = StepKind("handler", stays_open=True)


class Details(Struct, gc=False):
    """Facts that only some requests, or some readers, need."""

    accept: str = ""
    host: str = ""
    scheme: str = ""
    target: str = ""
    watchers: int = 0
    is_limited: bool = False
    applies: bool = False
    is_initial: bool = False
    warnings: tuple[str, ...] = ()


class AnsweredRequest(Struct, gc=False):
    """An answered request (tracing.trace.Answered). Texts that a client chooses are cut."""

    id: str
    method: str
    path: str
    action: Action
    user: UserInfo | None
    user_agent: str
    peer: Peer
    version: str
    code: int
    size: int | None
    flow: Flow | None
    ticket: Ticket | None
    verdict: Verdict | None
    details: Details

    @property
    def handler(self) -> StepKind:
        """The step of the request's handler."""
        return _HANDLERS.get(self.action.verb, _HANDLER) if self.action.resource else _HANDLER

    @property
    def attributes(self) -> Attributes | None:
        """The attributes by which the request was authorized, without its selectors; None without a user."""
        path = None if self.action.resource else self.path
        return None if self.user is None else Attributes(self.user, self.action, path)

    def line(self, trace: Trace) -> dict[str, Any]:
        """Return the facts that every reader sees, by name."""
        action, user = self.action, self.user
        verb, name = action.verb, "" if user is None else user.name
        members: dict[str, Any] = {
            "verb": verb or self.method,
            "method": self.method,
            "path": self.path,
            "apiGroup": action.group,
            "apiVersion": action.version,
            "resource": action.resource,
            "subresource": action.subresource,
            "namespace": action.namespace,
            "name": action.name or trace.object_name,
            "user": name,
            "userAgent": self.user_agent,
            "sourceIP": self.peer.host,
            "protocol": PROTOCOLS.get(self.version, self.version),
            "code": self.code,
            "bytes": self.size,
        }
        if len(self.path) + len(name) + len(self.user_agent) > MAX_TEXT:
            members = {name: cut(each) for name, each in members.items()}
        if verb == "list":
            members["limited"] = self.details.is_limited
        elif verb in _TOLD:
            members["unchanged"] = trace.is_unchanged
            if trace.changed is not None:
                members["changed"] = trace.changed
        if self.code == 403 and (self.verdict is None or not self.verdict.allowed):
            members["denied"] = True
        if self.details.is_initial:
            members["initial"] = True
        if self.details.warnings:
            members["warnings"] = list(self.details.warnings)
        return members

    def span_facts(self, trace: Trace) -> dict[str, Any]:
        """Return the facts that only spans need, by name."""
        action, details = self.action, self.details
        return {
            "pathName": cut(action.name),
            "accept": details.accept,
            "scope": scope_of(action),
            "metricsVerb": "LIST" if action.verb == "list" else "APPLY" if details.applies else self.method,
            "host": details.host,
            "scheme": details.scheme,
            "target": details.target,
            "sourcePort": self.peer.port,
            "storageKey": storage_key(action),
        }

    def of_filter(self, trace: Trace, name: str) -> dict[str, Any]:
        """Return the attributes of a filter's step."""
        if name == "authentication":
            known = trace.user is not None and trace.user.name != ANONYMOUS
            return {**({"authenticator": "cached"} if known else {}), **_about_user(trace.user)}
        if name == "constrainedimpersonation":
            is_same = self.user is None or trace.user is None or self.user.name == trace.user.name
            return {} if is_same else _about_user(self.user)
        if name == "priorityandfairness" and (flow := self.flow) is not None:
            members: dict[str, Any] = {"flowSchema": flow.schema, "priorityLevel": flow.level.name}
            if (ticket := self.ticket) is not None:
                members["seats"] = ticket.initial
                if ticket.started >= 0.0:
                    members["queueSeconds"] = round(max(ticket.started - ticket.arrived, 0.0), 6)
            return {**members, "watchers": self.details.watchers} if self.action.verb in _TOLD else members
        if name == "authorization" and (verdict := self.verdict) is not None:
            return {"decision": verdict.decision.value, "reason": cut(verdict.reason)}
        return {}


_NONE: Final = Details()


def _about_user(user: UserInfo | None) -> dict[str, Any]:
    return {} if user is None else {"user": cut(user.name), "groups": cut(",".join(user.groups))}


def answered(request: Request, code: int, size: int | None, reads_spans: bool) -> AnsweredRequest:
    """Return the facts about an answered request. Every request passes here while traces are read: this code avoids
    calls where it can.
    """
    info: RequestInfo | None = request.info  # None if the path was unintelligible
    user: UserInfo | None = request.user  # None if the request was not authenticated
    action = NO_ACTION if info is None else info.action
    http, flow = request.http, request.flow
    needs_details = reads_spans or request.watchers or request.warnings or action.verb in _READS
    path, uid, agent = request.path, request.audit_id, request.headers.get("user-agent", "")
    if len(path) + len(uid) + len(agent) > _MANY:
        path, uid, agent = str(cut(path)), str(cut(uid)), str(cut(agent))
    return AnsweredRequest(
        uid,
        request.method,
        path,
        action,
        user,
        agent,
        http.peer,
        http.version,
        code,
        size,
        flow,
        None if flow is None else request.ticket,
        request.verdict,
        _details(request, action, reads_spans) if needs_details else _NONE,
    )


def _details(request: Request, action: Action, reads_spans: bool) -> Details:
    verb, watchers = action.verb, request.watchers
    limited = verb == "list" and bool(request.http.query) and _is_limited(request)
    initial = verb in _READS and _is_initial(request, verb)
    warnings = tuple(str(cut(each)) for each in islice(dict.fromkeys(request.warnings), _MOST_WARNINGS))
    if not reads_spans:
        return Details(watchers=watchers, is_limited=limited, is_initial=initial, warnings=warnings)
    http, headers = request.http, request.headers
    return Details(
        str(cut(headers.get("accept", ""))),
        str(cut(http.host)),
        http.scheme,
        str(cut(request.uri)),
        watchers,
        limited,
        verb == "patch" and headers.get("content-type", "").partition(";")[0] == _APPLY,
        initial,
        warnings,
    )


def _is_limited(request: Request) -> bool:
    """Return True for a list with a limit or a selector."""
    return any(request.parameter(name) not in (None, "", "0") for name in ("limit", "labelSelector", "fieldSelector"))


def _is_initial(request: Request, verb: str) -> bool:
    """Return True for a list or watch that begins with all objects from the cache, as informers do when they start."""
    version = request.parameter("resourceVersion") or ""
    if verb == "list":
        return version == "0" and not request.parameter("continue")
    return version in ("", "0") or request.parameter("sendInitialEvents") == "true"
