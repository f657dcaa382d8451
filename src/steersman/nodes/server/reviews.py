"""Responses of simulated pods that serve as webhooks or aggregated API servers.

Admission reviews are allowed, objects are converted by changing their apiVersion only, and an API has no resources.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from steersman.net.message import Response

_PATH_PARTS: Final = 3
"""Parts of the path `apis/GROUP/VERSION`."""
_MOST_VALUES: Final = 1 << 17
"""Values in the objects to be converted: more than 2 MiB of JSON have, the limit of one request."""


class _ReviewRequest(msgspec.Struct, rename="camel"):
    """The request of a review. Members on which no response depends are not decoded."""

    uid: str = ""
    desired_api_version: str = msgspec.field(name="desiredAPIVersion", default="")
    objects: msgspec.Raw = msgspec.Raw(b"null")


class _Review(msgspec.Struct, rename="camel"):
    kind: str
    request: _ReviewRequest
    api_version: str | None = None


_REVIEW: Final = msgspec.json.Decoder(_Review)
_OBJECTS: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]] | None)


def answer_of_reviewer(path: str, body: bytes) -> Response | None:
    """Return the response to a review or a discovery request; None for any other request."""
    if not body:
        return _discovery(path.strip("/").split("/"))
    try:
        review = _REVIEW.decode(body)
        answer: dict[str, Any] = {"uid": review.request.uid}
        match review.kind:
            case "AdmissionReview":
                answer["allowed"] = True
            case "ConversionReview":
                asked = review.request
                converted = _converted(asked.objects, asked.desired_api_version)
                answer |= {"result": {"status": "Success"}, "convertedObjects": converted}
            case _:
                return None
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None
    return _json({"apiVersion": review.api_version, "kind": review.kind, "response": answer})


def _converted(objects: msgspec.Raw, api_version: str) -> list[dict[str, msgspec.Raw]]:
    """Return the objects of a review with another apiVersion.

    Raises DecodeError for anything but a list of objects, and for more values than may be decoded on the event loop.
    """
    text = bytes(objects)
    if max(text.count(b","), text.count(b"{") + text.count(b"[")) > _MOST_VALUES:
        raise msgspec.DecodeError("too many values")
    converted = _OBJECTS.decode(text) or []
    version = msgspec.Raw(msgspec.json.encode(api_version))
    for each in converted:
        each["apiVersion"] = version
    return converted


def _discovery(parts: list[str]) -> Response | None:
    if parts[0] not in ("apis", "openapi"):
        return None
    if parts[0] == "openapi" or len(parts) != _PATH_PARTS:
        return Response(404, [("content-type", "text/plain; charset=utf-8")], b"404 page not found\n")
    return _json(
        {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{parts[1]}/{parts[2]}", "resources": []}
    )


def _json(plain: dict[str, Any]) -> Response:
    return Response(200, [("content-type", "application/json")], msgspec.json.encode(plain))
