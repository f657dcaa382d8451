"""Events as lines of text: for `--audit-log-format=legacy` and the server's log (k8s.io/apiserver `EventString`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from steersman.machinery.errors.field import quote


class _User(msgspec.Struct):
    username: str = ""
    groups: list[str] | None = None


class _Reference(msgspec.Struct):
    namespace: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Event(msgspec.Struct, rename="camel"):
    """Members of an event that a line shows."""

    audit_id: str = msgspec.field(name="auditID", default="")
    stage: str = ""
    request_uri: str = msgspec.field(name="requestURI", default="")
    verb: str = ""
    user: _User = msgspec.field(default_factory=_User)
    impersonated_user: _User | None = None
    source_ips: list[str] = msgspec.field(name="sourceIPs", default_factory=list)
    user_agent: str = ""
    object_ref: _Reference | None = None
    response_status: _Status | None = None
    request_received_timestamp: str = ""


_DECODER: Final = msgspec.json.Decoder(_Event)


def event_line(record: bytes, *, with_query: bool = True) -> str:
    """Format a record (see backends.backend) as a line without line end; `with_query` keeps the query of its URI."""
    event = _DECODER.decode(b"{" + record)
    user, other = event.user, event.impersonated_user
    username, groups = user.username or "<none>", "<none>"
    if user.username and user.groups:
        groups = _quoted(user.groups)
    as_user, as_groups = "<self>", "<lookup>"
    if other is not None:
        as_user = other.username
        if other.groups is not None:
            as_groups = _quoted(other.groups)
    namespace = event.object_ref.namespace if event.object_ref is not None else ""
    response = "<deferred>" if event.response_status is None else str(event.response_status.code)
    uri = event.request_uri if with_query else event.request_uri.partition("?")[0]
    shown = (
        ("id", event.audit_id),
        ("stage", event.stage),
        ("ip", next(iter(event.source_ips), "<unknown>")),
        ("method", event.verb),
        ("user", username),
        ("groups", groups),
        ("as", as_user),
        ("asgroups", as_groups),
        ("user-agent", event.user_agent),
        ("namespace", namespace or "<none>"),
        ("uri", uri),
    )
    fields = " ".join(f"{name}={quote(value)}" for name, value in shown)
    return f'{_nano(event.request_received_timestamp)} AUDIT: {fields} response="{response}"'


def _nano(timestamp: str) -> str:
    """Convert a MicroTime to RFC3339Nano: without trailing zeros of the fraction."""
    whole, _, fraction = timestamp.removesuffix("Z").partition(".")
    fraction = fraction.rstrip("0")
    return f"{whole}.{fraction}Z" if fraction else f"{whole}Z"


def _quoted(values: Sequence[str]) -> str:
    return ",".join(map(quote, values))
