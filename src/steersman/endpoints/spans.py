"""Spans of handlers, with the names and attributes of kube-apiserver's (k8s.io/apiserver `endpoints/handlers`)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, TypeVar

from steersman.endpoints.negotiation import Representation
from steersman.endpoints.request import Request
from steersman.machinery.errors.status import StatusError
from steersman.net.message import Response
from steersman.rest.capabilities import Listing
from steersman.tracing.trace import Step, Value, add_event, current_step, cut, span, within_step

R = TypeVar("R")

APPLY: Final = "application/apply-patch+yaml"
_PROTOCOLS: Final = {"2": "HTTP/2.0", "1.1": "HTTP/1.1", "1.0": "HTTP/1.0"}


def trace_fields(request: Request) -> dict[str, Value]:
    """Return the attributes of a handler's span (`traceFields`)."""
    info, headers = request.info, request.headers
    action = info.action
    return {
        "accept": cut(headers.get("accept", "")),
        "audit-id": cut(request.audit_id),
        "client": request.http.peer.host,
        "api-group": action.group,
        "api-version": action.version,
        "name": action.name,
        "subresource": action.subresource,
        "namespace": action.namespace,
        "protocol": protocol(request),
        "resource": action.resource,
        "scope": _scope(request),
        "url": cut(request.path),
        "user-agent": cut(headers.get("user-agent", "")),
        "verb": _verb(request),
    }


def protocol(request: Request) -> str:
    """Return the protocol as Go names it."""
    return _PROTOCOLS.get(request.http.version, request.http.version)


def _scope(request: Request) -> str:
    """Return the scope as metrics have it (`metrics.CleanScope`)."""
    action = request.info.action
    if action.name or action.verb == "create":
        return "resource"
    return "namespace" if action.namespace else "cluster"


def _verb(request: Request) -> str:
    """Return the verb as metrics have it (`metrics.NormalizedVerb`)."""
    verb = request.info.action.verb
    if verb == "list":
        return "LIST"
    is_apply = request.method == "PATCH" and request.headers.get("content-type", "").partition(";")[0] == APPLY
    return "APPLY" if is_apply else request.method


def converted(work: Awaitable[R]) -> Awaitable[R]:
    """Return `work`, which decodes a body, in a step if the request is traced."""
    return work if current_step() is None else _converted(work)


async def _converted(work: Awaitable[R]) -> R:
    add_event("About to convert to expected version")
    found = await within_step(work, "decode")
    add_event("Conversion done")
    return found


def written(data: bytes, work: Awaitable[R]) -> Awaitable[R]:
    """Return `work`, which stores the object of a body, with events if the request is traced."""
    return work if current_step() is None else _written(data, work)


async def _written(data: bytes, work: Awaitable[R]) -> R:
    add_event("About to store object in database")
    try:
        found = await work
    except StatusError as error:
        add_event("Write to database call failed", len=len(data), err=error.reason)
        raise
    add_event("Write to database call succeeded", len=len(data))
    return found


def storage_key(request: Request) -> dict[str, Value]:
    """Return the audit ID, and the key of the request's object without the prefix of all keys."""
    action = request.action
    parts = ("", action.resource, action.namespace, action.name)
    return {"audit-id": cut(request.audit_id), "key": cut("/".join(part for part in parts if part or part is parts[0]))}


async def serialized(request: Request, wanted: Representation, answering: Awaitable[Response]) -> Response:
    """Return the result of `answering`, awaited in the span of an encoder."""
    add_event("About to write a response")
    try:
        return await _encoded(request, wanted, answering)
    finally:
        add_event("Writing http response done")


async def _encoded(request: Request, wanted: Representation, answering: Awaitable[Response]) -> Response:
    with span("SerializeObject", **_encoding(request, wanted)) as opened:
        response = await answering
        if opened is not None:
            _note_size(opened, response)
        return response


async def listed(request: Request, listing: Awaitable[Listing]) -> Listing:
    """Return the result of `listing`, awaited in the span of a list from the cache."""
    with span("cacher.GetList", **{"audit-id": cut(request.audit_id), "type": request.action.resource}) as opened:
        found = await listing
        if opened is not None:
            opened.add_event("Filtered items", count=len(found.items))
            opened.set("revision", found.revision)
        return found


def _note_size(opened: Step, response: Response) -> None:
    """Add the event of a written answer."""
    body = response.body
    size = len(body) if isinstance(body, bytes) else sum(map(len, body)) if isinstance(body, list) else None
    if size is not None:
        opened.add_event("Write call succeeded", size=size)


def _encoding(request: Request, wanted: Representation) -> dict[str, Value]:
    return {
        "audit-id": cut(request.audit_id),
        "method": cut(request.method),
        "url": cut(request.path),
        "protocol": protocol(request),
        "mediaType": wanted.media,
    }
