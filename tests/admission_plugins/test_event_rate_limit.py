"""Tests of EventRateLimit: allowed events, and the error for others."""

from __future__ import annotations

from typing import Any

from steersman.admission_plugins.event_rate_limit import EventRateLimit, Limit
from steersman.api.core.v1 import Event
from steersman.authentication.user import UserInfo
from steersman.machinery.codec.serializer import from_plain
from tests.admission_plugins.pods_and_namespaces import a_write, admitted, an_update, refusal


class Clock:
    """A clock that tests advance."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def make_event(namespace: str = "ns", obj: str = "o", *, user: str = "alice", **more: Any) -> Any:
    about = {"kind": "Pod", "namespace": namespace, "name": obj, "uid": "u", "apiVersion": "v1"}
    source = {"component": "kubelet", "host": "h"}
    metadata = {"name": "e", "namespace": namespace}
    event = from_plain(Event, {"metadata": metadata, "involvedObject": about, "source": source})
    record = a_write(event, resource="events", **more)
    record.user = UserInfo(user)
    return record


async def test_a_burst_is_let_through_and_then_so_many_a_second() -> None:
    clock = Clock()
    plugin = EventRateLimit([Limit("Server", 2, 3)], clock)
    for _ in range(3):
        await admitted(plugin, make_event())
    error = await refusal(plugin, make_event())
    assert (error.code, error.reason) == (429, "TooManyRequests")
    assert error.message == "Too many requests: limit reached on type Server for key "
    clock.now += 0.25
    await refusal(plugin, make_event())
    clock.now += 0.25
    await admitted(plugin, make_event())
    await refusal(plugin, make_event())
    clock.now += 60
    for _ in range(3):
        await admitted(plugin, make_event())
    await refusal(plugin, make_event())


async def test_each_has_a_bucket_of_its_own() -> None:
    for type_, other in (
        ("Namespace", make_event("other")),
        ("User", make_event(user="bob")),
        ("SourceAndObject", make_event(obj="other")),
    ):
        plugin = EventRateLimit([Limit(type_, 1, 1)], Clock())
        await admitted(plugin, make_event())
        key = {"Namespace": "ns", "User": "alice", "SourceAndObject": "kubelethPodnsouv1"}[type_]
        assert (await refusal(plugin, make_event())).message == (
            f"Too many requests: limit reached on type {type_} for key {key}"
        )
        await admitted(plugin, other)


async def test_every_limit_is_charged_and_told() -> None:
    clock = Clock()
    plugin = EventRateLimit([Limit("User", 1, 1), Limit("Namespace", 1, 2)], clock)
    await admitted(plugin, make_event())
    assert "type User" in (await refusal(plugin, make_event())).message
    assert (await refusal(plugin, make_event(user="bob", namespace="ns"))).message.endswith("type Namespace for key ns")
    assert (await refusal(plugin, make_event())).message == (
        "Too many requests: [limit reached on type User for key alice, limit reached on type Namespace for key ns]"
    )


async def test_updates_count_and_dry_runs_do_not() -> None:
    plugin = EventRateLimit([Limit("Server", 1, 1)], Clock())
    await admitted(plugin, make_event(dry_run=True))
    record = make_event()
    await admitted(plugin, an_update(record.obj, record.obj, resource="events"))
    await refusal(plugin, make_event())


async def test_the_bucket_that_was_not_used_for_longest_is_forgotten() -> None:
    plugin = EventRateLimit([Limit("User", 1, 1, cache_size=2)], Clock())
    for user in ("a", "b"):
        await admitted(plugin, make_event(user=user))
    await refusal(plugin, make_event(user="a"))
    await admitted(plugin, make_event(user="c"))
    await refusal(plugin, make_event(user="a"))
    await admitted(plugin, make_event(user="b"))


async def test_of_long_keys_little_is_kept() -> None:
    plugin = EventRateLimit([Limit("SourceAndObject", 1, 1)], Clock())
    long = "x" * 100_000
    await admitted(plugin, make_event(obj=long))
    assert long in (await refusal(plugin, make_event(obj=long))).message
    await admitted(plugin, make_event(obj=f"{long}y"))
    (buckets,) = plugin._buckets
    assert max(map(len, buckets._buckets_by_key)) <= 256
