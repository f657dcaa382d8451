"""Reports on the requests of a test's server."""

from __future__ import annotations

from steersman.testing import Environment, ThreadedEnvironment
from steersman.tracing.documents import summary
from steersman.tracing.readers import EveryRequest
from steersman.tracing.trace import Trace

MAPS = "/api/v1/namespaces/default/configmaps"


def test_requests_of_a_server_are_counted_from_now_on() -> None:
    with ThreadedEnvironment() as environment, environment.client() as client:
        client.json("GET", MAPS)
        report = environment.requests()
        client.json("POST", MAPS, {"metadata": {"name": "a"}})
        client.json("PUT", f"{MAPS}/a", {"metadata": {"name": "a"}})
        client.json("GET", MAPS)
        assert [report.count("create"), report.count("list"), report.count("write", "configmaps")] == [1, 1, 2]
        assert [each.kind for each in report.observations] == ["UnchangedWrites"]
        report.at_most(writes=2, unlimited_lists=1, conflicts=0)
        assert report.role()["rules"] == [
            {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "list", "update"]}
        ]
        assert environment.requests("nobody").clients == []


DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "sites.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "sites", "kind": "Site"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
DEPLOYMENT = {
    "metadata": {"name": "a"},
    "spec": {
        "selector": {"matchLabels": {"app": "a"}},
        "template": {
            "metadata": {"labels": {"app": "a"}},
            "spec": {"containers": [{"name": "a", "image": "a", "args": ["--password=x"]}]},
        },
    },
}


async def test_updates_of_every_kind_are_answered_and_their_changed_fields_told() -> None:
    async with Environment() as environment:
        client = environment.client()
        definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
        assert (await client.post(definitions, DEFINITION)).status == 201
        await environment.wait_for("crd", "sites.example.com", "condition=Established")
        told: dict[str, list[str]] = {}

        def note(trace: Trace, is_open: bool) -> None:
            line = summary(trace, is_open=is_open)
            told[f"{line['resource']} {line['subresource']}"] = line.get("changed", [])

        assert environment.plane.server is not None
        leave = environment.plane.server.traces.add(EveryRequest(note))
        sites, deployments = (
            "/apis/example.com/v1/namespaces/default/sites",
            "/apis/apps/v1/namespaces/default/deployments",
        )
        site = {"apiVersion": "example.com/v1", "kind": "Site", "metadata": {"name": "a"}, "spec": {}}
        large = {"data": {f"key{number}": "x" * 1000 for number in range(100)}}
        containers = [{"name": "a", "args": ["--password=y"]}]
        for path, made, changed, at in (
            (sites, site, {"status": {"ready": 1}}, "/status"),
            (sites, {}, {"spec": {"size": 3}}, ""),
            (deployments, DEPLOYMENT, {"spec": {"replicas": 2}}, ""),
            (deployments, {}, {"spec": {"replicas": 3}}, "/scale"),
            (MAPS, {"metadata": {"name": "a"}}, {"metadata": {"labels": {"a.b/c": "d"}}}, ""),
        ):
            assert not made or (await client.post(path, made)).status == 201
            assert (await client.patch(f"{path}/a{at}", changed)).status == 200
        assert told == {
            "sites ": [".spec.size"],
            "sites status": [".status"],
            "deployments ": [".spec.replicas"],
            "deployments scale": [".spec.replicas"],
            "configmaps ": [".metadata.labels"],
        }
        assert (await client.patch(f"{MAPS}/a", large)).status == 200
        assert told["configmaps "] == [".data"]
        strategic = "application/strategic-merge-patch+json"
        spec = {"spec": {"template": {"spec": {"containers": containers}}}}
        assert (await client.patch(f"{deployments}/a", spec, strategic)).status == 200
        assert told["deployments "] == [".spec.template.spec.containers[name=a].args"]
        leave()


async def test_clients_that_fight_over_a_field_are_told_with_the_field() -> None:
    async with Environment() as environment:
        client = environment.client()
        await client.post(MAPS, {"metadata": {"name": "a"}, "data": {"owner": "nobody"}})
        found = environment.requests()
        for _ in range(3):
            for name in ("one/v1", "two/v1"):
                answer = await client.patch(f"{MAPS}/a", {"data": {"owner": name}}, user_agent=name)
                assert answer.status == 200
        (fight,) = [each for each in found.observations if each.kind == "Fights"]
        assert fight.message == "change data.owner of configmaps default/a in turns, 5 times"
