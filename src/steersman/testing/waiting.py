"""Waits for the state of objects in a test; a wait that fails reports the objects' state and the events about them."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

import yaml

from steersman.endpoints.discovery import ServedResource
from steersman.machinery.go.strings import to_lower
from steersman.machinery.suggestions import did_you_mean
from steersman.storage.interface import Event
from steersman.testing.client import Client

if TYPE_CHECKING:  # imported with the first server that starts
    from steersman.controlplane.control_plane import ControlPlane


T = TypeVar("T")
Until = str | Callable[[Any], bool]
"""`create`, `delete` or `condition=TYPE[=STATUS]` as of `kubectl wait --for`; or a function that is called with the
object, or the list of objects, and returns True if it is as wanted."""

_NOT: Final = {"create": "not there", "delete": "not gone"}
_LONGEST_STATE: Final = 6000
_MOST_SHOWN: Final = 20
_MOST_EVENTS: Final = 20
_LOOK_ANYWAY: Final = 0.02
"""Seconds between two checks of a resource that is not stored, and of a callable."""
_LEAST_PAUSE: Final = 0.002
"""Seconds between two checks of a stored resource at least."""
_LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"


class NotReached(AssertionError):
    """The awaited state was not reached. The text has the last state, without secrets, and the events about it."""


def find_resource(plane: ControlPlane, name: str) -> ServedResource:
    """Return a resource by its plural, singular, kind or short name, with `.GROUP` if ambiguous, as kubectl does.

    Raises ValueError for a resource that is not served.
    """
    assert plane.server is not None
    catalogue = plane.server.catalogue
    wanted, _, wanted_group = to_lower(name).partition(".")
    known: set[str] = set()
    for group in catalogue.groups():
        if wanted_group and wanted_group != group.name:
            continue
        for each in (each for version in group.versions for each in catalogue.resources(group.name, version)):
            resource = each.resource
            names = {resource.plural, resource.singular, to_lower(each.form.gvk.kind), *resource.short_names}
            if wanted in names:
                return each
            known |= names
    raise ValueError(f"the server has no resource {name!r}{did_you_mean(wanted, sorted(known))}")


class Wait:
    """Wait for an object, or with the name "" for the list of objects, in a namespace if the resource is namespaced."""

    def __init__(self, client: Client, resource: str, name: str, until: Until, namespace: str) -> None:
        """Prepare a wait. `client` may read everything.

        Raises ValueError for a resource that is not served, and for an invalid `until`.
        """
        self._client = client
        self._name = name
        self._until = until
        self._served = served = find_resource(client.plane, resource)
        self._namespace = namespace if served.resource.namespaced else ""
        self._reached = _condition_from(until)
        root = f"/apis/{served.group}/{served.version}" if served.group else f"/api/{served.version}"
        of = f"/namespaces/{quote(self._namespace, safe='')}" if self._namespace else ""
        self._target = f"{root}{of}/{served.resource.plural}" + (f"/{quote(name, safe='')}" if name else "")
        self._state: Any = None

    async def done(self, timeout: float) -> Any:
        """Wait, and return the object or the list; None for a deleted object.

        Raises NotReached after `timeout` seconds of real time.
        """
        deadline = time.monotonic() + timeout
        changed = asyncio.Event()
        following = await self._follow(changed)
        try:
            while True:
                changed.clear()
                self._state = await self._read_state()
                if self._reached(self._state):
                    return self._state
                left = deadline - time.monotonic()
                if left <= 0:
                    raise NotReached(await self._failure_message(timeout))
                try:
                    await asyncio.wait_for(changed.wait(), left if following is not None else _LOOK_ANYWAY)
                except TimeoutError:
                    continue
                await asyncio.sleep(_LEAST_PAUSE)
        finally:
            if following is not None:
                following.cancel()

    async def _follow(self, changed: asyncio.Event) -> Any:
        """Set `changed` at every write of the resource. Returns None for a resource that is not stored here."""
        plane = self._client.plane
        try:
            store = plane.store(self._served.resource.group, self._served.resource.plural)
        except KeyError:
            return None
        storage = plane.storage
        assert storage is not None

        def deliver(_: Sequence[Event]) -> None:
            changed.set()

        return await storage.subscribe(store.prefix, after_revision=storage.revision, deliver=deliver)

    async def _read_state(self) -> Any:
        answer = await self._client.get(self._target)
        if answer.status == 404:
            return None if self._name else []
        state = answer.json()
        if answer.status != 200:
            raise NotReached(f"GET {self._target}: {answer.status} {state.get('message', '')}")
        return state if self._name else state["items"]

    async def _failure_message(self, timeout: float) -> str:
        named = f"{self._served.resource.plural}{'/' + self._name if self._name else ''}"
        where = f" in namespace {self._namespace}" if self._namespace else ""
        until = self._until if isinstance(self._until, str) else _named(self._until)
        secret = (self._served.resource.group, self._served.resource.plural) == ("", "secrets")
        lines = [
            f"{named}{where}: {_NOT.get(until, f'not {until}')} after {timeout:g} s",
            "",
            "last state:",
            shown(self._state, secret=secret),
        ]
        events = await events_about(self._client, self._namespace, self._name)
        lines += ["", "events:", *(events or ["there are none"])]
        return "\n".join(lines)


async def until_true(what: Callable[[], object | Awaitable[object]], timeout: float) -> object:
    """Wait until `what`, or what it returns when awaited, is true, and return the result.

    Raises NotReached after `timeout` seconds of real time.
    """
    deadline = time.monotonic() + timeout
    while True:
        result = what()
        if inspect.isawaitable(result):
            result = await result
        if result:
            return result
        if time.monotonic() > deadline:
            raise NotReached(f"{_named(what)} gave {result!r} for {timeout:g} s")
        await asyncio.sleep(_LOOK_ANYWAY)


def blocking_until_true(what: Callable[[], T], timeout: float) -> T:
    """Wait until `what` returns something true, blocking this thread, and return it. Raises NotReached."""
    deadline = time.monotonic() + timeout
    while not (result := what()):
        if time.monotonic() > deadline:
            raise NotReached(f"{_named(what)} gave {result!r} for {timeout:g} s")
        time.sleep(_LOOK_ANYWAY)
    return result


def _condition_from(until: Until) -> Callable[[Any], bool]:
    if not isinstance(until, str):
        return lambda state: state is not None and until(state)
    match until.partition("=")[::2]:
        case "create", "":
            return bool
        case "delete", "":
            return lambda state: not state
        case "condition", condition if condition:
            type_, _, status = condition.partition("=")
            return lambda state: _has_condition(state, to_lower(type_), to_lower(status or "True"))
    raise ValueError(f"{until!r} is none of create, delete and condition=TYPE[=STATUS]")


def _has_condition(state: Any, type_: str, status: str) -> bool:
    """Return True if an object, or each object of a non-empty list, has the condition."""
    if isinstance(state, list):
        return bool(state) and all(_has_condition(each, type_, status) for each in state)
    conditions = ((state or {}).get("status") or {}).get("conditions") or ()
    return any(to_lower(each["type"]) == type_ and to_lower(each["status"]) == status for each in conditions)


def _named(what: object) -> str:
    """Return a function's name, and the place where it is defined."""
    code = getattr(what, "__code__", None)
    name = getattr(what, "__name__", repr(what))
    return f"{name} ({code.co_filename}:{code.co_firstlineno})" if code is not None else name


