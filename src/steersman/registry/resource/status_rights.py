"""Authorization of writes to parts of a ResourceClaim's status: schedulers bind claims, drivers report devices.

In addition to `resourceclaims/status` upstream requires permissions on two synthetic subresources
(DRAResourceClaimGranularStatusAuthorization): `resourceclaims/binding`, and `resourceclaims/driver` with the name of
the driver. The verbs of the latter distinguish the devices of any node from those of the user's own node.
"""

from __future__ import annotations

from typing import Final

from steersman.api.resource.v1 import AllocationResult, ResourceClaim, ResourceClaimStatus
from steersman.authorization.attributes import Attributes
from steersman.authorization.forbidden import refusal
from steersman.authorization.impersonation import runs_on
from steersman.authorization.interface import Authorizer, decide
from steersman.machinery.errors.field import FieldError, Path, forbidden
from steersman.machinery.identity.action import Action
from steersman.registry.resource.claim_status_validation import device_id
from steersman.rest.context import Context

_STATUS: Final = Path("status")


async def missing_permissions(
    authorizer: Authorizer, ctx: Context, new: ResourceClaim, old: ResourceClaim
) -> list[FieldError]:
    """Return errors for the changed parts that the request user may not change."""
    authorization = _StatusAuthorization(authorizer, ctx)
    return [
        *await authorization.check_binding(new.status, old.status),
        *await authorization.check_devices(new.status, old.status),
    ]


class _StatusAuthorization:
    def __init__(self, authorizer: Authorizer, ctx: Context) -> None:
        self._authorizer = authorizer
        self._ctx = ctx

    async def check_binding(self, new: ResourceClaimStatus, old: ResourceClaimStatus) -> list[FieldError]:
        """Check the permission to change allocation or consumers, which applies to all claims."""
        if (new.allocation, new.reserved_for) == (old.allocation, old.reserved_for):
            return []
        verb = self._ctx.action.verb
        why = await self._refusal(verb, "binding", namespace="", name="")
        if not why:
            return []
        needed = f'resource="resourceclaims/binding", verb="{verb}" permission'
        detail = f"changing status.allocation or status.reservedFor requires {needed}: {why}"
        return [forbidden(_STATUS / "allocation", detail)]

    async def check_devices(self, new: ResourceClaimStatus, old: ResourceClaimStatus) -> list[FieldError]:
        """Check the permission for each driver whose device statuses changed."""
        if new.allocation is None:
            return []
        verbs = [f"arbitrary-node:{self._ctx.action.verb}"]
        if runs_on(self._ctx.user, _node_of(new.allocation)):
            verbs.insert(0, f"associated-node:{self._ctx.action.verb}")
        found = []
        for driver in sorted(_changed_drivers(new, old)):
            why = ""
            for verb in verbs:
                refusal = await self._refusal(verb, "driver", namespace=self._ctx.action.namespace, name=driver)
                if not refusal:
                    break
                why = why or refusal
            else:
                needed = f'resource="resourceclaims/driver", verb="[{" ".join(verbs)}]" permission'
                found.append(forbidden(_STATUS / "devices", f"changing status.devices requires {needed}: {why}"))
        return found

    async def _refusal(self, verb: str, subresource: str, *, namespace: str, name: str) -> str:
        """Return the reason of the refusal, "" if the user has the permission."""
        request = self._ctx.action
        action = Action(verb, request.group, request.version, "resourceclaims", subresource, namespace, name)
        attributes = Attributes(self._ctx.user, action)
        verdict = await decide(self._authorizer, attributes)
        return "" if verdict.allowed else refusal(attributes, verdict).message


def _changed_drivers(new: ResourceClaimStatus, old: ResourceClaimStatus) -> set[str]:
    before = {device_id(each): each for each in old.devices}
    changed = {each.driver for each in new.devices if before.pop(device_id(each), None) != each}
    return changed | {each.driver for each in before.values()}


def _node_of(allocation: AllocationResult) -> str:
    """Return the only node that has the devices, "" if several nodes may have them."""
    terms = [] if allocation.node_selector is None else allocation.node_selector.node_selector_terms or []
    if len(terms) != 1 or terms[0].match_expressions or len(terms[0].match_fields) != 1:
        return ""
    [field] = terms[0].match_fields
    return field.values[0] if (field.key, field.operator, len(field.values)) == ("metadata.name", "In", 1) else ""
