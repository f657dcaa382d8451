"""Definitions that are made on a server in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from steersman.testing import Client

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
GROUP = "example.com"


def version(name: str, schema: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A served version that is stored unless `more` says that it is not."""
    any_object = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema or any_object}, **more}


def definition(*versions: dict[str, Any], plural: str = "foos", kind: str = "Foo", **spec: Any) -> dict[str, Any]:
    """A definition of namespaced objects in versions; of any objects in v1 unless it is given some."""
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
    """A condition of a definition; {} if there is none."""
    conditions = found["status"].get("conditions") or []
    return next((each for each in conditions if each["type"] == kind), {})


class Cluster:
    """A server with custom resources."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def define(self, body: dict[str, Any]) -> dict[str, Any]:
        """Makes a definition, and waits until its objects can be made."""
        answer = await self.client.post(DEFINITIONS, body)
        assert answer.status == 201, answer.body
        name = body["metadata"]["name"]
        return await self.until(name, lambda found: condition(found, "Established").get("status") == "True")

    async def until(self, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The definition of a name once something holds of it."""
        async with asyncio.timeout(20):
            while True:
                found: dict[str, Any] = (await self.client.get(f"{DEFINITIONS}/{name}")).json()
                if holds(found):
                    return found
                await asyncio.sleep(0.005)

    async def answers(self, path: str, status: int) -> dict[str, Any]:
        """What a path answers once that has this status; {} if it is no object."""
        async with asyncio.timeout(20):
            while True:
                answer = await self.client.get(path)
                if answer.status == status:
                    return answer.json() if answer.body[:1] == b"{" else {}
                await asyncio.sleep(0.005)

    async def change(self, name: str, patch: dict[str, Any]) -> dict[str, Any]:
        """Merges a patch into a definition."""
        answer = await self.client.patch(f"{DEFINITIONS}/{name}", patch)
        assert answer.status == 200, answer.body
        found: dict[str, Any] = answer.json()
        return found

    def path(self, version: str = "v1", plural: str = "foos") -> str:
        """The objects of a kind in the namespace `default`."""
        return f"/apis/{GROUP}/{version}/namespaces/default/{plural}"

    async def create(self, body: dict[str, Any], version: str = "v1", kind: str = "Foo", **headers: str) -> Any:
        """POSTs an object of a kind in a version; the answer."""
        whole = {"apiVersion": f"{GROUP}/{version}", "kind": kind, **body}
        return await self.client.post(self.path(version, f"{kind.lower()}s"), whole, **headers)
