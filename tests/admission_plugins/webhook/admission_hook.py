"""An admission webhook as a real HTTPS server, and configurations that refer to it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

from steersman.server.certificates import CertificateFiles
from steersman.testing import Client
from tests.https_hook import HttpsHook, http_response

CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/{}webhookconfigurations"
VALIDATING, MUTATING = "validating", "mutating"

Request = dict[str, Any]
Response = dict[str, Any]
Answer = Callable[[Request], Response | bytes]
"""Function from a request to a response (without its uid), or to the bytes of a whole HTTP response."""


def allow(request: Request) -> Response:
    return {"allowed": True}


def deny(request: Request) -> Response:
    return {"allowed": False, "status": {"message": "no"}}


def patch(*operations: dict[str, Any]) -> Answer:
    """Return an answer that allows the request with a patch."""
    data = base64.b64encode(json.dumps(operations).encode()).decode()
    return lambda request: {"allowed": True, "patch": data, "patchType": "JSONPatch"}


def add(path: str, value: Any) -> dict[str, Any]:
    return {"op": "add", "path": path, "value": value}


class AdmissionHook(HttpsHook):
    """A webhook with an answer for each path."""

    def __init__(self, files: CertificateFiles) -> None:
        super().__init__(files)
        self.asked_of: list[tuple[str, Request]] = []
        """Paths and requests in the order of their arrival."""
        self.answers: dict[str, Answer] = {}

    def answered(self, target: str, body: Any) -> bytes:
        path = target.partition("?")[0]
        request = body["request"]
        self.asked_of.append((path, request))
        said = self.answers.get(path, allow)(request)
        if isinstance(said, bytes):
            return said
        head = {"kind": body["kind"], "apiVersion": body["apiVersion"]}
        data = json.dumps({**head, "response": {"uid": request["uid"], **said}}).encode()
        return http_response(200, data, "application/json")

    @property
    def paths(self) -> list[str]:
        """Return the called paths."""
        return [path for path, _ in self.asked_of]

    def of(self, path: str) -> list[Request]:
        """Return the requests to a path."""
        return [request for asked, request in self.asked_of if asked == path]

    def webhook(self, path: str, *resources: str, **more: Any) -> dict[str, Any]:
        """Return a webhook for every operation on resources ("*" for all) of any group and version."""
        rule = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": list(resources)}
        name = f"{path.strip('/').replace('/', '-')}.example.com"
        return {
            "name": name,
            "clientConfig": {"url": self.root + path, "caBundle": self.ca_bundle},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            **more,
        }


async def configure(client: Client, which: str, *webhooks: dict[str, Any], name: str = "hooks") -> None:
    """Create a webhook configuration."""
    kind = f"{which.capitalize()}WebhookConfiguration"
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": list(webhooks),
    }
    answer = await client.post(CONFIGURATIONS.format(which), body)
    assert answer.status == 201, answer.body
