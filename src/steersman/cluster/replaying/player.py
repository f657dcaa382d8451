"""Player of a recording: does at each time what users did then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from steersman.api.meta.v1 import DeleteOptions
from steersman.client.api_resource import APIResource
from steersman.client.client import Client
from steersman.client.discovery import preferred_resources
from steersman.client.errors import ignoring, is_already_exists, is_not_found
from steersman.client.transport import Unreachable
from steersman.cluster.replaying.plan import Action, Planner
from steersman.dumps.recordings import Change
from steersman.machinery.errors.status import StatusError
from steersman.work import simulated_time

logger = logging.getLogger(__name__)

_MOST_PROBLEMS: Final = 1000
"""Refused actions whose reasons are kept."""
_ATTEMPTS: Final = 5
_AGAIN: Final = 0.1
"""Seconds between attempts to find a kind that was defined just before."""


@dataclass(slots=True)
class Played:
    """Result of a replay."""

    changes: int = 0
    actions: dict[str, int] = field(default_factory=lambda: {"create": 0, "patch": 0, "delete": 0})
    refused: int = 0
    problems: list[str] = field(default_factory=list)
    """Reasons of refused actions."""
    seconds: float = 0.0
    """Simulated seconds that were played."""


class Player:
    """Plays changes on a cluster through its API."""

    def __init__(
        self, client: Client, planner: Planner, *, progress: Callable[[Played], object] = lambda _: None
    ) -> None:
        self._client = client
        self._planner = planner
        self._progress = progress
        self._resources: dict[tuple[str, str], APIResource[Any]] = {}
        self.played = Played()

    async def play(self, changes: Iterable[Change], *, start: float, until: float) -> Played:
        """Play the changes from `start` to `until`, in seconds since 1970, by the clock of the cluster."""
        began, played = simulated_time.time(), self.played
        for change in changes:
            if change.time > until:
                break
            played.changes += 1
            for action in self._planner.actions(change):
                await simulated_time.sleep(max(action.time - start - (simulated_time.time() - began), 0.0))
                await self._do(action)
                self._progress(played)
            played.seconds = change.time - start
        if until < float("inf"):
            await simulated_time.sleep(max(until - start - (simulated_time.time() - began), 0.0))
            played.seconds = until - start
        return played

    async def _do(self, action: Action) -> None:
        try:
            await self._send(action)
            self.played.actions[action.verb] += 1
        except (StatusError, LookupError, Unreachable) as error:
            _, kind, namespace, name = action.key
            text = f"{action.verb} {kind} {namespace}/{name}: {error}"
            logger.warning("%s", text)
            self.played.refused += 1
            if len(self.played.problems) < _MOST_PROBLEMS:
                self.played.problems.append(text)

    async def _send(self, action: Action) -> None:
        """Send the request of an action. Raises StatusError, LookupError, Unreachable."""
        resource = await self._resource(action)
        _, _, namespace, name = action.key
        if action.verb == "create":
            with ignoring(is_already_exists):
                await self._client.create(resource, action.body, namespace)
            return
        if action.verb == "patch":
            await self._client.patch_without_result(resource, name, namespace, action.body)
            return
        with ignoring(is_not_found):  # such as a Job that its time limit has removed
            if action.body:
                await self._client.patch_without_result(resource, name, namespace, action.body)
            await self._client.delete(resource, name, namespace, DeleteOptions(propagation_policy="Background"))

    async def _resource(self, action: Action) -> APIResource[Any]:
        """Return the resource of an object. Raises LookupError if its kind is not served."""
        group, kind = action.key[:2]
        for _ in range(_ATTEMPTS):
            found = self._resources.get((group, kind))
            if found is not None:
                version = action.api_version.rpartition("/")[2]
                return APIResource(group, version, found.plural, kind, dict, found.namespaced)
            for each in (await preferred_resources(self._client)).served:
                self._resources[each.resource.group, each.resource.kind] = each.resource
            if (group, kind) not in self._resources:
                await asyncio.sleep(_AGAIN)
        raise LookupError(f"nothing defines {kind} ({action.api_version})")
