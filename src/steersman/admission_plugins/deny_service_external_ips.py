"""DenyServiceExternalIPs: Services cannot add external IPs. Existing ones may stay or be removed."""

from __future__ import annotations

from typing import Final

from steersman.admission.interface import CREATE, UPDATE, Attributes, Plugin
from steersman.admission_plugins.declaration import Declaration
from steersman.machinery.identity.schema import GroupResource

_SERVICES: Final = GroupResource("", "services")


class DenyServiceExternalIPs(Plugin):
    """Refuses new external IPs: with them, users who may write Services could intercept others' traffic."""

    name = "DenyServiceExternalIPs"
    operations = frozenset({CREATE, UPDATE})
    resources = frozenset({_SERVICES})
    validates = True

    async def validate(self, attributes: Attributes) -> None:
        before = attributes.old.spec.external_ips if attributes.old is not None else ()
        if not {*attributes.obj.spec.external_ips} <= {*before}:
            raise attributes.forbid("Use of external IPs is denied by admission control")


DENY_SERVICE_EXTERNAL_IPS: Final = Declaration(
    DenyServiceExternalIPs, on_by_default=False, make=lambda dependencies: DenyServiceExternalIPs()
)
