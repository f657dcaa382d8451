"""Stage objects that are made, changed and deleted while a cluster runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from steersman.api.core.v1 import Container, Pod, PodSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.client.client import Client
from steersman.client.errors import is_not_found
from steersman.client.resources import CONFIG_MAPS, EVENTS, PODS
from steersman.machinery.errors.status import StatusError
from tests.cluster.kinds_of_kwok import DEFINITIONS, STAGES, WIDGET, WIDGETS, Plain, cluster_with_kwok, condition
from tests.controllers.waiting import eventually
from tests.nodes.stages.samples import selecting, stage, where

NOT_READY = where(".status.phase", "NotIn", "Ready")


def of_widgets(name: str, **spec: Any) -> Plain:
    return stage(name, **{"resourceRef": {"apiGroup": "example.com/v1", "kind": "Widget"}, "selector": {}, **spec})


def becomes(phase: str, **more: Any) -> Plain:
    return {"steps": [{"patch": {"subresource": "status", "root": "status", "template": f"phase: {phase}", **more}}]}


async def phase(client: Client, name: str) -> str:
    return str(((await client.get(WIDGETS, name, "default")).get("status") or {}).get("phase", ""))


async def reaches(client: Client, name: str, wanted: str) -> None:
    async def there() -> bool:
        return await phase(client, name) == wanted

    await eventually(there)


async def test_a_stage_for_a_kind_that_comes_later_is_played_changed_and_deleted(keys_folder: Path) -> None:
    async with cluster_with_kwok(keys_folder) as client:
        ready = of_widgets("ready", selector=selecting(NOT_READY), **becomes("Ready"))
        await client.create(STAGES, ready)
        assert (await condition(client, "ready"))[:2] == ("False", "KindNotServed")
        await client.create(DEFINITIONS, WIDGET)

        async def made() -> bool:
            try:
                await client.create(WIDGETS, {"metadata": {"name": "a", "namespace": "default"}})
            except StatusError as error:
                if not is_not_found(error):
                    raise
                return False
            return True

        await eventually(made)
        await reaches(client, "a", "Ready")

        async def played() -> bool:
            return (await condition(client, "ready"))[:2] == ("True", "Played")

        await eventually(played)
        other = becomes("{{ .metadata.name | upper }}")["steps"]
        selects = selecting(where(".status.phase", "NotIn", "A"))
        await client.patch(STAGES, "ready", "", {"spec": {"steps": other, "selector": selects}})
        await reaches(client, "a", "A")
        await client.delete(STAGES, "ready")
        await client.create(STAGES, of_widgets("again", selector=selecting(where(".no", "Exists"))))
        await condition(client, "again")
        await client.patch(WIDGETS, "a", "default", {"status": {"phase": "x"}}, subresource="status")
        assert await phase(client, "a") == "x"


async def test_an_invalid_stage_says_so_and_others_are_played(keys_folder: Path) -> None:
    async with cluster_with_kwok(keys_folder) as client:
        await client.create(DEFINITIONS, WIDGET)
        await client.create(STAGES, of_widgets("broken", steps=[{"patch": {"template": "{{ none }}"}}]))
        await client.create(STAGES, of_widgets("cel", selector=selecting({"cel": {"expression": "self."}})))
        await client.create(STAGES, of_widgets("good", selector=selecting(NOT_READY), **becomes("Ready")))
        status, reason, message = await condition(client, "broken")
        assert (status, reason) == ("False", "Invalid")
        assert message == 'Stage broken: template: line 1: function "none" not defined'
        assert (await condition(client, "cel"))[2].startswith("Stage cel: failed to compile expression: ERROR")
        await client.create(WIDGETS, {"metadata": {"name": "a", "namespace": "default"}})
        await reaches(client, "a", "Ready")

        async def reported() -> bool:
            events = (await client.list(EVENTS)).items
            return {"broken", "cel"} <= {each.involved_object.name for each in events if each.reason == "InvalidStage"}

        await eventually(reported)
        await client.patch(STAGES, "broken", "", {"spec": {"steps": []}})

        async def played() -> bool:
            return (await condition(client, "broken"))[:2] == ("True", "Played")

        await eventually(played)


async def test_pods_leave_and_return_to_their_built_in_behaviour(keys_folder: Path) -> None:
    async with cluster_with_kwok(keys_folder) as client:

        async def make(name: str) -> None:
            spec = PodSpec(node_name="node-0", containers=[Container(name="c", image="nginx")])
            await client.create(PODS, Pod(metadata=ObjectMeta(name=name, namespace="default"), spec=spec))

        async def reaches_phase(name: str, wanted: str) -> None:
            async def there() -> bool:
                return (await client.get(PODS, name, "default")).status.phase == wanted

            await eventually(there)

        await make("before")
        await reaches_phase("before", "Running")
        stops = stage("stops", selector=selecting(where(".metadata.name", "In", "during")), **becomes("Failed"))
        await client.create(STAGES, stops)
        assert (await condition(client, "stops"))[:2] == ("True", "Played")
        await make("during")
        await reaches_phase("during", "Failed")
        await make("waits")
        await client.delete(STAGES, "stops")
        await reaches_phase("waits", "Running")


async def test_a_stage_applies_other_objects_records_events_and_deletes(keys_folder: Path) -> None:
    config_map = """
{apiVersion: v1, kind: ConfigMap,
 metadata: {name: "of-{{ .metadata.name }}"},
 data: {from: "{{ .spec.from }}"}}
"""
    ends = of_widgets(
        "ends",
        selector=selecting({"cel": {"expression": "self.spec.from == 'cel' && self.SinceSecond() >= 0.0"}}),
        weightFrom={"cel": {"expression": "size(self.spec.from)"}},
        delay={"durationFrom": {"cel": {"expression": "duration('10ms')"}}},
        steps=[
            {"event": {"type": "Normal", "reason": "Ends", "message": "it ends"}},
            {"apply": {"template": config_map}},
            {"finalizers": {"remove": [{"value": "example.com/kept"}]}},
            {"delete": True},
        ],
    )
    async with cluster_with_kwok(keys_folder) as client:
        await client.create(DEFINITIONS, WIDGET)
        await client.create(STAGES, ends)
        await condition(client, "ends")
        metadata = {"name": "a", "namespace": "default", "finalizers": ["example.com/kept"]}
        await client.create(WIDGETS, {"metadata": metadata, "spec": {"from": "cel"}})

        async def gone() -> bool:
            return not (await client.list(WIDGETS, "default")).items

        await eventually(gone)
        assert (await client.get(CONFIG_MAPS, "of-a", "default")).data == {"from": "cel"}

        async def reported() -> bool:
            return any(each.reason == "Ends" for each in (await client.list(EVENTS, "default")).items)

        await eventually(reported)


async def test_a_stage_acts_in_the_name_of_another_user(keys_folder: Path) -> None:
    denied = of_widgets(
        "denied", selector=selecting(NOT_READY), **becomes("Ready", impersonation={"username": "nobody"})
    )
    async with cluster_with_kwok(keys_folder) as client:
        await client.create(DEFINITIONS, WIDGET)
        await client.create(STAGES, denied)
        await condition(client, "denied")
        await client.create(WIDGETS, {"metadata": {"name": "a", "namespace": "default"}})

        async def reported() -> str:
            events = (await client.list(EVENTS, "default")).items
            return next((each.message for each in events if each.reason == "StageFailed"), "")

        assert 'User "nobody" cannot patch resource "widgets/status"' in await eventually(reported)
        assert await phase(client, "a") == ""
