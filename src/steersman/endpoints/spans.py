"""Spans of handlers, with the names and attributes of kube-apiserver's (k8s.io/apiserver `endpoints/handlers`)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final, TypeVar

from steersman.endpoints.negotiation import Representation
from steersman.endpoints.request import Request
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.net.message import Response
from steersman.rest.capabilities import Item, Listing
from steersman.tracing.trace import Shared, add_event, current_step, cut, span, within, within_step

R = TypeVar("R")

SERIALIZE: Final = "SerializeObject"
APPLY: Final = "application/apply-patch+yaml"
_PROTOCOLS: Final = {"2": "HTTP/2.0", "1.1": "HTTP/1.1", "1.0": "HTTP/1.0"}


TRACE_FIELDS: Final[Shared] = (
    ("accept", "accept"),
    ("audit-id", "id"),
    ("client", "sourceIP"),
    ("api-group", "apiGroup"),
    ("api-version", "apiVersion"),
    ("name", "pathName"),
    ("subresource", "subresource"),
    ("namespace", "namespace"),
    ("protocol", "protocol"),
    ("resource", "resource"),
    ("scope", "scope"),
    ("url", "path"),
    ("user-agent", "userAgent"),
    ("verb", "metricsVerb"),
)
"""Attributes of a handler's span (`traceFields`)."""
AUDIT_ID: Final[Shared] = (("audit-id", "id"),)
ENCODING: Final[Shared] = (("audit-id", "id"), ("method", "method"), ("url", "path"), ("protocol", "protocol"))
"""Attributes of the span of an encoder."""


def protocol(request: Request) -> str:
    """Return the protocol as Go names it."""
    return _PROTOCOLS.get(request.http.version, request.http.version)


def scope_of(action: Action) -> str:
    """Return the scope as metrics have it (`metrics.CleanScope`)."""
    if action.name or action.verb == "create":
        return "resource"
    return "namespace" if action.namespace else "cluster"


def verb_of(request: Request, verb: str) -> str:
    """Return the verb as metrics have it (`metrics.NormalizedVerb`)."""
    if verb == "list":
        return "LIST"
    is_apply = verb == "patch" and request.headers.get("content-type", "").partition(";")[0] == APPLY
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


def storage_key(action: Action) -> str:
    """Return the key of the request's object without the prefix of all keys."""
    namespace = f"{action.namespace}/" if action.namespace else ""
    return str(cut(f"/{action.resource}/{namespace}{action.name}"))


def in_serialization(wanted: Representation, answering: Awaitable[Response]) -> Awaitable[Response]:
    """Return `answering`, which encodes an object, in the span of an encoder if the request is traced."""
    return answering if current_step() is None else serialized(wanted, answering)


async def serialized(wanted: Representation, answering: Awaitable[Response]) -> Response:
    """Return the result of `answering`, awaited in the span of an encoder, with the events of an answer around it."""
    add_event("About to write a response")
    try:
        return await encoded(wanted, answering)
    finally:
        add_event("Writing http response done")


async def encoded(wanted: Representation, answering: Awaitable[Response]) -> Response:
    """Return the result of `answering`, awaited in the span of an encoder."""
    with span(SERIALIZE, ENCODING, mediaType=wanted.media):
        response = await answering
        note_size(response)
        return response


async def got(action: Action, version: str, reading: Awaitable[Item]) -> Item:
    """Return the result of `reading`, awaited in the span of a read of one object from the cache."""
    add_event("About to Get from storage")
    about = {"key": storage_key(action), "resource-version": version}
    return await within(reading, "cacher.Get", AUDIT_ID, **about)


async def listed(request: Request, listing: Awaitable[Listing]) -> Listing:
    """Return the result of `listing`, awaited in the span of a list from the cache."""
    with span("cacher.GetList", AUDIT_ID, type=request.action.resource) as opened:
        found = await listing
        if opened is not None:
            opened.add_event("Filtered items", count=len(found.items))
            opened.set("revision", found.revision)
        return found


def note_size(response: Response) -> None:
    """Add the events of a written answer to the open span."""
    body = response.body
    size = len(body) if isinstance(body, bytes) else sum(map(len, body)) if isinstance(body, list) else None
    if size is not None:
        add_event("About to start writing response", size=size)
        add_event("Write call succeeded", size=size)
