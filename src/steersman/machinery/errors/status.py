"""Errors that clients see: one exception that carries a `meta/v1 Status`, and a function for each reason.

The reasons, codes and wording follow k8s.io/apimachinery `api/errors`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from msgspec import Struct

from steersman.machinery.errors.field import FieldError, quote
from steersman.machinery.go.strings import to_lower
from steersman.machinery.identity.schema import NO_RESOURCE, GroupKind, GroupResource
from steersman.work.threads import give_way


class Cause(Struct, frozen=True):
    """A cause of a failure (`details.causes`)."""

    reason: str = ""
    message: str = ""
    field: str = ""


@dataclass(slots=True, eq=False)
class StatusError(Exception):
    """A failure, with everything that the Status sent to the client holds.

    `kind` becomes `details.kind`: mostly the plural name of the resource; for `Invalid` the name of the kind.
    `details_present=False` leaves `details` out of the Status; empty details are `{}`. `retry_after` is in seconds and
    also becomes the Retry-After header.
    """

    code: int
    reason: str
    message: str
    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: Sequence[Cause] = ()
    retry_after: int = 0
    details_present: bool = True
    continue_token: str = ""
    headers: list[tuple[str, str]] = field(default_factory=list)

    def __str__(self) -> str:
        return self.message

    def status(self) -> dict[str, Any]:
        """Return the Status object as JSON data, its fields in upstream's order."""
        metadata = {"continue": self.continue_token} if self.continue_token else {}
        out: dict[str, Any] = {"kind": "Status", "apiVersion": "v1", "metadata": metadata, "status": "Failure"}
        if self.message:
            out["message"] = self.message
        if self.reason:
            out["reason"] = self.reason
        if self.details_present:
            out["details"] = self._details()
        out["code"] = self.code
        return out

    def _details(self) -> dict[str, Any]:
        details: dict[str, Any] = {}
        for key, value in (("name", self.name), ("group", self.group), ("kind", self.kind), ("uid", self.uid)):
            if value:
                details[key] = value
        if self.causes:
            details["causes"] = [
                {key: text for key in ("reason", "message", "field") if (text := getattr(cause, key))}
                for cause in self.causes
            ]
        if self.retry_after:
            details["retryAfterSeconds"] = self.retry_after
        return details


class LateStatusError(StatusError):
    """A failure whose message is built when it is first read.

    A message that quotes a long text of a client takes milliseconds to build. The code that answers builds it in a
    worker thread (`endpoints.responses.long_error_response`).
    """

    __slots__ = ("_message", "_words")

    def __init__(self, code: int, reason: str, words: Callable[[], str], **more: Any) -> None:
        """Take the function that builds the message; `more` are keyword arguments of StatusError."""
        super().__init__(code, reason, "", **more)
        self._words: Callable[[], str] | None = words

    @property
    def message(self) -> str:
        """Return the message, building it at the first call."""
        if self._words is not None:
            self.message = self._words()
        return self._message

    @message.setter
    def message(self, text: str) -> None:
        self._message, self._words = text, None


CAUSE_UNEXPECTED_SERVER_RESPONSE: Final = "UnexpectedServerResponse"
CAUSE_NAMESPACE_TERMINATING: Final = "NamespaceTerminating"
CAUSE_RESOURCE_VERSION_TOO_LARGE: Final = "ResourceVersionTooLarge"


def not_found(resource: GroupResource, name: str) -> StatusError:
    """Return 404 NotFound: the object does not exist."""
    if len(name) > _LONG_NAME:
        words = partial(_not_found, resource, name)
        return LateStatusError(404, "NotFound", words, name=name, group=resource.group, kind=resource.resource)
    return StatusError(
        404, "NotFound", _not_found(resource, name), name=name, group=resource.group, kind=resource.resource
    )


_LONG_NAME: Final = 4 << 10
"""Characters of a name that is too long to be quoted on the event loop."""


def _not_found(resource: GroupResource, name: str) -> str:
    return f"{resource} {quote(name)} not found"


def already_exists(resource: GroupResource, name: str) -> StatusError:
    """Return 409 AlreadyExists: an object of this name exists."""
    return StatusError(
        409,
        "AlreadyExists",
        f"{resource} {quote(name)} already exists",
        name=name,
        group=resource.group,
        kind=resource.resource,
    )


