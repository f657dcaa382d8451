"""Attributes of writes for admission plugins, and objects that plugins replace."""

from __future__ import annotations

from typing import Any

import pytest

from steersman.admission.interface import CONNECT, CREATE, DELETE, UPDATE, Attributes, Chain, Plugin
from steersman.api.core.v1 import ConfigMap
from tests.endpoints.small_server import SmallServer

NOTES = "/api/v1/namespaces/ns/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"


class Replacing(Plugin):
    """Replaces every object by a copy with one more member of data."""

    name = "Replacing"
    operations = frozenset({CREATE, UPDATE})
    mutates = True

    async def admit(self, attributes: Attributes) -> None:
        sent: ConfigMap = attributes.obj
        attributes.obj = ConfigMap(metadata=sent.metadata, data={**sent.data, "replaced": "yes"})


class Recording(Plugin):
    """Records its attributes."""

    name = "Recording"
    operations = frozenset({CREATE, UPDATE, DELETE, CONNECT})
    mutates = validates = True

    def __init__(self) -> None:
        self.shown: list[tuple[str, str, str, str, str, str]] = []

    async def admit(self, attributes: Attributes) -> None:
        self._record("admit", attributes)

    async def validate(self, attributes: Attributes) -> None:
        self._record("validate", attributes)

    def _record(self, how: str, attributes: Attributes) -> None:
        resource = str(attributes.action.group_resource)
        if attributes.action.subresource:
            resource += f"/{attributes.action.subresource}"
        shown = ",".join(type(each).__name__ for each in (attributes.obj, attributes.old) if each is not None)
        self.shown.append((how, attributes.operation, resource, str(attributes.kind), attributes.name, shown))

    def taken(self) -> list[tuple[str, str, str, str, str, str]]:
        found, self.shown = self.shown, []
        return found


@pytest.fixture
async def replacing(start_server: Any) -> SmallServer:
    server: SmallServer = await start_server(admission=Chain((Replacing(),)))
    return server


@pytest.mark.parametrize(
    ("method", "name", "media"),
    [
        ("POST", "", "application/json"),
        ("PUT", "/a", "application/json"),
        ("PATCH", "/a", MERGE),
        ("PATCH", "/a", APPLY),
        ("PATCH", "/b", APPLY),
    ],
)
async def test_the_object_that_a_plugin_puts_in_place_is_stored(
    replacing: SmallServer, method: str, name: str, media: Any
) -> None:
    if name == "/a":
        await replacing.note("a", n="0")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name[1:] or "new"}, "data": {"n": "1"}}
    path = f"{NOTES}{name}" + ("?fieldManager=me&force=true" if media == APPLY else "")
    answer = await replacing.ask(method, path, body, content_type=media)
    assert answer.status in (200, 201), answer.text
    assert answer.json()["data"] == {"n": "1", "replaced": "yes"}
    stored = await replacing.get(f"{NOTES}/{name[1:] or 'new'}")
    assert stored.json()["data"] == {"n": "1", "replaced": "yes"}


@pytest.fixture
async def recorded(start_control_plane: Any, client_of: Any) -> tuple[Any, Recording]:
    """A client of a control plane with recorded writes, a deployment and a pod."""
    plane = await start_control_plane(disable_admission_plugins=("ServiceAccount",))
    client = client_of(plane)
    container = {"name": "c", "image": "i"}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container]}}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    assert (await client.post(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})).status == 201
    assert (await client.post(PODS, {"metadata": {"name": "p"}, "spec": {"containers": [container]}})).status == 201
    recording = Recording()
    chain = plane.server.config.admission
    everything = Chain((*chain.plugins, recording))
    chain.__dict__.update(everything.__dict__)
    return client, recording


async def test_a_view_and_the_body_of_an_action_are_admitted_as_themselves(recorded: tuple[Any, Recording]) -> None:
    client, recording = recorded
    scale = (await client.get(f"{DEPLOYMENTS}/d/scale")).json()
    scale["spec"]["replicas"] = 2
    assert (await client.put(f"{DEPLOYMENTS}/d/scale", scale)).status == 200
    about = ("UPDATE", "deployments.apps/scale", "autoscaling/v1, Kind=Scale", "d", "Scale,Scale")
    assert recording.taken() == [("admit", *about), ("validate", *about)]
    binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n"}}
    assert (await client.post(f"{PODS}/p/binding", binding)).status == 201
    about = ("CREATE", "pods/binding", "/v1, Kind=Binding", "p", "Binding")
    assert recording.taken() == [("admit", *about), ("validate", *about)]
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
    assert (await client.post(f"{PODS}/p/eviction?dryRun=All", eviction)).status == 201
    about = ("CREATE", "pods/eviction", "policy/v1, Kind=Eviction", "p", "Eviction")
    assert recording.taken() == [("admit", *about), ("validate", *about)]
    await client.request("PATCH", f"{PODS}/p/status", {"status": {"phase": "Running"}}, content_type=MERGE)
    about = ("UPDATE", "pods/status", "/v1, Kind=Pod", "p", "Pod,Pod")
    assert recording.taken() == [("admit", *about), ("validate", *about)]


async def test_objects_of_a_collection_that_is_deleted_are_shown_without_a_name(
    recorded: tuple[Any, Recording],
) -> None:
    client, recording = recorded
    for name in "ab":
        await client.post("/api/v1/namespaces/default/configmaps", {"metadata": {"name": name, "labels": {"x": "y"}}})
    recording.taken()
    assert (await client.delete("/api/v1/namespaces/default/configmaps?labelSelector=x=y")).status == 200
    about = ("DELETE", "configmaps", "/v1, Kind=ConfigMap", "", "ConfigMap")
    assert sorted(recording.taken()) == [("admit", *about)] * 2 + [("validate", *about)] * 2
    await client.delete(DEPLOYMENTS + "/d")
    assert recording.taken()[0][-2:] == ("d", "Deployment")