def shown(state: Any, *, secret: bool = False) -> str:
    """Return objects as YAML for people, without managedFields, and for a `secret` without data."""
    if not state:
        return "there is none"
    text = yaml.safe_dump(_clean(state, secret=secret), sort_keys=False, width=120).rstrip("\n")
    return text if len(text) <= _LONGEST_STATE else text[:_LONGEST_STATE] + "[...]"


def _clean(state: Any, *, secret: bool) -> Any:
    if isinstance(state, list):
        return [_clean(each, secret=secret) for each in state[:_MOST_SHOWN]]
    metadata = {key: value for key, value in state["metadata"].items() if key != "managedFields"}
    cleaned = {**state, "metadata": metadata}
    if secret:
        annotations = metadata.get("annotations") or {}
        metadata["annotations"] = {key: value for key, value in annotations.items() if key != _LAST_APPLIED}
        for field in ("data", "stringData"):
            if isinstance(cleaned.get(field), dict):
                cleaned[field] = {key: f"({len(str(value))} characters)" for key, value in cleaned[field].items()}
    return cleaned


async def events_about(client: Client, namespace: str, name: str = "") -> list[str]:
    """Return the last events of a namespace ("" for all), one per line.

    With `name`, these are events about objects of that name, and of names that begin with it and a hyphen, like the
    names of objects that it owns.
    """
    target = f"/api/v1/namespaces/{quote(namespace, safe='')}/events" if namespace else "/api/v1/events"
    answer = await client.get(target)
    if answer.status != 200:
        return []
    events = [each for each in answer.json()["items"] if _is_about(each, name)]
    events.sort(key=_when)
    return list(map(_line, events[-_MOST_EVENTS:]))


def _is_about(event: dict[str, Any], name: str) -> bool:
    about = event["involvedObject"].get("name", "")
    return not name or about == name or about.startswith(f"{name}-")


def _when(event: dict[str, Any]) -> str:
    return str(event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"])


def _line(event: dict[str, Any]) -> str:
    about = event["involvedObject"]
    count = (event.get("series") or event).get("count") or 1
    times = f" (x{count})" if count > 1 else ""
    where = f"{to_lower(about.get('kind', ''))}/{about.get('name', '')}"
    return f"{event.get('type', ''):<8}{event.get('reason', '')}{times}  {where}: {event.get('message', '')}"


def report(requests: Iterable[str], events: Iterable[str]) -> str:
    """Return the section about a server for the report of a failed test."""
    return "\n".join(["last requests:", *(requests or ["there were none"]), "events:", *(events or ["there are none"])])