def generate_name_conflict(resource: GroupResource, name: str, retry_after: int = 1) -> StatusError:
    """Return 409 AlreadyExists: every name that was tried for a generateName exists."""
    text = "already exists, the server was not able to generate a unique name for the object"
    message = f"{resource} {quote(name)} {text}"
    return StatusError(
        409, "AlreadyExists", message, name=name, group=resource.group, kind=resource.resource, retry_after=retry_after
    )


def unauthorized(message: str = "Unauthorized") -> StatusError:
    """Return 401 Unauthorized: the credentials were not accepted."""
    return StatusError(401, "Unauthorized", message or "not authorized", details_present=False)


def forbidden(resource: GroupResource, name: str, reason: object) -> StatusError:
    """Return 403 Forbidden for a resource; `reason` ends the message."""
    if not resource.resource and not resource.group:
        message = f"forbidden: {reason}"
    elif name:
        message = f"{resource} {quote(name)} is forbidden: {reason}"
    else:
        message = f"{resource} is forbidden: {reason}"
    return StatusError(403, "Forbidden", message, name=name, group=resource.group, kind=resource.resource)


def conflict(resource: GroupResource, name: str, reason: object) -> StatusError:
    """Return 409 Conflict: the write lost a race, or a precondition does not hold."""
    message = f"Operation cannot be fulfilled on {resource} {quote(name)}: {reason}"
    return StatusError(409, "Conflict", message, name=name, group=resource.group, kind=resource.resource)


def apply_conflict(message: str, causes: Sequence[Cause]) -> StatusError:
    """Return 409 Conflict: other field managers own fields that an apply would change, with one cause for each field."""
    return StatusError(409, "Conflict", message, causes=causes)


OPTIMISTIC_LOCK: Final = "the object has been modified; please apply your changes to the latest version and try again"


def gone(message: str) -> StatusError:
    """Return 410 Gone: the item no longer exists and will not come back."""
    return StatusError(410, "Gone", message, details_present=False)


def expired(message: str) -> StatusError:
    """Return 410 Expired: the requested resourceVersion or continue token has been compacted away."""
    return StatusError(410, "Expired", message, details_present=False)


def invalid(kind: GroupKind, name: str, errors: Iterable[FieldError]) -> StatusError:
    """Return 422 Invalid with a cause for each field error, up to MAX_INVALID_TEXT characters."""
    causes: list[Cause] = []
    texts: dict[str, None] = {}
    size = 0
    for error in errors:
        give_way()
        body = error.body
        size += len(error.field) + len(body)
        if size > MAX_INVALID_TEXT and causes:
            break
        causes.append(Cause(error.type, body, error.field))
        texts[f"{error.field}: {body}"] = None
    message = f"{kind} {quote(name)} is invalid"
    if causes:
        message += f": {next(iter(texts))}" if len(texts) == 1 else f": [{', '.join(texts)}]"
    return StatusError(422, "Invalid", message, name=name, group=kind.group, kind=kind.kind, causes=tuple(causes))


MAX_INVALID_TEXT: Final = 4 * 1024 * 1024
"""The most characters of all causes together. Errors that each print a whole list could otherwise add up to the square
of the list's length.
"""


def bad_request(message: str) -> StatusError:
    """Return 400 BadRequest: the request cannot be understood."""
    return StatusError(400, "BadRequest", message, details_present=False)


def too_many_requests(message: str, retry_after: int = 0) -> StatusError:
    """Return 429 TooManyRequests: the client should retry, after `retry_after` seconds if that is not 0."""
    return StatusError(429, "TooManyRequests", message, retry_after=retry_after)


def service_unavailable(message: str) -> StatusError:
    """Return 503 ServiceUnavailable: the server is not ready."""
    return StatusError(503, "ServiceUnavailable", message, details_present=False)


def method_not_supported(resource: GroupResource, action: str) -> StatusError:
    """Return 405 MethodNotAllowed: the resource exists but does not support `action`."""
    message = f"{action} is not supported on resources of kind {quote(str(resource))}"
    return StatusError(405, "MethodNotAllowed", message, group=resource.group, kind=resource.resource)


