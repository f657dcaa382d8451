"""Tests of the packing of endpoints into slices."""

from __future__ import annotations

from collections import Counter
from itertools import count
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from steersman.api.core.v1 import Service, ServicePort
from steersman.controllers.services.endpoint import DesiredEndpoint, endpoint_of
from steersman.controllers.services.packing import MOST, Packing, pod_of, recycle
from steersman.controllers.services.ports import ports_of_pod
from steersman.machinery.codec.serializer import deep_copy
from tests.controllers.services.objects import pod, service
from tests.example_counts import examples

_VERSIONS = count(1)


def svc(**spec: Any) -> Service:
    made = service(cluster_ip="10.0.0.1", ip_families=["IPv4"], **spec)
    made.metadata.uid = "uid"
    return made


def set_desired_pods(packing: Packing, of: Service, *numbers: int, ready: bool = True) -> None:
    for number in numbers:
        each = pod(f"p{number}", f"10.1.{number // 250}.{number % 250 + 1}", ready=ready)
        packing.set_desired(
            each.metadata.name, DesiredEndpoint(ports_of_pod(of, each), endpoint_of(each, None, of, "IPv4"))
        )


def apply_plan(packing: Packing, of: Service) -> tuple[int, int, int]:
    """Apply a plan as the server would. Return the numbers of created, updated and deleted slices."""
    changes = packing.plan(of)
    recycle(changes, of)
    for each in changes.create:
        each.metadata.name = f"s-{next(_VERSIONS)}"
    for each in (*changes.create, *changes.update):
        packing.put_slice(deep_copy(each))
    for each in changes.delete:
        packing.remove_slice(each.metadata.name)
    return len(changes.create), len(changes.update), len(changes.delete)


def sizes(packing: Packing) -> list[int]:
    return sorted(len(each.endpoints or ()) for each in packing.slices.values())


def test_a_service_without_endpoints_has_an_empty_slice_that_is_used_for_the_first() -> None:
    packing, of = Packing("IPv4"), svc()
    assert apply_plan(packing, of) == (1, 0, 0)
    assert apply_plan(packing, of) == (0, 0, 0)
    set_desired_pods(packing, of, 1)
    assert apply_plan(packing, of) == (0, 1, 0)
    packing.set_desired("p1", None)
    assert apply_plan(packing, of) == (0, 1, 0)
    assert sizes(packing) == [0]


def test_new_endpoints_fill_one_slice_that_has_room_for_all() -> None:
    packing, of = Packing("IPv4"), svc()
    set_desired_pods(packing, of, *range(250))
    assert apply_plan(packing, of) == (3, 0, 0)
    assert sizes(packing) == [50, 100, 100]
    set_desired_pods(packing, of, *range(250, 290))
    assert apply_plan(packing, of) == (0, 1, 0)
    set_desired_pods(packing, of, *range(290, 310))
    assert apply_plan(packing, of) == (1, 0, 0), "no slice has room for all of them"
    assert sizes(packing) == [20, 90, 100, 100]


def test_only_slices_with_changed_endpoints_are_written() -> None:
    packing, of = Packing("IPv4"), svc()
    set_desired_pods(packing, of, *range(300))
    apply_plan(packing, of)
    set_desired_pods(packing, of, 7, ready=False)
    assert apply_plan(packing, of) == (0, 1, 0)
    packing.set_desired("p7", None)
    set_desired_pods(packing, of, 1000)
    assert apply_plan(packing, of) == (0, 1, 0), "what is new goes where something is written anyway"
    assert sizes(packing) == [100, 100, 100]


def test_pods_with_other_ports_are_in_slices_of_their_own() -> None:
    of = svc(ports=[ServicePort(port=80, protocol="TCP", target_port="web")])
    packing = Packing("IPv4")
    set_desired_pods(packing, of, 1, 2)
    other = pod("other", "10.2.0.1")
    assert other.spec.containers is not None
    other.spec.containers[0].ports[0].container_port = 1
    packing.set_desired("other", DesiredEndpoint(ports_of_pod(of, other), endpoint_of(other, None, of, "IPv4")))
    assert apply_plan(packing, of) == (2, 0, 0)
    packing.set_desired("other", None)
    assert apply_plan(packing, of) == (0, 0, 1)


def test_what_others_write_is_undone() -> None:
    packing, of = Packing("IPv4"), svc()
    set_desired_pods(packing, of, *range(5))
    apply_plan(packing, of)
    (slice_,) = map(deep_copy, packing.slices.values())
    assert slice_.endpoints is not None
    slice_.endpoints = [*slice_.endpoints[:3], slice_.endpoints[0]]
    packing.put_slice(slice_)
    assert apply_plan(packing, of) == (0, 1, 0)
    assert sizes(packing) == [5]
    assert apply_plan(packing, of) == (0, 0, 0)


def test_slices_that_are_there_already_stay_as_they_are() -> None:
    packing, of = Packing("IPv4"), svc()
    set_desired_pods(packing, of, *range(150))
    apply_plan(packing, of)
    another = Packing("IPv4")
    for each in packing.slices.values():
        another.put_slice(each)
    set_desired_pods(another, of, *range(150))
    assert apply_plan(another, of) == (0, 0, 0)


def test_slices_of_a_service_of_the_same_name_that_is_gone_are_deleted() -> None:
    packing, of = Packing("IPv4"), svc()
    set_desired_pods(packing, of, 1)
    apply_plan(packing, of)
    of.metadata.uid = "another"
    assert apply_plan(packing, of) == (1, 0, 1)


def test_labels_of_the_service_are_those_of_its_slices() -> None:
    packing, of = Packing("IPv4"), svc()
    set_desired_pods(packing, of, *range(150))
    apply_plan(packing, of)
    of.metadata.labels = {"team": "x"}
    assert apply_plan(packing, of) == (0, 2, 0)
    assert all(each.metadata.labels["team"] == "x" for each in packing.slices.values())


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.lists(st.tuples(st.integers(0, 260), st.sampled_from(("ready", "not", "gone"))), max_size=120), max_size=8
    )
)
def test_whatever_changes_each_pod_is_listed_once_and_as_it_is(steps: list[list[tuple[int, str]]]) -> None:
    packing, of = Packing("IPv4"), svc()
    there: dict[str, bool] = {}
    for step in steps:
        for number, state in step:
            if state == "gone":
                packing.set_desired(f"p{number}", None)
                there.pop(f"p{number}", None)
            else:
                set_desired_pods(packing, of, number, ready=state == "ready")
                there[f"p{number}"] = state == "ready"
        apply_plan(packing, of)
        assert apply_plan(packing, of) == (0, 0, 0)
        listed = [each for slice_ in packing.slices.values() for each in slice_.endpoints or ()]
        assert max(Counter(map(pod_of, listed)).values(), default=1) == 1
        assert {pod_of(each): each.conditions.ready for each in listed} == there
        assert all(size <= MOST for size in sizes(packing))
