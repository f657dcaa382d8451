"""No rule compares all items of an object with each other: work grows with the number of items, not with its square.

Work is measured in function calls, including those that compare strings, so the results do not depend on the machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steersman.api.core import v1 as core
from steersman.api.meta.v1 import ObjectMeta, OwnerReference
from steersman.controlplane.resources import AGGREGATOR, KUBE_API
from steersman.endpoints import ownership
from steersman.machinery.codec.serializer import decoder, deep_copy
from steersman.machinery.errors.field import first_errors
from steersman.machinery.identity.action import Action
from steersman.registry.pod_template.path_warnings import overlapping_path_warnings
from steersman.registry.pod_template.warnings import warnings_for_pod
from steersman.rest.context import Context
from steersman.rest.resource import Resource
from tests.counted_work import SIZES, calls, is_too_steep, with_texts
from tests.registry.full_objects import Place, full_object, places
from tests.struct_class import struct_class


class Sizes:
    """Counts of function calls in each stage of an object's processing, for each of SIZES."""

    def __init__(self) -> None:
        self.counts: dict[str, list[int]] = {}

    def stage(self, name: str, work: Callable[[], object]) -> None:
        self.counts.setdefault(name, []).append(calls(lambda: _whole(work())))

    def steep(self) -> Iterator[str]:
        for name, counts in self.counts.items():
            if len(counts) == len(SIZES) and is_too_steep(counts):
                yield f"{name}: {counts}"


def _whole(result: object) -> None:
    if isinstance(result, Iterator):
        for _ in first_errors(result):
            pass


def _go_through(resource: Resource[Any], strategies: dict[str, Any], body: dict[str, Any], sizes: Sizes) -> None:
    kind = resource.kind
    read = decoder(struct_class(kind)).decode
    obj = read(json.dumps(body).encode())
    kind.internal_error(obj)
    sizes.stage("default", lambda: kind.default(obj))
    for name, strategy in strategies.items():
        _run_strategy(resource, name, strategy, obj, sizes)


def _run_strategy(resource: Resource[Any], name: str, strategy: Any, obj: Any, sizes: Sizes) -> None:
    """Run all rules of a strategy on a new object and an update, with plain strings where it encodes JSON."""
    ctx = Context(action=Action("", resource.group, "", resource.plural, "", "ns" if resource.namespaced else ""))
    new, old = deep_copy(obj), deep_copy(obj)
    strategy.prepare_for_update(ctx, new, old)
    for wrapped in (with_texts, lambda value: value):
        try:
            count_calls = _count_calls(ctx, name, strategy, *(wrapped(deep_copy(each)) for each in (obj, new, old)))
        except TypeError:
            continue  # it shows a part of the object as JSON, which takes no texts but plain ones
        for stage, counts in count_calls.counts.items():
            sizes.counts.setdefault(stage, []).extend(counts)
        return


def _count_calls(ctx: Context, name: str, strategy: Any, obj: Any, new: Any, old: Any) -> Sizes:
    sizes = Sizes()
    if not name:
        sizes.stage("create", lambda: strategy.validate(ctx, obj))
        sizes.stage("create warnings", lambda: ctx.warn_all(strategy.warnings_on_create(ctx, obj)))
    sizes.stage(f"{name} update", lambda: strategy.validate_update(ctx, new, old))
    sizes.stage(f"{name} warnings", lambda: ctx.warn_all(strategy.warnings_on_update(ctx, new, old)))
    return sizes


def _steep(resource: Resource[Any], strategies: dict[str, Any], *, pods: bool, metadata: bool) -> Iterator[str]:
    for place in places(struct_class(resource.kind), pods=pods, metadata=metadata):
        for distinct in (False, True):
            _go_through(resource, strategies, full_object(place, 1, distinct=distinct), Sizes())  # imports
            sizes = Sizes()
            for size in SIZES:
                _go_through(resource, strategies, full_object(place, size, distinct=distinct), sizes)
            if f"{resource.plural} {place}" not in BOUNDED:
                yield from (f"{place} ({'distinct' if distinct else 'equal'}): {each}" for each in sizes.steep())


BOUNDED = {"storageclasses allowedTopologies"}
"""Lists where upstream reports an error for each pair; `first_errors` limits their number."""

STORED = [resource for resource in (*AGGREGATOR, *KUBE_API) if resource.answerer is None and resource.reader is None]
SLOW = {"pods"}


