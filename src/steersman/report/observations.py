"""Observations about the requests of clients that a developer wants to know of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from steersman.machinery.identity.schema import GroupResource
from steersman.report.tally import OTHERS, ClientCounts, ObjectKey, Tally, Target

_OFTEN: Final = 10
"""Writes of one object from which on they are told."""
_TURNS: Final = 3
"""Turns of several writers of an object from which on they count as a fight."""
_SHOWN: Final = 3
"""Verbs and resources that are named in an observation about failed requests."""
_NONE: Final[Counter[Target]] = Counter()
_HEALTH: Final = ("/healthz", "/livez", "/readyz")
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
    for key, count in client.most_writes.most_common(_MOST):
        if count >= _OFTEN and key[0] != OTHERS:
            yield told("RepeatedWrites", count, f"{_object(key)} was written {count} times")
    for target, count in client.unlimited.most_common(_MOST):
        if count > 1:
            yield told(
                "UnlimitedLists",
                count,
                f"{_times(count, 'list')} of all {_resource(target)}, without limit or selector",
            )
    for key, count in client.restarts.most_common(_MOST):
        yield told("RestartedInformers", count, f"{_times(count, 'further start')} of an informer of {_all_of(key)}")
    for key, count in client.rewatches.most_common(_MOST):
        if count > 1:
            yield told(
                "RestartedWatches", count, f"{_times(count, 'further watch', 'further watches')} of {_all_of(key)}"
            )
    if count := client.denied.total():
        yield told("Forbidden", count, f"{_times(count, 'request')} lacked a right (403): {_targets(client.denied)}")
    for code, kind, message in (
        (409, "Conflicts", "met a conflict (409)"),
        (410, "Expired", "asked for a revision that has expired (410)"),
        (429, "Throttled", "had to come again later (429)"),
        (403, "Refused", "did not pass admission (403)"),
        (422, "Invalid", "had an invalid object (422)"),
    ):
        if failures := client.failures.get(code, _NONE) - (client.denied if code == 403 else _NONE):
            count = failures.total()
            yield told(kind, count, f"{_times(count, 'request')} {message}: {_targets(failures)}")
    if errors := _server_errors(client):
        count = errors.total()
        yield told(
            "ServerErrors", count, f"{_times(count, 'request')} failed on the server's side (5xx): {_targets(errors)}"
        )
    for text, count in client.warnings.most_common():
        kind = "DeprecatedAPIs" if " is deprecated in v" in text else "Warnings"
        yield told(kind, count, f"{_times(count, 'answer')} with the warning: {text}")


def _server_errors(client: ClientCounts) -> Counter[Target]:
    """Return the requests that failed on the server's side, without those that asked whether it is ready."""
    found: Counter[Target] = sum((each for code, each in client.failures.items() if code >= 500), Counter())
    return Counter({target: count for target, count in found.items() if not target[1].startswith(_HEALTH)})


def _fights(tally: Tally) -> Iterator[Observation]:
    for key, count in tally.turns.most_common(_MOST):
        if count >= _TURNS:
            about, path = key
            rivals = ", ".join(sorted(tally.rivals[key]))
            field = f"{path.removeprefix('.')} of {_object(about)}" if path else _object(about)
            yield Observation("Fights", rivals, count, f"change {field} in turns, {count} times")


def _targets(counts: Counter[Target]) -> str:
    """Return the most frequent verbs and resources of some requests."""
    shown = [
        f"{verb} {_resource((group, resource, verb))}" for (group, resource, verb), _ in counts.most_common(_SHOWN)
    ]
    return ", ".join(shown) + (", ..." if len(counts) > _SHOWN else "")


def _all_of(key: ObjectKey) -> str:
    resource, namespace, _ = key
    return f"{resource} of the namespace {namespace}" if namespace else resource


def _times(count: int, one: str, many: str = "") -> str:
    return f"1 {one}" if count == 1 else f"{count} {many or one + 's'}"


def _object(key: ObjectKey) -> str:
    resource, namespace, name = key
    return f"{resource} {namespace}/{name}" if namespace else f"{resource} {name}"


def _resource(target: Target) -> str:
    group, resource, _ = target
    return str(GroupResource(group, resource))
