"""Observations about the requests of clients that a developer wants to know of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from steersman.machinery.identity.schema import GroupResource
from steersman.report.tally import OTHERS, ClientCounts, ObjectKey, Tally, Target

_OFTEN: Final = 10
"""Writes of one object from which on they are told."""
_TURNS: Final = 3
"""Turns of several writers of an object from which on they count as a fight."""
_MOST: Final = 20
"""Observations of a kind that are told of one client."""


class Observation(Struct, frozen=True, rename="camel"):
    """Something about a client's requests: a kind, a number of requests, and a sentence."""

    kind: str
    client: str
    count: int
    message: str


def observations(tally: Tally) -> list[Observation]:
    """Return all observations, those with the most requests first."""
    found = [each for client in tally.clients.values() for each in _of_client(client)]
    found += _fights(tally)
    return sorted(found, key=lambda each: (-each.count, each.client, each.message))


def _of_client(client: ClientCounts) -> Iterator[Observation]:
    name = client.user_agent

    def told(kind: str, count: int, message: str) -> Observation:
        return Observation(kind, name, count, message)

    for key, count in client.unchanged.most_common(_MOST):
        yield told("UnchangedWrites", count, f"{_times(count, 'write')} of {_object(key)} changed nothing")
    for key, count in client.writes.most_common(_MOST):
        if count >= _OFTEN and key[0] != OTHERS:
            yield told("RepeatedWrites", count, f"{_object(key)} was written {count} times")
    for target, count in client.unlimited.most_common(_MOST):
        if count > 1:
            yield told(
                "UnlimitedLists",
                count,
                f"{_times(count, 'list')} of all {_resource(target)}, without limit or selector",
            )
    for target, count in client.watches.most_common(_MOST):
        if count > 1:
            yield told("RestartedWatches", count, f"{_times(count, 'watch', 'watches')} of {_resource(target)}")
    for code, kind, message in (
        (409, "Conflicts", "met a conflict (409)"),
        (410, "Expired", "asked for a revision that has expired (410)"),
        (429, "Throttled", "were throttled (429)"),
        (403, "Forbidden", "were forbidden (403)"),
        (422, "Invalid", "were invalid (422)"),
    ):
        if count := client.codes[code]:
            yield told(kind, count, f"{_times(count, 'request')} {message}")
    if count := sum(number for code, number in client.codes.items() if code >= 500):
        yield told("ServerErrors", count, f"{_times(count, 'request')} failed on the server's side (5xx)")


def _fights(tally: Tally) -> Iterator[Observation]:
    for key, count in tally.turns.most_common(_MOST):
        if count >= _TURNS:
            rivals = ", ".join(sorted(tally.rivals[key])[:5])
            yield Observation("Fights", rivals, count, f"{rivals} change {_object(key)} in turns, {count} times")


def _times(count: int, one: str, many: str = "") -> str:
    return f"1 {one}" if count == 1 else f"{count} {many or one + 's'}"


def _object(key: ObjectKey) -> str:
    resource, namespace, name = key
    return f"{resource} {namespace}/{name}" if namespace else f"{resource} {name}"


def _resource(target: Target) -> str:
    group, resource, _ = target
    return str(GroupResource(group, resource))
