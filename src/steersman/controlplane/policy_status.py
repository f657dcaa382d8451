"""Type checking of ValidatingAdmissionPolicies: warnings in the status about expressions that do not fit their kinds.

In a cluster kube-controller-manager does this (`pkg/controller/validatingadmissionpolicystatus`). If `--controllers`
enables this controller, it writes the same status under the same manager, once for each generation, so that the second
of two controllers has nothing to do.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from steersman.api.admissionregistration.v1 import ExpressionWarning, ValidatingAdmissionPolicy
from steersman.controlplane.objects import StoreObjects
from steersman.machinery.errors.status import StatusError
from steersman.machinery.identity.action import Action
from steersman.rest.context import LOOPBACK, Context
from steersman.rest.objects import Reading
from steersman.server.server import Server
from steersman.store.follower import Follower
from steersman.store.store import Store
from steersman.work.first_use import import_offloaded
from steersman.work.offloading import bound, current
from steersman.work.work_queue import WorkQueue

if TYPE_CHECKING:
    from steersman.controlplane.type_checking import TypeChecker
    from steersman.openapi.remote import RemoteDocuments

logger = logging.getLogger(__name__)

GROUP: Final = "admissionregistration.k8s.io"
PLURAL: Final = "validatingadmissionpolicies"
MANAGER: Final = "validatingadmissionpolicy-status"
"""Field manager of the status, and the account of the work, which is limited to a user's fair share."""
_FIRST: Final = 1.0
_LONGEST: Final = 300.0
_GONE: Final = (404, 409)
"""Codes for a policy that was deleted meanwhile or replaced under the same name; the new one is queued separately."""

_GENERATIONS: Final[Reading[tuple[int, int]]] = Reading(
    lambda policy: (policy.metadata.generation, policy.status.observed_generation),
    "metadata.generation",
    "status.observedGeneration",
)


class PolicyStatus:
    """Controller that follows the policies from `start` to `stop`, and checks one at a time."""

    def __init__(
        self, server: Server, store: Store[Any], objects: StoreObjects, remote: Callable[[], RemoteDocuments]
    ) -> None:
        self._server: Final = server
        self._objects: Final = objects
        self._remote: Final = remote
        self._checker: TypeChecker | None = None
        self._queue: Final[WorkQueue[str]] = WorkQueue(base_delay=_FIRST, max_delay=_LONGEST)
        self._follower: Final = Follower(store, self._changed)

    def start(self) -> None:
        """Check all policies that are not checked yet, and every policy that changes."""
        self._queue.start(self._sync, name="policy status", workers=1)
        self._follower.begin()

    async def stop(self) -> None:
        """Stop checking."""
        await self._queue.stop()

    def _changed(self, namespace: str, name: str, entry: object) -> None:
        if entry is None:
            self._queue.discard(name)
        else:
            self._queue.add(name)

    async def _sync(self, name: str) -> None:
        """Check a policy if its status is out of date. Raises StatusError if the status cannot be written now."""
        known = self._objects.read_cached("", name, _GENERATIONS)
        if known is not None and known[0] > known[1]:
            with bound(current().for_user(MANAGER)):
                await self._check(name)

    async def _check(self, name: str) -> None:
        policy: ValidatingAdmissionPolicy | None = await self._objects.get_cached("", name)
        if policy is None:
            return
        checker = await self._type_checker()
        from steersman.admission_rules.type_checking import WarningsTooLarge

        try:
            warnings = await checker.check(policy.spec)
        except WarningsTooLarge as error:
            logger.warning("type checking of policy %s gave up: %s", name, error)
            return
        configuration = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name},
            "status": {
                "observedGeneration": policy.metadata.generation,
                "typeChecking": _type_checking_status(warnings),
            },
        }
        ctx = Context(LOOPBACK, Action(name=name))
        try:
            await self._objects.apply(ctx, name, configuration, MANAGER, subresource="status", uid=policy.metadata.uid)
        except StatusError as error:
            if error.code not in _GONE:
                raise

    async def _type_checker(self) -> TypeChecker:
        """Return the type checker, whose module is imported in a thread with the first policy."""
        if self._checker is None:
            module = await import_offloaded("steersman.controlplane.type_checking")
            made: TypeChecker = module.TypeChecker(self._server.catalogue, self._fetch)
            self._checker = made
        return self._checker

    async def _fetch(self, name: str) -> bytes | None:
        remote = self._remote()
        converted = remote.converted.get(name)
        if converted is not None:
            return converted.data
        index = next((each for each in remote.v3.values() if name in each.urls), None)
        return None if index is None else await index.fetch(name)


def _type_checking_status(warnings: list[ExpressionWarning]) -> dict[str, Any]:
    if not warnings:
        return {}
    return {"expressionWarnings": [{"fieldRef": each.field_ref, "warning": each.warning} for each in warnings]}
