"""Tests of the Services that a change of a pod concerns."""

from __future__ import annotations

from copy import deepcopy

from steersman.api.core.v1 import Pod
from steersman.client.informer import Informer
from steersman.client.resources import SERVICES
from steersman.controllers.services.selecting import add_selector_index, affected_services, may_be_reached
from steersman.machinery.codec.serializer import deep_copy
from tests.controllers.services.objects import make_service, pod
from tests.controllers.waiting import Run, eventually


async def test_the_services_of_a_pod_are_those_that_select_it_before_or_after(run: Run) -> None:
    client = await run()
    await make_service(client, "a", selector={"app": "a"})
    await make_service(client, "b", selector={"app": "b"})
    await make_service(client, "both", selector={"app": "a", "more": "m"})
    await make_service(client, "none", selector={})
    informer = Informer(client, SERVICES)
    add_selector_index(informer)
    informer.start()

    async def all_there() -> bool:
        return len(informer.list("default")) == 5

    await eventually(all_there)

    def names(old: Pod | None, new: Pod | None) -> set[str]:
        return {name for _, name in affected_services(informer, old, new)}

    one = pod("p", "10.1.0.1")
    assert names(None, one) == names(one, None) == {"a"}
    assert names(one, deepcopy(one)) == set()
    moved = deep_copy(one)
    moved.metadata.labels = {"app": "a", "more": "m"}
    assert names(one, moved) == {"both"}
    elsewhere = pod("p", "10.1.0.1", ready=False)
    elsewhere.metadata.labels = {"app": "b"}
    assert names(one, elsewhere) == {"a", "b"}
    assert names(one, pod("p", "10.1.0.2")) == {"a"}
    await informer.stop()


def test_pods_without_address_and_those_that_have_ended_are_not_reached() -> None:
    assert may_be_reached(pod("p", "10.1.0.1"), terminating=False)
    assert not may_be_reached(pod("p"), terminating=True)
    ended = pod("p", "10.1.0.1")
    ended.status.phase = "Failed"
    assert not may_be_reached(ended, terminating=True)
    going = pod("p", "10.1.0.1")
    going.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"
    assert may_be_reached(going, terminating=True)
    assert not may_be_reached(going, terminating=False)
