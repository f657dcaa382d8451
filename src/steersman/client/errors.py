"""StatusErrors from the error responses of a server, and predicates over them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import msgspec

from steersman.machinery.codec.serializer import decode_plain
from steersman.machinery.errors.status import Cause, StatusError, generic_server_response
from steersman.machinery.go.strings import trim_space
from steersman.net.ascii import is_digits


class _CauseShape(TypedDict, total=False):
    reason: str | None
    message: str | None
    field: str | None


class _DetailsShape(TypedDict, total=False):
    name: str | None
    group: str | None
    kind: str | None
    uid: str | None
    causes: list[_CauseShape] | None
    retryAfterSeconds: int | None


class _StatusShape(TypedDict, total=False):
    """The members of a Status that are read, as a server must send them."""

    code: int | None
    reason: str | None
    message: str | None
    details: _DetailsShape | None


def error_from_response(code: int, retry_after: str, body: bytes) -> StatusError:
    """Return the StatusError of an error response: its Status, or a generic one for its code, as client-go makes it.

    `retry_after` is the value of the `Retry-After` header.
    """
    try:
        plain = decode_plain(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        plain = None
    if isinstance(plain, dict) and plain.get("kind") == "Status":
        try:
            return status_error(plain, code)
        except msgspec.ValidationError:
            pass  # the text is shown as it is
    seconds = retry_after_seconds(retry_after) or 0
    text = trim_space(body[:2048].decode(errors="replace"))
    return generic_server_response(code, message=text, retry_after=seconds, unexpected=True)


def retry_after_seconds(retry_after: str) -> int | None:
    """Return the seconds in a `Retry-After` header, None if the header is missing or holds a date."""
    return int(retry_after) if is_digits(retry_after) and len(retry_after) < 10 else None


def status_error(status: dict[str, Any], code: int = 0) -> StatusError:
    """Return the StatusError of a Status in plain data; `code` applies if the Status has none.

    Raises msgspec.ValidationError for data of another shape.
    """
    msgspec.convert(status, _StatusShape)
    details = status.get("details") or {}
    causes = [
        Cause(each.get("reason") or "", each.get("message") or "", each.get("field") or "")
        for each in details.get("causes") or ()
    ]
    return StatusError(
        status.get("code") or code,
        status.get("reason") or "",
        status.get("message") or "",
        name=details.get("name") or "",
        group=details.get("group") or "",
        kind=details.get("kind") or "",
        uid=details.get("uid") or "",
        causes=causes,
        retry_after=details.get("retryAfterSeconds") or 0,
    )


def is_not_found(error: StatusError) -> bool:
    """Return True if the object does not exist."""
    return error.reason == "NotFound"


def is_conflict(error: StatusError) -> bool:
    """Return True if the object has changed since it was read."""
    return error.reason == "Conflict"


def is_already_exists(error: StatusError) -> bool:
    """Return True if an object of that name exists already."""
    return error.reason == "AlreadyExists"


def is_invalid(error: StatusError) -> bool:
    """Return True if the server refused the content of the request, such as an option that it does not know."""
    return error.reason == "Invalid"


def is_expired(error: StatusError) -> bool:
    """Return True if the requested resourceVersion or continue token is older than the server's history."""
    return error.code == 410 or error.reason in ("Expired", "Gone")


def is_namespace_terminating(error: StatusError) -> bool:
    """Return True if the create was refused because the namespace is being deleted."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


class ignoring:
    """A context manager that suppresses a StatusError for which one of the predicates returns True."""

    def __init__(self, *expected: Callable[[StatusError], bool]) -> None:
        self._expected = expected

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        return isinstance(error, StatusError) and any(is_expected(error) for is_expected in self._expected)
