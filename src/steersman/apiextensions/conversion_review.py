"""ConversionReviews: requests to conversion webhooks, and validation of the answers.

Follows k8s.io/apiextensions-apiserver `pkg/apiserver/conversion/webhook_converter.go`, with its messages. Upstream
converts one object at a time, so the message about one object of several reads as if it were the only object.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from steersman.api.apiextensions.v1 import ConversionReview
from steersman.api.meta.v1 import ObjectMeta
from steersman.kinds.custom import CustomKind
from steersman.kinds.open import OpenObject
from steersman.machinery.codec.strict import DecodeError, decode_untyped
from steersman.machinery.errors.field import Path, aggregate, quote
from steersman.machinery.errors.status import StatusError
from steersman.machinery.validation.object_meta import validate_annotations
from steersman.machinery.validation.selectors import validate_labels
from steersman.schema import CoercionError
from steersman.webhooks.reviews import check_value_count, decode_review

KNOWN_VERSIONS: Final = ("v1", "v1beta1")

CALL: Final = "conversion_webhook_call_failure"
MALFORMED: Final = "conversion_webhook_malformed_response_failure"
PARTIAL: Final = "conversion_webhook_partial_response_failure"
INVALID: Final = "conversion_webhook_invalid_converted_object_failure"

_GROUP: Final = "apiextensions.k8s.io"
_KIND: Final = "ConversionReview"
_REVIEW: Final = (
    b'{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/%b","request":{"uid":"%b","desiredAPIVersion":"%b",'
    b'"objects":[%b]},"response":{"uid":"","convertedObjects":null,"result":{"metadata":{}}}}\n'
)
_NOTHING: Final = (b"", b"null")
_MAX_VALUES: Final = 1 << 18
"""The most JSON values in one answer: about three times those of 2 MiB of objects, the most in one request."""
_LABELS: Final = Path("metadata", "labels")
_ANNOTATIONS: Final = Path("metadata", "annotation")


class ReviewError(Exception):
    """An unusable answer.

    `failure` is its type in metrics. `is_complete` is True if the text is the whole message for clients, False if it
    follows the name of the kind.
    """

    def __init__(self, text: str, failure: str, *, is_complete: bool = False) -> None:
        super().__init__(text)
        self.failure = failure
        self.is_complete = is_complete


def review_of(version: str, uid: str, api_version: str, values: Sequence[bytes]) -> bytes:
    """Return the review that requests the conversion of these objects to `api_version`."""
    return _REVIEW % (version.encode(), uid.encode(), api_version.encode(), b",".join(values))


def converted_objects(data: bytes, version: str, uid: str, count: int) -> list[bytes]:
    """Return the objects of an answer as JSON. Raises ReviewError."""
    try:
        check_value_count(data, _MAX_VALUES)
        review = decode_review(ConversionReview, data, _GROUP, version, _KIND, _REGISTERED)
    except DecodeError as error:
        raise ReviewError(f" failed: {error}", CALL) from None
    except StatusError as error:  # a YAML answer with too many values
        raise ReviewError(f" failed: {error.message}", CALL) from None
    response = review.response
    if version == "v1":
        actual = f"{review.api_version or '/'}, Kind={review.kind}"
        expected = f"{_GROUP}/v1, Kind={_KIND}"
        if actual != expected:
            raise ReviewError(f" failed: expected webhook response of {expected}, got {actual}", MALFORMED)
    if response is None:
        raise ReviewError(" failed: no response provided", MALFORMED)
    if version == "v1" and response.uid != uid:
        text = f" failed: expected response.uid={quote(uid)}, got {quote(response.uid)}"
        raise ReviewError(text, MALFORMED)
    result = response.result
    if result.status != "Success":
        why = result.message or f"response.result.status was '{result.status}', not 'Success'"
        raise ReviewError(f" failed: {why}", MALFORMED)
    objects = [bytes(each or b"") for each in response.converted_objects or ()]
    if len(objects) != count:
        raise ReviewError(f" returned {len(objects)} objects, expected {count}", PARTIAL)
    return objects


_REGISTERED: Final = frozenset(
    {(f"{_GROUP}/{version}", kind) for version in KNOWN_VERSIONS for kind in (_KIND, "CustomResourceDefinition")}
    | {("v1", "Status")}
)


def accept_converted(raw: bytes, original: OpenObject, target: CustomKind) -> OpenObject:
    """Return a converted object with the original's metadata, except for labels and annotations, and pruned by its
    schema.

    Raises ReviewError.
    """
    plain = _plain(raw)
    version = plain.get("apiVersion", "")
    if version != target.api_version:
        raise _invalid_object(f"invalid groupVersion (expected {target.api_version}, received {version})")
    if plain["kind"] != target.name:
        raise _invalid_object(f"invalid kind (expected {target.name}, received {plain['kind']})")
    given, kept = plain.get("metadata"), original.metadata
    _check_same(given, kept)
    if not isinstance(given, dict):
        shown = f"invalid metadata of type {_go_type(given)} in converted object"
        raise _invalid_metadata("missing metadata in converted object" if "metadata" not in plain else shown)
    metadata = msgspec.structs.replace(
        kept, labels=_texts(given, "labels", kept.labels), annotations=_texts(given, "annotations", kept.annotations)
    )
    content = {name: value for name, value in plain.items() if name not in ("apiVersion", "kind", "metadata")}
    try:
        target.structural.fit(content)
    except CoercionError as error:
        raise ReviewError(str(error), INVALID, is_complete=True) from None
    return OpenObject(metadata, content)


def _plain(raw: bytes) -> dict[str, Any]:
    if raw in _NOTHING:
        raise ReviewError("unexpected end of JSON input", INVALID, is_complete=True)
    try:
        plain = decode_untyped(raw)
    except DecodeError as error:
        raise ReviewError(str(error), INVALID, is_complete=True) from None
    if not isinstance(plain, dict):
        why = f"json: cannot unmarshal {_json_type(plain)} into Go value of type map[string]interface {{}}"
        raise ReviewError(why, INVALID, is_complete=True)
    kind = plain.get("kind")
    if not isinstance(kind, str) or not kind:
        text = raw.decode("utf-8", "replace")
        raise ReviewError(f"Object 'Kind' is missing in '{text}'", INVALID, is_complete=True)
    return plain


def _check_same(given: Any, kept: ObjectMeta) -> None:
    """Raise ReviewError unless the answer's object has name, namespace and UID of the original."""
    for what, name, old in (
        ("name", "name", kept.name),
        ("namespace", "namespace", kept.namespace),
        ("UID", "uid", kept.uid),
    ):
        new = given.get(name) if isinstance(given, dict) else None
        new = new if isinstance(new, str) else ""
        if new != old:
            raise ReviewError(f" returned invalid object: must have the same {what}: {old} != {new}", INVALID)


