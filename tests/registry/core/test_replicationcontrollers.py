"""ReplicationControllers, and the Scale of all workloads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from steersman.api.autoscaling.v1 import Scale
from steersman.machinery.codec.serializer import from_plain, to_plain
from steersman.machinery.errors.status import StatusError
from steersman.registry.core.replicationcontrollers import REPLICATION_CONTROLLERS
from steersman.registry.scale import ScaleView

TEMPLATE = {"metadata": {"labels": {"a": "b", "c": "d"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def test_template_gives_selector_and_labels(cluster: Callable[..., Any]) -> None:
    c = await cluster(REPLICATION_CONTROLLERS)
    made = await c.create("replicationcontrollers", {"metadata": {"name": "rc"}, "spec": {"template": TEMPLATE}})
    assert made["spec"]["selector"] == made["metadata"]["labels"] == {"a": "b", "c": "d"}
    assert (made["spec"]["replicas"], made["metadata"]["generation"], made["status"]) == (1, 1, {"replicas": 0})
    assert (await c.change("replicationcontrollers", "rc", replicas=2))["metadata"]["generation"] == 2


async def test_selector_has_to_match(cluster: Callable[..., Any]) -> None:
    c = await cluster(REPLICATION_CONTROLLERS)
    body = {"metadata": {"name": "rc"}, "spec": {"replicas": -1, "selector": {"x": "y"}, "template": TEMPLATE}}
    assert await c.faults(c.create("replicationcontrollers", body)) == [
        "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
        'spec.template.metadata.labels: Invalid value: {"a":"b","c":"d"}: `selector` does not match template `labels`',
    ]


async def test_a_long_name_is_refused_in_the_words_of_declarative_validation(cluster: Callable[..., Any]) -> None:
    c = await cluster(REPLICATION_CONTROLLERS)
    name = "x" * 254
    body = {"metadata": {"name": name}, "spec": {"template": TEMPLATE}}
    assert await c.faults(c.create("replicationcontrollers", body)) == [
        f'metadata.name: Invalid value: "{name}": must be no more than 253 bytes',
    ]


async def test_scale_reads_and_writes(cluster: Callable[..., Any]) -> None:
    c = await cluster(REPLICATION_CONTROLLERS)
    await c.create("replicationcontrollers", {"metadata": {"name": "rc"}, "spec": {"template": TEMPLATE}})
    store = c.stores["", "replicationcontrollers"]
    obj = store.decode(await store.get(c.context(store, "ns", "rc"), "rc"))
    view = ScaleView()
    scale = to_plain(view.read(obj))
    assert "labels" not in scale["metadata"]
    assert (scale["spec"], scale["status"]) == ({"replicas": 1}, {"replicas": 0, "selector": "a=b,c=d"})
    view.write(obj, from_plain(Scale, {"metadata": scale["metadata"], "spec": {"replicas": 5}}))
    assert obj.spec.replicas == 5
    with pytest.raises(StatusError) as caught:
        view.write(obj, from_plain(Scale, {"metadata": scale["metadata"], "spec": {"replicas": -1}}))
    assert caught.value.message == (
        'Scale.autoscaling "rc" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0'
    )
