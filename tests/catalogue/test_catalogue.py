"""The content of a catalogue while resources are added and removed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from steersman.catalogue.catalogue import Catalogue, Group, Priority, version_order
from steersman.kinds.open import OpenKind
from steersman.machinery.identity.schema import GroupVersionKind
from steersman.rest.resource import OtherVersion, Subresource
from steersman.rest.strategy import Strategy
from tests.catalogue.resources import resource
from tests.unasked import UnaskedStorage, unasked


@pytest.fixture
def catalogue() -> Catalogue:
    shared: Any = SimpleNamespace()
    return Catalogue(shared)


def names(found: Any) -> list[str]:
    return [f"{each.version}/{each.resource.plural}" for each in found]


def groups(catalogue: Catalogue) -> dict[str, tuple[str, ...]]:
    return {each.name: each.versions for each in catalogue.groups()}


def test_what_is_put_is_found_and_what_is_removed_is_not(catalogue: Catalogue) -> None:
    bound, storage = unasked(resource("foos", "v1", "v1beta1"))
    catalogue.put(bound, storage)
    catalogue.put(*unasked(resource("bars", "v1")))
    template = "/apis/e.x/v1beta1/namespaces/{namespace}/foos/{name}"
    assert catalogue.routes[template].resource == "foos"
    assert names(catalogue.resources("e.x", "v1")) == ["v1/bars", "v1/foos"]
    assert names(catalogue.mapper.resources_for(GroupVersionKind("e.x", "v1beta1", "Foos"))) == ["v1beta1/foos"]
    assert catalogue.roots == {"/apis/e.x/v1": 2, "/apis/e.x/v1beta1": 1}
    assert catalogue.remove("e.x", "foos") is storage
    assert template not in catalogue.routes
    assert names(catalogue.served()) == ["v1/bars"]
    assert catalogue.roots == {"/apis/e.x/v1": 1}
    assert not catalogue.mapper.resources_for(GroupVersionKind("e.x", "v1", "Foos"))
    catalogue.remove("e.x", "bars")
    assert (catalogue.routes, catalogue.roots, list(catalogue.groups()), catalogue.group("e.x")) == ({}, {}, [], None)
    with pytest.raises(KeyError):
        catalogue.remove("e.x", "bars")


def test_a_resource_that_is_put_again_takes_the_place_of_the_first(catalogue: Catalogue) -> None:
    catalogue.put(*unasked(resource("foos", "v1", "v1beta1")))
    catalogue.put(*unasked(resource("foos", "v2", "v1", verbs=("get",))))
    assert groups(catalogue) == {"e.x": ("v2", "v1")}
    route = catalogue.routes["/apis/e.x/v1/namespaces/{namespace}/foos/{name}"]
    assert list(route.methods) == ["GET"]
    assert not any("v1beta1" in template for template in catalogue.routes)


def test_two_resources_cannot_have_one_path(catalogue: Catalogue) -> None:
    catalogue.put(*unasked(resource("foos", "v1")))
    elsewhere = resource("foos", "v1", group="other")
    other = OtherVersion(OpenKind(GroupVersionKind("e.x", "v1", "Foo")), lambda obj: obj, lambda obj: obj)
    with pytest.raises(ValueError, match=r"foos of e\.x/v1 are served already"):
        catalogue.put(*unasked(replace(elsewhere, other_versions=(other,))))
    assert names(catalogue.served()) == ["v1/foos"]


def test_versions_that_are_off_are_not_there(catalogue: Catalogue) -> None:
    catalogue.put(*unasked(resource("foos", "v1", "v1beta1")), serves=lambda group, version, plural: version == "v1")
    assert groups(catalogue) == {"e.x": ("v1",)}
    assert all("/v1/" in template for template in catalogue.routes)


def test_groups_and_versions_are_in_the_order_of_their_priorities(catalogue: Catalogue) -> None:
    for group in ("b", "a", "c"):
        catalogue.put(*unasked(resource("foos", "v1", "v2", group=group)))
    assert list(catalogue.groups()) == [Group("a", ("v2", "v1")), Group("b", ("v2", "v1")), Group("c", ("v2", "v1"))]
    catalogue.set_priority("c", "v1", Priority(2000, 200))
    catalogue.set_priority("b", "v2", Priority(1500, 1))
    assert list(catalogue.groups()) == [Group("c", ("v1", "v2")), Group("b", ("v1", "v2")), Group("a", ("v2", "v1"))]


def test_a_group_version_of_which_nothing_is_said_any_more_comes_last(catalogue: Catalogue) -> None:
    for group in ("a", "b"):
        catalogue.put(*unasked(resource("foos", group=group)))
    catalogue.set_priority("b", "v1", Priority(2000))
    assert [each.name for each in catalogue.groups()] == ["b", "a"]
    catalogue.set_priority("b", "v1", None)
    assert [each.name for each in catalogue.groups()] == ["a", "b"]


def test_versions_are_sorted_as_kubernetes_does() -> None:
    """Source: Kubernetes, Versions in CustomResourceDefinitions, Version priority."""
    order = ["v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10"]
    by_name = sorted(order)
    assert sorted(by_name, key=version_order) == order


def test_whoever_subscribes_is_told_of_each_group_that_changes(catalogue: Catalogue) -> None:
    catalogue.put(*unasked(resource("foos")))
    notified: list[str] = []
    catalogue.subscribe(notified.append)
    assert notified == ["e.x"]
    before = catalogue.revision
    catalogue.put(*unasked(resource("bars", group="other")))
    catalogue.remove("e.x", "foos")
    catalogue.set_priority("other", "v1", Priority())
    assert notified[1:] == ["other", "e.x", "other"]
    assert catalogue.revision == before + 3


def test_old_and_new_groups_are_told_of_when_a_resource_changes_its_versions(catalogue: Catalogue) -> None:
    moved = resource("foos", "v1")
    other = OtherVersion(OpenKind(GroupVersionKind("more", "v1", "Foo")), lambda obj: obj, lambda obj: obj)
    catalogue.put(*unasked(replace(moved, other_versions=(other,))))
    notified: list[str] = []
    catalogue.subscribe(notified.append)
    notified.clear()
    catalogue.put(*unasked(moved))
    assert sorted(notified) == ["e.x", "more"]
    assert groups(catalogue) == {"e.x": ("v1",)}


def calls_of(work: Callable[[], Any]) -> int:
    """Return the number of function calls, with those of C functions."""
    calls = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_one_more_resource_costs_the_same_however_many_there_are(catalogue: Catalogue) -> None:
    def put_and_remove() -> None:
        catalogue.put(*unasked(resource("last", group="last")))
        catalogue.remove("last", "last")

    put_and_remove()
    alone = calls_of(put_and_remove)
    for number in range(1000):
        catalogue.put(*unasked(resource(f"foos{number}", group=f"g{number % 10}")))
    assert min(calls_of(put_and_remove) for _ in range(3)) <= alone  # collections of garbage are counted too


class OnlyReads:
    """A storage that can only get and list, like that of a computed resource."""

    get = list = UnaskedStorage.get
    decode, remember = UnaskedStorage.decode, UnaskedStorage.remember


def test_a_resource_has_the_verbs_that_its_storage_can_do(catalogue: Catalogue) -> None:
    below = (
        Subresource(name="status", strategy=Strategy()),
        Subresource(name="finalize", strategy=Strategy(), verbs=("update",)),
    )
    bound, _ = unasked(resource("foos", subresources=below))
    catalogue.put(bound, OnlyReads())
    (served,) = catalogue.served()
    assert served.resource.verbs == ("get", "list")
    assert [(each.name, each.verbs) for each in served.resource.subresources] == [("status", ("get",))]
    root = "/apis/e.x/v1/namespaces/{namespace}/foos"
    assert {template: tuple(route.methods) for template, route in catalogue.routes.items()} == {
        root: ("GET",),
        "/apis/e.x/v1/foos": ("GET",),
        f"{root}/{{name}}": ("GET",),
        f"{root}/{{name}}/status": ("GET",),
    }


def test_a_resource_that_can_all_it_declares_stays_as_it_is(catalogue: Catalogue) -> None:
    bound, storage = unasked(resource("foos", verbs=("get", "watch")))
    catalogue.put(bound, storage)
    (served,) = catalogue.served()
    assert served.resource is bound.resource


def test_what_is_not_announced_answers_and_is_not_told_of(catalogue: Catalogue) -> None:
    """Authorizers still find its kind, as requests for it have to be authorized."""
    notified: list[str] = []
    catalogue.subscribe(notified.append)
    catalogue.put(*unasked(resource("foos", by_definition=True)), announced=False)
    assert "/apis/e.x/v1/namespaces/{namespace}/foos" in catalogue.routes
    assert (list(catalogue.groups()), list(catalogue.served()), notified) == ([], [], [])
    assert names([catalogue.mapper.get("e.x", "v1", "foos")]) == ["v1/foos"]
    assert catalogue.is_defined("/apis/e.x/v1")
    catalogue.announce("e.x", "foos")
    catalogue.announce("e.x", "foos")
    assert (names(catalogue.served()), notified) == (["v1/foos"], ["e.x"])
    assert names(catalogue.mapper.resources_for(GroupVersionKind("e.x", "v1", "Foos"))) == ["v1/foos"]
    catalogue.remove("e.x", "foos")
    assert not catalogue.is_defined("/apis/e.x/v1")


def test_what_was_never_announced_is_taken_out(catalogue: Catalogue) -> None:
    notified: list[str] = []
    catalogue.subscribe(notified.append)
    catalogue.put(*unasked(resource("foos")), announced=False)
    assert len(catalogue.mapper.resources_for(GroupVersionKind("e.x", "v1", "Foos"))) == 1
    catalogue.remove("e.x", "foos")
    assert (catalogue.routes, catalogue.roots, notified) == ({}, {}, [])
    assert not catalogue.mapper.resources_for(GroupVersionKind("e.x", "v1", "Foos"))
