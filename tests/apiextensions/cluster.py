"""A server in this process, and helpers that create definitions on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from steersman.testing import Client

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "example.com"


def version(name: str, schema: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """Return a served version; it is stored unless `more` changes that."""
    any_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or any_object}, **more}


def definition(*versions: dict[str, Any], plural: str = "foos", kind: str = "Foo", **spec: Any) -> dict[str, Any]:
    """Return a definition of namespaced objects; by default of one version v1 with any fields."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind},
            "versions": list(versions) or [version("v1")],
            **spec,
        },
    }


def condition(found: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return a condition of a definition, {} if there is none."""
    conditions = found["status"].get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), {})


class Cluster:
    """A server with custom resources."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def define(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create a definition, and wait until it is established and served."""
        answer = await self.client.post(DEFINITIONS, body)
        assert answer.status == 201, answer.body
        name = body["metadata"]["name"]
        return await self.until(name, lambda found: condition(found, "Established").get("status") == "True")

    async def until(self, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return a definition, once the condition holds."""
        async with asyncio.timeout(20):
            while True:
                body: dict[str, Any] = (await self.client.get(f"{DEFINITIONS}/{name}")).json()
                if holds(body):
                    return body
                await asyncio.sleep(0.005)

    async def answers(self, path: str, status: int) -> dict[str, Any]:
        """Return the object from a path, once the answer has this status; {} if the answer is no object."""
        async with asyncio.timeout(20):
            while True:
                answer = await self.client.get(path)
                if answer.status == status:
                    return answer.json() if answer.body[:1] == b"{" else {}
                await asyncio.sleep(0.005)

    async def change(self, name: str, patch: dict[str, Any]) -> dict[str, Any]:
        """Merge a patch into a definition."""
        answer = await self.client.patch(f"{DEFINITIONS}/{name}", patch)
        assert answer.status == 200, answer.body
        body: dict[str, Any] = answer.json()
        return body

    def path(self, version: str = "v1", plural: str = "foos") -> str:
        """Return the path of the objects of a kind in the namespace `default`."""
        return f"/apis/{GROUP}/{version}/namespaces/default/{plural}"

    async def create(self, body: dict[str, Any], version: str = "v1", kind: str = "Foo", **headers: str) -> Any:
        """POST an object of a kind in a version, and return the answer."""
        whole = {"apiVersion": f"{GROUP}/{version}", "kind": kind, **body}
        return await self.client.post(self.path(version, f"{kind.lower()}s"), whole, **headers)
