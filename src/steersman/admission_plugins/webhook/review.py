"""AdmissionReviews: what a webhook is asked, and what of its answer counts (apiserver `webhook/request`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from steersman.admission.interface import CREATE, UPDATE, Attributes
from steersman.admission_plugins.matching.rules import Seen
from steersman.api.admission.v1 import AdmissionResponse, AdmissionReview
from steersman.api.meta.v1 import CreateOptions, DeleteOptions, Status, UpdateOptions
from steersman.machinery.codec.serializer import encode
from steersman.machinery.errors.field import quote
from steersman.machinery.errors.status import Cause, StatusError
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.webhooks.reviews import read_review

KNOWN_VERSIONS: Final = ("v1", "v1beta1")

_GROUP: Final = "admission.k8s.io"
_KIND: Final = "AdmissionReview"
_REGISTERED: Final = frozenset({(f"{_GROUP}/{version}", _KIND) for version in KNOWN_VERSIONS} | {("v1", "Status")})
_NULL: Final = msgspec.Raw(b"null")
_BAD_REQUEST: Final = 400
_MOST: Final = 999
"""The highest code that a response of HTTP can have."""


class InvalidAnswer(Exception):
    """An answer that is no answer to what was asked; the text is upstream's."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a webhook has said."""

    allowed: bool
    patch: bytes
    patch_type: str
    status: Status | None
    warnings: Sequence[str]


def review_of(
    version: str, uid: str, attributes: Attributes, seen: Seen, obj: bytes | None, old: bytes | None
) -> bytes:  # fmt: skip
    """The review that asks about a request as a rule has seen it, with the objects as JSON of that kind."""
    action, user = attributes.action, attributes.user
    request: dict[str, Any] = {
        "uid": uid,
        "kind": _kind(seen.kind),
        "resource": _resource(seen.group, seen.version, seen.resource),
        "subResource": seen.subresource,
        "requestKind": _kind(attributes.kind),
        "requestResource": _resource(action.group, action.version, action.resource),
        "requestSubResource": action.subresource,
        "name": attributes.name,
        "namespace": action.namespace,
    }
    request = {key: value for key, value in request.items() if value}
    told = {"username": user.name, "uid": user.uid, "groups": list(user.groups), "extra": dict(user.extra)}
    request |= {
        "operation": attributes.operation,
        "userInfo": {key: value for key, value in told.items() if value},
        "object": _NULL if obj is None else msgspec.Raw(obj),
        "oldObject": _NULL if old is None else msgspec.Raw(old),
        "dryRun": attributes.dry_run,
        "options": _options(attributes),
    }
    head = {"kind": _KIND, "apiVersion": f"{_GROUP}/{version}"}
    return msgspec.json.encode({**head, "request": request}) + b"\n"


def _kind(gvk: GroupVersionKind) -> Mapping[str, str]:
    return {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}


def _resource(group: str, version: str, resource: str) -> Mapping[str, str]:
    return {"group": group, "version": version, "resource": resource}


def options_of(attributes: Attributes) -> Any:
    """The options of a request as those of its operation: what patches, and what may create by another verb, is asked
    for by the options of that verb. None where there are none."""
    given = attributes.options
    if given is None or isinstance(given, DeleteOptions):
        return given
    cls = {CREATE: CreateOptions, UPDATE: UpdateOptions}.get(attributes.operation)
    if cls is None:
        return None
    return cls(dry_run=given.dry_run, field_manager=given.field_manager, field_validation=given.field_validation)


def _options(attributes: Attributes) -> msgspec.Raw:
    made = options_of(attributes)
    if made is None:
        return _NULL
    head = {"kind": type(made).__name__, "apiVersion": "meta.k8s.io/v1"}
    return msgspec.Raw(encode(msgspec.structs.replace(made, kind=head["kind"], api_version=head["apiVersion"])))


def verdict_of(data: bytes, version: str, uid: str, *, mutating: bool) -> Verdict:
    """What the answer to a review says. Raises DecodeError for what cannot be read, InvalidAnswer."""
    review = read_review(AdmissionReview, data, _GROUP, version, _KIND, _REGISTERED)
    response = review.response
    if response is None:
        raise InvalidAnswer("webhook response was absent")
    patch, patch_type = response.patch, response.patch_type
    if version == "v1":
        _check(review, response, uid, mutating=mutating)
    elif patch:
        patch_type = "JSONPatch"  # of this version nothing else is looked at
    return Verdict(
        response.allowed, patch if mutating else b"", patch_type or "", response.status, response.warnings
    )  # fmt: skip


def _check(review: AdmissionReview, response: AdmissionResponse, uid: str, *, mutating: bool) -> None:
    """Raises InvalidAnswer."""
    if response.uid != uid:
        raise InvalidAnswer(f"expected response.uid={quote(uid)}, got {quote(response.uid)}")
    found = f"{review.api_version or '/'}, Kind={review.kind}"
    wanted = f"{_GROUP}/v1, Kind={_KIND}"
    if found != wanted:
        raise InvalidAnswer(f"expected webhook response of {wanted}, got {found}")
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


def denial(name: str, status: Status | None) -> StatusError:
    """The refusal of a webhook: its own Status, with its name before the message."""
    given = status or Status()
    denied = f"admission webhook {quote(name)} denied the request"
    why = given.message or given.reason
    text = f"{denied}: {why}" if why else f"{denied} without explanation"
    error = StatusError(min(max(given.code, _BAD_REQUEST), _MOST), given.reason, text)
    error.continue_token = given.metadata.continue_
    details = given.details
    if details is None:
        error.details_present = False
        return error
    error.name, error.group, error.kind, error.uid = details.name, details.group, details.kind, details.uid
    error.causes = tuple(Cause(each.reason, each.message, each.field) for each in details.causes)
    error.retry_after = max(details.retry_after_seconds, 0)
    return error
