"""Webhooks that fail: each fault has a configuration of its own, which objects choose by a label."""

from __future__ import annotations

import asyncio
import base64
import json
from collections import Counter
from typing import Any, Final

from steersman.server.certificates import CertificateFiles
from steersman.testing import Client
from tools.outbound_faults.peer import Asked, Peer, Said, as_json

_HOOKS: Final = "/apis/admissionregistration.k8s.io/v1/"
_CONFIG_MAPS: Final = "/api/v1/namespaces/default/configmaps?dryRun=All"
_LABEL: Final = "fault"
AT_ONCE: Final = 64
FAULTS: Final = (
    "good",
    "deny",
    "hang",
    "trickle",
    "close",
    "reset",
    "half",
    "garbage",
    "endless-head",
    "interim",
    "goodbye",
    "large",
    "redirect",
    "redirect-loop",
    "other-uid",
    "other-kind",
    "no-json",
    "bad-patch",
    "no-patch",
    "error",
)
_LARGE: Final = b'{"x":"' + b"x" * (10 << 20) + b'"}'
_LETS_IN: Final = frozenset({"good"})


def _patch(text: str) -> dict[str, Any]:
    return {"allowed": True, "patchType": "JSONPatch", "patch": base64.b64encode(text.encode()).decode()}


def answer(asked: Asked) -> Said | None:
    """Return the answer to a review; None for faults below HTTP."""
    fault = asked.fault
    if fault == "large":
        return Said(200, _LARGE)
    if fault == "redirect":
        return Said(307, location="https://127.0.0.1:1/elsewhere")
    if fault == "redirect-loop":
        return Said(307, location=asked.path)
    if fault == "no-json":
        return Said(200, b"{")
    if fault == "error":
        return Said(503, b"{}")
    responses: dict[str, dict[str, Any]] = {
        "good": {"allowed": True},
        "deny": {"allowed": False},
        "other-uid": {"allowed": True, "uid": "another"},
        "other-kind": {"allowed": True},
        "bad-patch": _patch("["),
        "no-patch": _patch('[{"op":"remove","path":"/metadata/nobody"}]'),
    }
    if fault not in responses:
        return None
    review = json.loads(asked.body)
    review["response"] = {"uid": review.pop("request")["uid"], **responses[fault]}
    if fault == "other-kind":
        review["kind"] = "Pod"
    return Said(200, as_json(review))


class Webhooks:
    """The webhooks of a server, by both versions of HTTP."""

    def __init__(self, client: Client, files: CertificateFiles) -> None:
        self._client = client
        self._authority = base64.b64encode(files.ca.read_bytes()).decode()
        self.peers = {
            "one": Peer("http/1.1", files.server, files.server_key, answer),
            "two": Peer("h2", files.server, files.server_key, answer),
        }
        self.told: Counter[str] = Counter()
        """Statuses that faults led to."""

    async def start(self) -> None:
        """Listens, and makes the configurations."""
        for name, peer in self.peers.items():
            await peer.start()
            for fault in FAULTS:
                await self._configure(f"{fault}-{name}", f"{peer.url}/{fault}", "patch" in fault)

    async def stop(self) -> None:
        """Listens no more."""
        for peer in self.peers.values():
            await peer.stop()

    async def call(self, calls: int) -> None:
        """Makes so many calls, of every fault about as many. Raises AssertionError for one that was let in."""
        kinds = [f"{fault}-{name}" for fault in FAULTS for name in self.peers]
        left = iter(range(calls))

        async def work() -> None:
            for number in left:
                await self._create(kinds[number % len(kinds)])

        await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    async def _create(self, kind: str) -> None:
        body = {"metadata": {"generateName": "a-", "labels": {_LABEL: kind}}, "data": {"a": "x" * 500}}
        found = await self._client.post(_CONFIG_MAPS, body)
        fault = kind.rpartition("-")[0]
        assert (found.status == 201) == (fault in _LETS_IN), (kind, found.status, found.body[:300])
        self.told[f"{kind} {found.status}"] += 1

    async def _configure(self, name: str, url: str, mutating: bool) -> None:
        which = "Mutating" if mutating else "Validating"
        rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
        webhook = {
            "name": "hook.faults.example.com",
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": url, "caBundle": self._authority},
            "rules": [rule],
            "timeoutSeconds": 1,
            "objectSelector": {"matchLabels": {_LABEL: name}},
        }
        body = {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{which}WebhookConfiguration",
            "metadata": {"name": name},
            "webhooks": [webhook],
        }
        made = await self._client.post(f"{_HOOKS}{which.lower()}webhookconfigurations", body)
        assert made.status == 201, made.body
