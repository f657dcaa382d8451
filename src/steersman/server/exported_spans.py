"""Spans of a trace as kube-apiserver exports them by OpenTelemetry: names, scopes, parents, attributes and events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from steersman.tracing.documents import plain
from steersman.tracing.trace import CALL, CLIENT, COMPONENT, FILTER, OWN, SERVER, Step, Trace, Value

_HTTP: Final = "go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
_GRPC: Final = "go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
_VERSION: Final = "0.65.0"
_SCOPES: Final = {
    COMPONENT: (COMPONENT, ""),
    FILTER: (FILTER, ""),
    SERVER: (_HTTP, _VERSION),
    CLIENT: (_HTTP, _VERSION),
    CALL: (_GRPC, _VERSION),
}
"""Names and versions of the instrumentation scopes."""
_KINDS: Final = {SERVER: "SERVER", CLIENT: "CLIENT", CALL: "CLIENT"}
_OWN_ATTRIBUTES: Final = frozenset({"revision", "verdict", "changed", "error"})
"""Attributes of exported steps that kube-apiserver does not have."""
_AUTHENTICATION: Final = "authentication"
_PORTS: Final = {"http": 80, "https": 443}


class Link(NamedTuple):
    """A span of another trace."""

    trace_id: int
    span_id: int
    sampled: bool
    state: str


class ExportedSpan(NamedTuple):
    """One span. Times are nanoseconds since 1970; `parent_id` is 0 for a root, `is_remote` tells of a client's span."""

    name: str
    scope: tuple[str, str]
    kind: str
    trace_id: int
    span_id: int
    parent_id: int
    is_remote: bool
    state: str
    start: int
    end: int
    attributes: Mapping[str, Value]
    events: tuple[tuple[str, int, Mapping[str, Value]], ...]
    links: tuple[Link, ...]
    failed: bool


def exported_spans(trace: Trace) -> Iterator[ExportedSpan]:
    """Yield the sampled spans of an ended trace, in the order of their starts."""
    sampling = trace.sampling
    if sampling is None:
        return
    for step in trace.steps[1:]:
        if step.scope is OWN:
            continue
        if step.scope is FILTER and step.name == _AUTHENTICATION:
            if sampling.authentication_sampled:
                yield _span(step, sampling.authentication_id, 0)
            continue
        if not sampling.sampled:
            continue
        if step.scope is SERVER:
            yield _server_span(step)
        elif (parent := _parent(step)) is not None:
            yield _span(step, sampling.trace_id, parent.id)


def _server_span(step: Step) -> ExportedSpan:
    trace = step.trace
    sampling = trace.sampling
    assert sampling is not None
    parent_id = sampling.parent_id
    if not parent_id and sampling.trace_id == sampling.authentication_id and step.parent is not None:
        parent_id = step.parent.id
    link = sampling.link
    links = () if link is None else (Link(link.trace_id, link.span_id, link.is_sampled, link.state),)
    made = _span(step, sampling.trace_id, parent_id)
    return made._replace(
        is_remote=bool(sampling.parent_id),
        start=_nanoseconds(trace, trace.began),
        attributes=_server_attributes(trace),
        links=links,
        failed=int(trace.facts.get("code") or 0) >= 500,
    )


def _parent(step: Step) -> Step | None:
    """Return the nearest enclosing exported step; None for a step outside of the request's span."""
    above = step.parent
    while above is not None and above.scope is OWN:
        above = above.parent
    if above is None or (above.scope is FILTER and above.name == _AUTHENTICATION):
        return None
    return above


def _span(step: Step, trace_id: int, parent_id: int) -> ExportedSpan:
    trace = step.trace
    attributes: Mapping[str, Value] = {} if step.scope is FILTER else _attributes(step)
    ended = step.ended or trace.ended or step.began
    return ExportedSpan(
        step.name,
        _SCOPES[step.scope],
        _KINDS.get(step.scope, "INTERNAL"),
        trace_id,
        step.id,
        parent_id,
        False,
        "" if trace.sampling is None else trace.sampling.state,
        _nanoseconds(trace, step.began),
        _nanoseconds(trace, ended),
        attributes,
        tuple((name, _nanoseconds(trace, at), plain(about)) for name, at, about in step.events or ()),
        (),
        False,
    )


def _attributes(step: Step) -> dict[str, Value]:
    facts = {"id": step.trace.id, **step.trace.facts}
    own = {name: value for name, value in plain(step.attributes).items() if name not in _OWN_ATTRIBUTES}
    return {**{name: facts.get(fact, "") for name, fact in step.shared}, **own}


def _server_attributes(trace: Trace) -> dict[str, Value]:
    """Return the attributes of the request's span (otelhttp, and WithTracing's own)."""
    facts: Mapping[str, Any] = trace.facts
    address = urlsplit(f"//{facts['host']}")
    try:
        host, port = address.hostname or "", address.port or _PORTS.get(facts["scheme"], 0)
    except ValueError:  # the client's Host is malformed
        host, port = facts["host"], 0
    read = _read_bytes(trace)
    found: dict[str, Value | None] = {
        "server.address": host,
        "http.request.method": facts["method"],
        "url.scheme": facts["scheme"],
        "server.port": port or None,
        "network.peer.address": facts["sourceIP"] or None,
        "network.peer.port": facts["sourcePort"] or None,
        "user_agent.original": facts["userAgent"] or None,
        "client.address": facts["sourceIP"] or None,
        "url.path": facts["path"],
        "network.protocol.version": facts["protocol"].removeprefix("HTTP/").removesuffix(".0"),
        "http.target": facts["target"],
        "audit-id": trace.id,
        "http.request.body.size": read or None,
        "http.response.body.size": facts["bytes"] or None,
        "http.response.status_code": facts["code"],
    }
    return {name: value for name, value in found.items() if value is not None}


def _read_bytes(trace: Trace) -> int:
    """Return the bytes of the request's body that were read."""
    for step in trace.steps:
        for name, _, about in step.events or ():
            if name == "limitedReadBody succeeded":
                return int(about["len"])
    return 0


def _nanoseconds(trace: Trace, at: float) -> int:
    return int((trace.unix + at - trace.began) * 1e9)
