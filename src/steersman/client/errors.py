"""What a server refused, as the exception that this project raises for it everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from steersman.machinery.codec.serializer import decode_plain
from steersman.machinery.errors.status import Cause, StatusError, generic_server_response
from steersman.machinery.go.strings import trim_space
from steersman.net.ascii import is_digits


def error_of(code: int, retry_after: str, body: bytes) -> StatusError:
    """Return the error of an answer: its Status, or one made of its code, as client-go makes it, where it has none."""
    try:
        plain = decode_plain(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        plain = None
    if isinstance(plain, dict) and plain.get("kind") == "Status":
        return status_error(plain, code)
    seconds = seconds_of(retry_after) or 0
    text = trim_space(body[:2048].decode(errors="replace"))
    return generic_server_response(code, message=text, retry_after=seconds, unexpected=True)


def seconds_of(retry_after: str) -> int | None:
    """The seconds that a field `Retry-After` says, None if it says none: it may be missing, or be a date."""
    return int(retry_after) if is_digits(retry_after) and len(retry_after) < 10 else None


def status_error(status: dict[str, Any], code: int = 0) -> StatusError:
    """The error that a Status tells of."""
    details = status.get("details") or {}
    causes = [
        Cause(each.get("reason", ""), each.get("message", ""), each.get("field", ""))
        for each in details.get("causes") or ()
    ]
    return StatusError(
        status.get("code") or code,
        status.get("reason", ""),
        status.get("message", ""),
        name=details.get("name", ""),
        group=details.get("group", ""),
        kind=details.get("kind", ""),
        uid=details.get("uid", ""),
        causes=causes,
        retry_after=details.get("retryAfterSeconds") or 0,
    )


def is_not_found(error: StatusError) -> bool:
    """Whether there is no such object."""
    return error.reason == "NotFound"


def is_conflict(error: StatusError) -> bool:
    """Whether the object has changed since it was read."""
    return error.reason == "Conflict"


def is_already_exists(error: StatusError) -> bool:
    """Whether an object of that name is there."""
    return error.reason == "AlreadyExists"


def is_invalid(error: StatusError) -> bool:
    """Return True if the server refused the content of the request, such as an option that it does not know."""
    return error.reason == "Invalid"


def is_expired(error: StatusError) -> bool:
    """Whether what was asked for is older than the history that the server keeps."""
    return error.code == 410 or error.reason in ("Expired", "Gone")


def is_namespace_terminating(error: StatusError) -> bool:
    """Whether nothing can be made in the namespace, as it is being deleted."""
    return any(cause.reason == "NamespaceTerminating" for cause in error.causes)


class ignoring:
    """A context that ends early, and well, with a StatusError of which one of the predicates is true."""

    def __init__(self, *expected: Callable[[StatusError], bool]) -> None:
        self._expected = expected

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> bool:
        return isinstance(error, StatusError) and any(is_expected(error) for is_expected in self._expected)