@pytest.mark.parametrize(
    "resource",
    [pytest.param(each, id=each.plural, marks=pytest.mark.slow if each.plural in SLOW else ()) for each in STORED],
)
async def test_no_list_or_map_of_a_kind_makes_work_grow_faster_than_itself(
    cluster: Callable[..., Any], resource: Resource[Any]
) -> None:
    made = await cluster(*STORED)
    store = made.stores[resource.group, resource.plural]
    strategies = {"": store.strategy, **store.substrategies}
    plural = resource.plural
    found = list(_steep(resource, strategies, pods=plural in SLOW, metadata=plural == "configmaps"))
    assert not found, "\n".join(found)


@pytest.mark.parametrize("resource", STORED, ids=[each.plural for each in STORED])
def test_owning_fields_takes_no_longer_than_their_number(resource: Resource[Any]) -> None:
    owner = ownership.stored_field_manager(resource, "")
    assert owner.schema.root  # made once, as is the next
    assert owner.kind.empty
    time = "2020-01-01T00:00:00Z"

    def work(place: Place, count: int) -> int:
        body = full_object(place, count, distinct=True, first=1003 * count)  # new values: earlier ones are cached
        new = decoder(struct_class(resource.kind)).decode(json.dumps(body).encode())
        old = decoder(struct_class(resource.kind)).decode(json.dumps({"metadata": body["metadata"]}).encode())
        return calls(lambda: (owner.create(new, "m", time), owner.update(new, old, "m", time)))

    found = {}
    for place in places(struct_class(resource.kind), pods=False, metadata=resource.plural == "configmaps"):
        work(place, 1)  # what is made once for a class
        counts = [work(place, size) for size in SIZES]
        if is_too_steep(counts):
            found[str(place)] = counts
    assert not found


def test_a_count_that_grows_with_the_square_is_seen() -> None:
    def pairwise(count: int) -> int:
        items = with_texts([f"a{number}" for number in range(count)])
        return calls(lambda: [item for index, item in enumerate(items) if item in items[:index]])

    def once(count: int) -> int:
        return calls(lambda: set(with_texts([f"a{number}" for number in range(count)])))

    assert is_too_steep([pairwise(size) for size in SIZES])
    assert not is_too_steep([once(size) for size in SIZES])


@pytest.mark.parametrize("host_port", [0, 80])
def test_equal_ports_are_told_as_far_as_the_answer_has_room(host_port: int) -> None:
    port = core.ContainerPort(container_port=80, host_port=host_port, protocol="TCP")
    pod = core.Pod(spec=core.PodSpec(containers=[core.Container(name="c", ports=[port] * 2000)]))
    ctx = Context()
    ctx.warn_all(warnings_for_pod(pod))
    assert 32 <= len(ctx.warnings) < 200
    assert ctx.warnings[0] == (
        "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"
    )


def test_ports_without_conflicts_are_not_held_against_each_other() -> None:
    def work(count: int) -> int:
        ports = [core.ContainerPort(container_port=80, host_port=1 + n, protocol="TCP") for n in range(count)]
        pod = core.Pod(spec=core.PodSpec(containers=[core.Container(name="c", ports=ports)]))
        return calls(lambda: list(warnings_for_pod(pod)))

    assert not is_too_steep([work(size) for size in SIZES])


@pytest.mark.parametrize("path", ["a", "a{}", "a{}/b", "{}"])
def test_files_of_a_volume_are_not_held_against_each_other(path: str) -> None:
    def work(count: int) -> int:
        items = [core.KeyToPath(key="k", path=path.format(number)) for number in range(count)]
        volume = core.Volume(name="v", config_map=core.ConfigMapVolumeSource(name="c", items=items))
        return calls(lambda: list(overlapping_path_warnings([volume])))

    assert not is_too_steep([work(size) for size in SIZES])


def test_owners_given_twice_are_found_without_comparing_all() -> None:
    class Request:
        warnings: list[str] = []

    def work(count: int) -> int:
        owners = [
            with_texts(OwnerReference(api_version="v1", kind="A", name=f"a{n}", uid=f"u{n}")) for n in range(count)
        ]
        obj = core.ConfigMap(metadata=ObjectMeta(owner_references=owners))
        return calls(lambda: ownership.deduplicate_owners(Request, obj, after_admission=False))  # type: ignore[arg-type]

    assert not is_too_steep([work(size) for size in SIZES])


def test_a_place_is_named_by_its_fields() -> None:
    names = {str(place) for place in places(core.ConfigMap, pods=False, metadata=True)}
    assert {"data", "metadata.labels", "metadata.ownerReferences"} <= names
    assert all(isinstance(place, Place) for place in places(core.Pod, pods=True, metadata=False))