def server_timeout(resource: GroupResource, operation: str, retry_after: int) -> StatusError:
    """Return 500 ServerTimeout: the server could not finish in time, and the client should retry."""
    message = f"The {operation} operation against {resource} could not be completed at this time, please try again."
    return StatusError(
        500,
        "ServerTimeout",
        message,
        name=operation,
        group=resource.group,
        kind=resource.resource,
        retry_after=retry_after,
    )


def internal(error: object) -> StatusError:
    """Return 500 InternalError: something happened that never should."""
    return StatusError(500, "InternalError", f"Internal error occurred: {error}", causes=(Cause(message=str(error)),))


def plain_internal(message: str) -> StatusError:
    """Return 500 without a reason; `message` is the whole message."""
    return StatusError(500, "", message, details_present=False)


def timeout(message: str, retry_after: int = 0) -> StatusError:
    """Return 504 Timeout: the request did not finish in time.

    Upstream's messages begin with "Timeout: ".
    """
    return StatusError(504, "Timeout", message, retry_after=retry_after)


def too_large_resource_version(requested: int, current: int) -> StatusError:
    """Return 504 Timeout: the request asks for a resourceVersion that the server has not reached yet."""
    error = timeout(f"Timeout: Too large resource version: {requested}, current: {current}", retry_after=1)
    error.causes = (Cause(CAUSE_RESOURCE_VERSION_TOO_LARGE, "Too large resource version"),)
    return error


def request_entity_too_large(message: str) -> StatusError:
    """Return 413 RequestEntityTooLarge: the body or a patch exceeds the limit.

    Upstream's messages begin with "Request entity too large: ".
    """
    return StatusError(413, "RequestEntityTooLarge", message, details_present=False)


def not_acceptable(message: str) -> StatusError:
    """Return 406 NotAcceptable: the server can produce none of the accepted media types."""
    return StatusError(406, "NotAcceptable", message, details_present=False)


def unsupported_media_type(message: str) -> StatusError:
    """Return 415 UnsupportedMediaType: the server cannot read the media type of the body."""
    return StatusError(415, "UnsupportedMediaType", message, details_present=False)


def not_implemented(message: str) -> StatusError:
    """Return 501 NotImplemented: this server does not have that part of the API. Nothing was done."""
    return StatusError(501, "NotImplemented", message, details_present=False)


_GENERIC: Final = {
    400: ("BadRequest", "the server rejected our request for an unknown reason"),
    401: ("Unauthorized", "the server has asked for the client to provide credentials"),
    404: ("NotFound", "the server could not find the requested resource"),
    405: ("MethodNotAllowed", "the server does not allow this method on the requested resource"),
    406: ("NotAcceptable", "the server was unable to respond with a content type that the client supports"),
    409: ("Conflict", "the server reported a conflict"),
    422: ("Invalid", "the server rejected our request due to an error in our request"),
    429: ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: (
        "Timeout",
        "the server was unable to return a response in the time allotted, but may still be processing the request",
    ),
}


def generic_server_response(
    code: int,
    verb: str = "",
    resource: GroupResource = NO_RESOURCE,
    name: str = "",
    message: str = "",
    retry_after: int = 0,
    *,
    unexpected: bool = False,
) -> StatusError:
    """Return a failure of which only the HTTP code is known.

    Examples are a path that is no API path (404) and a JSON patch that does not apply (422). `message` is the response
    text of the server. It is shown for 403, 406, 415 and other codes from 500 on, and as a cause if the response was
    `unexpected`.
    """
    reason, text = _GENERIC.get(
        code, ("", f"the server responded with the status code {code} but did not return more information")
    )
    if code == 403:
        reason, text = "Forbidden", message
    elif code == 406 and message not in ("", "unknown"):
        text = message
    elif code == 409 and verb == "POST":
        reason = "AlreadyExists"
    elif code == 415:
        reason, text = "UnsupportedMediaType", message
    elif code >= 500 and not reason:
        reason = "InternalError"
        text = f"an error on the server ({quote(message)}) has prevented the request from succeeding"
    if resource != NO_RESOURCE:
        target = f"{resource} {name}" if name else str(resource)
        text = f"{text} ({to_lower(verb)} {target})"
    causes = (Cause(CAUSE_UNEXPECTED_SERVER_RESPONSE, message),) if unexpected else ()
    return StatusError(
        code or 500,
        reason,
        text,
        name=name,
        group=resource.group,
        kind=resource.resource,
        causes=causes,
        retry_after=retry_after,
    )
