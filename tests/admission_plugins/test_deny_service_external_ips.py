"""Tests of DenyServiceExternalIPs: Services keep or lose external IPs, but get no new ones."""

from __future__ import annotations

import pytest

from steersman.admission.interface import CREATE, UPDATE
from steersman.admission_plugins.deny_service_external_ips import DenyServiceExternalIPs
from steersman.api.core.v1 import Service, ServiceSpec
from steersman.api.meta.v1 import ObjectMeta
from steersman.registry.core.services.services import SERVICES
from tests.admission_plugins.writes import refusal, write_of

PLUGIN = DenyServiceExternalIPs()


def service(*addresses: str) -> Service:
    return Service(metadata=ObjectMeta(name="s", namespace="ns"), spec=ServiceSpec(external_ips=list(addresses)))


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (service("1.2.3.4"), None),
        (service("1.2.3.4"), service()),
        (service("1.2.3.4", "1.2.3.5"), service("1.2.3.4")),
    ],
)
async def test_no_address_is_added(new: Service, old: Service | None) -> None:
    write = write_of(SERVICES, new, CREATE if old is None else UPDATE, old=old)
    assert await refusal(PLUGIN.validate(write)) == (
        'services "s" is forbidden: Use of external IPs is denied by admission control'
    )


async def test_addresses_may_stay_and_go() -> None:
    await PLUGIN.validate(write_of(SERVICES, service()))
    for left in ((), ("1.2.3.5",), ("1.2.3.5", "1.2.3.4")):
        await PLUGIN.validate(write_of(SERVICES, service(*left), UPDATE, old=service("1.2.3.4", "1.2.3.5")))
