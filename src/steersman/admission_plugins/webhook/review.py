"""AdmissionReviews: encoding of requests to webhooks, decoding of their responses (apiserver `webhook/request`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from steersman.admission.interface import Attributes
from steersman.admission_plugins.matching.request import admission_request
from steersman.admission_plugins.matching.rules import MatchedResource
from steersman.api.admission.v1 import AdmissionResponse, AdmissionReview
from steersman.api.meta.v1 import Status
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import Cause, StatusError
from steersman.webhooks.reviews import check_value_count, decode_review

KNOWN_VERSIONS: Final = ("v1", "v1beta1")

_GROUP: Final = "admission.k8s.io"
_KIND: Final = "AdmissionReview"
_REGISTERED: Final = frozenset({(f"{_GROUP}/{version}", _KIND) for version in KNOWN_VERSIONS} | {("v1", "Status")})
_NULL: Final = msgspec.Raw(b"null")
_BAD_REQUEST: Final = 400
_MAX_VALUES: Final = 1 << 17
"""Most values in one response apart from its patch: twice as many as in the largest object."""
_MOST: Final = 999
"""Highest possible HTTP status code."""


class InvalidAnswer(Exception):
    """A response that does not match its review. The text is upstream's."""


class Verdict(Struct, frozen=True):
    """Verdict of a webhook."""

    allowed: bool
    patch: bytes
    patch_type: str
    status: Status | None
    warnings: Sequence[str]
    audit_annotations: Mapping[str, str]


def encode_review(
    version: str, uid: str, attributes: Attributes, matched: MatchedResource, obj: bytes | None, old: bytes | None
) -> bytes:
    """Return the JSON of a review of a request. The objects are JSON of the matched kind, None for no object."""
    request = admission_request(attributes, matched, uid)
    request["object"] = _NULL if obj is None else msgspec.Raw(obj)
    request["oldObject"] = _NULL if old is None else msgspec.Raw(old)
    head = {"kind": _KIND, "apiVersion": f"{_GROUP}/{version}"}
    return msgspec.json.encode({**head, "request": request}) + b"\n"


def decode_verdict(data: bytes, version: str, uid: str, *, mutating: bool) -> Verdict:
    """Return the verdict in a response. Raises DecodeError for an undecodable response, InvalidAnswer for a wrong one."""
    check_value_count(data, _MAX_VALUES)
    review = decode_review(AdmissionReview, data, _GROUP, version, _KIND, _REGISTERED)
    response = review.response
    if response is None:
        raise InvalidAnswer("webhook response was absent")
    patch, patch_type = response.patch, response.patch_type
    if version == "v1":
        _check(review, response, uid, mutating=mutating)
    elif patch:
        patch_type = "JSONPatch"  # v1beta1 has no other patch type
    return Verdict(
        response.allowed,
        patch if mutating else b"",
        patch_type or "",
        response.status,
        response.warnings,
        response.audit_annotations,
    )


def _check(review: AdmissionReview, response: AdmissionResponse, uid: str, *, mutating: bool) -> None:
    """Check a v1 response against its review. Raises InvalidAnswer."""
    if response.uid != uid:
        raise InvalidAnswer(f"expected response.uid={quote(uid)}, got {quote(response.uid)}")
    found = f"{review.api_version or '/'}, Kind={review.kind}"
    wanted_kind = f"{_GROUP}/v1, Kind={_KIND}"
    if found != wanted_kind:
        raise InvalidAnswer(f"expected webhook response of {wanted_kind}, got {found}")
    if not mutating:
        if response.patch:
            raise InvalidAnswer("validating webhook may not return response.patch")
        if response.patch_type is not None:
            raise InvalidAnswer("validating webhook may not return response.patchType")
        return
    if response.patch and response.patch_type is None:
        raise InvalidAnswer("webhook returned response.patch but not response.patchType")
    if not response.patch and response.patch_type is not None:
        raise InvalidAnswer("webhook returned response.patchType but not response.patch")
    if response.patch_type == "":
        raise InvalidAnswer('webhook returned invalid response.patchType of ""')


def denial_error(name: str, status: Status | None) -> StatusError:
    """Return the error of a denied request: the webhook's own Status, with the webhook's name before the message."""
    stated = status or Status()
    denied = f"admission webhook {quote(name)} denied the request"
    why = stated.message or stated.reason
    text = f"{denied}: {why}" if why else f"{denied} without explanation"
    error = StatusError(min(max(stated.code, _BAD_REQUEST), _MOST), stated.reason, text)
    error.continue_token = stated.metadata.continue_
    details = stated.details
    if details is None:
        error.details_present = False
        return error
    error.name, error.group, error.kind, error.uid = details.name, details.group, details.kind, details.uid
    error.causes = tuple(Cause(each.reason, each.message, each.field) for each in details.causes)
    error.retry_after = max(details.retry_after_seconds, 0)
    return error