def _texts(given: Mapping[str, Any], name: str, old: Mapping[str, str]) -> dict[str, str]:
    """Return the validated labels or annotations of an answer."""
    texts = given.get(name)
    if texts is None:
        return {}
    if not isinstance(texts, dict):
        raise _invalid_metadata(f"invalid metadata.{name} of type {_go_type(texts)} in converted object")
    for key, value in texts.items():
        if not isinstance(value, str):
            text = f"metadata.{name}[{key}] must be a string, but is {_go_type(value)} in converted object"
            raise _invalid_metadata(text)
    if texts != old:
        validated = validate_labels(texts, _LABELS) if name == "labels" else validate_annotations(texts, _ANNOTATIONS)
        if wrong := list(validated):
            raise _invalid_metadata(aggregate(wrong))
    return texts


def _invalid_object(why: str) -> ReviewError:
    return ReviewError(f" returned invalid object at index 0: {why}", INVALID)


def _invalid_metadata(why: str) -> ReviewError:
    return ReviewError(f" returned invalid metadata: {why}", INVALID)


def _json_type(value: Any) -> str:
    if isinstance(value, str):
        return "string"
    if isinstance(value, bool):
        return "bool"
    return "array" if isinstance(value, list) else "number"


def _go_type(value: Any) -> str:
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "bool"
    types = {str: "string", int: "int64", float: "float64", list: "[]interface {}"}
    return types.get(type(value), "map[string]interface {}")
