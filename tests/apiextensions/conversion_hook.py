"""A conversion webhook, as a real HTTPS server, and a definition that it converts for."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

from steersman.server.certificates import CertificateFiles
from tests.apiextensions.cluster import definition, version
from tests.https_hook import HttpsHook, http_response

FIELDS = (("spec", "host", "hostName"), ("spec", "replicas", "size"), ("status", "phase", "state"))
"""Where an object has its fields, and what they are called in v1 (and v3), and in v2."""

Review = dict[str, Any]
Answer = Callable[[Review, Review], Review | bytes | None]
"""From what is to be answered, and the request, to what is answered instead; bytes are a whole HTTP response, or with a
brace before them a body."""


class Hook(HttpsHook):
    """Converts, unless `answer` says otherwise."""

    def __init__(self, files: CertificateFiles) -> None:
        super().__init__(files)
        self.calls: list[tuple[str, list[tuple[str, str]]]] = []
        """The version asked for; version and name of each object."""
        self.reviews: list[Review] = []
        self.answer: Answer | None = None

    @property
    def url(self) -> str:
        return f"{self.root}/convert"

    def config(self, **client: Any) -> dict[str, Any]:
        """The `conversion` of a definition."""
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
    """The object in another version: its fields are called otherwise."""
    obj = copy.deepcopy(obj)
    was, will = (each.endswith("/v2") for each in (obj["apiVersion"], wanted))
    obj["apiVersion"] = wanted
    for part, old, new in FIELDS:
        source, target = (new, old) if was else (old, new)
        if was != will and source in obj.get(part, {}):
            obj[part][target] = obj[part].pop(source)
    return obj


def hosts_version(name: str, *, storage: bool, served: bool = True) -> dict[str, Any]:
    """A version of the definition of hosts, with all that versions may differ in."""
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
    """The definition of Foo: a host in `spec.host`, or `spec.hostName` in v2."""
    return definition(*(hosts_version(each, storage=each == storage) for each in versions), conversion=conversion)
