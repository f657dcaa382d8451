"""Tests of webhooks that this server serves itself, by the Service `kubernetes`."""

from __future__ import annotations

import json
from typing import Any

import pytest

from steersman.net.message import Request, Response
from steersman.testing import Client, Environment

HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
REVIEWS = "/apis/reviews.example.com/v1/reviews"


class Reviewer:
    """A path of the server that answers reviews."""

    def __init__(self) -> None:
        self.users: list[tuple[str, tuple[str, ...]]] = []

    async def __call__(self, request: Any) -> Response:
        http: Request = request.http
        review = json.loads(await http.body.read(1 << 20))
        self.users.append((request.user.name, request.user.groups))
        review["response"] = {"uid": review.pop("request")["uid"], "allowed": False, "status": {"message": "not so"}}
        return Response(200, [("content-type", "application/json")], json.dumps(review).encode())


async def configure(client: Client, where: dict[str, Any]) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    webhook = {
        "name": "own.example.com",
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "rules": [rule],
        "clientConfig": where,
    }
    made = await client.post(HOOKS, {"metadata": {"name": "own"}, "webhooks": [webhook]})
    assert made.status == 201, made.body


@pytest.mark.parametrize(
    "where",
    [
        {"service": {"namespace": "default", "name": "kubernetes", "path": REVIEWS}},
        {"url": f"https://kubernetes.default.svc{REVIEWS}"},
        {"url": f"https://kubernetes.default.svc:443{REVIEWS}"},
    ],
)
async def test_this_server_asks_itself_as_upstream_does(where: dict[str, Any]) -> None:
    reviewer = Reviewer()
    async with Environment() as environment:
        assert environment.plane.server is not None
        environment.plane.server.delegated["/apis/reviews.example.com/v1"] = reviewer
        client = environment.client()
        await configure(client, where)
        found = await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert found.json()["message"] == 'admission webhook "own.example.com" denied the request: not so'
    assert reviewer.users == [("system:apiserver", ("system:masters", "system:authenticated"))]


async def test_what_is_no_review_fails_the_request() -> None:
    async with Environment() as environment:
        client = environment.client()
        await configure(client, {"service": {"namespace": "default", "name": "kubernetes", "path": "/nothing"}})
        found = await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert found.status == 500
    assert "the server could not find the requested resource" in found.json()["message"]


async def test_another_port_is_an_ordinary_service() -> None:
    async with Environment() as environment:
        client = environment.client()
        service = {"namespace": "default", "name": "kubernetes", "path": REVIEWS, "port": 444}
        await configure(client, {"service": service})
        found = await client.post(CONFIG_MAPS, {"metadata": {"name": "a"}})
    assert 'no service port 444 found for service "kubernetes"' in found.json()["message"]
