"""Answers of simulated pods to API servers that take them for webhooks or aggregated APIs: reviews are allowed, objects
are converted to any version as they are, and an API has no resources."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from steersman.net.message import Response

_PATH_PARTS: Final = 3
"""Of `apis/GROUP/VERSION`."""


def answer_of_reviewer(path: str, body: bytes) -> Response | None:
    """Return the answer to a review, or to a request for what an API has; None for any other request."""
    if not body:
        return _discovery(path.strip("/").split("/"))
    try:
        review = msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError):
        return None
    if not isinstance(review, dict) or not isinstance(asked := review.get("request"), dict):
        return None
    answer: dict[str, Any] = {"uid": asked.get("uid", "")}
    match review.get("kind"):
        case "AdmissionReview":
            answer["allowed"] = True
        case "ConversionReview":
            wanted, objects = asked.get("desiredAPIVersion"), asked.get("objects")
            converted = [
                {**each, "apiVersion": wanted}
                for each in (objects if isinstance(objects, list) else ())
                if isinstance(each, dict)
            ]  # fmt: skip
            answer |= {"result": {"status": "Success"}, "convertedObjects": converted}
        case _:
            return None
    return _json({"apiVersion": review.get("apiVersion"), "kind": review.get("kind"), "response": answer})


def _discovery(parts: list[str]) -> Response | None:
    if parts[0] not in ("apis", "openapi"):
        return None
    if parts[0] == "openapi" or len(parts) != _PATH_PARTS:
        return Response(404, [("content-type", "text/plain; charset=utf-8")], b"404 page not found\n")
    return _json({
        "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": f"{parts[1]}/{parts[2]}", "resources": [],
    })  # fmt: skip


def _json(plain: dict[str, Any]) -> Response:
    return Response(200, [("content-type", "application/json")], msgspec.json.encode(plain))
