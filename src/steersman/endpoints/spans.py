"""Spans of handlers, with the names and attributes of kube-apiserver's (k8s.io/apiserver `endpoints/handlers`)."""

from __future__ import annotations

from collections.abc import Awaitable
from time import monotonic
from typing import Final, TypeVar

from msgspec.structs import replace

from steersman.endpoints.negotiation import Representation
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.net.message import Response
from steersman.rest.capabilities import Listing
from steersman.tracing.trace import (
    COMPONENT,
    END,
    SET,
    OuterEvent,
    Pairs,
    Recorder,
    StepKind,
    current_recorder,
    cut,
    recorded,
)

R = TypeVar("R")

PROTOCOLS: Final = {"2": "HTTP/2.0", "1.1": "HTTP/1.1", "1.0": "HTTP/1.0"}
"""Protocols as Go names them, by version."""

TRACE_FIELDS: Final[Pairs] = (
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
AUDIT_ID: Final[Pairs] = (("audit-id", "id"),)
ENCODE: Final = StepKind(
    "SerializeObject",
    COMPONENT,
    (("audit-id", "id"), ("method", "method"), ("url", "path"), ("protocol", "protocol")),
    encodes=True,
    argument="mediaType",
)
"""Encoding of an answer."""
ANSWER: Final = replace(
    ENCODE, before=("About to write a response",), after=("Writing http response done",), after_failure=True
)
"""Encoding of an answer by a handler that tells so."""
ANSWER_GOT: Final = replace(ANSWER, follows=True)
"""Encoding of an answer directly after a read."""
GET: Final = StepKind(
    "cacher.Get",
    COMPONENT,
    AUDIT_ID,
    (("key", "storageKey"),),
    before=("About to Get from storage",),
    argument="resource-version",
)
"""Read of one object from the cache."""
LIST: Final = StepKind("cacher.GetList", COMPONENT, AUDIT_ID, (("type", "resource"),))
"""List from the cache."""
WATCH: Final = StepKind("cacher.Watch", COMPONENT, AUDIT_ID, (("type", "resource"),))
"""Start of a watch of the cache."""
MANAGED_FIELDS: Final = StepKind("managed fields")
PATCH: Final = StepKind("patch")
ABOUT_TO_PATCH: Final = OuterEvent("About to apply patch", "Patch")
ABOUT_TO_ADMIT: Final = OuterEvent("About to check admission control", "Patch")
DECODE: Final = StepKind("decode", before=("About to convert to expected version",), after=("Conversion done",))
"""Decoding of a body."""


def scope_of(action: Action) -> str:
    """Return the scope as metrics have it (`metrics.CleanScope`)."""
    if action.name or action.verb == "create":
        return "resource"
    return "namespace" if action.namespace else "cluster"


def written(data: bytes, work: Awaitable[R]) -> Awaitable[R]:
    """Return `work`, which stores the object of a body, with events if the request is traced."""
    recorder = current_recorder()
    return work if recorder is None else _written(recorder, len(data), work)


async def _written(recorder: Recorder, size: int, work: Awaitable[R]) -> R:
    marks = recorder.marks
    marks += ("About to store object in database", monotonic(), None)
    try:
        found = await work
    except StatusError as error:
        recorder.add_event("Write to database call failed", len=size, err=error.reason)
        raise
    marks += ("Write to database call succeeded", monotonic(), {"len": size})
    return found


def storage_key(action: Action) -> str:
    """Return the key of the request's object without the prefix of all keys."""
    namespace = f"{action.namespace}/" if action.namespace else ""
    return str(cut(f"/{action.resource}/{namespace}{action.name}"))


def in_serialization(wanted: Representation, answering: Awaitable[Response]) -> Awaitable[Response]:
    """Return `answering`, which encodes an object, in the span of an encoder if the request is traced."""
    recorder = current_recorder()
    return answering if recorder is None else recorded(recorder, ANSWER, answering, wanted.media)


async def listed(recorder: Recorder, listing: Awaitable[Listing]) -> Listing:
    """Return the result of `listing`, awaited in the span of a list from the cache."""
    marks = recorder.marks
    try:
        marks += (LIST, monotonic(), None)
        found = await listing
        marks += ("Filtered items", monotonic(), {"count": len(found.items)}, SET, "revision", found.revision)
        marks += (END, monotonic(), None)
    except BaseException as error:
        recorder.fail_open(error)
        raise
    return found
