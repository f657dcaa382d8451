"""A conversion webhook on a real HTTPS server, and a definition that uses it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from steersman.server.certificates import CertificateFiles
from tests.apiextensions.cluster import definition, version
from tests.https_hook import HttpsHook, http_response

FIELDS = (("spec", "host", "hostName"), ("spec", "replicas", "size"), ("status", "phase", "state"))
"""The path and name of each converted field in v1 (and v3), and its name in v2."""

Review = dict[str, Any]
Answer = Callable[[Review, Review], Review | bytes | None]
"""(default answer, request) -> the answer that replaces it. Bytes are a whole HTTP response, or only a
body if they begin with a brace.
"""


class Hook(HttpsHook):
    """A webhook that converts objects correctly unless `answer` replaces its answer."""

    def __init__(self, files: CertificateFiles) -> None:
        super().__init__(files)
        self.calls: list[tuple[str, list[tuple[str, str]]]] = []
        """The requested version, with the version and name of each object, for each call."""
        self.reviews: list[Review] = []
        self.answer: Answer | None = None

    @property
    def url(self) -> str:
        return f"{self.root}/convert"

    def config(self, **client: Any) -> dict[str, Any]:
        """Return the `conversion` of a definition."""
        client_config = {"url": self.url, "caBundle": self.ca_bundle, **client}
        return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client_config}}

    def answered(self, target: str, body: Review) -> bytes:
        request = body["request"]
        wanted = request["desiredAPIVersion"]
        self.reviews.append(body)
        named = [(each["apiVersion"].split("/")[1], each["metadata"]["name"]) for each in request["objects"]]
        self.calls.append((wanted.split("/")[1], named))
        objects = [converted(each, wanted) for each in request["objects"]]
        response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects}
        answer: Any = {"apiVersion": body["apiVersion"], "kind": body["kind"], "response": response}
        if self.answer is not None:
            answer = self.answer(answer, body)
        if isinstance(answer, bytes):
            return answer if answer.startswith(b"HTTP/") else http_response(200, answer, "application/json")
        return http_response(200, json.dumps(answer).encode(), "application/json")


def converted(obj: dict[str, Any], wanted: str) -> dict[str, Any]:
    """Return the object in another version, with the field names of that version."""
    obj = copy.deepcopy(obj)
    was, will = (each.endswith("/v2") for each in (obj["apiVersion"], wanted))
    obj["apiVersion"] = wanted
    for part, old, new in FIELDS:
        source, target = (new, old) if was else (old, new)
        if was != will and source in obj.get(part, {}):
            obj[part][target] = obj[part].pop(source)
    return obj


def hosts_version(name: str, *, storage: bool, served: bool = True) -> dict[str, Any]:
    """Return a version of the definition of hosts; versions differ in everything in which versions can."""
    host, replicas, phase = (each[2 if name == "v2" else 1] for each in FIELDS)
    schema = {
        "type": "object",
        "properties": {
            "spec": {
                "type": "object",
                "properties": {
                    host: {"type": "string", "maxLength": 20},
                    replicas: {"type": "integer"},
                    "note": {"type": "string"},
                },
            },
            "status": {"type": "object", "properties": {phase: {"type": "string"}}},
        },
    }
    scale = {"specReplicasPath": f".spec.{replicas}", "statusReplicasPath": ".status.replicas"}
    return version(
        name,
        schema,
        storage=storage,
        served=served,
        subresources={"status": {}, "scale": scale},
        additionalPrinterColumns=[{"name": f"Host {name}", "type": "string", "jsonPath": f".spec.{host}"}],
        selectableFields=[{"jsonPath": f".spec.{host}"}],
    )


def hosts(conversion: dict[str, Any], storage: str = "v1", versions: tuple[str, ...] = ("v1", "v2")) -> dict[str, Any]:
    """Return the definition of Foo, with a host in `spec.host`, or `spec.hostName` in v2."""
    return definition(*(hosts_version(each, storage=each == storage) for each in versions), conversion=conversion)
